"""A scenario: a YAML file whose matrix is known and whose points can be expanded into resolved runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from bakeoff.errors import ScenarioError
from bakeoff.scenario import bounds, units
from bakeoff.scenario.effect import check_alike, check_axes
from bakeoff.scenario.error import DocumentError, did_you_mean, quoted, unquoted
from bakeoff.scenario.explain import explain
from bakeoff.scenario.language import Document
from bakeoff.scenario.matrix import Point, interpolate, label_of, points, substitute
from bakeoff.scenario.python_cc import placed
from bakeoff.scenario.resolve import resolve
from bakeoff.scenario.run import Run
from bakeoff.scenario.schedules import spread
from bakeoff.scenario.settings import Settings, label, labels, name_of, of_axes, typed, with_settings
from bakeoff.scenario.shipped import profile_of, with_profile
from bakeoff.scenario.yaml_file import read_yaml

OWN: Final = "local"
"""The suite of what no catalog holds."""
_SHORTENED: Final = (
    "duration={1} shortens the steady state of {0:g} s: it is from {2:.4g} s to {3:.4g} s; "
    "--set measure.steady_state.window sets another one"
)
_INSIDE: Final = {
    **{key: f"network.{key}" for key in ("path", "rtt", "delay", "bottleneck", "mangle", "links", "interfaces")},
    **{key: f"network.bottleneck.{key}" for key in ("rate", "qdisc", "shape")},
    **{key: f"flows.0.{key}" for key in ("cc", "start", "stop", "direction", "dscp", "ecn", "source")},
    **{key: f"hosts.{key}" for key in ("sysctl", "hz", "offloads", "stall", "timer_slack", "receive_coalescing")},
    "window": "measure.steady_state.window", "steady_state": "measure.steady_state", "tunnels": "network.tunnels",
}  # fmt: skip
"""Where a key belongs that is written on its own."""
_MATRIX = ("vary", "exclude", "run", "profile", "seeds")


@dataclass(frozen=True)
class Scenario:
    """One experiment with its variations.

    `document` is the file's plain data, placeholders and all; `path` is where it came from, for messages.
    """

    path: str
    suite: str
    name: str
    document: Mapping[str, Any]
    points: list[Point]
    settings: Settings = field(default_factory=dict)
    """What was set from outside; `document` holds it already. Such a scenario is the user's own, not its suite's."""
    typed: frozenset[str] = frozenset()
    """Words that the user typed himself: a path among them is one that he asks for, wherever it leads."""

    written: object = None
    """The file's own duration where `settings` have another one."""

    @property
    def seeds(self) -> int:
        """How often every run is repeated if nobody says otherwise."""
        return int(self.document.get("seeds", 1))

    @property
    def title(self) -> str:
        """For lists: the title as written, with braces around what varies."""
        return str(self.document.get("title", ""))

    @cached_property
    def run_names(self) -> list[str]:
        """The names of the runs at `points`, in their order."""
        return [self.run_name(point) for point in self.points]

    def run_name(self, point: Point) -> str:
        """The name of the run at `point`."""
        template = self.document.get("run") or "-".join(f"{{{axis}}}" for axis in point) or self.name
        with _at(self.path, self.settings, self.document):
            name = interpolate(str(template), point, "run")
            if not name.isprintable():
                raise DocumentError("run", f"{name!r}; expected a name on one line")
            return name

    def resolve(self, point: Point, seed: int) -> Run:
        """The resolved run at `point`; BakeoffError names the place of what is wrong."""
        with _at(self.path, self.settings, self.document):
            data = {key: value for key, value in self.document.items() if key not in _MATRIX}
            title = interpolate(str(data.pop("title", "")), point, "title")
            data = {**substitute(data, point), "title": title}
            too_much = bounds.too_much_text(data)
            if too_much is not None:
                raise DocumentError("", f"the run {too_much}")
            data, scheduled = spread(data)
            try:
                document = Document.model_validate(data)
            except ValidationError as error:
                raise explain(error, data, scheduled) from None
            at = {axis: label_of(point, axis) for axis in point} | labels(self.settings)
            folder = Path(self.path).parent
            name = name_of(self.run_name(point), self.settings)
            written_s = self._written_s(point)
            run = resolve(
                document, scheduled, suite=self.suite, run=name, seed=seed, point=at, folder=folder, written_s=written_s
            )
            steady = document.measure.steady_state
            if written_s is not None and steady is not None and run.window_s[1] - run.window_s[0] < steady.window:
                run = run.with_notices((_SHORTENED.format(steady.window, self.settings["duration"], *run.window_s),))
            return placed(run, folder, self.typed | typed(self.settings)).from_file(self.path)

    def _written_s(self, point: Point) -> float | None:
        """The duration that the file has where another one was set, and its window was not."""
        if self.written is None or any(key.partition(".")[0] == "measure" for key in self.settings):
            return None
        try:
            return units.parse_time(substitute({"duration": self.written}, point)["duration"])
        except (DocumentError, ValueError):
            return None


