"""The request of a campaign, as stored in campaign.json (docs/results-folder.md)."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self

from bakeoff.errors import BakeoffError, ResultsError

Kind = Literal["run", "duel", "advise", "verify", "evaluate", "sweep", "import"]
Kept = Literal["all", "measures"]
"""What a run's folder holds: everything, or run.json and the measures alone."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The selection, the settings, the seeds and the observations."""

    kind: Kind = "run"
    patterns: tuple[str, ...] = ()
    """Patterns of the catalog, a sweep's scenario, a duel's runs or imported files, as the user wrote them."""
    only: str | None = None
    """Pattern that the name of every run matches besides (-k)."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Values that replace those of the scenarios, as plain data, by their place (--set)."""
    seed: int | None = None
    """Seed of the first repetition; None for 1."""
    seeds: int | None = None
    """Repetitions of every run; None for those that the scenario says."""
    trace: tuple[str, ...] = ()
    capture: tuple[str, ...] = ()
    kept: Kept = "all"
    over: tuple[str, ...] = ()
    """Parameters of a sweep, KEY=VALUES."""
    sample: str | None = None
    adaptive: str | None = None
    measures: tuple[str, ...] = ()
    """Expressions that a sweep takes of each run."""
    line: dict[str, str] = field(default_factory=dict)
    """What advice or an evaluation is asked for, by its option."""

    def words(self) -> list[str]:
        """The words of a command line that asks for the same."""
        return [*self.patterns, *self._chosen(), *self._observed()]

    def lines(self) -> list[str]:
        """The same for people: each pattern, the options that choose runs, those that repeat and observe them."""
        if self.kind not in ("run", "duel", "import", "verify"):
            return [shlex.join(self.words())]
        return [*self.patterns, *(shlex.join(words) for words in (self._chosen(), self._observed()) if words)]

    def outside(self, begun: Request) -> list[str]:
        """What is no part of a campaign that was begun with another request, as words; empty for a part of it.

        Seeds, traces and captures may differ. Settings and names that are not given again are those of the beginning.
        """
        if self.kind in ("sweep", "advise", "evaluate"):
            same = replace(self, kept=begun.kept, trace=begun.trace, capture=begun.capture) == begun
            return [] if same else self.lines()
        others = [pattern for pattern in self.patterns if pattern not in begun.patterns] if begun.patterns else []
        if (self.settings or self.only is not None) and (self.settings, self.only) != (begun.settings, begun.only):
            others.append(shlex.join(self._chosen()))
        return others

    def continued(self, begun: Request, *, patterns: bool) -> tuple[Request, Request]:
        """The request to continue a campaign with, and the part of it that comes from its beginning.

        With `patterns` those are taken, too. Other settings or names mean other runs: with one of them given, neither
        is taken.
        """
        chosen = not self.settings and self.only is None
        taken = Request(
            kind=self.kind,
            patterns=begun.patterns if patterns else (),
            only=begun.only if chosen else None,
            settings=begun.settings if chosen else {},
            seed=begun.seed if self.seed is None else None,
            seeds=begun.seeds if self.seeds is None else None,
            trace=() if self.trace else begun.trace,
            capture=() if self.capture else begun.capture,
        )
        whole = replace(
            self,
            patterns=self.patterns or taken.patterns,
            only=self.only if taken.only is None else taken.only,
            settings=self.settings or taken.settings,
            seed=self.seed if taken.seed is None else taken.seed,
            seeds=self.seeds if taken.seeds is None else taken.seeds,
            trace=self.trace or taken.trace,
            capture=self.capture or taken.capture,
        )
        return whole, taken

    def _chosen(self) -> list[str]:
        """The options that decide which runs there are."""
        settings = [f"{key}={_written(value)}" for key, value in self.settings.items()]
        if self.kind == "sweep":
            return _words(
                {
                    "--over": self.over, "--sample": self.sample, "--adaptive": self.adaptive, "--set": settings,
                    "-k": self.only, "--seed": self.seed, "--seeds": self.seeds,
                    "--measure": self.measures,
                }
            )  # fmt: skip
        return _words({**{f"--{key}": value for key, value in self.line.items()}, "--set": settings, "-k": self.only})

    def _observed(self) -> list[str]:
        """The options that decide how often the runs are done, and what they record."""
        seeds = {} if self.kind == "sweep" else {"--seed": self.seed, "--seeds": self.seeds}
        return _words({**seeds, "--trace": self.trace, "--capture": self.capture})

    @classmethod
    def of_lines(cls, kind: Kind, lines: Sequence[str]) -> Self:
        """Read `patterns` of a campaign.json without a `request`: patterns, with options as they were typed.

        ResultsError if the options cannot be read.
        """
        if kind not in ("run", "sweep", "advise"):
            return cls(kind=kind, patterns=tuple(lines))
        typed = [line for line in lines if kind != "run" or line.startswith(_TYPED)]
        patterns = [line for line in lines if line not in typed]
        try:
            words = [word for line in typed for word in shlex.split(line)]
            patterns += [words.pop(0)] if kind == "sweep" else []
            options: dict[str, list[str]] = {}
            for option, value in zip(words[::2], words[1::2], strict=True):
                options.setdefault(option, []).append(value)
            if kind == "advise":
                return cls(kind=kind, line={option.removeprefix("--"): value for option, [value] in options.items()})
            return cls(kind=kind, patterns=tuple(patterns), **_fields(options))
        except (ValueError, IndexError, KeyError, BakeoffError):
            raise ResultsError(f"patterns: invalid options of 'bakeoff {kind}': {typed}") from None


_TYPED: Final = ("--set ", "-k ", "--seeds ", "--trace ", "--capture ")
_FIELDS: Final = {
    "-k": "only", "--seeds": "seeds", "--trace": "trace", "--capture": "capture", "--over": "over",
    "--sample": "sample", "--adaptive": "adaptive", "--measure": "measures", "--set": "settings",
}  # fmt: skip
_REPEATED: Final = ("--trace", "--capture", "--over", "--measure")


def _fields(options: Mapping[str, list[str]]) -> dict[str, Any]:
    """The fields of a request that options set."""
    from bakeoff.scenario import parse_settings

    found: dict[str, Any] = {}
    for option, values in options.items():
        if option == "--set":
            found["settings"] = parse_settings(values)
        elif option in _REPEATED:
            found[_FIELDS[option]] = tuple(values)
        else:
            [value] = values
            found[_FIELDS[option]] = int(value) if option == "--seeds" else value
    return found


def _words(options: Mapping[str, Iterable[str] | int | None]) -> list[str]:
    """The options as they are typed, without those that were not given."""
    words = []
    for name, value in options.items():
        several = [] if value is None else [str(value)] if isinstance(value, str | int) else value
        words += [word for each in several for word in (name, each)]
    return words


def _written(value: object) -> str:
    """The value of a setting as --set reads it."""
    from bakeoff.scenario.yaml_file import parse_value

    if isinstance(value, str) and value == value.strip() != "":
        try:
            if parse_value(value, "--set") == value:
                return value
        except BakeoffError:
            pass
    return json.dumps(value, ensure_ascii=False)
