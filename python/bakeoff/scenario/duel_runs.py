"""The newcomer's experiment: two flows through one bottleneck."""

from dataclasses import asdict
from typing import Any

from bakeoff.duels import Duel
from bakeoff.errors import ScenarioError
from bakeoff.scenario import bounds
from bakeoff.scenario.cc_words import parse
from bakeoff.scenario.python_cc import label
from bakeoff.scenario.run import Run
from bakeoff.scenario.scenario import OWN, from_document


def duel(asked: Duel, *, seed: int = 1) -> Run:
    """The run of a duel: a dumbbell with its qdisc at its rate, both flows starting together.

    With `rtt2` the second flow has a round-trip time of its own. Flows are named after their congestion controls. Both
    hosts negotiate AccECN, as in a scenario without `hosts`; a ping runs every 50 ms. Raises BakeoffError for a value
    that cannot be read.
    """
    names = flow_names(asked.cc1, asked.cc2)
    apart = asked.rtt2 is not None
    flows = [
        {"name": names[0], "cc": asked.cc1, "dscp": 0x13 if apart else 0, "rtt": asked.rtt if apart else None},
        {"name": names[1], "cc": asked.cc2, "dscp": 0x23 if apart else 0, "rtt": asked.rtt2},
    ]
    controls = [" ".join((name, *parse(cc).parameters)) for name, cc in zip(names, (asked.cc1, asked.cc2), strict=True)]
    parts = ["_".join("-vs-".join(controls).split()), "_".join(asked.qdisc.split()), asked.rate, asked.rtt]
    title = f"{label(asked.cc1)} against {label(asked.cc2)}, {asked.qdisc}, {asked.rate}, {asked.rtt}"
    document = {
        "title": title + (f" and {asked.rtt2}" if asked.rtt2 is not None else ""),
        "duration": asked.duration,
        "network": {
            "path": ["cli", "mid", "srv"],
            "rtt": asked.rtt,
            "bottleneck": {"rate": asked.rate, "qdisc": asked.qdisc},
        },
        "flows": flows,
        "probes": [{"name": "ping", "type": "icmp", "every": "50ms"}],
        "run": "-".join([*parts, *([asked.rtt2] if asked.rtt2 is not None else [])]),
    }
    if not asked.qdisc.strip():
        raise ScenarioError("duel: qdisc: empty; expected for example 'fq_codel flows 1'")
    asked_for = frozenset({asked.cc1, asked.cc2})
    scenario = from_document(_escaped(document), path="duel", suite=OWN, default_name="duel", typed=asked_for)
    run = scenario.resolve({}, seed)
    point = {key: value for key, value in asdict(asked).items() if value is not None and key != "duration"}
    return run.model_copy(update={"point": point})


def duels(asked: Duel, *, seed: int = 1, seeds: int = 1, yes: bool = False) -> list[Run]:
    """The runs of all combinations of what commas separate, with `seeds` seeds from `seed` on.

    BakeoffError as for `duel`.

    Unless `yes`, very many runs are a BakeoffError too.
    """
    bounds.check_seed(seed)
    too_many = bounds.too_many_runs(asked.count() * seeds)
    if too_many is not None and not yes:
        raise ScenarioError(f"duel: {too_many}")
    runs: dict[str, Run] = {}
    for each in asked.each():
        for number in range(seed, seed + seeds):
            run = duel(each, seed=number)
            if run.key in runs:
                raise ScenarioError(
                    f"duel: duplicate name '{run.run}' of {runs[run.key].title} and {run.title}; expected values with "
                    "different names"
                )
            runs[run.key] = run
    return list(runs.values())


def flow_names(cc1: str, cc2: str) -> tuple[str, str]:
    """`prague`, `cubic`; with versions where they tell the two apart; numbered if they are the same."""
    one, other = parse(cc1), parse(cc2)
    first, second = (one.name, other.name) if one.name != other.name else (one.versioned, other.versioned)
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
