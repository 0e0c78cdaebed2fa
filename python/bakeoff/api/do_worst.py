"""`bakeoff.worst`: search for the scenario in which a congestion control is worst beside a baseline."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import campaign, engines
from bakeoff.api.do_evaluate import checked
from bakeoff.api.do_sweep import default_store, jobs_of
from bakeoff.arguments import check
from bakeoff.engines.patience import patience_s
from bakeoff.errors import UsageError
from bakeoff.evaluation.adversary import document, findings
from bakeoff.evaluation.adversary.document import Contest
from bakeoff.evaluation.adversary.findings import OnKernel, Worst
from bakeoff.evaluation.adversary.goal import goal
from bakeoff.evaluation.adversary.hunt import FRESH, Hunt, measured
from bakeoff.evaluation.adversary.search import load_optuna
from bakeoff.evaluation.seats import Asked
from bakeoff.results import Request

if TYPE_CHECKING:
    from bakeoff.campaign import Done, Execution, Report
    from bakeoff.campaign.worker import Also
    from bakeoff.evaluation.adversary.hunt import Confirmed
    from bakeoff.scenario import Run

RUNS: Final = 2000
SEEDS: Final = 10
_LEAST_RUNS: Final = 100
_KERNEL_SEEDS: Final = 3
_RUNS: Final = "runs"
_KERNEL: Final = "kernel"


@dataclass(frozen=True)
class Doing:
    """A campaign whose runs follow from earlier ones."""

    runs: list[Run]
    """To begin with."""
    root: Path
    execution: Execution
    request: Request
    also: Also
    more: Callable[[Done, int], Sequence[Run]] | None = None
    expected: Callable[[], int] | None = None


Do = Callable[[Doing], "Report | None"]
"""Does the runs; None if they were interrupted."""


@dataclass(frozen=True)
class Plan:
    """A search that was checked."""

    asked: Asked
    measure: str
    hunt: Hunt
    first: list[Run]
    execution: Execution

    @property
    def estimate_s(self) -> float:
        """Wall time of all runs with all jobs, by the first ones."""
        engine = self.execution.engine
        each_s = sum(map(engines.get(engine).estimate_s, self.first)) / max(1, len(self.first))
        return self.hunt.expected * each_s / jobs_of(engine, self.execution.jobs)


def worst(
    cc: str,
    measure: str,
    *,
    runs: int = RUNS,
    seed: int = 1,
    seeds: int = SEEDS,
    against: Sequence[str] = Asked.against,
    baseline: str = Asked.baseline,
    kernel: bool = True,
    engine: str = "sim",
    jobs: int | None = None,
    out: Path | str | None = None,
    note: str | None = None,
) -> Worst:
    """Search for the scenarios in which a measure of a control is worst, as `bakeoff evaluate --worst` does.

    `measure` is `starvation`, `own`, `delay`, `loss`, `fairness`, or an expression over the flows `one` (the control)
    and `other` (each control of `against`): `goodput("one")`. Of an expression `low:` or `high:` says which values are
    bad. At most `runs` runs find, shorten and confirm up to five scenarios; the same `seed` finds the same. `seeds` is
    the number of seeds of the confirmation. `kernel` also runs the findings on the kernel engine, if a kernel is built.
    `out` defaults to a new folder in results/evaluate/; scenario files are there. Ctrl-C writes the best so far. The
    others as for `run`. BakeoffError for invalid input, or without optuna.
    """
    check(
        "worst", cc=("text", cc), measure=("text", measure), runs=("whole", runs), seed=("whole", seed),
        seeds=("whole", seeds), against=("texts", against), baseline=("text", baseline), kernel=("flag", kernel),
        engine=("text", engine), jobs=("whole?", jobs), out=("path?", out), note=("text?", note),
    )  # fmt: skip
    asked = Asked(cc=cc, baseline=baseline, against=tuple(against), seeds=operator.index(seeds))
    execution = campaign.Execution(engine=engine, jobs=jobs, store=default_store(engine, None), note=note)
    plan = planned(asked, measure, execution, runs=operator.index(runs), seed=operator.index(seed))
    root = campaign.new_folder(campaign.EVALUATION) if out is None else Path(out)
    stopped: list[KeyboardInterrupt] = []

    def do(doing: Doing) -> Report | None:
        try:
            return _done(doing)
        except KeyboardInterrupt as interrupt:
            stopped.append(interrupt)
            return None

    found = searched(plan, root, do, kernel=kernel)
    if stopped:
        raise stopped[0]
    return found


def planned(asked: Asked, measure: str, execution: Execution, *, runs: int = RUNS, seed: int = 1) -> Plan:
    """The search, checked; nothing is run. BakeoffError for invalid input, or without optuna."""
    if asked.cc == asked.baseline:
        raise UsageError(f"--baseline: '{asked.baseline}' is the evaluated control; expected another one")
    if runs < _LEAST_RUNS:
        raise UsageError(f"--runs: {runs}; expected at least {_LEAST_RUNS}")
    if asked.seeds < 2:
        raise UsageError(f"--seeds: {asked.seeds}; expected at least 2 with --worst")
    load_optuna()
    found = goal(measure, document.absolute(asked.cc), [document.absolute(each) for each in asked.against])
    checked(asked, execution.engine)
    hunt = Hunt(
        Contest(document.absolute(asked.cc), document.absolute(asked.baseline), found),
        runs,
        seed=seed,
        seeds=asked.seeds,
        refused=partial(_refused, engine=execution.engine),
    )
    first = hunt.first()
    hunt.check(first)
    if execution.timeout_s is None:
        execution = replace(execution, timeout_s=patience_s(first, execution.engine))
    return Plan(asked, measure, hunt, first, execution)


def searched(plan: Plan, root: Path, do: Do, *, kernel: bool = True) -> Worst:
    """Do the search with `do`, and write the scenario files of its findings into `root`."""
    hunt, asked = plan.hunt, plan.asked
    line = {"worst": plan.measure, "runs": str(hunt.expected), "baseline": asked.baseline}
    request = Request(kind="evaluate", patterns=(asked.cc,), kept="measures", line=line)
    also = partial(measured, words=hunt.contest.goal.expression.text)
    started = time.perf_counter()
    report = do(Doing(plan.first, root / _RUNS, plan.execution, request, also, hunt.more, lambda: hunt.expected))
    wall_s = time.perf_counter() - started
    several = [findings.write(hunt.contest, each.best, root, each, asked.seeds) for each in hunt.confirmed]
    if report is None:
        several = findings.interrupted(hunt, root, asked.seeds)
    elif kernel and several and plan.execution.engine == "sim":
        outcomes = _on_kernel(plan, root / _KERNEL, request, also, do)
        several = [replace(each, kernel=outcome) for each, outcome in zip(several, outcomes, strict=True)]
    several.sort(key=lambda each: -(each.measured.factor if each.measured is not None else inf))
    return Worst(
        cc=asked.cc,
        baseline=asked.baseline,
        against=asked.against,
        measure=plan.measure,
        expression=hunt.contest.goal.expression.text,
        engine=plan.execution.engine,
        findings=tuple(several),
        runs=hunt.ended,
        seeds=asked.seeds,
        wall_s=wall_s,
        root=root,
        interrupted=report is None,
        versions=engines.get(plan.execution.engine).versions(),
    )


def _on_kernel(plan: Plan, root: Path, request: Request, also: Also, do: Do) -> list[OnKernel]:
    """The findings on the kernel engine: what was measured there, or why nothing was."""
    contest = plan.hunt.contest
    several: dict[str, list[tuple[Run, Run]]] = {}
    why: dict[str, str] = {}
    seeds = range(FRESH, FRESH + min(plan.asked.seeds, _KERNEL_SEEDS))
    for number, each in enumerate(plan.hunt.confirmed):
        pairs = document.runs(contest, each.written, f"f{number + 1}", seeds)
        refused = campaign.accepted([run for pair in pairs for run in pair], _KERNEL)[1]
        if refused:
            why[each.written] = f"kernel: {next(iter(refused.values()))}"
        else:
            several[each.written] = pairs
    runs = [run for pairs in several.values() for pair in pairs for run in pair]
    execution = replace(plan.execution, engine=_KERNEL, store=None, timeout_s=None, dask=None)
    report = do(Doing(runs, root, execution, request, also)) if runs else None
    numbers = {each.key: each.numbers for each in report.runs} if report is not None else {}
    found = []
    for each in plan.hunt.confirmed:
        pairs = several.get(each.written, [])
        values = _values(contest, each, pairs, numbers)
        reason = why.get(each.written, "kernel: a run failed or was interrupted")
        found.append(OnKernel(values, None) if values is not None else OnKernel(None, reason))
    return found


def _values(
    contest: Contest,
    each: Confirmed,
    pairs: Sequence[tuple[Run, Run]],
    numbers: Mapping[str, Mapping[str, float | None]],
) -> findings.Measured | None:
    values, scores = [], []
    for pair in pairs:
        ours, theirs = (numbers.get(run.key, {}).get(contest.goal.expression.text) for run in pair)
        score = contest.goal.score(ours, theirs, document.mean_rate(each.best.point))
        if ours is None or theirs is None or score is None:
            return None
        values.append((ours, theirs))
        scores.append(score)
    return findings.measured_of(contest, values, scores) if values else None


def _refused(runs: Sequence[Run], engine: str) -> Mapping[str, str]:
    return campaign.accepted(runs, engine)[1]


def _done(doing: Doing) -> Report:
    return campaign.run(
        doing.runs, doing.root, doing.execution, request=doing.request, also=doing.also, more=doing.more
    )
