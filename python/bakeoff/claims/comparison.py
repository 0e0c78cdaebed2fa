"""The same runs done twice, say by the simulator and by a kernel: how far they are apart, measure by measure.

A distance is ln(ours / theirs): 0 if equal, 0.1 for about 10 %, 0.69 for a factor of two. Repetitions of a run (its
seeds) are taken together by their mean on each side. Where both sides have a run with the same seeds, these are pairs:
whether the sides differ is told from ln(ours / theirs) of each pair.

The measures are those of the catalogue named in `MEASURES`; marks and drops are compared with one added to both sides,
and of several queues at the bottleneck the slowest counts.

A run without flows, whose programs told nobody what they sent, has no bottleneck of a flow: then all its queues count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from math import inf, isfinite, log, sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff.errors import ClaimError
from bakeoff.measure import interval, summary_of
from bakeoff.measure.delays import mean_base_rtt, quantile
from bakeoff.measure.summarise import bottleneck_queues
from bakeoff.references import Noise, Reference, noise_of
from bakeoff.scenario.timeline import Timeline

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.results.summary import Summary
    from bakeoff.scenario.run import Run

MEASURES: Final = (
    "goodput", "tcp_delay_mean", "tcp_delay_p99", "little_delay_mean", "little_delay_p99", "marks", "drops",
    "ping_mean", "ping_p99",
)  # fmt: skip
"""What is compared, in this order: probes only in runs without flows."""
RENAMED: Final[Mapping[str, str]] = {
    "queue_delay": "tcp_delay_mean", "queue_delay_p99": "tcp_delay_p99",
    "sojourn": "little_delay_mean", "sojourn_p99": "little_delay_p99",
    "probe_rtt": "ping_mean", "probe_rtt_p99": "ping_p99",
}  # fmt: skip
"""Names of bounds and tolerances until format 5 of summary.json."""
BOUNDS: Final = {"goodput": 0.05, "tcp_delay_mean": 0.15}
"""What is asked of the median by default."""

SCENARIO: Final = "scenario"
"""What runs can be grouped by besides the axes of their matrix."""

_COUNTS: Final = ("marks", "drops")
SAME: Final = (
    "duration_s",
    "window_s",
    "nodes",
    "links",
    "interfaces",
    "tunnels",
    "flows",
    "probes",
    "changes",
    "programs",
)
"""What makes a run what it is; the rest differs between engines, seeds and presentations."""


class Key(NamedTuple):
    """What a number belongs to; `flow` is the flow or probe, and empty for a number of the whole run."""

    suite: str
    scenario: str
    run: str
    flow: str
    measure: str


class Trials(NamedTuple):
    """How repeated measurements scatter around their mean."""

    sd: float
    n: int


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    values: Mapping[Key, Mapping[int, float]]
    """One value per repetition, by its seed."""
    documents: Mapping[tuple[str, str, str], Run] = field(default_factory=dict)
    """The resolved run by (suite, scenario, run); none where only numbers are known."""
    trials: Mapping[Key, Trials] = field(default_factory=dict)
    """Where a value is a mean whose trials are not known one by one."""


@dataclass(frozen=True)
class Difference:
    """One number on both sides."""

    key: Key
    axes: Mapping[str, str]
    """The point of the matrix: axis name to label."""
    ours: float
    theirs: float
    n_ours: int
    n_theirs: int
    ln: float
    """ln(ours / theirs); infinite if one of them is 0."""
    overlap: bool | None
    """Whether the sides may be equal: of pairs whether the 95 % interval holds 0, else whether the ranges over the
    repetitions overlap. None if a side has one repetition only."""
    pairs: int = 0
    """Seeds that both sides have, of which alone the means are then; 0 where nothing was paired."""
    ln_mean: float | None = None
    """Of ln(ours / theirs) over the pairs; None without pairs, or if one of them is infinite."""
    ln_ci95: float | None = None
    """Half of its 95 % interval by Student's t; None of one pair."""
    noise: float | None = None
    """Standard deviation of one trial of theirs over the mean of all; None if a reference does not state it."""


@dataclass(frozen=True)
class Distribution:
    """|ln| over all differences of one measure in one group."""

    group: tuple[str, ...]
    """Labels of the axes that were asked for, in their order."""
    measure: str
    n: int
    median: float
    p90: float
    max: float
    bound: float | None
    outside: int
    """How many are beyond the bound; 0 without one."""
    noise: Noise | None = None
    """The same of two trials of theirs with each other, where a reference states their scatter."""


