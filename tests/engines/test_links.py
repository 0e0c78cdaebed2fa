"""Links and timed changes, from YAML through the simulator: each figure is worked out beside its test."""

import json
import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from bakeoff import _sim
from bakeoff.engines.lab.planner import plan
from bakeoff.errors import BakeoffError, RefusedError
from bakeoff.scenario import expand, json_schema, load
from lab_runs import in_virtual_time

# A datagram of 1222 B is a frame of 1264 B: 8 + 20 + 14.
FLOOD = "{name: a, transport: udp, source: {rate: 40mbit, size: 1222B}}"
PAYLOAD, FRAME = 1222, 1264


class Result:
    """One run of the simulator."""

    def __init__(self, document):
        outcome = _sim.simulate(document)
        self.counters = json.loads(outcome["counters"])
        self.outcome = outcome

    def series(self, kind, name, metric):
        at = self.outcome["names"].index((kind, name, metric))
        rows = self.outcome["series"] == at
        return self.outcome["time"][rows], self.outcome["value"][rows]

    def rate(self, flow, start, stop):
        """Payload bit/s between two samples."""
        time, received = self.series("flow", flow, "received")
        return (received[time <= stop + 1e-9][-1] - received[time <= start + 1e-9][-1]) * 8 / (stop - start)

    def rtts(self, probe, start=0.0, stop=1e9):
        time, rtt = self.series("probe", probe, "rtt")
        return rtt[(time >= start) & (time < stop)]


