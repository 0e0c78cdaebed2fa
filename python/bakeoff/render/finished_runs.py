"""The results that a page is made from: runs by their names, with all repetitions of each."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.errors import RenderError
from bakeoff.results import survey
from bakeoff.scenario.error import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from bakeoff.results import Result

MOST_LOOKED_AT: Final = 100_000
"""Results that one command's pages may look at, counted each time."""


class FinishedRuns:
    """The finished runs of results folders."""

    def __init__(self, roots: Sequence[Path], tell: Callable[[int], None] | None = None) -> None:
        """Finds the runs of all folders; of two with one key the first counts.

        BakeoffError if there is no such folder, or no finished run in any; `tell` as for `survey`.
        """
        self.root = " and ".join(map(str, roots))
        self._looked_at = 0
        found = [survey(root, tell) for root in roots]
        self.complaints = [complaint for one in found for complaint in one.complaints()]
        self.by_key: dict[str, Result] = {}
        self.failed: dict[str, str] = {}
        for result in (result for one in found for result in one.results):
            if result.ok:
                self.by_key.setdefault(result.key, result)
            else:
                self.failed[result.key] = result.record.error or "failed"
        self.results = list(self.by_key.values())
        if not self.results:
            raise RenderError(f"{self.root}: no finished run")
        self.by_name: dict[str, list[Result]] = {}
        for result in sorted(self.results, key=lambda result: int(result.run.seed)):
            self.by_name.setdefault(result.run.name, []).append(result)

    @property
    def engine(self) -> str:
        """What did the runs; the first of several."""
        return self.results[0].record.engine

    def names(self, pattern: object) -> list[str]:
        """The runs that a name, a glob or a list of them means. BakeoffError, with what is near, if one means none."""
        several = pattern if isinstance(pattern, list) else [pattern]
        found: dict[str, None] = {}
        for one in several:
            if not isinstance(one, str) or not one:
                raise RenderError(f"run: {one!r}; expected the name of a run such as 'suite/scenario/run', or a glob")
            own = [one] if one in self.by_name else [name for name in self.by_name if fnmatchcase(name, one)]
            if not own:
                raise RenderError(f"no run '{one}' in {self.root}{self._why(one)}")
            found.update(dict.fromkeys(own))
        return list(found)

    def one(self, name: object) -> str:
        """The one run that a name or a glob means. BakeoffError if it means several."""
        names = self.names(name)
        if len(names) > 1:
            raise RenderError(f"'{name}' matches {len(names)} runs, such as {names[0]} and {names[1]}; expected one")
        return names[0]

    def repetitions(self, names: Sequence[str]) -> list[Result]:
        """All repetitions of these runs. BakeoffError if a page looks at too many."""
        found = [result for name in names for result in self.by_name[name]]
        self._looked_at += len(found)
        if self._looked_at > MOST_LOOKED_AT:
            raise RenderError(f"the page reads more than {MOST_LOOKED_AT:,} results; expected fewer")
        return found

    def _why(self, name: str) -> str:
        if name in self.failed:
            return f": it failed: {self.failed[name]}"
        head = name.rsplit("/", 1)[0]
        inside = [known for known in self.by_name if known.startswith(f"{head}/")]
        return did_you_mean(name, inside or self.by_name)