@dataclass(frozen=True)
class Comparison:
    """Everything that both sides have."""

    ours: str
    theirs: str
    differences: Sequence[Difference]
    notes: Sequence[str]
    """Runs that only one side has, or that are not the same experiment; for people."""
    warning: str | None = None
    """What puts all the numbers in doubt, such as that they come from different model epochs."""


def side_of(name: str, results: Iterable[Result]) -> Side:
    """The numbers of a campaign's finished runs. BakeoffError if a seed stands twice or no run is finished."""
    values: dict[Key, dict[int, float]] = {}
    documents: dict[tuple[str, str, str], Run] = {}
    seen: set[str] = set()
    for result in results:
        if not result.ok:
            continue
        run = result.run
        of = run.suite, run.scenario, run.run
        repetition = f"{'/'.join(of)}, seed {run.seed}"
        if repetition in seen:
            raise ClaimError(f"{name}: duplicate {repetition}; expected unique runs")
        seen.add(repetition)
        documents.setdefault(of, run)
        for flow, measure, value in _numbers(run, summary_of(result)):
            values.setdefault(Key(*of, flow, measure), {})[run.seed] = value
    if not seen:
        raise ClaimError(f"{name}: no finished run to compare")
    if not values:
        raise ClaimError(f"{name}: nothing to compare; expected a finished run with a flow, a probe or a queue")
    return Side(name, values, documents)


def side_of_reference(name: str, lines: Iterable[Reference], ours: Side) -> Side:
    """A reference's numbers; the base RTTs, which no reference holds, are those of our runs."""
    values: dict[Key, dict[int, float]] = {}
    trials: dict[Key, Trials] = {}
    for line in lines:
        of = line.suite, line.scenario, line.run
        document = ours.documents.get(of)
        if line.reference != name or document is None:
            continue
        measure, value = line.measure, line.value
        if measure.startswith("srtt"):
            flow = next((flow for flow in document.flows if flow.name == line.flow), None)
            if flow is None:
                raise ClaimError(f"{name}: {line.run} has no flow '{line.flow}'")
            measure, value = measure.replace("srtt", "tcp_delay"), value - mean_base_rtt(document, flow)
        key = Key(*of, line.flow, measure)
        repetitions = values.setdefault(key, {})
        repetitions[len(repetitions) + 1 if line.seed is None else line.seed] = value
        if line.sd is not None and line.n > 1:
            trials[key] = Trials(line.sd, line.n)
    # Several lines of one number are its trials themselves.
    return Side(name, values, trials={key: of for key, of in trials.items() if len(values[key]) == 1})


def with_sums(ours: Side, theirs: Side) -> Side:
    """Our side with the sums over flows that a reference has by pattern, such as `prague*`."""
    sums = {key for key in theirs.values if "*" in key.flow}
    if not sums:
        return ours
    found: dict[Key, dict[int, float]] = {}
    for key in sums:
        parts = [
            values for one, values in ours.values.items()
            if one[:3] == key[:3] and one.measure == key.measure and fnmatchcase(one.flow, key.flow)
        ]  # fmt: skip
        seeds = set.intersection(*(set(part) for part in parts)) if parts else set()
        if seeds:
            found[key] = {seed: sum(part[seed] for part in parts) for seed in sorted(seeds)}
    return replace(ours, values={**ours.values, **found})


PAIRED: Final = (
    "in pairs of equal seeds: 'apart' where the 95 % interval of the mean of ln(ours / theirs) over the pairs, by "
    "Student's t, does not hold 0"
)
TRIALS: Final = (
    "theirs are means of trials: 'apart' where ours is beyond two standard errors, by the scatter of the trials; "
    "noise is |ln| of two trials, by their standard deviations"
)
UNPAIRED: Final = "by their means: 'apart' where the ranges of the two sides do not overlap"


