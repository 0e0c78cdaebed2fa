"""What completes a word in a shell. Nothing heavy is imported; a completion never fails, at worst it has no words."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.campaign.locations import LATEST

if TYPE_CHECKING:
    from bakeoff.measure.catalogue import Of

Words = Callable[[str], list[str]]
"""From the beginning of a word to the words that begin so."""

_RUN: Final = (
    "suite scenario run engine n window_from_s window_to_s bottleneck_rate_bps reference compared converged met "
    "utilisation queue_delay_p50_s queue_delay_p99_s queue_delay_of probe_rtt_mean_s marks sce_marks drops "
    "changes notes"
)
"""Columns of runs besides the measures of a run."""
_OBJECTS: Final[Mapping[Of, str]] = {
    "flow": "name cc ecn reference_bps reference_ln_spread log_ratio", "queue": "name", "probe": "name",
}  # fmt: skip
"""Columns of each object in a run besides its measures."""
_PARTS: Final = (
    "flow cc ecn from to transport source start_s stop_s base_rtt_s bottleneck share queue qdisc flows delay_of probe "
    "protocol phase from_s to_s"
)
"""Columns of tables with a row for each flow, queue, probe or phase besides the measures."""


_SAFE: Final = re.compile(r"[\w.,:/@%+()-][\w.,:/@%+=~()-]*")
"""Words that no shell acts on once `(` and `)` are escaped. A word may be the name of a stranger's folder."""
_PARENTHESES: Final = re.compile(r"[()]")
"""In names of runs. zsh and fish escape a completion when they insert it; bash inserts it as it is."""
_LARGEST: Final = 256 << 20
"""Bytes of a file that is read."""


def _words(of: Callable[[str], Iterable[str]]) -> Words:
    """Those of the words that begin as the user began, and none where they cannot be found out."""

    def complete(incomplete: str) -> list[str]:
        try:
            words = [word for word in dict.fromkeys(of(incomplete)) if word.startswith(incomplete)]
            return [_escaped(word) for word in words if _SAFE.fullmatch(word)]
        except Exception:  # in the middle of a command line a message is worse than no words
            return []

    return _told_as(of, complete)


def _escaped(word: str) -> str:
    """The word as the shell that asks has to insert it."""
    bash = os.environ.get("_BAKEOFF_COMPLETE") == "complete_bash"
    return _PARENTHESES.sub(r"\\\g<0>", word) if bash else word


def _listed(of: Callable[[str], Iterable[str]]) -> Words:
    """The same for a list with commas, of which the last word is completed."""

    def complete(incomplete: str) -> list[str]:
        head, comma, last = incomplete.rpartition(",")
        return [head + comma + word for word in _words(of)(last)]

    return _told_as(of, complete)


def _told_as(of: Callable[[str], Iterable[str]], complete: Words) -> Words:
    # Not functools.wraps: typer would ask for the parameters of what is wrapped.
    complete.__name__, complete.__doc__ = of.__name__, of.__doc__
    return complete


@_words
def scenario(_: str) -> list[str]:
    """suite/scenario of the catalog, by its files' names."""
    files = _catalog().glob("suites/*/*.yaml")
    return sorted(f"{file.parent.name}/{file.stem}" for file in files)


@_words
def claim(_: str) -> list[str]:
    """The catalog's documents and claims, by the lines that name them."""
    files = sorted((_catalog() / "claims").glob("*.yaml"))
    ids = [(file.stem, re.findall(r"(?m)^ *- id: *([a-z0-9.-]+) *$", file.read_text("utf-8"))) for file in files]
    return [*(stem for stem, _ in ids), *(f"{stem}/{name}" for stem, names in ids for name in names)]


@_words
def engine(_: str) -> Iterable[str]:
    """The engines."""
    from bakeoff import engines

    return engines.names()


@_words
def kernel(_: str) -> list[str]:
    """The kernels that were built here."""
    from bakeoff.engines.kernel import cache

    return sorted(file.parent.name for file in cache.kernels().glob("*/build.json"))