def resolved(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(dedent(text))
    (run,) = expand(load(path))
    return run


def pair(tmp_path, link, flows=FLOOD, more="", duration="6s"):
    """Two hosts and one link."""
    return resolved(
        tmp_path,
        f"""
        duration: {duration}
        start_jitter: 0s
        network: {{nodes: {{c: host, s: host}}, links: [{{ends: [c, s], {link}}}]}}
        flows:
          - {{from: c, to: s, {flows[1:]}
        {more}
        """,
    )


def run(tmp_path, link, flows=FLOOD, more="", duration="6s"):
    return Result(pair(tmp_path, link, flows, more, duration).to_json())


PROBE = "probes: [{name: p, type: icmp, from: c, to: s, every: 10.3ms}]"
QUIET = "{name: a, transport: udp, source: {rate: 1kbit, size: 100B}}"
DUMBBELL = """
duration: 12s
start_jitter: 0s
network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 20mbit, qdisc: pfifo limit 100}}
flows: [{name: a, transport: udp, source: {rate: 40mbit, size: 1222B}}]
probes: [{name: p, type: icmp, every: 50ms}]
"""


# Timed changes


def test_a_rate_step_of_the_shaper(tmp_path):
    result = Result(resolved(tmp_path, DUMBBELL + "changes: [{at: 6s, rate: 5mbit}]\n").to_json())
    # htb counts frames: 20 Mbit/s * 1222/1264, then a quarter
    assert result.rate("a", 2, 6) == pytest.approx(20e6 * PAYLOAD / FRAME, rel=0.001)
    assert result.rate("a", 8, 12) == pytest.approx(5e6 * PAYLOAD / FRAME, rel=0.002)


def test_a_schedule_is_the_same_run_as_its_changes(tmp_path):
    written = resolved(
        tmp_path, DUMBBELL + "changes: [{at: 4s, rate: 5mbit}, {at: 8s, rate: 10mbit}, {at: 5s, rtt: 80ms}]\n"
    )
    spread = DUMBBELL.replace("rate: 20mbit", "rate: [[0s, 20mbit], [4s, 5mbit], [8s, 10mbit]]")
    spread = spread.replace("rtt: 20ms", "rtt: [[0s, 20ms], [5s, 80ms]]")
    assert resolved(tmp_path, spread) == written
    result = Result(written.to_json())
    assert result.rate("a", 9, 12) == pytest.approx(10e6 * PAYLOAD / FRAME, rel=0.002)


def test_a_schedule_of_one_direction(tmp_path):
    lanes = DUMBBELL.replace(
        "{rate: 20mbit, qdisc: pfifo limit 100}", "{rate: [[0s, 9mbit], [1s, 8mbit]], qdisc: fq, up: {rate: 5mbit}}"
    )
    made = resolved(tmp_path, lanes).changes
    assert [(c.at_s, c.node, c.peer, c.action.class_) for c in made] == [(1.0, "mid", "cli", "rate 8mbit ceil 8mbit")]


def test_a_schedule_of_a_link_changes_both_directions(tmp_path):
    # 4 Mbit/s of payload in 1222 of 1264 B, and a delay of 2 + 2 ms, then 20 + 20 ms
    link = "rate: [[0s, 4mbit], [3s, 8mbit]], delay: [[0s, 2ms], [3s, 20ms]]"
    result = run(tmp_path, link)
    assert result.rate("a", 1, 3) == pytest.approx(4e6 * PAYLOAD / FRAME, rel=0.002)
    assert result.rate("a", 4, 6) == pytest.approx(8e6 * PAYLOAD / FRAME, rel=0.002)
    rtts = run(tmp_path, link, QUIET, PROBE)
    # 98 B of frame at 4 and 8 Mbit/s, both ways: 392 us and 196 us
    assert np.min(rtts.rtts("p", 0, 2.9)) == pytest.approx(0.004392, abs=1e-6)
    assert np.min(rtts.rtts("p", 3.1)) == pytest.approx(0.040196, abs=1e-6)


def test_a_schedule_of_loss(tmp_path):
    result = run(tmp_path, "loss: [[0s, 0%], [3s, 50%]], rate: 100mbit")
    # 40 Mbit/s of payload, then half of it: 12 275 datagrams in 3 s, deviation 55
    assert result.rate("a", 1, 3) == pytest.approx(40e6, rel=0.001)
    assert result.rate("a", 3, 6) == pytest.approx(20e6, rel=4 * 55 / 6138)


def test_outages(tmp_path):
    result = run(tmp_path, "rate: 100mbit, down: [[1s, 1.5s], [3s, 5s]]")
    assert result.rate("a", 1.05, 1.5) == 0
    assert result.rate("a", 2, 3) == pytest.approx(40e6, rel=0.001)
    assert result.rate("a", 3.05, 5) == 0
    assert result.rate("a", 5.05, 6) == pytest.approx(40e6, rel=0.002)
    made = pair(tmp_path, "down: [[1s, 1.5s]]").changes
    assert [(c.at_s, c.node, c.action.up) for c in made] == [
        (1.0, "c", False), (1.0, "s", False), (1.5, "c", True), (1.5, "s", True),
    ]  # fmt: skip


def test_change_keeps_the_packets_and_replace_loses_them(tmp_path):
    # A full pfifo of 100 behind the shaper: change keeps the queue, replace throws it away.
    dropped = {}
    for action in ("change: pfifo limit 100", "replace: pfifo limit 100"):
        result = Result(resolved(tmp_path, DUMBBELL + f"changes: [{{at: 6s, {action}, direction: up}}]\n").to_json())
        dropped[action[:6]] = result.counters["conservation"]["dropped"]
    # what was thrown away is refilled at once: 100 more are dropped, 100 fewer for want of room
    assert dropped["change"] == dropped["replac"]
    for action, least in (("change", 99), ("replace", 0)):
        text = DUMBBELL + f"changes: [{{at: 6s, {action}: pfifo limit 100, direction: up}}]\nsample_interval: 1ms\n"
        time, backlog = Result(resolved(tmp_path, text).to_json()).series("queue", "mid>srv", "qlen")
        just_after = backlog[(time > 6.0005) & (time < 6.0035)]
        assert just_after.min() >= least
        assert action == "change" or just_after.max() <= 20  # 4 datagrams a millisecond come


def test_a_whole_tree_is_replaced(tmp_path):
    change = "changes: [{at: 6s, replace: {rate: 5mbit, qdisc: fq_codel}}]\n"
    result = Result(resolved(tmp_path, DUMBBELL + change).to_json())
    # fq_codel lets the probe pass: 98 B every 50 ms
    assert result.rate("a", 8, 12) == pytest.approx((5e6 - 98 * 8 / 0.05) * PAYLOAD / FRAME, rel=0.001)


# Capacity traces


def test_a_trace_of_one_millisecond_is_twelve_megabit(tmp_path):
    (tmp_path / "12.trace").write_text("1\n")
    result = run(tmp_path, "trace: 12.trace")
    # mahimahi counts IP bytes: 1222 B of 1250
    assert result.rate("a", 1, 6) == pytest.approx(12e6 * PAYLOAD / 1250, rel=0.001)


def test_a_trace_by_sender_for_a_link_of_the_path(tmp_path):
    # 2 opportunities of 10 ms one way: 2.4 Mbit/s
    (tmp_path / "up.trace").write_text("5\n10\n")
    text = DUMBBELL.replace("rtt: 20ms,", "rtt: 20ms, links: [{ends: [mid, srv], trace: {mid: up.trace}}],")
    made = resolved(tmp_path, text.replace("probes:", "# probes:"))
    assert [link.ends for link in made.links] == [("cli", "mid"), ("mid", "srv")]
    assert made.links[1].features == {"trace": {"mid": {"file": "up.trace", "ms": [5, 10]}}}
    assert Result(made.to_json()).rate("a", 4, 12) == pytest.approx(2.4e6 * PAYLOAD / 1250, rel=0.005)


def test_another_trace_is_another_document(tmp_path):
    (tmp_path / "t").write_text("1\n")
    first = pair(tmp_path, "trace: t").to_json()
    (tmp_path / "t").write_text("2\n")
    assert pair(tmp_path, "trace: t").to_json() != first


# Media


def test_aggregates_of_wifi(tmp_path):
    # 8 frames of 1264 B at 50 Mbit/s and 1 ms of access
    result = run(tmp_path, "rate: 50mbit, wifi: {access: 1ms, packets: 8, bytes: 1MB}")
    cycle = 0.001 + 8 * FRAME * 8 / 50e6
    assert result.rate("a", 1, 6) == pytest.approx(8 * PAYLOAD * 8 / cycle, rel=0.002)


def test_jitter_delays_packets_and_keeps_their_order(tmp_path):
    probe = PROBE.replace("10.3ms", "10ms")
    rtts = {
        jitter: run(tmp_path, f"delay: 5ms, jitter: {{wifi: {jitter}}}", QUIET, probe, "60s").rtts("p")
        for jitter in ("1ms", "7ms")
    }
    # Poisson(1) ms less a part of the last one are 0 for exp(-1) of the packets: exp(-2) of the round trips are 10 ms.
    assert all(rtt.min() == pytest.approx(0.010, abs=1e-6) for rtt in rtts.values())
    assert np.mean(rtts["1ms"] < 0.010001) == pytest.approx(np.exp(-2), abs=0.02)
    # 0.684 ms each way.
    assert rtts["1ms"].mean() == pytest.approx(0.010 + 2 * 0.000684, rel=0.01)
    # Long ones of about 12 * 7.5 ms; a probe that waits behind one comes with it, 10 ms after being sent later.
    assert np.percentile(rtts["7ms"], 99) > 0.100
    sent = np.arange(len(rtts["7ms"])) * 0.010
    assert (np.diff(sent + rtts["7ms"]) > -1e-9).all()


def test_half_duplex_directions_share_the_rate(tmp_path):
    back = "  - {name: b, from: s, to: c, transport: udp, source: {rate: 40mbit, size: 1222B}}\n"
    result = run(tmp_path, "rate: 20mbit, half_duplex: true", more=back)
    each = [result.rate(flow, 1, 6) for flow in "ab"]
    assert sum(each) == pytest.approx(20e6 * PAYLOAD / FRAME, rel=0.001)
    assert each[0] == pytest.approx(each[1], rel=0.001)
    # alone it has all of it; with a turnaround as long as a frame, half of it
    assert run(tmp_path, "rate: 20mbit, half_duplex: true").rate("a", 1, 6) == pytest.approx(
        20e6 * PAYLOAD / FRAME, rel=0.001
    )
    slow = run(tmp_path, "rate: 20mbit, half_duplex: {turnaround: 505.6us}", more=back)
    assert sum(slow.rate(flow, 1, 6) for flow in "ab") == pytest.approx(10e6 * PAYLOAD / FRAME, rel=0.001)


def test_half_duplex_wifi_takes_turns_by_aggregates(tmp_path):
    back = "  - {name: b, from: s, to: c, transport: udp, source: {rate: 40mbit, size: 1222B}}\n"
    link = "rate: 50mbit, half_duplex: true, wifi: {access: 1ms, packets: 8, bytes: 1MB}"
    result = run(tmp_path, link, more=back)
    cycle = 0.001 + 8 * FRAME * 8 / 50e6
    assert sum(result.rate(flow, 1, 6) for flow in "ab") == pytest.approx(8 * PAYLOAD * 8 / cycle, rel=0.002)
    assert result.rate("a", 1, 6) == pytest.approx(result.rate("b", 1, 6), rel=0.005)


def test_the_delay_of_docsis(tmp_path):
    # up: 4 to 6 ms and 98 B at 10 Mbit/s; down: the same 78.4 us
    result = run(tmp_path, "rate: 10mbit, docsis: {modem: c, interval: 2ms, pending: 2}", QUIET, PROBE)
    rtts = result.rtts("p", 0.1)
    assert len(rtts) > 500
    assert rtts.min() >= 0.004 + 2 * 78.4e-6 - 1e-9
    assert rtts.max() <= 0.006 + 2 * 78.4e-6 + 2 * 142 * 8 / 10e6  # behind the flow's frame at worst
    assert rtts.max() - rtts.min() > 0.0018
    assert run(tmp_path, "rate: 10mbit, docsis: {modem: c}").rate("a", 1, 6) == pytest.approx(
        10e6 * PAYLOAD / FRAME, rel=0.001
    )


def test_a_policer_passes_its_rate_and_its_burst(tmp_path):
    # 5 s at 40 Mbit/s of payload against 10 Mbit/s of frames and 100 kB
    result = run(tmp_path, "police: {rate: 10mbit, burst: 100kB, from: c}", FLOOD.replace("source", "stop: 5s, source"))
    assert result.series("flow", "a", "received")[1][-1] == pytest.approx(
        (10e6 / 8 * 5 + 100_000) / FRAME * PAYLOAD, abs=2 * PAYLOAD
    )


def test_a_policer_may_mark_down_instead(tmp_path):
    link = "police: {rate: 10mbit, burst: 10kB, exceed: CS1, from: c}"
    made = pair(tmp_path, link)
    assert made.links[0].features["police"] == {"c": {"rate_bps": 10**7, "burst": 10000, "exceed": {"dscp": 8}}}
    assert Result(made.to_json()).rate("a", 1, 6) == pytest.approx(40e6, rel=0.001)


def test_multipath_adds_up(tmp_path):
    for by, rate in (("packet", 20e6), ("flow", 10e6)):
        result = run(tmp_path, f"multipath: {{by: {by}, paths: [{{rate: 10mbit}}, {{rate: 10mbit, delay: 5ms}}]}}")
        assert result.rate("a", 1, 6) == pytest.approx(rate * PAYLOAD / FRAME, rel=0.001), by


def test_multipath_by_packet_reorders_tcp_and_by_flow_does_not(tmp_path):
    tcp = "{name: a, cc: reno, source: {bytes: 3MB}}"
    retransmits = {}
    for by in ("packet", "flow"):
        link = f"delay: 5ms, multipath: {{by: {by}, paths: [{{rate: 50mbit}}, {{rate: 50mbit, delay: 8ms}}]}}"
        result = run(tmp_path, link, tcp)
        retransmits[by] = result.counters["flows"]["a"]["retransmits"]
    assert retransmits["packet"] > 0
    assert retransmits["flow"] == 0


# What is refused


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("trace: none", "network.links[0].trace: "),
        ("rate: 1mbit, trace: t", "network.links[0].rate: 'trace' sets the rate"),
        ("trace: {x: t}", "network.links[0].trace: 'x': not an end of the link"),
        ("wifi: {access: 1ms}", "network.links[0].rate: missing; 'wifi' needs a rate"),
        (
            "rate: 1mbit, wifi: {access: 1ms}, docsis: {modem: c}",
            "network.links[0]: docsis and wifi are mutually exclusive",
        ),
        ("rate: 1mbit, docsis: {modem: x}", "network.links[0].docsis.modem: 'x': not an end of the link"),
        ("rate: [[1s, 1mbit]]", "network.links[0].rate[0]: '1s' is out of order; expected increasing times from 0s"),
        ("rate: [1mbit]", "network.links[0].rate[0]: '1mbit'; expected [time, rate]"),
        ("down: [[2s, 1s]]", "network.links[0].down[0]: from 2 s to 1 s"),
        ("trace: bad", "line 2: invalid or decreasing"),
    ],
)
def test_bad_links(tmp_path, link, message):
    (tmp_path / "t").write_text("1\n")
    (tmp_path / "bad").write_text("1\nx\n")
    with pytest.raises(BakeoffError) as error:
        pair(tmp_path, link)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"quantum": 1}, "links[0].features.quantum: 'quantum' is not modelled by the simulator; it has docsis"),
        ({"trace": {"c": {"file": "f", "ms": [2, 1]}}}, "links[0].features.trace.c: f: the milliseconds decrease"),
        ({"multipath": {"by": "flow"}}, "links[0].features.multipath: missing field `paths`"),
        ({"half_duplex": {"turnaround_s": 0}}, "links[0].rate_bps: 'half_duplex' needs a rate"),
    ],
)
def test_the_simulator_refuses_by_place(tmp_path, features, message):
    document = json.loads(pair(tmp_path, "delay: 1ms").to_json())
    document["links"][0]["features"] = features
    with pytest.raises(ValueError, match=r".") as error:
        _sim.check(json.dumps(document))
    assert str(error.value).startswith(message)


