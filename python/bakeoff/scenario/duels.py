"""The newcomer's experiment: two flows through one bottleneck."""

from typing import Any

from bakeoff.errors import BakeoffError
from bakeoff.scenario.python_cc import short
from bakeoff.scenario.run import Run
from bakeoff.scenario.scenario import from_document


def duel(
    cc1: str,
    cc2: str,
    *,
    qdisc: str = "fq_codel",
    rate: str = "50mbit",
    rtt: str = "20ms",
    rtt2: str | None = None,
    duration: str = "30s",
    seed: int = 1,
) -> Run:
    """Two bulk flows through a dumbbell with `qdisc` at `rate`, both starting together.

    `rtt2` gives the second flow a round-trip time of its own. Flows are named after their congestion controls. Both
    hosts negotiate AccECN (tcp_ecn=3); a ping runs every 50 ms. Raises BakeoffError for a value that cannot be read.
    """
    names = flow_names(cc1, cc2)
    flows = [
        {"name": names[0], "cc": cc1, "dscp": 0x13 if rtt2 else 0, "rtt": rtt if rtt2 else None},
        {"name": names[1], "cc": cc2, "dscp": 0x23 if rtt2 else 0, "rtt": rtt2},
    ]
    words = [f"{names[0]}-vs-{names[1]}", "_".join(qdisc.split()), rate, rtt, *([rtt2] if rtt2 else [])]
    document = {
        "title": f"{short(cc1)} against {short(cc2)}, {qdisc}, {rate}, {rtt}" + (f" and {rtt2}" if rtt2 else ""),
        "duration": duration,
        "sample_interval": "50ms",
        "network": {"path": ["cli", "mid", "srv"], "rtt": rtt, "bottleneck": {"rate": rate, "qdisc": qdisc}},
        "hosts": {"sysctl": {"net.ipv4.tcp_ecn": 3}},
        "flows": flows,
        "probes": [{"name": "ping", "type": "icmp", "every": "50ms"}],
        "run": "-".join(words),
    }
    if not qdisc.strip():
        raise BakeoffError("duel: qdisc: is empty; expected for example 'fq_codel flows 1'")
    scenario = from_document(_escaped(document), path="duel", suite="local", default_name="duel")
    run = scenario.resolve({}, seed)
    return run.model_copy(update={"point": {"cc1": cc1, "cc2": cc2, "qdisc": qdisc, "rate": rate, "rtt": rtt}})


def flow_names(cc1: str, cc2: str) -> tuple[str, str]:
    """`prague`, `cubic`; with versions where they tell the two apart; numbered if they are the same."""
    full = [(short(cc).split() or [cc])[0] for cc in (cc1, cc2)]
    plain = [name.partition("@")[0] for name in full]
    first, second = plain if plain[0] != plain[1] else full
    return (first, second) if first != second else (f"{first}-1", f"{second}-2")


def _escaped(data: Any) -> Any:  # noqa: ANN401 (plain data)
    match data:
        case str():
            return data.replace("{", "{{").replace("}", "}}")
        case dict():
            return {key: _escaped(value) for key, value in data.items()}
        case list():
            return [_escaped(value) for value in data]
    return data
