"""The runs that advice for an access line is taken from: a household's scenario, with the line put into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from bakeoff.errors import ScenarioError
from bakeoff.scenario import bounds, units
from bakeoff.scenario.error import did_you_mean
from bakeoff.scenario.run import Run
from bakeoff.scenario.scenario import OWN, Scenario, expand, from_document
from bakeoff.scenario.shipped import root, with_profile
from bakeoff.scenario.yaml_file import read_yaml

T = TypeVar("T")

QUEUE: Final = "queue"
"""The axis whose labels are the choices."""
LINE: Final = "line"
"""The axis that the asked line takes the place of, and the node that stands for the line's two ends."""

_BUFFER_S: Final = 0.25
_LEAST_BUFFER: Final = 128_000
_MOST_BUFFER: Final = 4_000_000
_SHAPED: Final = (9, 10)
"""A router that shapes keeps to nine tenths of the line."""
_WARM_UP_S: Final = 10.0
_SHORTEST_S: Final = 30.0
"""Ten seconds to begin, ten to measure, and ten for the pages that began last."""
_LONGEST_S: Final = 600.0
_SLOWEST: Final = 100_000


class Link(NamedTuple):
    """How a kind of line packs what it carries; Linux counts 14 bytes of Ethernet header with each packet."""

    htb: str
    """What htb is told, whose overhead is added to these 14 bytes."""
    cake: str
    """What cake is told, whose overhead takes their place."""
    cells: tuple[int, int] = (1, 1)
    """So many of so many bytes are payload, where htb has no word for it."""


LINKS: Final[Mapping[str, Link]] = {
    "plain": Link("mpu 0", "raw"),
    "ethernet": Link("overhead 24 mpu 84", "ethernet"),
    "docsis": Link("overhead 4 mpu 64", "docsis"),
    "vdsl": Link("overhead 16", "pppoe-ptm", (64, 65)),
    "adsl": Link("overhead 26 linklayer adsl", "pppoe-llcsnap"),
}
"""By name. The overheads are those of `man tc-cake`, OVERHEAD COMPENSATION PARAMETERS."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What advice is asked for. Rates and times have units."""

    up: str
    down: str
    rtt: str
    buffer: str | None = None
    """What the line's own queues hold; 250 ms, but at least 128 kB and at most 4 MB, if absent."""
    link: str = "plain"
    duration: str = "60s"
    mix: Path | None = None
    """A scenario of the user's own, in place of the catalog's `advice/household`."""


def scenario(asked: Asked) -> Scenario:
    """The household's scenario with the asked line in the place of its axis `line`.

    BakeoffError for a value that cannot be read, or a scenario that lacks what advice needs.
    """
    line = _line(asked)
    duration_s = _read("--duration", asked.duration, units.parse_time)
    if not _SHORTEST_S <= duration_s <= _LONGEST_S:
        raise ScenarioError(
            f"--duration: '{asked.duration}'; expected {_SHORTEST_S:g}s to {_LONGEST_S:g}s (the first "
            f"{_WARM_UP_S:g} s are warm-up, and pages of the last 10 s are not counted)"
        )
    path = asked.mix or _shipped()
    document = with_profile(read_yaml(path))
    axes = document.get("vary")
    axes = axes if isinstance(axes, Mapping) else {}
    for axis in (QUEUE, LINE):
        if axis not in axes:
            raise ScenarioError(
                f"{path}: vary: missing axis '{axis}'; expected a scenario like advice/household ('bakeoff show "
                "advice/household')"
            )
    path_of = document.get("network", {})
    nodes = path_of.get("path") if isinstance(path_of, Mapping) else None
    if not isinstance(nodes, list) or LINE not in nodes[1:-1]:
        raise ScenarioError(f"{path}: network.path: missing node '{LINE}' (the access line) between its ends")
    window = f"{units.format_time(duration_s - _WARM_UP_S)}"
    document = {
        **document,
        "duration": asked.duration,
        "vary": {**axes, LINE: line},
        "measure": {"steady_state": {"window": window, "ends": "at end"}},
    }
    document.pop("suite", None)
    return from_document(document, path=str(path), suite=OWN, default_name=path.stem)