def compare(ours: Side, theirs: Side, *, paired: bool = True) -> Comparison:
    """Number by number, in our order. BakeoffError if they have no runs in common.

    Unless it is not wanted, seeds that both sides have are compared with each other.
    """
    notes = []
    mine, others = (dict.fromkeys(key[:3] for key in side.values) for side in (ours, theirs))
    for side, runs, elsewhere in ((ours, mine, others), (theirs, others, mine)):
        alone = [run for run in runs if run not in elsewhere]
        if alone:
            notes.append(f"only in {side.name}: {_several(alone)}")
    unlike = {of: what for of in mine if of in others and (what := _unlike(of, ours, theirs))}
    notes += [f"not the same experiment: {'/'.join(of)}: '{what}' differs" for of, what in unlike.items()]
    found = [
        _difference(
            key, values, theirs.values[key], ours.documents[key[:3]], paired=paired, trials=theirs.trials.get(key)
        )
        for key, values in ours.values.items()
        if key in theirs.values and key[:3] not in unlike
    ]
    if not found:
        raise ClaimError("\n  ".join([f"{ours.name} and {theirs.name} have no runs in common", *notes]))
    return Comparison(ours.name, theirs.name, found, [*notes, *_methods(found)])


def distributions(
    differences: Iterable[Difference], bounds: Mapping[str, float], by: Sequence[str] = ()
) -> list[Distribution]:
    """|ln| by the labels of the axes `by` and by measure, in order of first appearance.

    BakeoffError for a measure that does not exist, or an axis that no run has.
    """
    for measure in bounds:
        if measure not in MEASURES:
            raise ClaimError(f"bound: unknown measure '{measure}'; expected one of {', '.join(MEASURES)}")
    every = [*differences]
    groups: dict[tuple[tuple[str, ...], str], list[Difference]] = {}
    for one, group in zip(every, labels(every, by), strict=True):
        groups.setdefault((group, one.key.measure), []).append(one)
    order = list(MEASURES)
    ordered = sorted(groups.items(), key=lambda item: order.index(item[0][1]))
    return [_distribution(group, measure, members, bounds.get(measure)) for (group, measure), members in ordered]


def labels(differences: Sequence[Difference], by: Sequence[str]) -> list[tuple[str, ...]]:
    """The labels of the axes `by` for each difference, empty where its run has no such axis.

    `scenario` is an axis of all runs. BakeoffError for an axis that no run has.
    """
    axes = dict.fromkeys(axis for one in differences for axis in one.axes)
    for axis in by:
        if axis not in axes and axis != SCENARIO:
            known = ", ".join([*axes, SCENARIO])
            raise ClaimError(f"by: unknown axis '{axis}'; expected one of {known}")
    return [tuple(({SCENARIO: one.key.scenario} | {**one.axes}).get(axis, "") for axis in by) for one in differences]


def outside(differences: Iterable[Difference], bounds: Mapping[str, float]) -> list[Difference]:
    """What is beyond its measure's bound, the farthest first."""
    beyond = [one for one in differences if abs(one.ln) > bounds.get(one.key.measure, inf)]
    return sorted(beyond, key=lambda one: (MEASURES.index(one.key.measure), -abs(one.ln)))


def _numbers(run: Run, summary: Summary) -> Iterable[tuple[str, str, float]]:
    """(flow, measure, value) of all that a summary has; a measure that could not be taken is left out."""
    timeline = Timeline(run)
    for flow in run.flows:
        name, part = flow.name, summary.flows[flow.name]
        if part.steady_state.goodput_bps is not None:
            yield name, "goodput", part.steady_state.goodput_bps
        if part.srtt_s is not None:
            base = mean_base_rtt(run, flow, timeline)
            yield name, "tcp_delay_mean", part.srtt_s.mean - base
            yield name, "tcp_delay_p99", part.srtt_s.p99 - base
    queues = bottleneck_queues(summary)
    if not run.flows:
        queues = [*summary.queues.values()]
        for name, probe in summary.probes.items():
            if probe.rtt_s is not None:
                yield name, "ping_mean", probe.rtt_s.mean
                yield name, "ping_p99", probe.rtt_s.p99
    delays = [queue.sojourn_little_s for queue in queues if queue.sojourn_little_s is not None]
    if delays:
        yield "", "little_delay_mean", max(delay.mean for delay in delays)
        yield "", "little_delay_p99", max(delay.p99 for delay in delays)
    if queues:
        for count in _COUNTS:
            yield "", count, float(sum(getattr(queue, count) for queue in queues))


