"""run --notify: what is sent when a campaign has ended, to a web server of this machine."""

import json
import multiprocessing
import re
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path

import pytest

from bakeoff import results
from bakeoff.cli import notify
from fakes.runs import words

SECRET = "hunter2"

# apprise imports what Python 3.13 no longer has, where there is it.
pytestmark = [
    pytest.mark.usefixtures("fake_engine"),
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(cli):
    """The command line, with the fake engine for what does runs."""
    return lambda *arguments: cli(*words(*arguments))


@pytest.fixture
def server():
    """The URL to tell, and the list of what was told."""
    told = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"json://me:{SECRET}@127.0.0.1:{listening.server_port}/ended", told
        listening.shutdown()
        thread.join()


def test_success_is_told_with_counts_time_and_place(cli, folder, server):
    url, told = server
    assert cli("run", "fake/s1*", "--name", "x", "-q", "--notify", url)[::2] == (0, "")
    [message] = told
    assert (message["type"], message["title"]) == ("success", "bakeoff: all 3 runs done")
    counts, place = message["message"].splitlines()
    assert re.fullmatch(r"3 done in .* s", counts)
    assert place == f"results: {folder}/results/x"


def test_failure_is_told_apart_and_names_the_runs(cli, server):
    url, told = server
    assert cli("run", "*/violates", "*/a", "--name", "x", "-q", "--notify", url)[0] == 1
    [message] = told
    assert (message["type"], message["title"]) == ("failure", "bakeoff: 1 of 2 runs failed")
    lines = message["message"].splitlines()
    assert lines[0].startswith("1 done, 1 failed in ")
    assert lines[2].startswith("failed: fake/s2-second/violates: conservation: sent 10")


def test_what_ends_the_campaign_is_a_failure_too(cli, server):
    url, told = server
    Path("x").mkdir()
    Path("x/mine.txt").touch()
    assert cli("run", "fake/s1*", "--out", "x", "--notify", url)[0] == 2
    [message] = told
    assert (message["type"], message["title"]) == ("failure", "bakeoff: a campaign ended early")
    assert message["message"].startswith("x: not empty")


def test_no_result_keeps_where_it_was_told(cli, folder, server, monkeypatch):
    url, _ = server
    cli("run", "fake/s1*", "--out", "x", "--notify", url)
    assert not [path for path in Path("x").rglob("*") if path.is_file() and SECRET in path.read_text(errors="ignore")]
    assert results.read_campaign(Path("x")).provenance.command[-2:] == ("--notify", "…")
    cli("run", "fake/s1*", "--out", "y", f"--notify={url}")
    assert results.read_campaign(Path("y")).provenance.command[-1] == "--notify=…"


def test_a_message_that_is_not_sent_is_a_warning(cli, server):
    url, told = server
    nobody = url.replace("/ended", "").rpartition(":")[0] + ":1"
    code, out, err = cli("run", "fake/s1*", "--name", "x", "-q", "--notify", nobody)
    assert (code, out, told) == (0, "", [])
    assert err.startswith("bakeoff: warning: the notification to json://… was not sent")
    assert SECRET not in err


def test_a_server_that_never_ends_its_answer_holds_nobody(cli, monkeypatch):
    """It sends a header character by character, so that no reading of the socket times out."""
    monkeypatch.setattr(notify, "_PATIENCE_S", 5.0)
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            with suppress(ConnectionError):  # the other side was ended
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-More: ")
                while not ended.wait(0.05):
                    self.wfile.write(b"x")
            self.close_connection = True

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        url = f"json://127.0.0.1:{listening.server_port}/ended"
        try:
            code, _, err = cli("run", "fake/s1*", "--name", "x", "-q", "--notify", url)
        finally:
            ended.set()
            listening.shutdown()
            thread.join()
    assert code == 0
    assert err == "bakeoff: warning: the notification to json://… was not sent: timeout after 5 s\n"
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("url", ["nothing", f"wrong://me:{SECRET}@there", "json://", "mailto://"])
def test_a_wrong_url_is_refused_before_anything_runs(cli, url):
    code, _, err = cli("run", "fake/s1*", "--name", "x", "--notify", url)
    assert code == 2
    assert err.startswith("bakeoff: --notify: '")
    assert "is not an apprise URL; expected" in err
    assert SECRET not in err
    assert not Path("results").exists()
    assert cli("run", "fake/s1*", "--dry-run", "--notify", url)[0] == 2


def test_without_apprise_one_message_says_how_to_get_it(cli, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    code, _, err = cli("run", "fake/s1*", "--name", "x", "--notify", "json://there")
    assert (code, err.strip()) == (
        2,
        "bakeoff: --notify: needs the Python package apprise, which is not installed; install it: "
        "pip install 'bakeoff[notify]'",
    )