def test_a_traces_rate_cannot_be_changed(tmp_path):
    (tmp_path / "t").write_text("1\n")
    made = pair(tmp_path, "trace: t", more="changes: [{at: 1s, interface: c>s, link: {rate: 1mbit}}]")
    with pytest.raises(ValueError, match="rate_bps: the link's 'trace' gives its rate"):
        _sim.check(made.to_json())


@pytest.mark.parametrize(
    ("link", "name"),
    [
        ("trace: t", "trace"),
        ("rate: 9mbit, wifi: {access: 1ms}", "wifi"),
        ("rate: 9mbit, docsis: {modem: c}", "docsis"),
        ("rate: 9mbit, half_duplex: true", "half_duplex"),
        ("jitter: {wifi: 7ms}", "jitter"),
        ("multipath: {by: flow, paths: [{}]}", "multipath"),
    ],
)
def test_real_engines_refuse_by_name(tmp_path, link, name):
    (tmp_path / "t").write_text("1\n")
    with pytest.raises(RefusedError, match=rf"links\[0\].features.{name}"):
        plan(pair(tmp_path, link))


def test_the_schema_takes_schedules():
    definitions = json_schema()["$defs"]
    for model, key in (("LinkSpec", "rate"), ("LinkSpec", "loss"), ("Bottleneck", "rate"), ("Network", "rtt")):
        assert "prefixItems" in json.dumps(definitions[model]["properties"][key])