def _difference(
    key: Key, ours: Mapping[int, float], theirs: Mapping[int, float], run: Run, *, paired: bool, trials: Trials | None
) -> Difference:
    if trials is not None:
        return _of_trials(key, [*ours.values()], next(iter(theirs.values())), trials, run)
    both = [seed for seed in ours if seed in theirs] if paired else []
    # One seed that both happen to have says less than all that they have.
    if len(both) < 2 and set(ours) != set(theirs):
        both = []
    mine, other = [*ours.values()], [*theirs.values()]
    if both:
        mine, other = [ours[seed] for seed in both], [theirs[seed] for seed in both]
    middle, middle_other = fmean(mine), fmean(other)
    ln = distance(key.measure, middle, middle_other)
    found = Difference(key, run.point, middle, middle_other, len(mine), len(other), ln, None, len(both))
    if both:
        each = [distance(key.measure, one, another) for one, another in zip(mine, other, strict=True)]
        if not all(map(isfinite, each)):
            return replace(found, overlap=False if all(value == each[0] for value in each) else None)
        over = interval(each)
        alike = None if over["ci95"] is None else abs(over["mean"]) <= over["ci95"]
        return replace(found, overlap=alike, ln_mean=over["mean"], ln_ci95=over["ci95"])
    if min(len(mine), len(other)) > 1:
        return replace(found, overlap=min(mine) <= max(other) and min(other) <= max(mine))
    return found


def _of_trials(key: Key, ours: Sequence[float], theirs: float, trials: Trials, run: Run) -> Difference:
    """Beside the mean of trials: they may be equal if ours is within two standard errors, by the scatter of theirs."""
    middle = fmean(ours)
    overlap = abs(middle - theirs) <= 2 * trials.sd * sqrt(1 / len(ours) + 1 / trials.n)
    ln = distance(key.measure, middle, theirs)
    one = 1.0 if key.measure in _COUNTS else 0.0
    noise = trials.sd / (theirs + one) if theirs + one > 0 else None
    return Difference(key, run.point, middle, theirs, len(ours), trials.n, ln, overlap, noise=noise)


def _methods(found: Sequence[Difference]) -> list[str]:
    """How repetitions were compared, where there are any."""
    several = [one for one in found if max(one.n_ours, one.n_theirs) > 1 and one.noise is None]
    if not several:
        return [TRIALS] if any(one.noise is not None for one in found) else []
    pairs = sum(one.pairs > 0 for one in several)
    of = f"seeds of {pairs} of {len(several)} numbers are compared " if pairs < len(several) else "seeds are compared "
    notes = [of + PAIRED] if pairs else []
    rest = "the others " if pairs else "seeds are compared "
    return [*notes, rest + UNPAIRED] if pairs < len(several) else notes


def distance(measure: str, ours: float, theirs: float) -> float:
    """ln(ours / theirs), with one added to both where packets are counted; infinite if only one of them is 0."""
    one = 1.0 if measure in _COUNTS else 0.0
    return _ln(ours + one, theirs + one)


def _ln(ours: float, theirs: float) -> float:
    if ours > 0 and theirs > 0:
        return log(ours / theirs)
    return inf if ours > 0 else -inf if theirs > 0 else 0.0


def _distribution(group: tuple[str, ...], measure: str, of: list[Difference], bound: float | None) -> Distribution:
    values = [abs(one.ln) for one in of]
    beyond = 0 if bound is None else sum(value > bound for value in values)
    middle, most = quantile(values, 0.5), quantile(values, 0.9)
    noise = noise_of(one.noise for one in of if one.noise is not None)
    return Distribution(group, measure, len(values), middle, most, max(values), bound, beyond, noise)


def have_common_runs(ours: Side, theirs: Side) -> bool:
    """Whether any run of both sides has the same name and is the same experiment."""
    return any(of in theirs.documents and _unlike(of, ours, theirs) is None for of in ours.documents)


def _unlike(of: tuple[str, str, str], ours: Side, theirs: Side) -> str | None:
    """The first part of the resolved runs that differs, start times aside."""
    mine, other = (side.documents.get(of) for side in (ours, theirs))
    if mine is None or other is None:
        return None
    mine, other = starting_together(mine), starting_together(other)
    return next((part for part in SAME if getattr(mine, part) != getattr(other, part)), None)


def starting_together(run: Run) -> Run:
    """The run with all flows from 0 s on, as start times differ between seeds."""
    flows = [flow.model_copy(update={"start_s": 0.0}) for flow in run.flows]
    return run.model_copy(update={"flows": flows})


def _several(runs: Sequence[tuple[str, ...]]) -> str:
    names = ["/".join(run) for run in runs[:3]]
    return ", ".join(names) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
