"""Verdicts on claims from the runs that a results folder holds; nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bakeoff.claims.claim import load, select
from bakeoff.claims.evaluate import evaluate
from bakeoff.claims.required_runs import calls_by_folder, required_runs
from bakeoff.claims.stored import replaced
from bakeoff.claims.verdict import FAILED, Decided, Outcome, Verdict, cannot, decide, of_claims
from bakeoff.errors import RenderError

if TYPE_CHECKING:
    from bakeoff.claims.claim import Claim, Statement
    from bakeoff.claims.required_runs import RequiredRuns
    from bakeoff.render.finished_runs import FinishedRuns
    from bakeoff.scenario import Run


class Verdicts:
    """The catalog's claims, decided when they are first asked for."""

    def __init__(self, store: FinishedRuns, seeds: int, jobs: int) -> None:
        """`seeds` repetitions of each run decide, as `bakeoff verify --seeds` has them."""
        self._store = store
        self._seeds = seeds
        self._jobs = jobs
        self._known: dict[str, Decided] = {}
        self._claims: list[Claim] | None = None

    def of(self, pattern: object) -> list[Decided]:
        """The claims that `DOCUMENT/ID`, a document or a glob means, decided.

        BakeoffError for a pattern without a claim, and for a run that is not there; it names the run.
        """
        chosen = self._chosen(pattern)
        new = [claim for claim in chosen if claim.name not in self._known]
        self._known.update((each.claim.name, each) for each in self._decided(new))
        return [self._known[claim.name] for claim in chosen]

    def _chosen(self, pattern: object) -> list[Claim]:
        if not isinstance(pattern, str) or not pattern:
            raise RenderError(f"claim: {pattern!r}; expected a name such as 'DOCUMENT/CLAIM', or a glob")
        if self._claims is None:
            self._claims = load()
        exact = [claim for claim in self._claims if pattern in (claim.name, claim.document)]
        return exact or select(self._claims, pattern)

    def undecided(self, name: object) -> Decided:
        """The one claim of this name, as the catalog has it; no run is needed."""
        found = self._chosen(name)
        if len(found) != 1:
            raise RenderError(f"claim: '{name}' matches {len(found)} claims, such as {found[0].name}; expected one")
        return cannot(found[0], "it was not asked for")

    def one(self, name: object) -> Decided:
        """The one claim of this name. BakeoffError if a glob means several."""
        found = self.of(name)
        if len(found) != 1:
            raise RenderError(
                f"claim: '{name}' matches {len(found)} claims, such as {found[0].claim.name}; expected one"
            )
        return found[0]

    def _decided(self, claims: Sequence[Claim]) -> list[Decided]:
        wanted = required_runs([claim for claim in claims if claim.statement], self._seeds)
        return of_claims(claims, self._outcomes(wanted))

    def _outcomes(self, wanted: dict[Statement, RequiredRuns]) -> dict[Statement, Outcome]:
        own = [found for found in wanted.values() if found.statement.engine in (None, self._store.engine)]
        own = own if self._store.engine == "sim" else [found.untraced() for found in own]
        refused = self._refused([run for found in own for runs in found.runs.values() for run in runs])
        paths = {key: result.path for key, result in self._store.by_key.items()}
        lost = refused.keys() | self._store.failed.keys()
        values = evaluate(calls_by_folder([found for found in own if not found.keys() & lost], paths), self._jobs)
        outcomes = {found.statement: decide(found, paths, values, refused, self._store.failed) for found in own}
        for statement, found in wanted.items():
            if statement not in outcomes:
                verdict: Any = Verdict(FAILED, f"it needs runs of the engine '{statement.engine}'")
                outcomes[statement] = Outcome(verdict, verdict, None, (), len(found.runs), self._seeds)
        return outcomes

    def _refused(self, runs: Sequence[Run]) -> dict[str, str]:
        """Why the engine does not do the runs that are not there. BakeoffError if it would do one of them."""
        from bakeoff.campaign import accepted

        there = self._store.by_key.keys() | self._store.failed.keys()
        # Several statements may be about one run.
        missing = list({run.key: run for run in runs if run.key not in there}.values())
        can, refused = accepted(missing, self._store.engine, exact=True) if missing else ([], {})
        if can:
            more = f" and {len(can) - 1} more" if len(can) > 1 else ""
            raise RenderError(
                f"no run '{can[0].key}'{more} in {self._store.root}, which a claim needs; do the missing runs with "
                "'bakeoff verify'"
            )
        return refused | replaced(self._store.by_key)
