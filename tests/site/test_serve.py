"""`bakeoff serve`: pages that follow a results folder, to this machine and to be read only."""

import http.client
import json
import os
import shutil
import socket
import threading
from contextlib import ExitStack

import pytest

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.errors import BakeoffError
from bakeoff.scenario import catalog
from bakeoff.site import server
from bakeoff.site.live import Live
from bakeoff.site.server import Server, parts_of

SCENARIO = {
    "scenario": "s",
    "title": "t",
    "duration": "2s",
    "network": {"path": ["cli", "mid", "srv"], "rtt": "10ms", "bottleneck": {"rate": "10mbit", "qdisc": "{qdisc}"}},
    "flows": [{"name": "f", "cc": "reno"}, {"name": "g", "cc": "cubic"}],
    "vary": {"qdisc": {"pfifo": "pfifo", "fq_codel": "fq_codel"}},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A campaign of two runs."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "mine.yaml").write_text(json.dumps(SCENARIO))
    assert not campaign.run(catalog.select(str(folder / "mine.yaml")), folder / "c", Execution(jobs=1)).failed
    return folder / "c"


@pytest.fixture
def root(done, tmp_path):
    shutil.copytree(done, tmp_path / "c")
    return tmp_path / "c"


@pytest.fixture
def live(root, tmp_path):
    (tmp_path / "private").mkdir()
    return Live(root, tmp_path / "private", least_s=0.0)


@pytest.fixture
def ask(live):
    """Send a request as it is written, and return the status, the headers and the content of the answer."""
    with Server(live, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def call(path, method="GET", host=None):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.putrequest(method, path, skip_host=True)
            for name in [f"127.0.0.1:{server.port}"] if host is None else host:
                connection.putheader("Host", name)
            connection.endheaders()
            answer = connection.getresponse()
            found = answer.status, dict(answer.getheaders()), answer.read()
            connection.close()
            return found

        call.port = server.port
        yield call
        server.shutdown()
        thread.join()


def runs(live):
    text = live.content(("data", "runs.js")).decode()
    return [run["id"] for run in json.loads(text.removeprefix("bakeoff.overview(").removesuffix(");\n"))["runs"]]


def below(folder):
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


def test_all_pages_of_the_site_are_there_and_nothing_is_written_to_the_results(ask, root):
    before = below(root)
    for path in ("/", "/index.html", "/compare.html", "/data/runs.js", "/live.json", "/assets/style.css"):
        assert ask(path)[0] == 200, path
    for path in ("/runs/local/s/pfifo/index.html", "/runs/local/s/pfifo/measures.js"):
        status, headers, content = ask(path)
        assert (status, int(headers["Content-Length"])) == (200, len(content)), path
    assert b"live.js" in ask("/")[2]
    assert below(root) == before


@pytest.mark.parametrize(
    "path",
    [
        "/../secret", "/runs/../../secret", "/%2e%2e/secret", "/..%2fsecret", "/assets/..%5c..%5csecret",
        "/runs/local/s/pfifo/../../../../secret", "/runs/local/s/pfifo/%2e%2e/%2e%2e/%2e%2e/secret", "/%00",
        "//secret", "/assets//style.css", "/assets/%ff", "/%252e%252e/secret", "secret",
        "/runs/local/s/pfifo/run.json/x", "/campaign.json", "/local/s/pfifo/run.json",
    ],
)  # fmt: skip
def test_no_address_leads_out_of_the_site(ask, root, live, path):
    (root.parent / "secret").write_text("precious")
    (live.private / "secret").write_text("precious")
    status, _, content = ask(path)
    assert status in (400, 404)
    assert b"precious" not in content


def test_no_link_leads_out_of_the_site(ask, root, live):
    (root.parent / "secret").write_text("precious")
    (live.private / "assets" / "link.js").symlink_to(root.parent / "secret")
    assert ask("/assets/link.js")[0] == 404
    assert ask("/runs/local/s/pfifo/index.html")[0] == 200
    [folder] = (live.private / "pages").iterdir()
    (folder / "away").symlink_to(root.parent)
    assert ask("/runs/local/s/pfifo/away/secret")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_there_is_only_reading(ask, method):
    status, headers, _ = ask("/", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_tells_the_same_without_the_content(ask):
    length = len(ask("/assets/style.css")[2])
    status, headers, content = ask("/assets/style.css", "HEAD")
    assert (status, int(headers["Content-Length"]), content) == (200, length, b"")
    assert ask("/nothing", "HEAD")[::2] == (404, b"")


def test_only_the_own_name_is_answered(ask):
    port = ask.port
    assert ask("/", host=[f"localhost:{port}"])[0] == 200
    for host in ["evil.example"], [f"evil.example:{port}"], ["127.0.0.1"], [f"127.0.0.1:{port}", "evil.example"], []:
        status, _, content = ask("/live.json", host=host)
        assert status == 421, host
        assert b"version" not in content


def test_at_the_port_of_http_the_name_stands_alone(ask, monkeypatch):
    monkeypatch.setattr(server, "_HTTP_PORT", ask.port)
    for host in ("127.0.0.1", "localhost", "LOCALHOST", f"127.0.0.1:{ask.port}"):
        assert ask("/", host=[host])[0] == 200
    for host in ("evil.example", "127.0.0.1:80", "127.0.0.1:", "127.0.0.2", "localhost.evil.example"):
        assert ask("/", host=[host])[0] == 421


def test_a_hundred_connections_wait_at_a_time(live):
    """As many browsers, before any is served; one too many would have to connect again after a second or more."""
    with Server(live, 0) as listening, ExitStack() as several:
        for _ in range(100):
            several.enter_context(socket.create_connection(("127.0.0.1", listening.port), timeout=30))


def test_answers_forbid_what_a_page_does_not_need(ask):
    for path in ("/", "/assets/theme.js", "/nothing"):
        headers = ask(path)[1]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers


def test_runs_appear_as_they_end_and_vanish(live, root, tmp_path):
    shutil.move(root / "local" / "s" / "pfifo", tmp_path / "aside")
    assert runs(live) == ["local/s/fq_codel"]
    version = live.news()["version"]
    assert live.news()["version"] == version
    shutil.move(tmp_path / "aside", root / "local" / "s" / "pfifo")
    assert live.news()["version"] == version + 1
    assert runs(live) == ["local/s/fq_codel", "local/s/pfifo"]
    assert live.content(("runs", "local", "s", "pfifo", "index.html")) is not None
    shutil.rmtree(root / "local" / "s" / "pfifo")
    assert runs(live) == ["local/s/fq_codel"]
    assert live.content(("runs", "local", "s", "pfifo", "index.html")) is None
    shutil.rmtree(root)
    news = live.news()
    assert (news["done"], len(news["unreadable"])) == (0, 1)
    assert b"No run has ended yet" in live.content(())


def test_the_progress_of_a_campaign(live, root):
    news = live.news()
    assert (news["running"], news["done"], news["wanted"], news["underWay"]) == (False, 2, 2, [])
    shutil.move(root / "local" / "s" / "pfifo", root / "local" / "s" / f".pfifo.{os.getpid()}.partial")
    news = live.news()
    assert (news["running"], news["done"], news["halfWritten"]) == (False, 1, 1)
    (root / ".lock").write_text(f"{os.getpid()}\n")
    news = live.news()
    assert (news["running"], news["underWay"], news["halfWritten"]) == (True, ["local/s/pfifo"], 0)


def test_what_cannot_be_read_is_told_and_the_rest_is_shown(ask, live, root):
    run = root / "local" / "s" / "pfifo"
    (run / "summary.json").write_text('{"format": 4, "suite": "<b>\x1b[31m"')
    news = live.news()
    assert runs(live) == ["local/s/fq_codel"]
    [told] = news["unreadable"]
    assert str(run) in told
    assert "\x1b" not in told
    (run / "run.json").write_text("{")
    assert runs(live) == ["local/s/fq_codel"]
    # Its samples are gone when somebody asks for its page.
    (root / "local" / "s" / "fq_codel" / "series.parquet").unlink()
    status, headers, _ = ask("/runs/local/s/fq_codel/index.html")
    assert (status, headers["Content-Type"]) == (503, "text/plain; charset=utf-8")
    assert ask("/")[0] == 200


def test_a_failed_run_is_told_with_its_reason(live, root):
    path = root / "local" / "s" / "pfifo" / "run.json"
    record = json.loads(path.read_text()) | {"status": "failed", "error": "no tc here", "digest": None}
    path.write_text(json.dumps(record))
    assert live.news()["failed"] == 1
    assert b"no tc here" in live.content(("data", "runs.js"))
    assert "no tc here" in live.content(("runs", "local", "s", "pfifo", "index.html")).read_text()


def test_pages_that_take_long_are_made_beside_the_others(root, tmp_path):
    shutil.copytree(root, tmp_path / "both" / "one")
    shutil.copytree(root, tmp_path / "both" / "two")
    (tmp_path / "private").mkdir()
    live = Live(tmp_path / "both", tmp_path / "private", least_s=0.0)
    live.news()
    for thread in threading.enumerate():
        if thread.daemon and thread.name.startswith("Thread") and "_made_later" in thread.name:
            thread.join()
    assert live.news()["pages"] == ["sides.html"]
    assert b"sim in one beside sim in two" in live.content(("sides.html",))
    assert b'href="sides.html"' in live.content(())


def test_few_pages_are_kept(live, root, monkeypatch):
    monkeypatch.setattr("bakeoff.site.live._KEPT", 1)
    first = live.content(("runs", "local", "s", "pfifo", "index.html"))
    assert live.content(("runs", "local", "s", "fq_codel", "index.html")).is_file()
    assert not first.exists()


def test_a_port_that_is_taken_is_told(live):
    with Server(live, 0) as server, pytest.raises(BakeoffError, match=rf"--port: cannot listen on {server.port}"):
        Server(live, server.port)


def test_the_command_needs_a_folder(cli, tmp_path):
    code, _, err = cli("serve", str(tmp_path / "none"))
    assert code == 2
    assert "no such results folder" in err


def test_parts_are_decoded_once():
    assert parts_of("/") == ()
    assert parts_of("/runs/a%20b?x=/../y") == ("runs", "a b")
    assert parts_of("/%252e%252e") == ("%2e%2e",)
    assert parts_of("http://elsewhere/a") == ("a",)


def test_a_campaign_says_how_many_runs_it_was_begun_for(root):
    assert results.read_campaign(root).runs == 2
