"""push and pull: what comes is whole, equal, and inside of its folder; what is there already stays."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import fsspec
import pytest

from bakeoff import results
from bakeoff.campaign import Execution, lock
from bakeoff.errors import BakeoffError
from bakeoff.results import Request, remote, survey
from fakes.runs import make, run_campaign

RUNS = ("a", "b", "c[1]*")
"""The last is a name that a file system could take for a pattern."""
CAPTURE = "mid-to-srv.pcapng"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A campaign of three runs, each with a capture, in results/c; nothing in memory://."""
    monkeypatch.chdir(tmp_path)
    run_campaign(
        [make(name) for name in RUNS], Path("results/c"), Execution(jobs=1), request=Request(patterns=("fake/s1*",))
    )
    for path in results.scan("results/c"):
        (path / CAPTURE).write_bytes(b"packets")
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    return tmp_path


@pytest.fixture(params=["path", "memory"])
def url(request, here):
    return str(here / "elsewhere" / "c") if request.param == "path" else "memory://elsewhere/c"


def content(root):
    return {path.relative_to(root): path.read_bytes() for path in Path(root).rglob("*") if path.is_file()}


def run(name, root="results/c"):
    return Path(root, "fake", "s1-first", name)


def there():
    """The campaign, as somebody who can write there sees it."""
    remote.push(survey(Path("results/c")).results, "memory://elsewhere/c")
    return fsspec.filesystem("memory")


def test_what_comes_back_is_what_went(cli, here, url):
    code, out, _ = cli("push", "results/c", url)
    assert (code, out.startswith("3 runs (")) == (0, True)
    code, out, _ = cli("pull", url, "results/back")
    assert (code, out.splitlines()[1]) == (0, "results: results/back")
    assert content("results/back") == content("results/c")
    assert sorted(path.name for path in Path("results").iterdir()) == ["back", "c"]


def test_captures_may_stay(cli, here, url):
    cli("push", "results/c", url, "--no-captures")
    cli("pull", url, "back")
    assert content("back") == {path: text for path, text in content("results/c").items() if path.name != CAPTURE}
    assert cli("push", "results/c", url, "--update")[1].startswith("3 runs (")
    cli("pull", url, "all")
    assert content("all") == content("results/c")
    (run("a", "all") / "summary.json").unlink()
    assert cli("pull", url, "all", "--update", "--no-captures")[1].startswith("1 run (")
    assert content("all") == content("results/c")  # its own capture is there still


def test_single_runs_go_with_their_campaign(cli, here, url):
    assert cli("push", str(run("b")), url)[1].startswith("1 run (")
    cli("pull", url, "back")
    assert [path.name for path in results.scan("back")] == ["b"]
    assert results.read_campaign(Path("back")) == results.read_campaign(Path("results/c"))
    cli("push", "results/c", url, "--update")
    cli("pull", url, "chosen", "-k", "re:/a$")
    assert [path.name for path in results.scan("chosen")] == ["a"]


def test_what_is_there_is_refused_and_only_what_changed_goes_with_update(cli, here, url):
    cli("push", "results/c", url)
    code, _, err = cli("push", "results/c", url)
    assert (code, "already exists" in err) == (2, True)
    cli("pull", url, "back")
    before = content("back")
    code, _, err = cli("pull", url, "back")
    assert (code, "back: already exists" in err) == (2, True)
    document = json.loads((run("a") / "run.json").read_text())
    (run("a") / "run.json").write_text(json.dumps(document | {"wall_s": 7.0}, indent=1))
    (run("a") / CAPTURE).unlink()
    shutil.rmtree(run("b"))
    assert re.match(r"1 run \(.* copied, 1 unchanged, to ", cli("push", "results/c", url, "--update")[1])
    shutil.rmtree(run("c[1]*", "back"))
    assert re.match(r"2 runs \(.* copied, 1 unchanged, from ", cli("pull", url, "back", "--update")[1])
    assert content(run("a", "back")) == content(run("a"))
    assert run("a") / CAPTURE not in content("back")
    assert content(run("b", "back")) == {
        path.relative_to("fake/s1-first/b"): text for path, text in before.items() if "b" in path.parts
    }


