"""An fq that is not the sender's takes its time of arrival for a packet's, as behind a wire."""

import pytest

from bakeoff.engines.kernel import check
from bakeoff.engines.lab import departure_times, needs, plan
from lab_runs import HTB, action, ecn_nodes, egress, flow, in_virtual_time, lines, network

FQ = {"qdisc": "fq limit 1000 flow_limit 1000 ce_threshold 5ms"}
SHAPED = {"qdisc": "htb default 1", "classes": [{"id": "1", "class": "rate 20mbit", "child": FQ}]}
WORDS = "bpf direct-action object-file /out/clear-tstamp.o section clear_tstamp"


def test_departure_times_are_cleared_where_they_arrive():
    # Everything that arrives at a node with an fq in its egress; of a host its own departure times remain.
    made = plan(network(interfaces=egress(SHAPED)), captures="/out")
    assert lines(made.setup, "bpf") == [
        f"mid: tc filter add dev mid.srv parent ffff: protocol all prio 1 {WORDS}",
        f"mid: tc filter add dev mid.cli parent ffff: protocol all prio 1 {WORDS}",
    ]
    assert lines(made.setup, "ffff:", "ingress") == [
        "mid: tc qdisc add dev mid.srv handle ffff: ingress",
        "mid: tc qdisc add dev mid.cli handle ffff: ingress",
    ]
    assert [name for name, _ in made.files] == ["clear-tstamp.o"]
    for ends in (egress(HTB), [{"node": "cli", "peer": "mid", "egress": FQ}]):
        made = plan(network(interfaces=ends))
        assert (lines(made.setup, "bpf"), made.files) == ([], ())


def test_they_are_cleared_ahead_of_the_detour_to_an_ingress_queue():
    made = plan(network(interfaces=[{"node": "srv", "peer": "mid", "ingress": FQ}]), captures="/out")
    assert [line.partition(" protocol ")[2] for line in lines(made.setup, "filter")] == [
        f"all prio 1 {WORDS}",
        "all prio 2 u32 match u32 0 0 action mirred egress redirect dev ifb.mid",
    ]


def test_an_fq_that_comes_later_counts():
    later = action(kind="qdisc-replace", side="egress", handle="1", qdisc=FQ)
    run = network(interfaces=egress(HTB), changes=[later])
    assert departure_times.cleared(run) == {("mid", "cli"): "changes[0].action", ("mid", "srv"): "changes[0].action"}


def test_a_kernel_without_the_classifier_is_refused():
    run = network(interfaces=egress(SHAPED))
    known = [check.Finding("cc", "cubic", True, ""), check.Finding("qdisc", "htb", True, "")]
    known += [check.Finding("qdisc", "fq", True, ""), check.Finding("filter", "bpf", False, "CONFIG_X is not set")]
    [reason] = check.missing(run, check.Report("mine", "7.3.4", "0", tuple(known), {"cc": [], "qdisc": []}))
    assert reason.startswith("interfaces[0].egress: fq on a node that forwards needs a filter")
    assert reason.endswith("'bpf': CONFIG_X is not set")
    says = {"sh": "Error: TC classifier not found."}
    [first, _] = needs.lacking(plan(run), lambda _, argv: says.get(argv[0], ""))
    assert first[1] == "has no classifier bpf: module cls_bpf (CONFIG_NET_CLS_BPF)"


@pytest.mark.parametrize("kind", ["router", "bridge"])
def test_fq_behind_a_delay_marks_what_waited_in_it(real_kernel, tmp_path, kind):
    # A packet of 1514 bytes takes 0.6 ms at 20 Mbit/s: with 5 of them in the queue, and 8 in that of fq's fast path,
    # none waits for 9 ms. By the sender's stamp each is 20 ms old.
    delay = {"node": "mid", "peer": "cli", "ingress": {"qdisc": "netem delay 20ms limit 1000"}}
    short = SHAPED | {"classes": [SHAPED["classes"][0] | {"child": {"qdisc": "fq limit 5 ce_threshold 9ms"}}]}
    kinds = [node | ({"kind": kind} if node["name"] == "mid" else {}) for node in ecn_nodes()]
    run = network(nodes=kinds, interfaces=[*egress(short), delay])
    counted = in_virtual_time(f"kernel:{real_kernel.name}", run, tmp_path / "r").all_counters()
    assert counted["flows"]["a"]["ecn"] == "accecn"
    assert counted["queues"]["mid>srv"]["sent_bytes"] > 2e6
    assert counted["queues"]["mid>srv"]["marks"] == 0


def test_fq_on_a_bridge_does_not_pace_the_senders(real_kernel, tmp_path):
    # TCP paces to 5 Mbit/s itself: 1.25 MB in 2 s, and the initial window. It stops where an fq says that it paces.
    paced = [flow(max_pacing_rate_bps=5_000_000)]
    run = network(interfaces=egress({"qdisc": "fq"}), flows=paced)
    result = in_virtual_time(f"kernel:{real_kernel.name}", run, tmp_path / "r")
    assert result.all_counters()["queues"]["mid>srv"]["sent_bytes"] == pytest.approx(1.3e6, rel=0.04)