def test_the_example_of_the_page_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "links.md").read_text()
    [example] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    made = resolved(tmp_path, example)
    assert [sorted(link.features) for link in made.links] == [["half_duplex", "wifi"], ["docsis"], ["police"]]
    result = Result(made.to_json())
    assert 10e6 < result.rate("a", 40, 60) < 50e6


# A policer on real Linux


POLICED = """
duration: 6s
start_jitter: 0s
network:
  path: [c, r, s]
  nodes: {r: router}
  links:
    - {ends: [c, r], delay: 5ms, police: {rate: 10mbit, burst: 100kB, from: c%s}}
flows: [{name: a, transport: udp, stop: 5s, source: {rate: 40mbit, size: 1222B}}]
"""


@pytest.mark.parametrize(
    ("exceed", "words"),
    [
        ("", "drop/continue"),
        (
            ", exceed: CS1",
            "pipe/continue action pedit munge ip dsfield set 0x20 retain 0xfc pipe action csum ip4h continue",
        ),
    ],
)
def test_a_policer_of_the_lab_stands_where_the_packets_arrive(tmp_path, exceed, words):
    commands = [command.line() for command in plan(resolved(tmp_path, POLICED % exceed)).setup]
    police = [line for line in commands if " police " in line]
    assert police == [
        "r: tc filter add dev r.c parent ffff: protocol ip prio 1 u32 match u32 0 0 action police rate 10000000bit "
        f"burst 100000b overhead 14 conform-exceed {words}"
    ]
    # ahead of the detour to the netem that is the link's delay
    assert "mirred egress redirect dev ifb.c" in commands[commands.index(police[0]) + 1]


