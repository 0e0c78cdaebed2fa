"""The page of one run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files, results
from bakeoff.measure import repetitions, summary_of
from bakeoff.plots import caption
from bakeoff.plots.plotted_run import PlottedRun
from bakeoff.results import layout as names
from bakeoff.results.counters import Counters, Queue
from bakeoff.site import chart_data, charts, configuration, downloads, network_drawing
from bakeoff.site.long_tables import NAMES, Whole, cut, cut_lines
from bakeoff.tables import column_specs, run_labels
from bakeoff.tables.cells import in_si
from bakeoff.tables.records import records
from bakeoff.tables.rows import own_references, rows
from bakeoff.text.columns import Column

if TYPE_CHECKING:
    from bakeoff.references import Reference
    from bakeoff.results import Result
    from bakeoff.results.summary import Summary
    from bakeoff.site.pages import Site
    from bakeoff.site.site_contents import Page
    from bakeoff.tables.rows import Row

SERIES: Final = "series.js"
_LOGS: Final = (names.SETUP_LOG, names.TEARDOWN_LOG, "console.log")
_MOST_LOG: Final = 200_000
"""Letters of a log on the page; its file has all."""
_NAMED: Final = 3
_MOST_WRONG: Final = 50
"""Lines on what failed or is missing."""
_SUMMARY: Final = "checks and missing of summary.json"


@dataclass(frozen=True)
class Table:
    """Columns of numbers with a caption."""

    caption: str
    columns: Sequence[Column]
    whole: Whole | None = None
    """Where all rows are, if these are not all."""


@dataclass(frozen=True)
class Log:
    """What a part of a run printed."""

    name: str
    text: str
    lines: int
    cut: bool


def write(page: Page, folder: Path, site: Site) -> None:
    """Write the page of a run, and the files that it names, into the folder, which exists and is empty."""
    result = page.result
    summary = summary_of(result) if result.ok else None
    plotted = PlottedRun(_with_summary(result, summary))
    drawn, why = _charts(plotted, summary)
    if drawn:
        (folder / SERIES).write_text(chart_data.script(drawn, _common(plotted)), encoding="ascii")
    taken = downloads.write(result, folder) if site.downloads else []
    numbers, all_numbers = cut(("measure", "this run", "all seeds"), _numbers(summary, page.row), folder, "all", NAMES)
    text = site.render(
        "run.html.j2",
        page.place,
        page=page,
        result=result,
        record=result.record,
        run=result.run,
        title=run_labels.title(result),
        lead=lead(plotted),
        wrong=_wrong(result, summary),
        tables=_tables(result, page.row, folder),
        numbers=numbers,
        all_numbers=all_numbers,
        charts=drawn,
        no_charts=why,
        said=charts.with_unit,
        changes=_changes(plotted),
        window=plotted.window,
        network=network_drawing.drawing(result.run),
        configuration=[_cut_words(table, folder) for table in configuration.of(plotted)],
        logs=_logs(result),
        downloads=taken,
        command=_command(page, site),
        uplot=uplot_version(),
        series=SERIES,
    )
    (folder / "index.html").write_text(text, encoding="utf-8")


def lead(plotted: PlottedRun) -> str:
    """What a run is, in a sentence or two: its title, its flows, where they meet, how long, on which engine."""
    count = len(plotted.flows)
    flows = f"{count} flow{'s' * (count != 1)} ({caption.flows(plotted)})"
    # Of a run that failed nobody knows the queues.
    queues = [text.rstrip(", ") for text in caption.queues(plotted)]
    more = f" and {len(queues) - _NAMED} more queues" if len(queues) > _NAMED else ""
    bottlenecks = f" through {'; '.join(queues[:_NAMED])}{more}" if queues else ", without a bottleneck"
    heading = str(plotted.run.title or "").strip()
    heading = f"{heading}{'' if heading.endswith(('.', '!', '?')) else '.'} " if heading else ""
    return f"{heading}{flows}{bottlenecks}; {plotted.end_s:g} s on the engine {run_labels.engine_of(plotted.result)}."


def _with_summary(result: Result, summary: Summary | None) -> Result:
    """The result; of one whose measures alone were kept with what its summary says of the counters."""
    if summary is None or result.record.kept == "all":
        return result
    queues = {name: Queue(qdisc=queue.qdisc, marks=0, drops={}) for name, queue in summary.queues.items()}
    counters = Counters(queues=queues)
    return results.Result(result.path, result.record, counters=counters)


def _charts(plotted: PlottedRun, summary: Summary | None) -> tuple[list[charts.Chart], str]:
    """The charts, and why there are none if so."""
    if summary is None:
        return [], "The run failed, and has no samples."
    if plotted.result.record.kept != "all":
        return [], "Only the measures of this run were kept, and no samples. The command at the end makes it again."
    if not plotted.result.parts:
        return [], "The run has no samples."
    return charts.charts(plotted, summary), "The run has no samples that a chart could show."


def _common(plotted: PlottedRun) -> dict[str, Any]:
    """What all charts of a page have: the run's end, its steady state, and when something is changed [s]."""
    at = sorted({float(change.at_s) for change in plotted.run.changes})
    return {"end": plotted.end_s, "window": plotted.window, "changes": at}