def runs(asked: Asked, *, seeds: int = 3) -> list[Run]:
    """All runs that the advice is taken from, with the seeds 1 to `seeds`.

    BakeoffError as for `scenario`, and for very many runs.
    """
    household = scenario(asked)
    most = bounds.MOST_RUNS // max(1, len(household.points))
    if seeds > most:
        raise ScenarioError(f"--seeds: {seeds:,}; expected at most {most:,}")
    return expand(household, seeds=seeds)


def own_choices(asked: Asked) -> frozenset[str]:
    """The labels of queues that the user's own scenario has, or has otherwise than the catalog's."""
    if asked.mix is None:
        return frozenset()
    ours, theirs = ({**with_profile(read_yaml(path))["vary"]}[QUEUE] for path in (_shipped(), asked.mix))
    labels = theirs if isinstance(theirs, Mapping) else [str(label) for label in theirs]
    return frozenset(label for label in labels if not isinstance(theirs, Mapping) or theirs[label] != ours.get(label))


def _shipped() -> Path:
    return root() / "suites" / "advice" / "household.yaml"


def filled(asked: Asked) -> dict[str, Any]:
    """What the scenario's placeholders `{line.…}` stand for. BakeoffError for a value that cannot be read."""
    [values] = _line(asked).values()
    return values


def _line(asked: Asked) -> dict[str, dict[str, Any]]:
    """The axis `line`: one label, and what is filled in."""
    if asked.link not in LINKS:
        raise ScenarioError(
            f"--link: '{asked.link}': unknown kind of line{did_you_mean(asked.link, LINKS)}; for Wi-Fi and mobile "
            "links, see docs/links.md"
        )
    link = LINKS[asked.link]
    rates = {name: _read(f"--{name}", getattr(asked, name), units.parse_rate) for name in ("up", "down")}
    for name, rate in rates.items():
        if rate < _SLOWEST:
            raise ScenarioError(
                f"--{name}: '{getattr(asked, name)}'; expected at least {units.format_rate(_SLOWEST)} (a call takes 86 "
                "kbit/s)"
            )
    rtt_s = _read("--rtt", asked.rtt, units.parse_time)
    if not 0 < rtt_s <= 2:
        raise ScenarioError(f"--rtt: '{asked.rtt}'; expected more than 0s and at most 2s")
    label = f"{units.format_rate(rates['up'])}-{units.format_rate(rates['down'])}-{units.format_time(rtt_s)}"
    label += f"-{asked.link}" if asked.link != "plain" else ""
    payload, of = link.cells
    values: dict[str, Any] = {"rtt": units.format_time(rtt_s), "framing": link.htb, "cake_framing": link.cake}
    for name, rate in rates.items():
        values[name] = units.format_rate(rate * payload // of)
        values[f"shaped_{name}"] = units.format_rate(rate * _SHAPED[0] // _SHAPED[1])
        values[f"buffer_{name}"] = _buffer(asked.buffer, rate)
    return {label: values}


def _buffer(written: str | None, rate: int) -> int:
    """Bytes that a queue without management holds."""
    if written is None:
        return min(max(round(rate * _BUFFER_S / 8), _LEAST_BUFFER), _MOST_BUFFER)
    seconds = _read("--buffer", written, units.parse_time)
    if not 0 < seconds <= 60:
        raise ScenarioError(f"--buffer: '{written}'; expected more than 0s and at most 60s")
    return max(round(rate * seconds / 8), 1514)


def _read(option: str, text: str, parse: Callable[[object], T]) -> T:
    try:
        return parse(text)
    except ValueError as error:
        raise ScenarioError(f"{option}: {error}") from None
