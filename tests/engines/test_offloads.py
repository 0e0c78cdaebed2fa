"""Offloads on: packets of several segments, in the simulator and in a real kernel if there is one."""

from pathlib import Path

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.scenario import expand, load

SCENARIO = """
scenario: offloads
title: A cubic flow through tail drop, in packets of several segments
source: none
duration: 6s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  bottleneck: {at: mid, shape: "htb rate 20mbit", qdisc: pfifo limit 60}
hosts: {sysctl: {net.ipv4.tcp_ecn: 0}, offloads: OFFLOADS}
flows: [{name: cubic, cc: cubic}]
"""


def bytes_per_packet(engine: str, folder: Path, *, offloads: bool) -> float:
    """Mean length of what stands in the bottleneck's queue, over the run."""
    file = folder / "offloads.yaml"
    file.write_text(SCENARIO.replace("OFFLOADS", "true" if offloads else "false"), encoding="utf-8")
    [done] = campaign.run(expand(load(file)), folder / f"{engine}-{offloads}", Execution(engine=engine, jobs=1)).runs
    assert done.error is None, done.error
    result = results.read(done.path)
    queue = {
        metric: result.series.filter(kind="queue", name="mid>srv", metric=metric)["value"].sum()
        for metric in ("backlog", "qlen")
    }
    return queue["backlog"] / queue["qlen"]


def check(engine: str, folder: Path) -> None:
    assert bytes_per_packet(engine, folder, offloads=False) == 1514
    # 20 % above 20 Mbit/s are 2.9 kB in 1/1024 s: two segments, and one by itself when the window has room for one.
    assert 1.5 * 1514 < bytes_per_packet(engine, folder, offloads=True) < 4 * 1514


def test_a_queue_holds_packets_of_several_segments_in_the_simulator(tmp_path):
    check("sim", tmp_path)


def test_a_queue_holds_packets_of_several_segments_in_a_real_kernel(kernel, tmp_path):
    check(kernel, tmp_path)