@pytest.mark.parametrize(
    "place",
    ["results/c", "results/c/inside", "results/c/fake", "file://{here}/results/c/x", "link/x", "results", "other/x"],
)
def test_nothing_is_copied_into_itself_or_into_a_campaign(cli, here, place):
    (here / "link").symlink_to("results/c")
    shutil.copytree("results/c", "other")
    before = content(here)
    for words in (("push", "results/c", place.format(here=here)), ("pull", "results/c", place.format(here=here))):
        if words[0] == "pull" and "://" in place:
            continue
        for update in ((), ("--update",)):
            code, _, err = cli(*words, *update)
            assert (code, err.count("\n")) == (2, 1)
            assert re.search(r"overlaps the source|inside the folder of a campaign", err), err
    assert content(here) == before


def test_nothing_is_removed_or_replaced_while_a_campaign_writes(cli, here):
    cli("push", "results/c", "elsewhere")
    before = content(here)
    with lock.locked(Path("results/c")):
        for words in (
            ("rm", "results/c", "--yes"), ("rm", str(run("a")), "--yes"),
            ("pull", "elsewhere", "results/c", "--update"),
        ):  # fmt: skip
            code, _, err = cli(*words)
            assert (code, f"a campaign (process {os.getpid()}) is writing to" in err) == (2, True)
        (run("a").parent / ".b.7.partial").mkdir()
        assert cli("rm", str(run("a").parent / ".b.7.partial"), "--yes")[0] == 2
        (run("a").parent / ".b.7.partial").rmdir()
    assert content(here) == before
    Path("results/c/.lock").write_text("1\n")  # a crash left it
    assert cli("rm", str(run("a")), "--yes")[0] == 0
    Path("results/c/.lock").unlink()
    os.mkfifo("results/c/.lock")
    assert cli("rm", "results/c", "--yes")[0] == 0
    assert not Path("results/c").exists()


def test_another_campaign_is_never_mixed_in(cli, here, url):
    cli("push", "results/c", url)
    other = results.read_campaign(Path("results/c")).model_copy(update={"id": "another"})
    results.write_campaign(Path("results/c"), other)
    before = content("results/c")
    for words in (("push", "results/c", url), ("pull", url, "results/c")):
        code, _, err = cli(*words, "--update")
        assert (code, "a different campaign than results/c" in err) == (2, True) or "a different campaign than" in err
    assert content("results/c") == before


def test_a_push_that_was_cut_off_left_no_run_that_counts_and_is_gone_on_with(here, monkeypatch):
    """Three runs are one batch: all but their run.json come first."""
    put = remote.Elsewhere.put

    def cut(self, files):
        if any(name.endswith("run.json") for name in files):
            raise BakeoffError("the line is cut")
        put(self, files)

    monkeypatch.setattr(remote.Elsewhere, "put", cut)
    whole = survey(Path("results/c")).results
    with pytest.raises(BakeoffError, match="the line is cut"):
        remote.push(whole, "elsewhere")
    assert survey(Path("elsewhere")).results == []
    with pytest.raises(BakeoffError, match="no matching run"):
        remote.pull("elsewhere", Path("back"))
    monkeypatch.undo()
    os.chdir(here)
    assert remote.push(whole, "elsewhere", update=True).runs == 3
    assert content("elsewhere") == content("results/c")


def test_a_pull_that_fails_leaves_nothing(here, monkeypatch):
    there()
    get = remote.Elsewhere.get

    def cut(self, files):
        get(self, files)
        if len(files) > 1:
            raise OSError(28, "No space left on device", "series.parquet")

    monkeypatch.setattr(remote.Elsewhere, "get", cut)
    with pytest.raises(BakeoffError, match=r"^series.parquet: No space left on device$"):
        remote.pull("memory://elsewhere/c", Path("results/back"))
    assert sorted(path.name for path in Path("results").iterdir()) == ["c"]


def test_what_is_not_whole_there_is_left_out_and_said(cli, here):
    memory = there()
    memory.rm_file("/elsewhere/c/fake/s1-first/a/run.json")
    memory.pipe_file("/elsewhere/c/fake/s1-first/b/series.parquet", b"PAR1")
    code, out, err = cli("pull", "memory://elsewhere/c", "back")
    assert (code, out.startswith("1 run (")) == (0, True)
    assert "skipped, incomplete at the source: fake/s1-first/a (it has no run.json) and 1 more" in err
    assert [path.name for path in results.scan("back")] == ["c[1]*"]
    assert not run("b", "back").exists()


