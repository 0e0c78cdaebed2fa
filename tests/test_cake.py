"""CAKE's shaper and isolation for 1, 2, 8 and 64 flows, in the simulator and in a real kernel if there is one."""

from pathlib import Path

import pytest

from bakeoff import campaign, results
from bakeoff.scenario import expand, load

FLOWS = """
scenario: cake-flows
title: "{flows} CUBIC flows through CAKE"
source: none
duration: 12s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  bottleneck: {at: mid, direction: up, qdisc: cake bandwidth 50mbit besteffort flows}
hosts: {sysctl: {net.ipv4.tcp_ecn: 1}}
flows: [{name: "f{n}", count: "{flows}", cc: cubic}]
measure: {steady_state: {window: 8s, ends: at end}}
vary: {flows: {"1": 1, "2": 2, "8": 8, "64": 64}}
run: "{flows}"
"""

# A second host beside cli: one flow from it meets N from the other.
HOSTS = """
scenario: cake-hosts
title: "One flow against {flows} of another host through CAKE"
source: none
duration: 12s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  nodes: {alone: host}
  links: [{ends: [alone, mid], delay: 1ms}]
  bottleneck: {at: mid, direction: up, qdisc: cake bandwidth 50mbit besteffort dual-srchost}
hosts: {sysctl: {net.ipv4.tcp_ecn: 1}}
flows: [{name: one, from: alone, to: srv, cc: cubic}, {name: "f{n}", count: "{flows}", from: cli, to: srv, cc: cubic}]
measure: {steady_state: {window: 8s, ends: at end}}
vary: {flows: {"1": 1, "2": 2, "8": 8, "64": 64}}
run: "{flows}"
"""


def goodputs(engine: str, folder: Path, scenario: str) -> dict[int, list[float]]:
    """By number of flows: each one's goodput in the steady state, in Mbit/s."""
    file = folder / "cake.yaml"
    file.write_text(scenario, encoding="utf-8")
    runs = campaign.run(expand(load(file)), folder / scenario.split()[1], engine=engine, jobs=1).runs
    found = {}
    for done in runs:
        assert done.error is None, done.error
        flows = results.read(done.path).summary["flows"]
        found[int(done.path.name)] = [flow["steady_state"]["goodput_bps"] / 1e6 for flow in flows.values()]
    return found


def shares(engine: str, folder: Path) -> dict[tuple[str, int], tuple[float, float, float, float]]:
    """By scenario and number of flows: the sum in Mbit/s; the lone host's part over the other's; among the others the
    least and the greatest over their mean."""
    found = {}
    for n, rates in goodputs(engine, folder, FLOWS).items():
        found["flows", n] = (sum(rates), 1.0, min(rates) * n / sum(rates), max(rates) * n / sum(rates))
    for n, (one, *rest) in goodputs(engine, folder, HOSTS).items():
        among = (min(rest) * n / sum(rest), max(rest) * n / sum(rest))
        found["hosts", n] = (one + sum(rest), one / sum(rest), *among)
    return found


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return shares("sim", tmp_path_factory.mktemp("sim"))


def test_the_rate_is_cakes_and_flows_and_hosts_get_equal_parts(ours):
    assert len(ours) == 8
    for (scenario, n), (total, host, least, most) in ours.items():
        # 50 Mbit/s of 1514-byte frames with 1448 bytes of payload; one CUBIC alone does not keep it busy all the time
        assert abs(total / (50 * 1448 / 1514) - 1) < (0.02 if (scenario, n) == ("flows", 1) else 0.005)
        # of 64 flows at two packets each, some are always between two deficits
        assert abs(host - 1) < (0.08 if n == 64 else 0.03)
        assert least > 0.97
        assert most < 1.03


def test_shaper_and_isolation_are_the_kernels(kernel, ours, tmp_path):
    real = shares(kernel, tmp_path)
    assert real.keys() == ours.keys()
    for which, (total, *parts) in real.items():
        assert abs(ours[which][0] / total - 1) < 0.005, which
        # Parts, one draw of each: within 0.02.
        assert ours[which][1:] == pytest.approx(parts, abs=0.02), which