def _changes(plotted: PlottedRun) -> list[str]:
    from bakeoff.plots.panels import changes

    return changes(plotted)


def _wrong(result: Result, summary: Summary | None) -> list[str]:
    """The self-checks that failed, and the measures that could not be taken."""
    return (
        [] if summary is None else cut_lines([*run_labels.failures(summary), *summary.missing], _MOST_WRONG, _SUMMARY)
    )


@cache
def _published(suite: str) -> list[Reference]:
    """What a suite published itself: read once for all pages that a process writes."""
    return own_references([suite])


def _tables(result: Result, together: Row | None, folder: Path) -> list[Table]:
    """The measures of this run, and those of all its repetitions with intervals where there are several."""
    if together is None:
        return []
    own, several = together, [(together, "")]
    if together.n > 1:
        [own] = rows([result], _published(str(result.run.suite)))
        several = [(own, "")]
        several.append((together, f", mean of {together.n} seeds, ± 95 % interval where one number stands alone"))
    start, stop = own.summaries[0].window_s
    made = []
    for kind in ("runs", "flows", "queues", "probes", "phases"):
        for row, of in several:
            part = records([row], kind)
            if part and (kind != "phases" or not of):
                alone = f", seed {result.run.seed}" if together.n > 1 and not of else ""
                when = "" if kind == "phases" else f", steady state {start:.4g} s to {stop:.4g} s"
                what = (
                    f". Mbit/s: {column_specs.rates_shown([row])}. {column_specs.counts_shown([row])}"
                    if kind == "runs"
                    else ""
                )
                name = f"measures-{kind}" + ("-all-seeds" if of else "")
                caption = f"{_KINDS[kind]}{when}{alone}{of}{what}"
                made.append(_cut_table(caption, column_specs.columns(kind, part), folder, name))
    return made


def _cut_words(table: configuration.Words, folder: Path) -> configuration.Words:
    name = table.caption.partition(",")[0].lower().replace(" ", "-")
    rows, whole = cut(table.heads, table.rows, folder, f"configuration-{name}")
    return replace(table, rows=rows, whole=whole)


def _cut_table(caption: str, columns: Sequence[Column], folder: Path, name: str) -> Table:
    heads = [" ".join(column.head.split()) for column in columns]
    rows, whole = cut(heads, list(zip(*(column.cells for column in columns), strict=True)), folder, name)
    cells = zip(*rows, strict=True)
    return Table(caption, [replace(column, cells=own) for column, own in zip(columns, cells, strict=True)], whole)


_KINDS: Final = {
    "runs": "The run as one row",
    "flows": "Flows",
    "queues": "Queues with a rate",
    "probes": "Probes",
    "phases": "Between the changes inside of the steady state",
}


def _numbers(summary: Summary | None, together: Row | None) -> list[tuple[str, str, str]]:
    """Every measured number by its name in summary.json: this run's, and the mean of all seeds with its interval."""
    if summary is None:
        return []
    several = repetitions(together.summaries) if together is not None and together.n > 1 else {}
    found = []
    mine, n = repetitions([summary]), together.n if together is not None else 1
    for name in [*mine, *(name for name in several if name not in mine)]:
        own = f"{mine[name]['mean']:.6g}" if name in mine else "–"
        found.append((name, own, in_si(name, several[name], n) if name in several else ""))
    return found


def _logs(result: Result) -> list[Log]:
    """What the parts of a run printed; of a long log its end, where the reasons stand."""
    found = []
    for name in _LOGS:
        path = result.path / name
        try:
            if path.is_symlink():
                continue
            text = files.read(path, files.MOST_TEXT).decode(errors="backslashreplace").rstrip()
        except OSError:
            continue
        if text:
            cut = len(text) > _MOST_LOG
            found.append(Log(name, text[-_MOST_LOG:] if cut else text, text.count("\n") + 1, cut))
    return found


def _command(page: Page, site: Site) -> str:
    """What does the run again and compares: from its downloads, or else from the results that the site is of."""
    folder = f"{page.place}/{downloads.FOLDER}"
    if site.live:
        folder = str(page.result.path.resolve())
    elif not site.downloads:
        folder = f"RESULTS/{page.result.key}"
    more = " --allow-code" if any(flow.cc_sha256 for flow in page.result.run.flows) else ""
    return f"bakeoff reproduce {shlex.quote(folder)}{more}"


@cache
def uplot_version() -> str:
    """The version of uPlot, as the head of its script says."""
    with (resources.files("bakeoff.site") / "assets" / "uPlot.iife.min.js").open(encoding="utf-8") as file:
        found = re.search(r"\(v([0-9.]+)\)", file.read(1000))
    return found[1] if found else "of an unknown version"
