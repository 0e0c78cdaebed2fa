"""Which core a virtual-time kernel and its guest keep to."""

from __future__ import annotations

import os
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest

from bakeoff.engines.kernel import boot, core, registry
from kernel_boots import executable, fake_linux

# What a guest's process may use, from the shell that stands in the kernel's place.
_TELL = """
while read word value; do [ "$word" = Cpus_allowed_list: ] && echo "cores $value"; done < /proc/self/status
echo 'Linux version 7.3.4 (x) #1'
echo 'reboot: Power down'
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No other kernel of this machine counts."""
    monkeypatch.setattr(core, "_NAME", f"\0bakeoff-test-{uuid.uuid4()}-{{core}}-{{boots}}")


@pytest.fixture
def guest_cores(tmp_path):
    """The cores of a guest that is booted now."""
    (tmp_path / "results").mkdir()
    (tmp_path / "script.json").write_text("{}")
    init = executable(tmp_path / "init", "#!/bin/sh\n")
    kernel = registry.get(fake_linux(tmp_path / "linux", _TELL))

    def run() -> str:
        outcome = boot.boot(kernel, tmp_path / "script.json", results=tmp_path / "results", init=init, simulated_s=1)
        assert outcome.status == "ok", outcome.reason
        [line] = [line for line in outcome.console.read_text().splitlines() if line.startswith("cores ")]
        return line.removeprefix("cores ")

    return run


def test_boots_spread_over_the_cores_and_then_share_them(monkeypatch):
    # Cores 2 and 5 were given: five boots at once get 2, 5, 2, 5, 2, and the core of one that ends is free again.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5, 2}, raising=False)
    with ExitStack() as boots:
        assert [boots.enter_context(core.taken()) for _ in range(3)] == [2, 5, 2]
        with core.taken() as fourth, core.taken() as fifth:
            assert (fourth, fifth) == (5, 2)
        with core.taken() as next_one:
            assert next_one == 5
    with core.taken() as first:
        assert first == 2


def test_a_guest_has_one_core_of_those_that_bakeoff_was_started_with(guest_cores):
    given = os.sched_getaffinity(0)
    one, *others = sorted(given)
    assert guest_cores() == str(one)
    with core.taken():
        # Another kernel has the first one.
        assert guest_cores() == str(others[0] if others else one)
    assert os.sched_getaffinity(0) == given
    try:
        os.sched_setaffinity(0, {max(given)})
        assert guest_cores() == str(max(given))
    finally:
        os.sched_setaffinity(0, given)


def test_a_machine_that_binds_nothing_to_a_core_runs_its_guests_on_all(monkeypatch, guest_cores):
    with monkeypatch.context() as without:
        without.delattr(os, "sched_getaffinity")
        everywhere = guest_cores()
    assert f"Cpus_allowed_list:\t{everywhere}\n" in Path("/proc/self/status").read_text()
