"""Results for a notebook or a script: `bakeoff.Result`, `bakeoff.Results`, `bakeoff.load`, `bakeoff.measured`."""

from __future__ import annotations

import html
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, overload

from bakeoff import results
from bakeoff.arguments import check
from bakeoff.errors import BakeoffError, UsageError
from bakeoff.results import Result as _Result

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.campaign.until import Repeated
    from bakeoff.plots.picture import Picture, Pictures
    from bakeoff.plots.time_series import Scale
    from bakeoff.tables.results_table import Kind


class Result(results.Result):
    """One run: `series` (samples, a polars DataFrame), `summary` (the measures), `counters`, `resolved`, `meta`."""

    def plot(
        self, kind: str | None = None, *, scale: Scale = "auto", width: str | None = None, heading: bool = True
    ) -> Picture:
        """Plot the run as a matplotlib figure, which a notebook displays.

        `kind` is one of docs/gallery.md (default: depends on the run); `scale` is `auto`, `fixed` or `var`, for kinds
        that plot rates above delays. For a paper, set `width`, such as `3.5in`, and `heading=False`. BakeoffError for
        an unknown kind, with the list of kinds.
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
        """Evaluate a measure or an expression, as in claims: `convergence(ratio=2)`, `ping_p99() < "50ms"`.

        Returns a number in its base unit, or the truth of a comparison. docs/claims.md lists the measures;
        `bakeoff.measured` evaluates expressions over several runs. BakeoffError for an invalid expression, and for a
        measure that this run does not provide.
        """
        check("measure", expression=("text", expression))
        return measured(expression, self)

    def __repr__(self) -> str:
        """The output of `bakeoff report`; one line for a run that failed or cannot be measured."""
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

    def __init__(
        self,
        several: Sequence[Result],
        refused: Mapping[str, str] | None = None,
        repetitions: Sequence[Repeated] = (),
    ) -> None:
        self._results = list(several)
        self.refused = dict(refused or {})
        """Runs that the engine cannot do, which were asked for and not begun, with the reason for each."""
        self.repetitions = list(repetitions)
        """Of `run(until=...)`: for each run its seeds, the interval of the mean, and whether it is narrow enough."""

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

    def select(self, only: str) -> Results:
        """The runs that match, as `-k` of the command line: part of the name, a glob, or `re:REGEX`."""
        from bakeoff.results.named import is_named

        check("select", only=("text", only))
        return Results([result for result in self if is_named(result.key, only)])

    def table(
        self,
        reference: str | None = None,
        *,
        rows: Kind = "runs",
        columns: Sequence[str] | None = None,
        where: str | None = None,
        sort: str | None = None,
    ) -> pl.DataFrame:
        """The data of `bakeoff table --format csv` as a frame: one row per run over all repetitions, SI units.

        `rows` may be `flows`, `queues`, `probes` or `phases`; `columns`, `where` and `sort` are as for the command.
        docs/tables.md defines the columns.
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
        """Plot the runs: a kind for single runs as an overlay, a kind for campaigns over their matrix.

        `kind`, `scale`, `width` and `heading` as for `Result.plot`; `measure`, `x`, `y`, `lines` and `panels` as for
        the command, with lists of axis names. A kind with several pictures returns a list of figures, which a notebook
        displays. BakeoffError for invalid combinations, and for too many runs in one picture.
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

    def compare(self, theirs: Results | Path | str) -> pl.DataFrame:
        """The frame of `bakeoff.compare(self, theirs)`: one row per common number."""
        from bakeoff.api.do_compare import compare

        return compare(self, theirs).frame()

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


def measured(expression: str, results: results.Result | Mapping[str, results.Result]) -> float | bool:
    """Evaluate an expression of measures over one result, or over a dictionary of named results.

    `measured('harm(goodput("cubic", of="both"), goodput("cubic", of="alone"))', {"both": one, "alone": other})`.
    Otherwise as `Result.measure`.
    """
    from bakeoff.claims import evaluate

    check("measured", expression=("text", expression))
    several = results.values() if isinstance(results, Mapping) else [results]
    if not all(isinstance(each, _Result) for each in several):
        raise UsageError("measured: results: expected a Result, or a dictionary of Results")
    return evaluate.measure(results, expression)


def import_(files: Sequence[Path | str], out: Path | str | None = None) -> Results:
    """Make a results folder of recordings (Flent, iperf3, irtt) and packet captures, and return its runs.

    `out` defaults to a new folder in results/. A problem that does not prevent reading is a UserWarning. BakeoffError
    names the unreadable file; no folder is created then.
    """
    from bakeoff.captures.result_folder import read
    from bakeoff.imports.folder import write_all

    check("import_", files=("paths", files), out=("path?", out))
    paths = [Path(file) for file in files]
    return load(
        write_all(paths, None if out is None else Path(out), warn=partial(warnings.warn, stacklevel=4), read=read)
    )


def load(path: Path | str, *, only: str | None = None) -> Results:
    """Load the complete runs of a folder, of a campaign or one run, in order of path.

    `only` is a pattern as for `Results.select`. BakeoffError if the folder is missing.
    """
    check("load", path=("path", path), only=("text?", only))
    found = Results([Result(found.path, found.record) for found in results.survey(path).results])
    return found if only is None else found.select(only)
