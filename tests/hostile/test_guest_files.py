"""What a guest leaves in its results folder: links, FIFOs and folders lead nobody out of it, and fail the run.

The guest is a shell script in the place of a kernel, started with the host's Landlock and without it.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest

from bakeoff import engines, files, results
from bakeoff.campaign import worker
from bakeoff.engines.kernel import boot, launch
from bakeoff.engines.lab import convert, pcapng
from bakeoff.errors import BakeoffError
from bakeoff.results import Provenance, layout
from kernel_boots import BANNER, POWER_OFF, boot_fake, needs_landlock
from scenario_texts import duel


@pytest.fixture
def no_landlock(monkeypatch, tmp_path):
    """A host whose kernel has no Landlock, where only what is looked at afterwards protects it."""
    copy = tmp_path / "launch.py"
    text = Path(launch.__file__).read_text()
    assert "    abi = landlock_abi(libc)\n" in text
    copy.write_text(text.replace("    abi = landlock_abi(libc)\n", "    abi = 0\n"))
    monkeypatch.setattr(boot, "_LAUNCH", copy)


@pytest.mark.parametrize(
    ("plant", "what"),
    [
        ("ln -s {outside} agent.tsv", "'agent.tsv' is a symbolic link"),
        ("ln {outside} agent.tsv", "'agent.tsv' is a hard link (the file has 2 names)"),
        ("mkfifo agent-status.json", "'agent-status.json' is a FIFO"),
        ("mkdir -p series.parquet/deep", "'series.parquet' is a folder"),
        ("rm console.log; ln -s {outside} console.log", "'console.log' is a symbolic link"),
        ("ln -s {outside} a; mkfifo b", "'a' is a symbolic link, 'b' is a FIFO"),
        ("rm console.log", "console.log: No such file or directory"),
    ],
)
def test_what_is_no_regular_file_is_named_and_deleted(no_landlock, tmp_path, plant, what):
    outside = tmp_path / "outside"
    outside.write_text("kept")
    outcome = boot_fake(tmp_path, f"{BANNER}cd {tmp_path}/results; {plant.format(outside=outside)}{POWER_OFF}")
    assert outcome.status == "failed"
    assert outcome.reason.endswith(f"deleted non-regular files from the guest's results: {what}")
    assert all(path.is_file() and not path.is_symlink() for path in (tmp_path / "results").iterdir())
    assert outside.read_text() == "kept"


@needs_landlock
def test_a_guest_cannot_make_special_files(tmp_path):
    outcome = boot_fake(
        tmp_path,
        f"{BANNER}cd {tmp_path}/results; ln -s / link; mkfifo fifo; echo plain > file; mv file moved{POWER_OFF}",
    )
    # It went on with what it may: a regular file, and to rename it.
    assert outcome.status == "ok", outcome.reason
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["console.log", "moved"]


class Planting:
    """An engine that goes wrong after something of its own was put where the worker writes next."""

    one_at_a_time = False
    repeatable = True

    def __init__(self, name: str, target: Path) -> None:
        self.name, self.target = name, target

    def execute(self, _run, folder):
        (folder / self.name).symlink_to(self.target)
        raise RuntimeError("the guest went wrong")

    def versions(self):
        return {"bakeoff": "0"}


@pytest.mark.parametrize("name", [layout.TEARDOWN_LOG, layout.RUN])
def test_the_worker_writes_through_no_link(monkeypatch, tmp_path, name):
    outside = tmp_path / "outside"
    outside.write_text("kept")
    monkeypatch.setattr(engines, "get", lambda _: Planting(name, outside))
    run = duel("cubic", "reno")
    task = worker.Task("kernel", "c", Provenance.model_construct())
    with pytest.raises(BakeoffError, match="cannot be written"):
        worker.execute(run, tmp_path / "run", task)
    assert outside.read_text() == "kept"
    assert not (tmp_path / "run").exists()


def test_measures_and_samples_are_written_through_no_link(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("kept")
    link = tmp_path / "counters.json"
    link.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        results.write_json(link, {})
    hard = tmp_path / "summary.json"
    hard.hardlink_to(outside)
    with pytest.raises(OSError, match="is a hard link"):
        results.write_json(hard, {})
    assert outside.read_text() == "kept"


def test_what_agents_wrote_is_read_through_no_link(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text('#{"error": null, "complete": true}\n')
    tsv = tmp_path / "agent.tsv"
    tsv.symlink_to(outside)
    for read in (convert.last_line, convert.series, files.plain_text):
        with pytest.raises(RuntimeError, match=re.escape("agent.tsv: is a symbolic link, not a regular file")):
            read(tsv)
    with pytest.raises(RuntimeError, match="is a symbolic link"):
        pcapng.convert(tsv, tmp_path / "x.pcapng", "a>b")
    tsv.unlink()
    os.mkfifo(tsv)
    # Nobody writes into it: to open it as other files are opened would never end.
    with pytest.raises(RuntimeError, match=re.escape("agent.tsv: is a FIFO, not a regular file")):
        convert.last_line(tsv)


def test_a_text_without_end_is_not_read(tmp_path):
    # A hole of 1 TiB takes no room on the disk.
    path = tmp_path / "agent-status.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(RuntimeError, match=re.escape("agent-status.json: is larger than 1048576 bytes")):
        files.plain_text(path, 1 << 20)
    with pytest.raises(RuntimeError, match=re.escape("its last line is longer than 1048576 bytes")):
        files.plain_last_line(path, 1 << 20)


def test_the_last_line_is_found_across_blocks(tmp_path):
    path = tmp_path / "agent.tsv"
    # Two blocks of 1 MiB and a little: the last line begins in the first of them.
    line = "x" * (2 << 20)
    path.write_text(f"first\n{line}\n")
    assert files.plain_last_line(path) == line
    path.write_text("only")
    assert files.plain_last_line(path) == "only"
    path.write_text("")
    assert files.plain_last_line(path) == ""


def test_samples_and_packets_without_end_are_not_read(tmp_path):
    tsv = tmp_path / "agent.tsv"
    tsv.write_bytes(b"")
    os.truncate(tsv, (1 << 30) + 1)
    with pytest.raises(RuntimeError, match=r"agent\.tsv: has 1,073,741,825 bytes; expected at most 1,073,741,824"):
        convert.series(tsv)
    # A pcap's head (nanoseconds, version 2.4, snapped at 128 bytes, Ethernet), and a packet that says it has 4 GiB.
    pcap = tmp_path / "a.pcap"
    pcap.write_bytes(
        struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1) + struct.pack("<IIII", 0, 0, 2**32 - 1, 60)
    )
    os.truncate(pcap, 1 << 40)
    with pytest.raises(RuntimeError, match="a packet of 4,294,967,295 bytes; expected at most 262,144"):
        pcapng.convert(pcap, tmp_path / "a.pcapng", "a>b")
