"""Piecewise schedules: `rate: [[0s, 10mbit], [10s, 50mbit]]` is the first value, and timed changes for the others."""

from collections.abc import Iterator
from typing import Any

from bakeoff.scenario import units
from bakeoff.scenario.matrix import ScenarioError


def spread(data: dict[str, Any]) -> dict[str, Any]:
    """The document without schedules: what they say is appended to its `changes`. `data` stays as it is."""
    network = data.get("network")
    if not isinstance(network, dict):
        return data
    changes: list[dict[str, Any]] = []
    network = dict(network)
    if isinstance(network.get("rtt"), list):
        network["rtt"], steps = _steps(network["rtt"], "network.rtt")
        changes += [{"at": at, "rtt": value} for at, value in steps]
    bottlenecks = network.get("bottleneck")
    if isinstance(bottlenecks, dict):
        network["bottleneck"] = _bottleneck(bottlenecks, changes, "network.bottleneck")
    elif isinstance(bottlenecks, list):
        network["bottleneck"] = [
            _bottleneck(entry, changes, f"network.bottleneck[{index}]") for index, entry in enumerate(bottlenecks)
        ]
    if isinstance(network.get("links"), list):
        network["links"] = [
            _link(entry, changes, f"network.links[{index}]") for index, entry in enumerate(network["links"])
        ]
    if not changes:
        return data
    return {**data, "network": network, "changes": [*(data.get("changes") or []), *changes]}


def _bottleneck(entry: Any, changes: list[dict[str, Any]], place: str) -> Any:  # noqa: ANN401 (before validation)
    if not isinstance(entry, dict):
        return entry
    entry = dict(entry)
    where = {"node": entry["at"]} if "at" in entry else {}
    if isinstance(entry.get("rate"), list):
        entry["rate"], steps = _steps(entry["rate"], f"{place}.rate")
        for direction in _directions(entry):
            changes += [{"at": at, **where, "direction": direction, "rate": value} for at, value in steps]
    for direction in ("up", "down"):
        lane = entry.get(direction)
        if isinstance(lane, dict) and isinstance(lane.get("rate"), list):
            first, steps = _steps(lane["rate"], f"{place}.{direction}.rate")
            entry[direction] = {**lane, "rate": first}
            changes += [{"at": at, **where, "direction": direction, "rate": value} for at, value in steps]
    return entry


def _directions(entry: dict[str, Any]) -> Iterator[str]:
    """Where the rate of the bottleneck itself counts."""
    asked = entry.get("direction", "both")
    own = [d for d in ("up", "down") if isinstance(entry.get(d), dict) and entry[d].keys() & {"rate", "shape"}]
    if not own:
        yield asked
        return
    yield from (d for d in ("up", "down") if d not in own and asked in ("both", d))


def _link(entry: Any, changes: list[dict[str, Any]], place: str) -> Any:  # noqa: ANN401 (before validation)
    if not isinstance(entry, dict) or not isinstance(entry.get("ends"), list):
        return entry
    entry = dict(entry)
    for key in ("rate", "delay", "loss"):
        if isinstance(entry.get(key), list):
            entry[key], steps = _steps(entry[key], f"{place}.{key}")
            for ends in (entry["ends"], entry["ends"][::-1]):
                interface = ">".join(map(str, ends))
                changes += [{"at": at, "interface": interface, "link": {key: value}} for at, value in steps]
    return entry


def _steps(schedule: list[Any], place: str) -> tuple[Any, list[tuple[Any, Any]]]:
    """The first value, and (time, value) of the others; the words stay as they are written."""
    last = -1.0
    for index, step in enumerate(schedule):
        if not isinstance(step, list) or len(step) != 2:
            raise ScenarioError(f"{place}[{index}]", f"{step!r}; expected [time, value], such as [10s, 50mbit]")
        try:
            at = units.parse_time(step[0])
        except ValueError as error:
            raise ScenarioError(f"{place}[{index}]", str(error)) from None
        if at <= last or (index == 0 and at != 0):
            raise ScenarioError(f"{place}[{index}]", f"starts at '{step[0]}'; expected times that rise from 0s")
        last = at
    if not schedule:
        raise ScenarioError(place, "is empty; expected [[0s, value], [time, value], …]")
    return schedule[0][1], [(at, value) for at, value in schedule[1:]]
