"""What a kernel was found to have is asked once, and again when anything that it depends on has changed."""

import pytest

from bakeoff import campaign
from bakeoff.engines.kernel import check, check_cache, host_programs, virtual
from bakeoff.engines.kernel.boot import Outcome
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.lab import agent
from bakeoff.errors import UnreachableError
from bakeoff.scenario import catalog


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A kernel with one module, and the list of the times that it was booted to be asked."""
    for name in ("linux", "tcp_prague.ko", "bakeoff-agent", "tc"):
        (tmp_path / name).write_bytes(name.encode())
    monkeypatch.setattr(agent, "find", lambda: tmp_path / "bakeoff-agent")
    monkeypatch.setattr(host_programs, "find", lambda name: tmp_path / "tc" if name == "tc" else None)
    times = []

    def boot(kernel):
        times.append(kernel)
        boots = check.Finding("boot", "virtual time", kernel.fingerprint != "broken", "")
        found = check.Finding("cc", "prague", True, f"asked {len(times)} times")
        return check.Report(kernel.name, "7.3.4", kernel.fingerprint, (boots, found), {"cc": ["prague"], "qdisc": []})

    monkeypatch.setattr(check, "check_kernel", boot)
    return times


def kernel(folder, fingerprint="abc", foreign=False):
    return BuiltKernel("mine", folder / "linux", "7.3.4", fingerprint, {}, (folder / "tcp_prague.ko",), foreign=foreign)


def test_a_second_command_reads_what_the_first_one_was_told(tmp_path, asked):
    first = check_cache.report(kernel(tmp_path))
    assert check_cache.report(kernel(tmp_path)) == first
    assert len(asked) == 1
    assert [path.name for path in tmp_path.glob("*check*")] == ["check.json"]
    assert not list(tmp_path.glob(".check*"))


@pytest.mark.parametrize("changed", ["linux", "tcp_prague.ko", "bakeoff-agent", "tc", "check.json"])
def test_it_is_asked_again_when_something_has_changed(tmp_path, asked, changed):
    check_cache.report(kernel(tmp_path))
    (tmp_path / changed).write_bytes(b"another length than before")
    assert check_cache.report(kernel(tmp_path)).findings[1].why == "asked 2 times"


def test_another_configuration_of_the_same_name_is_asked_again(tmp_path, asked):
    check_cache.report(kernel(tmp_path))
    check_cache.report(kernel(tmp_path, fingerprint="def"))
    assert len(asked) == 2


def test_neither_a_kernel_that_did_not_boot_nor_a_foreign_one_is_remembered(tmp_path, asked):
    for _ in range(2):
        check_cache.report(kernel(tmp_path, fingerprint="broken"))
        check_cache.report(kernel(tmp_path, foreign=True))
    assert len(asked) == 4
    assert not (tmp_path / "check.json").exists()


def test_a_kernel_that_is_too_slow_to_say_what_it_has_ends_the_command_and_refuses_no_run(tmp_path, monkeypatch):
    hang = Outcome("hang", "out of its budget of 70 s", -9, 70.0, tmp_path / "console.log", confined=True, seeded=True)
    monkeypatch.setattr(host_programs, "need", lambda name: tmp_path / name)
    monkeypatch.setattr(check, "boot", lambda *_, **__: hang)
    monkeypatch.setattr(check_cache, "report", check.check_kernel)
    slow = virtual.VirtualTime()
    (tmp_path / "linux").write_bytes(b"")
    slow.__dict__["kernel"] = BuiltKernel("mine", tmp_path / "linux", "7.3.4", "abc", {}, (), foreign=False)
    monkeypatch.setattr("bakeoff.engines.get", lambda _: slow)
    [run] = catalog.select(["linux/single/reno-pfifo-10ms"], 1)
    # A refused run would be a verdict, "cannot be run here", of a kernel that can do it.
    with pytest.raises(
        UnreachableError, match="kernel mine: it did not report its features before the timeout: out of its budget"
    ):
        campaign.accepted([run], "kernel")
