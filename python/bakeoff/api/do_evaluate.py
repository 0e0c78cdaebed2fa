"""`bakeoff.evaluate`: run batteries of cases with a congestion control or a queue, and say what it does."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from bakeoff import campaign, engines, files
from bakeoff.arguments import check
from bakeoff.campaign.store import place
from bakeoff.engines.patience import patience_s
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.evaluation import battery
from bakeoff.evaluation.as_document import FILE
from bakeoff.evaluation.assess import Evaluation, Outcomes, assess
from bakeoff.evaluation.codepoint import sends_ect1
from bakeoff.evaluation.overdue import Unhurried
from bakeoff.evaluation.seats import BASELINES, Asked, Seats, check_run, seats
from bakeoff.results import Request
from bakeoff.scenario import python_cc

if TYPE_CHECKING:
    from bakeoff.campaign import Execution, Report
    from bakeoff.evaluation.battery import Case
    from bakeoff.evaluation.overdue import More
    from bakeoff.scenario import Run

SEEDS = 10
QUICK_SEEDS = 5
_PLACE: Final = re.compile(r"^(evaluate: )?(flows|interfaces)\[\d+\]\.(cc|egress): (class \d+: )?")
"""A place in `check_run`, which the user did not write."""


@dataclass(frozen=True)
class Plan:
    """The cases of an evaluation with their runs."""

    asked: Asked
    cases: list[Case]
    seats: list[Seats]
    runs: list[Run]
    """Each once, without those that the engine refuses."""
    refused: dict[str, str]
    """Runs that it cannot do by key, with the reason."""
    execution: Execution

    @property
    def request(self) -> Request:
        """The request for campaign.json."""
        asked = self.asked
        line = {"qdisc": asked.qdisc} if asked.qdisc else {"against": ",".join(asked.against)}
        line |= {"baseline": asked.baseline, "seeds": str(asked.seeds)}
        line |= {"battery": ",".join(asked.battery)} if asked.battery else {}
        return Request(kind="evaluate", patterns=asked.controls[:1], line=line)

    @property
    def estimate_s(self) -> float:
        """Wall time of the runs with all jobs."""
        jobs = self.execution.jobs or campaign.cores()
        return sum(map(engines.get(self.execution.engine).estimate_s, self.runs)) / max(1, min(jobs, len(self.runs)))


def evaluate(
    cc: str | None = None,
    *,
    qdisc: str | None = None,
    against: Sequence[str] | None = None,
    battery: Sequence[str] = (),
    case: Sequence[str] = (),
    quick: bool = False,
    seeds: int | None = None,
    baseline: str | None = None,
    engine: str = "sim",
    jobs: int | None = None,
    out: Path | str | None = None,
    store: str | None = None,
    fresh: bool = False,
    note: str | None = None,
) -> Evaluation:
    """Evaluate a congestion control or a queue, as `bakeoff evaluate` does.

    `cc`, `baseline` (default `cubic`) and `against` are controls as a scenario names them: `cubic`, `./mine.py:Mine
    beta 0.85`. Instead of `cc`, `qdisc` is a queue in tc's syntax, and `baseline` one too (default `pfifo limit BDP`).
    If `baseline` is given, `changes` of the result has what changed from it. `battery` are names (default: all for
    controls or for queues), `case` globs on BATTERY/ID. `quick` takes the short cases. `seeds` are the repetitions of
    each run (default 10, with `quick` 5). `out` defaults to a new folder in results/evaluate/. `engine`, `jobs`,
    `store`, `fresh` and `note` as for `run`. A run of what is evaluated that fails is a finding. BakeoffError for
    invalid input.
    """
    check(
        "evaluate", cc=("text?", cc), qdisc=("text?", qdisc), against=("texts?", against),
        battery=("texts", battery), case=("texts", case),
        quick=("flag", quick), seeds=("whole?", seeds), baseline=("text?", baseline), engine=("text", engine),
        jobs=("whole?", jobs), out=("path?", out), store=("text?", store), fresh=("flag", fresh), note=("text?", note),
    )  # fmt: skip
    asked = ask(
        cc, qdisc, baseline, against, battery=tuple(battery), case=tuple(case), quick=quick,
        seeds=seeds_of(None if seeds is None else operator.index(seeds), quick=quick),
    )  # fmt: skip
    execution = campaign.Execution(engine=engine, jobs=jobs, store=place(store), fresh=fresh, note=note)
    return evaluated(plan(asked, execution), campaign.new_folder(campaign.EVALUATION) if out is None else Path(out))


def ask(
    cc: str | None,
    qdisc: str | None,
    baseline: str | None,
    against: Sequence[str] | None,
    *,
    battery: tuple[str, ...],
    case: tuple[str, ...],
    quick: bool,
    seeds: int,
) -> Asked:
    """The request, with the defaults of what is evaluated. UsageError unless it is either a control or a queue."""
    if bool(cc) == bool(qdisc):
        raise UsageError(
            f"evaluate: {'both' if cc else 'neither'} CC {'and' if cc else 'nor'} --qdisc; expected one of them"
        )
    if baseline is not None and not baseline.strip():
        raise UsageError(f"--baseline: '{baseline}'; expected a {'queue' if qdisc else 'congestion control'}")
    if against is not None and not against:
        raise UsageError("--against: no competitor; expected at least one")
    if qdisc and against is not None:
        raise UsageError("--against: only valid with CC, not with --qdisc")
    return Asked(
        cc=cc or "", qdisc=qdisc or "", baseline=baseline or BASELINES["qdisc" if qdisc else "cc"],
        versions=baseline is not None,
        against=Asked.against if against is None else tuple(against), battery=battery, case=case, quick=quick,
        seeds=seeds,
    )  # fmt: skip


def seeds_of(seeds: int | None, *, quick: bool) -> int:
    """The repetitions of each run. UsageError for less than one."""
    if seeds is None:
        return QUICK_SEEDS if quick else SEEDS
    if seeds < 1:
        raise UsageError(f"evaluate: seeds: {seeds}; expected at least 1")
    return seeds


def plan(asked: Asked, execution: Execution, before: Callable[[list[Run]], None] | None = None) -> Plan:
    """The cases and runs, checked; nothing is run but a second with the control. BakeoffError for invalid input.

    `before` is called with a run that has every control, before files of controls in Python are executed.
    """
    probe = checked(asked, execution.engine)
    if before is not None:
        before([probe])
    _check_classes(python_cc.permitted(probe, allow_code=execution.allow_code))
    cases = battery.load(asked.battery, asked.of)
    if asked.case:
        cases = battery.select(cases, asked.case)
    elif asked.quick:
        cases = [case for case in cases if case.quick or case.test is None]
    cases = [case for case in cases if case.test is not None or case.lacking(asked.cc) is None]
    made = seats(_applying(cases, asked, execution), asked)
    runs = {run.key: run for each in made for several in each.runs.values() for run in several}
    can, refused = campaign.accepted(list(runs.values()), execution.engine)
    if execution.timeout_s is None:
        execution = replace(execution, timeout_s=patience_s(can, execution.engine))
    return Plan(asked, cases, made, can, refused, execution)


def checked(asked: Asked, engine: str) -> Run:
    """A run that has every control, or both queues, and that the engine accepts. BakeoffError names what is wrong."""
    try:
        probe = check_run(asked)
    except BakeoffError as error:
        raise _plain(error) from None
    for why in campaign.accepted([probe], engine)[1].values():
        raise _plain(why)
    return probe


def _check_classes(run: Run) -> None:
    """That objects of the classes in Python can be made. BakeoffError names the class."""
    if not any(python_cc.is_python(flow.cc) for flow in run.flows):
        return
    from bakeoff.engines.python_cc import explain, limited, modules

    with limited():
        try:
            classes = modules(run, execute=True)
        except BakeoffError as error:
            raise _plain(error) from None
        for cls in classes.values():
            try:
                cls()
            except (Exception, SystemExit) as error:
                raise UsageError(f"evaluate: {cls.__name__}() failed\n{explain(error, classes)}") from None


def _plain(error: BakeoffError | str) -> UsageError:
    """The error without the place in `check_run`."""
    return UsageError(f"evaluate: {_PLACE.sub('', str(error))}")


def _applying(cases: list[Case], asked: Asked, execution: Execution) -> list[Case]:
    """Those without the ones that are about ECT(1), or about ECT(0), for a control that does not send it."""
    if not asked.cc or not any(case.excludes() for case in cases):
        return cases
    alone = check_run(replace(asked, baseline=asked.cc, against=()))
    can, _ = campaign.accepted([alone], "sim")
    sends = sends_ect1(python_cc.permitted(can[0], allow_code=execution.allow_code)) if can else None
    return cases if sends is None else [case for case in cases if not case.excludes(sends)]


class Doing(Protocol):
    """A function that does runs: `campaign.run`, or the same with progress."""

    def __call__(
        self, runs: list[Run], root: Path, execution: Execution, request: Request, more: More | None
    ) -> Report:
        """Do `runs`, and those that `more` gives."""


def evaluated(plan: Plan, root: Path, run: Doing | None = None) -> Evaluation:
    """Do the runs with `run` (default: `campaign.run`), decide the cases, and leave evaluation.json in `root`.

    With a time limit no run begins after three that took longer.
    """
    report = None
    jobs = plan.execution.jobs or campaign.cores()
    queue = None if plan.execution.timeout_s is None else Unhurried(plan.runs, jobs)
    if plan.runs:
        begin, more = (plan.runs, None) if queue is None else (queue.first, queue.more)
        report = (run or _run)(begin, root, plan.execution, plan.request, more)
    done = report.runs if report else []
    failed = {each.key: each.error or "failed" for each in done if each.status == "failed"}
    paths = {each.key: each.path for each in done if each.key not in failed}
    engine = plan.execution.engine
    left = {run.key: "not run, after a failure" for run in plan.runs if run.key not in paths.keys() | failed.keys()}
    left |= {key: why for key, why in (queue.left if queue else {}).items() if why}
    outcomes = Outcomes(paths, plan.refused, failed, left)
    found = Evaluation(
        asked=plan.asked,
        engine=engine,
        cases=assess(plan.cases, plan.seats, outcomes, jobs),
        root=root,
        runs=len(done),
        wall_s=report.wall_s if report else 0.0,
        versions=engines.get(engine).versions(),
    )
    if report:
        files.write(root / FILE, found.text("json").encode())
    return found


def _run(runs: list[Run], root: Path, execution: Execution, request: Request, more: More | None) -> Report:
    return campaign.run(runs, root, execution, request=request, latest=campaign.LATEST_EVALUATION, more=more)
