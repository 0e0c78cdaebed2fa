"""What Python tells the agent stands in tests/data/agent-plan.json, which a test in crates/agent/src/plan.rs reads.

A change of the document is a change of that file, and each side's test says what its own side makes of it.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

from bakeoff.engines.lab import agent, plan
from bakeoff.engines.lab.plan import Role
from bakeoff.scenario.run import Ecn, Source
from lab_runs import HTB, action, by_tools, egress, flow, network, probe

KEPT = Path(__file__).parents[1] / "data" / "agent-plan.json"
SOURCES = (
    {"kind": "bulk"},
    {"kind": "bytes", "bytes": 100_000},
    {"kind": "rate", "rate_bps": 1_000_000, "size": 1200},
    {"kind": "periodic", "size": 1000, "count": 3, "every_s": 0.02},
    {"kind": "short", "objects": [[0.0, 10_000], [0.5, 20_000]]},
    {"kind": "video", "rates_bps": [500_000, 1_000_000], "segment_s": 0.5, "buffer_s": 1.0},
)


def everything() -> agent.Document:
    """A plan with each role, each source, and everything else that a document can hold."""
    flows = [flow(name=source["kind"], source=source, dscp=number) for number, source in enumerate(SOURCES)]
    flows[0]["max_pacing_rate_bps"] = 5_000_000
    flows += [
        flow(name=f"udp-{source['kind']}", source=source, transport="udp", cc="none")
        for source in SOURCES
        if source["kind"] in ("rate", "periodic")
    ]
    probes = [
        probe(name=f"{proto}-{ecn}", proto=proto, ecn=ecn, dscp=8) for proto in ("icmp", "udp") for ecn in get_args(Ecn)
    ]
    run = network(
        flows=flows,
        probes=probes,
        interfaces=egress(HTB),
        changes=[action(kind="class-change", side="egress", id="1", **{"class": "rate 5mbit"})],
    )
    made = replace(plan(run), programs=plan(by_tools("iperf3", "irtt")).programs)
    epoch = agent.Epoch(clock="realtime", ns=5_000_000_000)
    document = agent.document(run, made, "agent.tsv", {"tc": "/usr/sbin/tc"}, epoch=epoch)
    document["progress"] = "progress"
    return document


def test_what_python_writes_is_what_the_agents_test_reads():
    assert json.loads(json.dumps(everything())) == json.loads(KEPT.read_text(encoding="utf-8")), (
        f"if the change is meant, write `json.dumps(everything(), indent=1)` to {KEPT}"
    )


def test_each_role_each_source_and_each_key_is_in_it():
    written = everything()
    assert {role["role"] for role in written["roles"]} == {
        name for each in get_args(Role) for name in get_args(get_type_hints(each)["role"])
    }
    union, _ = get_args(Source)
    assert [source["kind"] for source in SOURCES] == [kind.model_fields["kind"].default for kind in get_args(union)]
    assert set(written) == set(agent.Document.__annotations__)
    for each in get_args(Role):
        keys = get_type_hints(each)
        alike = [role for role in written["roles"] if role["role"] in get_args(keys["role"])]
        assert set().union(*alike) == set(keys) - {"node"}