def test_the_real_policer_passes_and_drops_what_ours_does(request, tmp_path):
    engine_name = request.getfixturevalue("kernel")
    made = resolved(tmp_path, POLICED % "")
    counted = {}
    for name in ("sim", engine_name):
        counters = in_virtual_time(name, made, tmp_path / name.replace("/", "_")).all_counters()["flows"]["a"]
        counted[name] = counters["sent_packets"], counters["received_bytes"] / PAYLOAD
    (sent, received), (sent_there, received_there) = counted.values()
    # 5 s at 10 Mbit/s of frames, and the burst; a packet more or less by when the last one comes
    assert received == pytest.approx((10e6 / 8 * 5 + 100_000) / FRAME, abs=2)
    assert received_there == pytest.approx(received, abs=2)
    assert sent_there == pytest.approx(sent, abs=2)


def test_loss_by_direction(tmp_path):
    assert pair(tmp_path, "loss: {c: 10%}").links[0].loss == {"c": 0.1}
    assert pair(tmp_path, "loss: {c: 10%, s: 10%}").links[0].loss == 0.1
    run = pair(tmp_path, "loss: {c: [[0s, 0%], [3s, 100%]]}")
    assert run.links[0].loss == 0.0
    assert [(change.at_s, change.node, change.action.loss) for change in run.changes] == [(3.0, "c", 1.0)]
    with pytest.raises(
        BakeoffError, match=r"network.links\[0\].loss: 'x': not an end of the link; expected one of c, s"
    ):
        pair(tmp_path, "loss: {x: 1%}")
    with pytest.raises(BakeoffError, match=r"network.links\[0\].loss.c\[1\]: '2' has no unit; expected a percentage"):
        pair(tmp_path, "loss: {c: [[0s, 0%], [3s, 2]]}")
    with pytest.raises(
        BakeoffError, match=r"network.links\[0\].loss: 'much': invalid quantity; expected a percentage such as"
    ):
        pair(tmp_path, "loss: much")
