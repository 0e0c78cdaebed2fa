"""Piecewise schedules: `rate: [[0s, 10mbit], [10s, 50mbit]]` is the first value, and timed changes for the others."""

from collections.abc import Iterator
from typing import Any, Final

from bakeoff.scenario import units
from bakeoff.scenario.error import DocumentError, quoted

Made = list[tuple[str, dict[str, Any]]]
"""Changes that stand for schedules, with the place of each."""

_PARSE: Final = {
    "rate": units.parse_rate,
    "rtt": units.parse_time,
    "delay": units.parse_time,
    "loss": units.parse_percentage,
}
_EXAMPLES: Final = {"rate": "50mbit", "rtt": "80ms", "delay": "5ms", "loss": "1%"}


def spread(data: dict[str, Any]) -> tuple[dict[str, Any], dict[int, str]]:
    """The document without schedules, and the places of what they say, by its number in `changes`, where it stands
    behind what was written there. `data` stays as it is.
    """
    network, written = data.get("network"), data.get("changes") or []
    if not isinstance(network, dict) or not isinstance(written, list):
        return data, {}
    changes: Made = []
    network = dict(network)
    if isinstance(network.get("rtt"), list):
        network["rtt"], steps = _steps("rtt", network["rtt"], "network.rtt")
        changes += [(place, {"at": at, "rtt": value}) for place, at, value in steps]
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
        return {**data, "network": network}, {}
    places = {number: place for number, (place, _) in enumerate(changes, len(written))}
    return {**data, "network": network, "changes": [*written, *(change for _, change in changes)]}, places


def _bottleneck(entry: Any, changes: Made, place: str) -> Any:  # noqa: ANN401 (before validation)
    if not isinstance(entry, dict):
        return entry
    entry = dict(entry)
    node = {"node": entry["at"]} if "at" in entry else {}
    if isinstance(entry.get("rate"), list):
        entry["rate"], steps = _steps("rate", entry["rate"], f"{place}.rate")
        for direction in _directions(entry):
            changes += [(step, {"at": at, **node, "direction": direction, "rate": rate}) for step, at, rate in steps]
    for direction in ("up", "down"):
        lane = entry.get(direction)
        if isinstance(lane, dict) and isinstance(lane.get("rate"), list):
            first, steps = _steps("rate", lane["rate"], f"{place}.{direction}.rate")
            entry[direction] = {**lane, "rate": first}
            changes += [(step, {"at": at, **node, "direction": direction, "rate": rate}) for step, at, rate in steps]
    return entry


def _directions(entry: dict[str, Any]) -> Iterator[str]:
    """Where the rate of the bottleneck itself counts."""
    asked = entry.get("direction", "both")
    own = [d for d in ("up", "down") if isinstance(entry.get(d), dict) and entry[d].keys() & {"rate", "shape"}]
    if not own:
        yield asked
        return
    yield from (d for d in ("up", "down") if d not in own and asked in ("both", d))


def _link(entry: Any, changes: Made, place: str) -> Any:  # noqa: ANN401 (before validation)
    if not isinstance(entry, dict) or not _two(entry.get("ends")):
        return entry
    entry = dict(entry)
    ways = {ends[0]: ">".join(ends) for ends in (entry["ends"], entry["ends"][::-1])}
    for key in ("rate", "delay", "loss"):
        if isinstance(entry.get(key), list):
            entry[key], steps = _steps(key, entry[key], f"{place}.{key}")
            for way in ways.values():
                changes += [(step, {"at": at, "interface": way, "link": {key: to}}) for step, at, to in steps]
    if isinstance(entry.get("loss"), dict):
        entry["loss"] = dict(entry["loss"])
        for end in entry["loss"].keys() & ways.keys():
            if isinstance(entry["loss"][end], list):
                entry["loss"][end], steps = _steps("loss", entry["loss"][end], f"{place}.loss.{end}")
                changes += [(step, {"at": at, "interface": ways[end], "link": {"loss": to}}) for step, at, to in steps]
    return entry


def _two(ends: object) -> bool:
    """Whether these can be the ends of a link; if not, the schedule is refused with them."""
    return isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, str) and end for end in ends)


def _steps(key: str, schedule: list[Any], place: str) -> tuple[Any, list[tuple[str, Any, Any]]]:
    """The first value, and (place, time, value) of the others; the words stay as they are written."""
    last = -1.0
    steps = []
    for index, step in enumerate(schedule):
        here = f"{place}[{index}]"
        if not isinstance(step, list) or len(step) != 2:
            raise DocumentError(here, f"{quoted(step)}; expected [time, {key}], such as [10s, {_EXAMPLES[key]}]")
        try:
            at = units.parse_time(step[0])
            _PARSE[key](step[1])
        except ValueError as error:
            raise DocumentError(here, str(error)) from None
        if at <= last or (index == 0 and at != 0):
            raise DocumentError(here, f"'{step[0]}' is out of order; expected increasing times from 0s")
        last = at
        steps.append((here, step[0], step[1]))
    if not schedule:
        raise DocumentError(place, f"empty; expected [[0s, {key}], [time, {key}], …]")
    return schedule[0][1], steps[1:]
