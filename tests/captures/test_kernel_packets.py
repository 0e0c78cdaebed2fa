"""The simulator sends the packets of Linux 7.3, at its times.

`tests/data/kernel_packets` has the data packets of short runs of `linux/single` (seed 1) on the kernel engine: the run
and the end of the list in seconds, then per packet the time in ns since the SYN, sequence number, payload, flags and
ECN field.
"""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bakeoff.captures import packets
from bakeoff.cli.app import app

LISTS = sorted((Path(__file__).parent.parent / "data" / "kernel_packets").glob("*.txt"))
BOUND_NS = 20_000


@pytest.mark.parametrize("path", LISTS, ids=[path.stem for path in LISTS])
def test_the_simulator_sends_the_kernels_packets(path, tmp_path):
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    name, until = head.split()
    kernel = np.array([[int(word) for word in line.split()] for line in lines])
    words = ["run", "linux/single", "-k", name, "--set", "duration=2s", "--set", "measure.steady_state.window=1s"]
    words += ["--capture", "cli>mid", "--capture", "srv>mid", "--store", "none", "--quiet", "--out", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    [record] = tmp_path.rglob("run.json")
    stream = packets.read(record.parent)[0].up
    sent = stream.chosen((stream.payload > 0) & (stream.at_ns < float(until) * 1e9))
    ours = np.column_stack([sent.at_ns, sent.seq, sent.payload, sent.flags, sent.ecn])
    assert len(kernel) > 50
    assert ours[:, 1:].tolist() == kernel[:, 1:].tolist()
    assert np.abs(ours[:, 0] - kernel[:, 0]).max() <= BOUND_NS