class _at:  # noqa: N801 (reads as a word)
    """Turns what is wrong inside into a BakeoffError that starts with the path, and ends with that of the profile."""

    def __init__(self, path: str, settings: Settings, document: Mapping[str, Any]) -> None:
        self.path = path
        self.settings = settings
        self.document = document

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DocumentError):
            set_to = "".join(f" with --set {key}={label(value)}" for key, value in self.settings.items())
            # What the merged document lacks, or has twice, may be either file's fault.
            profile = profile_of(self.document)
            under = f" (defaults are in {profile})" if profile else ""
            raise ScenarioError(f"{self.path}{set_to}: {error}{under}") from None


def load(path: Path | str, *, settings: Settings | None = None, yes: bool = False) -> Scenario:
    """Read the scenario file at `path` and check it with its first point; BakeoffError says what is wrong where.

    `settings` are values that replace those of the file, by their place: `flows.0.cc`. `yes` allows a matrix of any
    size.
    """
    path = Path(path)
    scenario = open_file(path, settings=settings, yes=yes)
    scenario.resolve(scenario.points[0], seed=1)
    return scenario


def open_file(path: Path, *, settings: Settings | None = None, yes: bool = False) -> Scenario:
    """As `load`, without a look at what the matrix is filled into."""
    return from_document(
        read_yaml(path), path=str(path), suite=suite_of(path), default_name=path.stem, settings=settings, yes=yes
    )


def suite_of(path: Path) -> str:
    """The folder's name for a file of the catalog (`…/suites/SUITE/FILE.yaml`), else `local`."""
    parent = path.resolve().parent
    return parent.name if parent.parent.name == "suites" else OWN


def from_document(
    data: Mapping[str, Any],
    *,
    path: str,
    suite: str,
    default_name: str,
    settings: Settings | None = None,
    typed: frozenset[str] = frozenset(),
    yes: bool = False,
) -> Scenario:
    """A scenario from plain data; checks the matrix only."""
    settings = settings or {}
    with _at(path, settings, data):
        own = {"scenario": default_name, **with_profile(data)}
        settings = of_axes(own, settings)
        document = with_settings(own, settings)
        known = list(Document.model_fields)
        for key in document:
            if key not in known:
                inside = _INSIDE.get(key)
                hint = f"; did you mean '{inside}'?" if inside else did_you_mean(key, known)
                raise DocumentError("", f"unknown key '{key}'{hint}")
        seeds = document.get("seeds", 1)
        if not isinstance(seeds, int) or isinstance(seeds, bool) or seeds < 1:
            raise DocumentError("seeds", f"{quoted(seeds)}; expected an integer, at least 1")
        for key in ("title", "run"):
            value = document.get(key)
            if value is not None and not isinstance(value, (str, int, float)):
                raise DocumentError(key, unquoted(value) or f"{quoted(value)}; expected text")
        return Scenario(
            path=path,
            suite=OWN if settings else str(document.get("suite") or suite),
            name=str(document["scenario"]),
            document=document,
            points=points(document.get("vary"), document.get("exclude"), yes=yes),
            settings=settings,
            typed=typed,
            written=own.get("duration") if "duration" in settings else None,
        )


def expand(scenario: Scenario, *, seeds: int | None = None, yes: bool = False) -> list[Run]:
    """All runs of the matrix, each with the seeds 1 to `seeds`: the same seeds for every variant.

    Without `seeds` there are as many as the scenario says, or one. Raises BakeoffError for the first point that does
    not make a run, if two points have one name or make the same run, for an axis that changes nothing, and, unless
    `yes`, for very many runs.
    """
    return runs_at(scenario, scenario.points, seeds=seeds, yes=yes)


def runs_at(
    scenario: Scenario, chosen: Sequence[Point], *, seed: int = 1, seeds: int | None = None, yes: bool = False
) -> list[Run]:
    """The runs at some points of the matrix, with seeds from `seed` on; otherwise as `expand`."""
    seeds = scenario.seeds if seeds is None else seeds
    bounds.check_seed(seed)
    if seeds < 1:
        raise ScenarioError(f"seeds: {seeds}; expected at least 1")
    with _at(scenario.path, scenario.settings, scenario.document):
        check_axes(scenario.document)
        times = f"{len(chosen):,} points of the matrix with {seeds:,} seeds each are " if seeds > 1 else ""
        too_many = bounds.too_many_runs(len(chosen) * seeds, times)
        if too_many is not None and not yes:
            raise DocumentError("", too_many)
        _check_names(scenario)
        first: list[Run] = []
        runs: list[Run] = []
        flows = 0
        for point in chosen:
            first.append(scenario.resolve(point, seed))
            flows += seeds * first[-1].n_flows
            too_many = bounds.too_many_flows(flows, within="all runs")
            if too_many is not None and not yes:
                raise DocumentError("", too_many)
            runs += [first[-1], *(scenario.resolve(point, seed + more) for more in range(1, seeds))]
        check_alike(chosen, first)
    return runs


def _check_names(scenario: Scenario) -> None:
    named: dict[str, Point] = {}
    for point in scenario.points:
        name = scenario.run_name(point)
        if name in named:
            unlike = [axis for axis in point if label_of(point, axis) != label_of(named[name], axis)]
            raise DocumentError(
                "run",
                f"duplicate name '{name}' of two points; expected a template with "
                f"{' or '.join(f'{{{axis}}}' for axis in unlike)}",
            )
        named[name] = point
