"""What a notebook or script uses: `bakeoff.duel`, `bakeoff.run`, `bakeoff.load`."""

from __future__ import annotations

import atexit
import html
import io
import operator
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from bakeoff import campaign, results
from bakeoff.arguments import check
from bakeoff.campaign.store import place
from bakeoff.duels import Duel
from bakeoff.errors import BakeoffError, RunError, UsageError
from bakeoff.results import Result as _Result

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.plots.picture import Picture, Pictures
    from bakeoff.plots.time_series import Scale
    from bakeoff.scenario import Run
    from bakeoff.tables.results_table import Kind


class Result(results.Result):
    """One run: `series` (samples, a polars DataFrame), `summary` (the measures), `counters`, `resolved`, `meta`."""

    def plot(
        self, kind: str | None = None, *, scale: Scale = "auto", width: str | None = None, heading: bool = True
    ) -> Picture:
        """Draw the run as a matplotlib figure, which a notebook shows without more.

        `kind` is one of docs/gallery.md, by default what says most at first sight; `scale` is `auto`, `fixed` or `var`
        for kinds with rates above delays; `width` such as `3.5in`, and without a `heading`, for a paper. BakeoffError
        for an unknown kind, which lists those there are.
        """
        from bakeoff.plots import draw

        check(
            "plot",
            kind=("text?", kind),
            scale=("text", scale),
            width=("text?", width),
            heading=("flag", heading),
        )
        made = draw.figure(self, kind or draw.default_kind([self]), scale=scale)
        if width is not None or not heading:
            draw.sized(made, width, heading=heading)
        return made

    def measure(self, expression: str) -> float | bool:
        """A measure, or an expression of several, as claims have it: `convergence(ratio=2)`, `ping_p99() < "50ms"`.

        A number in its base unit, or whether a comparison holds. docs/claims.md lists the measures; `bakeoff.measured`
        takes those of several runs together. BakeoffError says what is wrong, or why a measure could not be taken.
        """
        check("measure", expression=("text", expression))
        return measured(expression, self)

    def __repr__(self) -> str:
        """The report that `bakeoff report` prints; one line for a run that failed or cannot be measured."""
        from bakeoff.tables import run_report

        if not self.ok:
            return f"{super().__repr__()}: {self.record.error}"
        try:
            return run_report.text(self)
        except BakeoffError as error:
            return f"{super().__repr__()}: {error}"

    def _repr_html_(self) -> str:
        """The same for a notebook, in colours."""
        from rich.console import Console

        if not self.ok:
            return f"<pre>{html.escape(repr(self))}</pre>"
        from bakeoff.tables import run_report

        console = Console(
            record=True, file=io.StringIO(), width=100, force_jupyter=False, legacy_windows=False, emoji=False
        )
        run_report.duel(self, console)
        return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