@_words
def kind(_: str) -> list[str]:
    """The kinds of pictures."""
    from bakeoff.plots.kinds import KINDS

    return [kind.name for kind in KINDS]


@_words
def measure(_: str) -> Iterable[str]:
    """What pictures of a campaign can measure."""
    from bakeoff.plots import axes

    return axes.names()


@_listed
def _control(_: str) -> list[str]:
    from bakeoff import _sim

    return _sim.congestion_controls()


@_words
def _part(_: str) -> list[str]:
    from bakeoff import _sim

    return _sim.congestion_control_parts()


def cc(incomplete: str) -> list[str]:
    """The simulator's congestion controls; after the words of one the parts that may follow."""
    words, space, last = incomplete.rpartition(" ")
    return [words + space + part for part in _part(last)] if space else _control(last)


@_listed
def qdisc(_: str) -> list[str]:
    """The simulator's qdiscs."""
    from bakeoff import _sim

    return _sim.qdiscs()


@_words
def reference(_: str) -> list[str]:
    """The references of the catalog, by their files' names."""
    return sorted(file.stem for file in (_catalog() / "references").glob("*.csv"))


@_listed
def columns(_: str) -> list[str]:
    """The columns of tables; `flow1_`, `queue1_` and `probe1_` stand for others of their kind."""
    from bakeoff.measure.functions import CATALOGUE

    def measured(of: Of) -> list[str]:
        return [measure.column for measure in CATALOGUE.of(of) if measure.tabled]

    numbered = [f"{of}1_{name}" for of, names in _OBJECTS.items() for name in (*names.split(), *measured(of))]
    parts = [name for of in _OBJECTS for name in measured(of)]
    axes = (f"axis_{axis}" for axis in _axis_names())
    return [*_RUN.split(), *measured("run"), *axes, *_PARTS.split(), *parts, *numbered, "?"]


@_listed
def order(incomplete: str) -> list[str]:
    """The same for --sort, where a minus begins with the largest."""
    minus = incomplete[:1] if incomplete.startswith("-") else ""
    return [minus + name for name in columns("") if name != "?"]


@_words
def axis(_: str) -> list[str]:
    """The axes of the latest campaign's first run."""
    return _axis_names()


@_words
def results(incomplete: str) -> list[str]:
    """Folders below results/, and suites, scenarios and runs of the latest campaign."""
    head, slash, _ = incomplete.rpartition("/")
    if slash:
        return [f"{head}/{name}" for base in (LATEST, Path()) for name in _folders(base / head)]
    # A suite's name alone tells nobody much.
    inside = [f"{suite}/{scenario}" for suite in _folders(LATEST) for scenario in _folders(LATEST / suite)]
    return [*(f"{LATEST.parent}/{name}" for name in _folders(LATEST.parent)), *inside]


@_words
def results_or_reference(incomplete: str) -> list[str]:
    """What a campaign can be compared with."""
    return [*results(incomplete), *reference(incomplete)]


def _catalog() -> Path:
    """Where the catalog lies; its own module is heavy."""
    from bakeoff import data

    named = os.environ.get("BAKEOFF_CATALOG")
    return Path(named) if named else data.folder("catalog")


def _axis_names() -> list[str]:
    """The axes of the first run that is found in the latest campaign; none if there is none."""
    path = LATEST
    for _level in ("suite", "scenario", "run"):
        names = _folders(path)
        if not names:
            return []
        path /= names[0]
    from bakeoff import files

    # A campaign may be a stranger's: a pipe in place of the file would hold the shell for ever.
    return list(json.loads(files.read(path / "run.json", _LARGEST))["resolved"]["point"])


def _folders(path: Path) -> list[str]:
    """The folders in it that are neither hidden nor named like an option; none if it cannot be read."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith((".", "-")))
    except OSError:
        return []
