"""What a notebook or script uses: `bakeoff.duel`, `bakeoff.run`, `bakeoff.load`."""

from __future__ import annotations

import atexit
import html
import io
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, overload

from bakeoff import campaign, results

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from bakeoff.scenario import Run


class Result(results.Result):
    """One run: `series` (samples, a polars DataFrame), `summary` (the measures), `counters`, `resolved`, `meta`."""

    def plot(self, kind: str = "tcp_delivery_with_rtt") -> Figure:
        """Draw the run; an unknown `kind` is a BakeoffError that lists those there are."""
        from bakeoff.present import plots

        return plots.figure(self, kind)

    def _repr_html_(self) -> str:
        """What `bakeoff duel` prints, for a notebook."""
        from rich.console import Console

        if not self.ok:
            return f"<pre>{html.escape(repr(self))}: {html.escape(str(self.meta['error']))}</pre>"
        from bakeoff.present import terminal

        console = Console(record=True, file=io.StringIO(), width=100, force_jupyter=False, legacy_windows=False)
        terminal.duel(self, console)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


class Results(Sequence[Result]):
    """The results of several runs, in their order."""

    def __init__(self, several: Sequence[Result]) -> None:
        self._results = list(several)

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Results: ...
    def __getitem__(self, index: int | slice) -> Result | Results:
        return Results(self._results[index]) if isinstance(index, slice) else self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results)

    @property
    def failed(self) -> list[Result]:
        """The runs that failed; `meta["error"]` says why."""
        return [result for result in self if not result.ok]

    def table(self, reference: str | None = None) -> pl.DataFrame:
        """What `bakeoff table --format csv` writes, as a frame: a row per run, repetitions taken together, SI units."""
        import polars as pl

        from bakeoff.present import tables

        text = tables.render(list(self), format="csv", reference=reference)
        return pl.read_csv(io.StringIO(text), infer_schema_length=None)

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        keys = f", {self[0].key} … {self[-1].key}" if self else ""
        return f"<Results: {len(self)} runs{failed}{keys}>"

    def _repr_html_(self) -> str:
        reasons = [f"failed: {result.key}: {result.meta['error']}" for result in self.failed]
        failed = "".join(f"<pre>{html.escape(reason)}</pre>" for reason in reasons)
        table = self.table()._repr_html_() if len(self.failed) < len(self) else ""
        return f"<p>{html.escape(repr(self))}</p>{failed}{table}"


def duel(
    cc1: str | type,
    cc2: str | type,
    *,
    qdisc: str = "fq_codel",
    rate: str = "50mbit",
    rtt: str = "20ms",
    rtt2: str | None = None,
    duration: str = "30s",
    seed: int = 1,
    engine: str = "sim",
    out: Path | str | None = None,
    trace: Sequence[str] = (),
    capture: Sequence[str] = (),
    note: str | None = None,
) -> Result:
    """Let two bulk flows compete at one bottleneck and return what came out.

    `qdisc` is in tc's words; `rate`, the round-trip times and `duration` have units. `rtt2` gives the second flow a
    round-trip time of its own. A congestion control is a name with version and parameters, a class in a file
    (`./mycc.py:MyCC`) or a class object. `trace=["cc"]` keeps its internals (`Result.trace`), `capture=["mid>srv"]` or
    `["all"]` the packets at interfaces. `note` is a line of your own that the results keep. Without `out` the results
    folder is a temporary one that goes when Python ends: the same duel gives the same result again. BakeoffError for
    what cannot be read or is not modelled, RuntimeError if the run failed.
    """
    from bakeoff import scenario

    with ExitStack() as classes:
        names = [cc if isinstance(cc, str) else classes.enter_context(_named(cc)) for cc in (cc1, cc2)]
        run = scenario.duel(*names, qdisc=qdisc, rate=rate, rtt=rtt, rtt2=rtt2, duration=duration, seed=seed)
        run = _with_sources(run, names, (cc1, cc2))
        [run] = _observed([run], trace, capture)
        root = Path(tempfile.mkdtemp(dir=_temporary())) if out is None else Path(out)
        asked = campaign.Asked("duel", (run.run,), note)
        [done] = campaign.run([run], root, engine=engine, jobs=1, asked=asked).runs
    if done.error is not None:
        raise RuntimeError(f"{done.key}: {done.error}")
    return Result.read(done.path)


def run(
    patterns: str | Sequence[str],
    *,
    only: str | None = None,
    seeds: int | None = None,
    yes: bool = False,
    jobs: int | None = None,
    engine: str = "sim",
    out: Path | str | None = None,
    resume: bool = False,
    trace: Sequence[str] = (),
    capture: Sequence[str] = (),
    note: str | None = None,
) -> Results:
    """Do all runs that `patterns` name, as `bakeoff run` does, and return what came out, in the same order.

    `only` is what every run's name has to match besides, as `-k` of the command line. `seeds` repetitions of each (by
    default what the scenario says, or 1); more than 100,000 runs need `yes`.

    `jobs` processes (default: one per core). Without `out` the results lie in results/ and the time of day, as those of
    the command line do. With `resume` runs that are in `out` already are not done again. Failed runs are in the
    collection too: see `Results.failed`. `trace`, `capture` and `note` as for `duel`. BakeoffError as for
    `campaign.run`.
    """
    from bakeoff.scenario import catalog

    runs = _observed(catalog.select(patterns, seeds, only=only, yes=yes), trace, capture)
    root = campaign.new_folder() if out is None else Path(out)
    asked = campaign.Asked("run", (patterns,) if isinstance(patterns, str) else tuple(patterns), note)
    report = campaign.run(runs, root, engine=engine, jobs=jobs, resume=resume, asked=asked, latest=campaign.LATEST)
    return Results([Result.read(done.path) for done in report.runs])


def load(path: Path | str) -> Results:
    """The whole runs in a folder, of a campaign or one run, in order of path. BakeoffError if the folder is missing."""
    return Results([Result.read(found) for found in results.scan(path)])


def _named(cls: type) -> AbstractContextManager[str]:
    from bakeoff.engines import python_cc

    return python_cc.given(cls)


def _with_sources(run: Run, names: Sequence[str], ccs: Sequence[str | type]) -> Run:
    """The run with the SHA-256 of the source text of class objects."""
    classes = {name: cc for name, cc in zip(names, ccs, strict=True) if not isinstance(cc, str)}
    if not classes:
        return run
    from bakeoff.engines.python_cc import sha256

    flows = [
        flow.model_copy(update={"cc_sha256": sha256(classes[flow.cc])}) if flow.cc in classes else flow
        for flow in run.flows
    ]
    return run.model_copy(update={"flows": flows})


def _observed(runs: list[Run], trace: Sequence[str], capture: Sequence[str]) -> list[Run]:
    if not trace and not capture:
        return runs
    from bakeoff.scenario.observe import observe

    return [observe(run, trace=trace, capture=capture) for run in runs]


@cache
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