class Results(Sequence[Result]):
    """The results of several runs, in their order."""

    def __init__(self, several: Sequence[Result], refused: Mapping[str, str] | None = None) -> None:
        self._results = list(several)
        self.refused = dict(refused or {})
        """Runs that the engine cannot do, which were asked for and not begun, with the reason for each."""

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

    def table(
        self,
        reference: str | None = None,
        *,
        rows: Kind = "runs",
        columns: Sequence[str] | None = None,
        where: str | None = None,
        sort: str | None = None,
    ) -> pl.DataFrame:
        """What `bakeoff table --format csv` writes, as a frame: a row per run, repetitions taken together, SI units.

        `rows` may be `flows`, `queues`, `probes` or `phases`; `columns`, `where` and `sort` are those of the command.
        docs/tables.md says what each column is.
        """
        import polars as pl

        from bakeoff.tables import results_table

        check(
            "table", reference=("text?", reference), rows=("text", rows), columns=("texts?", columns),
            where=("text?", where), sort=("text?", sort),
        )  # fmt: skip
        text = results_table.render(
            list(self), format="csv", kind=rows, columns=columns, condition=where, sort=sort, reference=reference
        )
        return pl.read_csv(io.StringIO(text), infer_schema_length=None)

    def list(self) -> pl.DataFrame:
        """A row per run: its name, status, engine, seed, wall time [s], the labels of its axes and its folder."""
        import polars as pl

        axes = dict.fromkeys(axis for result in self for axis in result.run.point)
        rows = [
            {
                "run": result.key,
                "status": result.record.status,
                "engine": result.record.engine,
                "seed": result.run.seed,
                "wall_s": result.record.wall_s,
                **{f"axis_{axis}": result.run.point.get(axis) for axis in axes},
                "path": str(result.path),
            }
            for result in self
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def plot(
        self,
        kind: str | None = None,
        *,
        scale: Scale = "auto",
        measure: str | None = None,
        x: str | None = None,
        y: str | None = None,
        lines: Sequence[str] | None = None,
        panels: Sequence[str] | None = None,
        width: str | None = None,
        heading: bool = True,
    ) -> Picture | Pictures:
        """Draw the runs: a kind of single runs as one picture of all, a kind of campaigns over their matrix.

        `kind`, `scale`, `width` and `heading` as for `Result.plot`; `measure`, `x`, `y`, `lines` and `panels` as for
        the command, names of axes as lists. What takes a picture for each point of the matrix is a list of figures,
        which a notebook shows too. BakeoffError for what does not fit, and for more runs than can be told apart in one
        picture.
        """
        from bakeoff.plots import draw

        check(
            "plot",
            kind=("text?", kind),
            scale=("text", scale),
            measure=("text?", measure),
            x=("text?", x),
            y=("text?", y),
            lines=("texts?", lines),
            panels=("texts?", panels),
            width=("text?", width),
            heading=("flag", heading),
        )
        whole = [result for result in self if result.ok]
        made = draw.of_several(whole, kind, scale=scale, measure=measure, x=x, y=y, lines=lines, panels=panels)
        if width is not None or not heading:
            for one in made if isinstance(made, list) else [made]:
                draw.sized(one, width, heading=heading)
        return made

    def compare(self, theirs: Results | str) -> pl.DataFrame:
        """What `bakeoff compare --format csv` writes, as a frame: a row per number that both sides have.

        `theirs` are the same runs done elsewhere, or the name of a reference. `ln` is ln(ours / theirs). BakeoffError
        if nothing can be compared.
        """
        import polars as pl

        from bakeoff import references
        from bakeoff.claims import comparison
        from bakeoff.tables.distances import record

        ours = comparison.side_of("ours", self)
        if not isinstance(theirs, str | Results):
            raise UsageError(f"compare: theirs: {theirs!r}; expected Results, or the name of a reference")
        if isinstance(theirs, str):
            other = comparison.side_of_reference(theirs, references.load(), ours)
        else:
            other = comparison.side_of("theirs", theirs)
        found = comparison.compare(ours, other)
        return pl.DataFrame([record(one, comparison.BOUNDS) for one in found.differences], infer_schema_length=None)

    def __repr__(self) -> str:
        failed = f", {len(self.failed)} failed" if self.failed else ""
        failed += f", {len(self.refused)} more cannot be run here" if self.refused else ""
        keys = f", {self[0].key} … {self[-1].key}" if self else ""
        return f"<Results: {len(self)} runs{failed}{keys}>"

    def _repr_html_(self) -> str:
        reasons = [f"failed: {result.key}: {result.record.error}" for result in self.failed]
        reasons += [f"cannot be run here: {key}: {why}" for key, why in self.refused.items()]
        failed = "".join(f"<pre>{html.escape(reason)}</pre>" for reason in reasons)
        table = self.table()._repr_html_() if len(self.failed) < len(self) else ""
        return f"<p>{html.escape(repr(self))}</p>{failed}{table}"


def duel(
    cc1: str | type,
    cc2: str | type,
    *,
    qdisc: str = Duel.qdisc,
    rate: str = Duel.rate,
    rtt: str = Duel.rtt,
    rtt2: str | None = Duel.rtt2,
    duration: str = Duel.duration,
    seed: int = 1,
    engine: str = "sim",
    out: Path | str | None = None,
    trace: Sequence[str] = (),
    capture: Sequence[str] = (),
    store: str | None = None,
    fresh: bool = False,
    note: str | None = None,
) -> Result:
    """Let two bulk flows compete at one bottleneck and return what came out.

    `qdisc` is in tc's words; `rate`, the round-trip times and `duration` have units. `rtt2` gives the second flow a
    round-trip time of its own. A congestion control is a name with version and parameters, a class in a file
    (`./mycc.py:MyCC`) or a class object. `trace=["cc"]` keeps its internals (`Result.trace`), `capture=["mid>srv"]` or
    `["all"]` the packets at interfaces. `note` is a line of your own that the results keep. Without `out` the results
    folder is a temporary one that goes when Python ends: the same duel gives the same result again. It is taken from
    the `store` (a path, a URL or `none`; by default your own) if it was done before, unless `fresh`. BakeoffError for
    what cannot be read or is not modelled, RunError if the run failed.
    """
    from bakeoff import scenario

    for name, cc in (("cc1", cc1), ("cc2", cc2)):
        if not isinstance(cc, str | type):
            raise UsageError(f"duel: {name}: {cc!r}; expected a name such as 'cubic', a file's class or a class")
    check(
        "duel", qdisc=("text", qdisc), rate=("rate", rate), rtt=("time", rtt), rtt2=("time?", rtt2),
        duration=("time", duration), seed=("whole", seed), engine=("text", engine), out=("path?", out),
        trace=("texts", trace), capture=("texts", capture), store=("text?", store), fresh=("flag", fresh),
        note=("text?", note),
    )  # fmt: skip
    seed = operator.index(seed)
    if not 0 <= seed < 2**64:
        raise UsageError(f"duel: seed: {seed}; expected 0 or more, and less than 2^64")
    with ExitStack() as classes:
        names = [cc if isinstance(cc, str) else classes.enter_context(_named(cc)) for cc in (cc1, cc2)]
        wanted = Duel(cc1=names[0], cc2=names[1], qdisc=qdisc, rate=rate, rtt=rtt, rtt2=rtt2, duration=duration)
        run = scenario.duel(wanted, seed=seed)
        run = _with_sources(run, names, (cc1, cc2))
        [run] = _observed([run], trace, capture)
        root = Path(tempfile.mkdtemp(dir=_temporary())) if out is None else Path(out)
        execution = campaign.Execution(engine=engine, jobs=1, store=place(store), fresh=fresh, note=note)
        request = results.Request(kind="duel", patterns=(run.run,))
        [done] = campaign.run([run], root, execution, request=request).runs
    if done.error is not None:
        raise RunError(done.error, place=done.key)
    return Result.read(done.path)


def run(
    patterns: str | Sequence[str],
    *,
    only: str | None = None,
    settings: Mapping[str, Any] | None = None,
    seeds: int | None = None,
    yes: bool = False,
    jobs: int | None = None,
    engine: str = "sim",
    out: Path | str | None = None,
    resume: bool = False,
    trace: Sequence[str] = (),
    capture: Sequence[str] = (),
    store: str | None = None,
    fresh: bool = False,
    note: str | None = None,
    allow_code: bool = False,
    strict: bool = False,
    progress: bool = False,
) -> Results:
    """Do all runs that `patterns` name, as `bakeoff run` does, and return what came out, in the same order.

    `only` is what every run's name has to match besides, as `-k` of the command line. `settings` replaces values of the
    scenarios by their place: `{"network.rtt": "40ms", "flows.0.cc": "bbr"}`. `seeds` repetitions of each (by default
    what the scenario says, or 1); more than 100,000 runs need `yes`.

    `jobs` processes (default: one per core). Without `out` the results lie in results/ and the time of day, as those of
    the command line do. With `resume` runs that are in `out` already are not done again. Failed runs are in the
    collection too: see `Results.failed`. What the engine cannot do is left out and told by `Results.refused`; it is a
    BakeoffError if that is all of it, or with `strict`. `allow_code` permits scenarios to execute files of Python
    outside of their own folders. `trace`, `capture`, `store`, `fresh` and `note` as for
    `duel`. With `progress` a bar says how far it is. BakeoffError as for `campaign.run`.
    """
    from bakeoff.scenario import catalog

    check(
        "run", patterns=("names", patterns), only=("text?", only), settings=("mapping?", settings),
        seeds=("whole?", seeds), yes=("flag", yes), jobs=("whole?", jobs), engine=("text", engine), out=("path?", out),
        resume=("flag", resume), trace=("texts", trace), capture=("texts", capture), store=("text?", store),
        fresh=("flag", fresh), note=("text?", note), allow_code=("flag", allow_code), strict=("flag", strict),
        progress=("flag", progress),
    )  # fmt: skip
    seeds = None if seeds is None else operator.index(seeds)
    jobs = None if jobs is None else operator.index(jobs)
    if jobs is not None and jobs < 1:
        raise UsageError(f"run: jobs: {jobs}; expected at least 1")
    runs = _observed(catalog.select(patterns, seeds, only=only, settings=settings, yes=yes), trace, capture)
    can, refused = (runs, {}) if strict else campaign.accepted(runs, engine)
    if can:  # otherwise the campaign says why
        runs = can
    root = campaign.new_folder() if out is None else Path(out)
    request = results.Request(
        patterns=(patterns,) if isinstance(patterns, str) else tuple(patterns),
        only=only,
        settings=dict(settings or {}),
        seeds=seeds,
        trace=tuple(trace),
        capture=tuple(capture),
    )
    execution = campaign.Execution(
        engine=engine, jobs=jobs, store=place(store), fresh=fresh, allow_code=allow_code, note=note
    )
    with _bar(len(runs)) if progress else nullcontext(campaign.Watch()) as watch:
        report = campaign.run(
            runs, root, execution, request=request, resume=resume, latest=campaign.LATEST, watch=watch
        )
    return Results([Result.read(done.path) for done in report.runs], refused)


def measured(expression: str, results: results.Result | Mapping[str, results.Result]) -> float | bool:
    """An expression of measures over one result, or over several by names of your own.

    `measured('harm(goodput("cubic", of="both"), goodput("cubic", of="alone"))', {"both": one, "alone": other})`.
    Otherwise as `Result.measure`.
    """
    from bakeoff.claims import evaluate

    check("measured", expression=("text", expression))
    several = results.values() if isinstance(results, Mapping) else [results]
    if not all(isinstance(each, _Result) for each in several):
        raise UsageError("measured: results: expected a Result, or a dictionary of names and Results")
    return evaluate.measure(results, expression)


def load(path: Path | str) -> Results:
    """The whole runs in a folder, of a campaign or one run, in order of path. BakeoffError if the folder is missing."""
    check("load", path=("path", path))
    return Results([Result(found.path, found.record) for found in results.survey(path).results])


@contextmanager
def _bar(total: int) -> Iterator[campaign.Watch]:
    """A bar on a terminal or in a notebook, which follows a campaign."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=total)
        yield campaign.Watch(on_done=lambda _: bar.advance(task))


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
