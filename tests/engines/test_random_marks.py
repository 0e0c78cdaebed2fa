"""DCTCP under random marks, in whole runs, against what a real Linux 7.3 does there."""

import polars as pl
import pytest

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.scenario import expand, load

SCENARIO = """
scenario: random-marks
title: "DCTCP, {percent} % of its packets marked"
source: none
duration: 270s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  bottleneck: {at: mid, direction: up, rate: 1gbit, qdisc: "netem loss {percent}% ecn limit 100000"}
hosts:
  offloads: false
  sysctl: {net.ipv4.tcp_ecn: 1, net.ipv4.tcp_rmem: 4096 131072 67108864, net.ipv4.tcp_wmem: 4096 131072 67108864}
flows: [{name: a, cc: dctcp}]
vary: {percent: ["1", "2"]}
run: "{percent}"
"""


def test_dctcps_mean_window_is_the_kernels(tmp_path):
    file = tmp_path / "random.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    report = campaign.run(expand(load(file)), tmp_path / "out", Execution(jobs=1))
    for done in report.runs:
        assert done.error is None, done.error
        run = results.read(done.path)
        cwnd = run.series.filter(pl.col("time") > 10, name="a", metric="cwnd")["value"].mean()
        p = float(done.path.name) / 100
        # Linux 7.3 with `netem delay 10ms loss P% ecn` at 1 Gbit/s, over 270 s: W p = 3.97 and 4.56
        assert cwnd * p == pytest.approx({0.01: 3.97, 0.02: 4.56}[p], rel=0.1)
