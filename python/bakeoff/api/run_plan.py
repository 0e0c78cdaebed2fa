"""The plan of `run`: select runs and seeds, and check them with the engine, before the first run starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bakeoff import campaign, engines, results
from bakeoff.campaign import campaign_record
from bakeoff.claims import goal as goals
from bakeoff.errors import NoKernelError, UsageError
from bakeoff.results import Request
from bakeoff.scenario import catalog
from bakeoff.scenario.observe import observe
from bakeoff.scenario.python_cc import executed, split
from bakeoff.scenario.settings import typed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bakeoff.campaign import Done
    from bakeoff.campaign.until import Goal, Repetitions
    from bakeoff.campaign.worker import Also
    from bakeoff.results import Result
    from bakeoff.scenario import Run

MAX_SEEDS = 30
"""Seeds of a run at most, with a goal."""


@dataclass(frozen=True)
class Cost:
    """The estimated cost of runs."""

    runs: int
    simulated_s: float
    wall_s: float
    """About, with the jobs that were asked for."""
    effective: str | None
    """What the engine would do, of a single run."""
    unchecked: str | None
    """Why the engine could not check the runs."""


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The runs of a request, ready to be done by `campaign.run`."""

    root: Path
    request: Request
    """What was asked for, completed by what a campaign that is continued was begun with."""
    taken: Request
    """The part of `request` that comes from the campaign that is continued."""
    engine: str
    runs: list[Run]
    """The runs to begin with; none if nothing failed that could be repeated."""
    refused: dict[str, str]
    """Runs that the engine cannot do, with the reason."""
    resume: bool
    """Whether the folder's campaign is continued."""
    goal: Goal | None = None
    repetitions: Repetitions | None = None
    """The seeds of each run, with a goal."""

    @classmethod
    def of(
        cls,
        request: Request,
        root: Path,
        engine: str = "sim",
        *,
        resume: bool = False,
        last_failed: bool = False,
        until: str | None = None,
        max_seeds: int = MAX_SEEDS,
        yes: bool = False,
        allow_code: bool = False,
        strict: bool = False,
    ) -> RunPlan:
        """Select, observe and check the runs; nothing is written.

        `last_failed` selects the runs that failed in `root`, restricted to the patterns if there are any. `until` is a
        goal such as `jain ±2%`. Unless `strict`, runs that the engine refuses are skipped, if it accepts any.
        BakeoffError for invalid input, and for code that an untrusted campaign.json would execute.
        """
        if until is not None and last_failed:
            raise UsageError("--until and --last-failed: mutually exclusive")
        goal = None if until is None else goals.goal_of(until)
        failed = _failed_in(root) if last_failed else {}
        plan = cls(
            root=root, request=request, taken=Request(), engine=engine, runs=[], refused={}, goal=goal,
            resume=resume or last_failed,
        )  # fmt: skip
        if last_failed and not failed:
            return plan
        if plan.resume:
            plan = plan._continued(failed)
        request = plan.request
        if not request.patterns:
            raise UsageError("missing argument PATTERN; expected for example 'l4s-tests/s6*', or --last-failed")
        most = request.seeds if goal is None else max(max_seeds, request.seeds or 0)
        runs = catalog.select(
            request.patterns, most, seed=1 if request.seed is None else request.seed, only=request.only,
            settings=request.settings, yes=yes,
        )  # fmt: skip
        runs = observed(runs, request.trace, request.capture)
        if last_failed:
            runs = [each for each in runs if each.key in failed]
            if not (request.trace or request.capture):
                runs = [observed_as(each, failed[each.key].run) for each in runs]
        _check_taken(root, plan.taken, runs, allow_code=allow_code)
        refused: dict[str, str] = {}
        if runs and not strict:
            can, refused = campaign.accepted(runs, plan.engine)
            # What stops all of them the campaign says, and it is mostly something that this machine lacks.
            runs, refused = (can, refused) if can else (runs, {})
        if goal is None:
            return replace(plan, runs=runs, refused=refused)
        repetitions = goals.repetitions(runs, goal, request.seeds or 0)
        return replace(plan, runs=repetitions.first(), refused=refused, repetitions=repetitions)

    @property
    def also(self) -> Also | None:
        """A function that computes the goal's measure of each run."""
        return None if self.goal is None else goals.also(self.goal)

    @property
    def more(self) -> Callable[[Done, int], list[Run]] | None:
        """A function that requests further seeds."""
        return None if self.repetitions is None else self.repetitions.more

    def cost(self, jobs: int) -> Cost:
        """The cost of the runs, checked by the engine. BakeoffError for a run that it refuses."""
        module = engines.get(self.engine)
        unchecked = None
        try:
            effective = [module.check(each) for each in self.runs]
        except NoKernelError as error:
            effective, unchecked = [], str(error)
        return Cost(
            len(self.runs),
            sum(each.duration_s for each in self.runs),
            estimate_s(self.runs, self.engine, jobs),
            effective[0] if len(effective) == 1 else None,
            unchecked,
        )

    def _continued(self, failed: dict[str, Result]) -> RunPlan:
        """The request, with the patterns and options of the campaign in the folder."""
        bare = bool(failed) and not self.request.patterns
        request, taken, engine = campaign_record.continued(self.root, self.request, patterns=bare)
        if bare and request.seeds is None:
            last = max(run.run.seed for run in failed.values())
            request = replace(request, seeds=last + 1 - (request.seed or 1))
        engine = engine if bare and self.engine == "sim" else self.engine
        return replace(self, request=request, taken=taken, engine=engine)


def estimate_s(runs: Sequence[Run], engine: str, jobs: int) -> float:
    """Estimated time of the runs with this number of jobs (s)."""
    module = engines.get(engine)
    return sum(module.estimate_s(each) for each in runs) / max(1, min(jobs, len(runs)))


def observed(runs: list[Run], trace: Sequence[str], capture: Sequence[str]) -> list[Run]:
    """The runs with additional traces and captures; see `bakeoff.scenario.observe`."""
    return [observe(run, trace=trace, capture=capture) for run in runs] if trace or capture else runs


def observed_as(run: Run, before: Run) -> Run:
    """The run with the traces and captures of an earlier one."""
    return observe(run, trace=before.trace, capture=before.captures) if before.trace or before.captures else run


def _failed_in(root: Path) -> dict[str, Result]:
    """The runs that failed in `root`, by name."""
    return {result.key: result for result in results.survey(root).results if not result.ok}


def _check_taken(root: Path, taken: Request, runs: list[Run], *, allow_code: bool) -> None:
    """BakeoffError if code would be executed that campaign.json names, and not the user: the file may be untrusted."""
    if allow_code or not taken.words():
        return
    code = executed(runs) if taken.patterns or any(split(word) for word in typed(taken.settings)) else ()
    if code:
        raise UsageError(
            f"{root}: its campaign.json names runs that would execute {code[0].path}; expected the patterns and --set "
            "on the command line, or --allow-code after a look into it"
        )