@pytest.mark.parametrize(
    "name", ["fake/s1-first/../../../../out/run.json", "fake//a/run.json", "fake/s1/\x1b[2J/run.json"]
)
def test_a_name_that_leads_elsewhere_is_refused(here, monkeypatch, name):
    memory = there()
    memory.store[f"/elsewhere/c/{name}"] = memory.store["/elsewhere/c/fake/s1-first/a/run.json"]
    found = memory.find("/elsewhere/c", detail=True) | {
        f"/elsewhere/c/{name}": {"name": f"/elsewhere/c/{name}", "type": "file", "size": 1}
    }
    monkeypatch.setattr(type(memory), "find", lambda *_, **__: found)
    with pytest.raises(
        BakeoffError, match=r"^memory://elsewhere/c: contains a file named '.*', outside the folder"
    ) as told:
        remote.pull("memory://elsewhere/c", Path("back"))
    assert str(told.value).isprintable()
    assert sorted(path.name for path in here.iterdir()) == ["results"]


def test_a_link_there_is_refused(here):
    shutil.copytree("results/c", "theirs")
    (run("a", "theirs") / "setup.log").unlink(missing_ok=True)
    (run("a", "theirs") / "setup.log").symlink_to("/etc/passwd")
    with pytest.raises(BakeoffError, match=r"theirs: fake/s1-first/a/setup.log is a link; expected a regular file"):
        remote.pull("theirs", Path("back"))
    assert not Path("back").exists()


def test_a_pipe_there_is_told_and_not_waited_for(here):
    os.mkfifo("pipe")
    with pytest.raises(BakeoffError, match=r"^pipe: is not a regular file; expected a folder$"):
        remote.pull("pipe", Path("back"))
    shutil.copytree("results/c", "theirs")
    (run("a", "theirs") / "setup.log").unlink(missing_ok=True)
    os.mkfifo(run("a", "theirs") / "setup.log")
    with pytest.raises(BakeoffError, match=r"s1-first/a/setup.log is a pipe, a device or a socket; expected a regular"):
        remote.pull("theirs", Path("back"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://bucket/c", r"^s3://bucket/c: needs the Python package s3fs, .* pip install 'bakeoff\[remote\]'$"),
        ("sftp://me:secret@h/c", r"^sftp://me@h/c: needs the Python package sshfs, .* 'bakeoff\[remote\]'$"),
        ("https://h/c", r"^https://h/c: 'https': unknown protocol; expected a path, sftp://HOST/FOLDER,"),
        ("zip::/tmp/a.zip", r"^zip::/tmp/a.zip: 'zip': unknown protocol"),
        ("memory://", r"^memory://: missing folder; expected"),
        ("results/c/campaign.json", r"^results/c/campaign.json: is a file; expected a folder$"),
        ("nowhere", r"^nowhere: no matching run; expected a campaign folder"),
    ],
)
def test_what_is_no_place_is_one_message(cli, here, monkeypatch, url, message):
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    monkeypatch.setitem(__import__("sys").modules, "sshfs", None)
    code, _, err = cli("pull", url, "back")
    assert code == 2
    assert re.search(message, err.removeprefix("bakeoff: ").strip())
    assert not Path("back").exists()


def test_through_a_real_sshd(cli, here, tmp_path, monkeypatch):
    """An sshd that serves one connection on its standard input, as ~/.ssh/config asks for; a stranger is refused."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if sshd is None or shutil.which("ssh-keygen") is None:
        pytest.skip("openssh-server is not installed")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    for name in ("host", "key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)]
        subprocess.run(command, check=True, capture_output=True)
    (home / "sshd_config").write_text(
        f"HostKey {home}/host\nAuthorizedKeysFile {home}/key.pub\nUsePAM no\nStrictModes no\n"
        "PermitRootLogin prohibit-password\nPidFile none\nSubsystem sftp internal-sftp\n"
    )
    (home / ".ssh/config").write_text(
        f"Host lab\n  ProxyCommand {sshd} -i -E {home}/log -f {home}/sshd_config\n  IdentityFile {home}/key\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    url = f"sftp://lab{tmp_path}/elsewhere/c"
    code, _, err = cli("push", "results/c", url)
    assert (code, "sftp://lab" in err, "trusted" in err) == (2, True, True), err
    (home / ".ssh/known_hosts").write_text(f"lab {(home / 'host.pub').read_text()}")
    assert cli("push", "results/c", url)[0] == 0
    assert content("elsewhere/c") == content("results/c")
    assert cli("pull", url, "back")[0] == 0
    assert content("back") == content("results/c")
    assert cli("push", "results/c", url, "--update")[1].startswith("0 runs (0 B) copied, 3 unchanged")
