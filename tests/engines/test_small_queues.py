"""What a host sends stops counting against its sockets where it leaves the host, whatever the queues behind are."""

from bakeoff.engines.lab import plan
from lab_runs import HTB, egress, lines, network


def test_a_hosts_packets_stop_counting_as_they_leave_it():
    here = "tc qdisc add dev {} root handle 1: netem rate 100tbit limit 1000000"
    # Behind a bridge without a delay a veth would hold the sender back; one that delays lets go by itself.
    assert lines(plan(network(interfaces=egress(HTB))).setup, "100tbit") == [
        "cli: " + here.format("cli.mid"),
        "srv: " + here.format("srv.mid"),
    ]
    delay = {"node": "mid", "peer": "cli", "ingress": {"qdisc": "netem delay 1ms"}}
    ends = [delay, {"node": "srv", "peer": "mid", "egress": {"qdisc": "fq"}}]
    made = plan(network(interfaces=ends))
    assert lines(made.setup, "100tbit") == []
    [note] = [note for note in made.notes if "TSQ" in note]
    assert note.startswith("srv>mid: has a queue of its own, and nothing delays what arrives at mid")
    # Nothing, and a class without a delay, are no delay.
    for tree in ({"qdisc": "netem delay 0s loss 1%"}, HTB):
        made = plan(network(interfaces=[{"node": "mid", "peer": "cli", "ingress": tree}]))
        assert len(lines(made.setup, "100tbit")) == 2


def test_without_netem_a_note_says_what_is_in_effect():
    made = plan(network(interfaces=egress(HTB)), netem=False)
    assert lines(made.setup, "100tbit") == []
    assert [note.partition(":")[0] for note in made.notes] == ["cli>mid", "srv>mid"]
    assert "this kernel has no netem" in made.notes[0]
