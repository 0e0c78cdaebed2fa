"""What a newcomer sees of one run in a terminal."""

from __future__ import annotations

import io
from itertools import cycle
from typing import TYPE_CHECKING

from bakeoff.measure import Samples, summary_of
from bakeoff.measure.sharing import queue_of
from bakeoff.tables import column_specs, groups, run_labels
from bakeoff.tables import rows as rows_of
from bakeoff.tables.cells import formatted, mbit, milli, percent
from bakeoff.tables.chart import chart
from bakeoff.tables.control_connections import control_connections
from bakeoff.tables.records import records
from bakeoff.tables.rows import rows
from bakeoff.text.columns import Column, clean, fitted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from bakeoff.results import Result
    from bakeoff.results.summary import Flow, Queue, Summary
    from bakeoff.tables.rows import Row

_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7")
_BAR = 20
_CHART = (60, 8)
_MOST = 8
"""More flows stand in groups, without a chart; more changes are counted."""
_NOTES = 20
"""More lines on what is wrong or missing are counted."""


def duel(result: Result, console: Console) -> None:
    """Print who got what: shares, delays, marks, what was in effect, and the rates over time.

    Numbers are those of the steady state, and of its parts where something changes inside. Of many flows those that
    are equal stand together. On a terminal that is no UTF-8 the chart and the bars are ASCII. Raises MeasureError if
    the result has no samples of a flow.
    """
    summary = summary_of(result)
    samples = Samples(result.parts)
    console.print(clean(run_labels.title(result)), style="bold", markup=False, highlight=False)
    start, stop = summary.window_s
    for line in [*run_labels.in_effect(result, summary), f"steady state {start:.4g} s to {stop:.4g} s"]:
        console.print(clean(line), style="dim", markup=False, highlight=False)
    console.print()
    [row] = rows([result])
    if len(summary.flows) > _MOST:
        _table(groups.of_one(row), console)
    elif summary.flows:
        _shares(summary, queue_of(summary.flows, result.run), console)
    console.print()
    for line in _together(summary, sharing=not control_connections(result)):
        console.print(clean(line), markup=False, highlight=False)
    console.print()
    if summary.changes:
        _parts(row, summary, console)
    if 0 < len(summary.flows) <= _MOST:
        _rates(result, summary, samples, console)
    notes = rows_of.notes(summary, run_labels.engine_of(result))
    more = len(notes) - _NOTES
    for line in notes[:_NOTES] + ([f"and {more} more; summary.json has all"] if more > 0 else []):
        console.print(clean(line), style="bold red", markup=False, highlight=False)
    console.print(f"results: {clean(str(result.path))}", markup=False, highlight=False, soft_wrap=True)


def text(result: Result, width: int = 100) -> str:
    """The same as plain text."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(), width=width, force_terminal=False, color_system=None, legacy_windows=False, emoji=False
    )
    with console.capture() as captured:
        duel(result, console)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _parts(row: Row, summary: Summary, console: Console) -> None:
    """What happens in the window, and the numbers between."""
    console.print("numbers over the steady state average over:", style="yellow", highlight=False)
    for change in summary.changes[:_MOST]:
        console.print(f"  {clean(change)}", style="yellow", markup=False, highlight=False)
    if len(summary.changes) > _MOST:
        console.print(f"  and {len(summary.changes) - _MOST} more", style="yellow", highlight=False)
    found = [record for _, record in records([row], "phases")]
    if found:
        console.print()
        columns = column_specs.columns("phases", [(row, record) for record in found])
        _table([column for column in columns if column.head != column_specs.WHAT], console)
    console.print()


def _table(columns: Sequence[Column], console: Console, styles: Sequence[str] = ()) -> None:
    """The columns as far as there is room, and which have none; `styles` are those of the rows."""
    lines, left = fitted(columns, console.width)
    rows = len(columns[0].cells) if columns else 0
    for line in lines:
        if console.options.ascii_only:
            line.plain = line.plain.replace("─", "-").replace("±", "+-")
    for style, line, name in zip(cycle(styles), lines[-rows:], columns[0].cells, strict=False):
        if line.plain.startswith(name):
            line.stylize(style, 0, len(name))
            line.highlight_regex("[█▏▎▍▌▋▊▉]+", style)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    names = ", ".join(" ".join(column.head.split()) for column in left if column.head)
    if names:
        console.print(
            f"no room for: {names}; a wider terminal shows them", style="yellow", markup=False, highlight=False
        )


def _shares(summary: Summary, at: Mapping[str, str], console: Console) -> None:
    """Each flow beside those that share its queue (`at`)."""
    flows = summary.flows
    parts: dict[str, float] = {}
    texts: dict[str, str] = {}
    for queue in dict.fromkeys(at.values()):
        inside = {name: _goodput(flow) for name, flow in flows.items() if at[name] == queue}
        total = sum(inside.values())
        mine = {name: rate / total if total else 0.0 for name, rate in inside.items()}
        parts |= mine
        texts |= dict(zip(mine, percent(list(mine.values())), strict=True))
    there = [flow.steady_state.goodput_bps is not None for flow in flows.values()]
    plain = console.options.ascii_only
    rtts = [f"{milli(flow.srtt_s.mean)}/{milli(flow.srtt_s.p99)}" if flow.srtt_s else "" for flow in flows.values()]
    columns = [
        Column("flow", [clean(name) for name in flows], text=True),
        Column("Mbit/s", [mbit(flow.steady_state.goodput_bps) for flow in flows.values()]),
        Column("share", [texts[name] if known else "" for name, known in zip(flows, there, strict=True)]),
        Column("", [_bar(parts[name], ascii_only=plain).ljust(_BAR) for name in flows], keep=4, text=True),
        Column("RTT ms\nmean/p99", rtts),
        Column("marked", [formatted("mark_fraction", flow.mark_fraction) for flow in flows.values()], keep=6),
        Column("retrans", [formatted("", flow.retransmissions) for flow in flows.values()], keep=5),
    ]
    _table(columns, console, _COLOURS)


def _goodput(flow: Flow) -> float:
    return flow.steady_state.goodput_bps or 0.0


def _bar(share: float, *, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * round(share * _BAR)
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _together(summary: Summary, *, sharing: bool) -> list[str]:
    """What is one number for all flows, and for the queue they share; `sharing`: whether all of them are transfers."""
    parts = []
    for queue, shared in summary.shared.items() if sharing else ():
        at = f" at {clean(queue)}" if len(summary.shared) > 1 else ""
        if shared.ratio is not None:
            parts.append(f"ratio{at} {shared.ratio:.2f}:1")
        if shared.jain is not None:
            parts.append(f"Jain's index{at} {shared.jain:.3f}")
    queues = run_labels.passed(summary)
    if summary.utilisation is not None and len(queues) < 2:
        parts.append(f"utilisation {summary.utilisation:.1%}")
    lines = [", ".join(parts)] if parts else []
    for rated in queues:
        used = f"{rated.utilisation:.1%} used, " if rated.utilisation is not None and len(queues) > 1 else ""
        for name in rated.queues or [rated.queue]:
            lines += [f"{name}: {used}{_queue(summary.queues[name])}"] if name in summary.queues else []
    lines += [f"{name}: {_datagrams(flow)}" for name, flow in summary.flows.items() if flow.loss is not None]
    lines += [f"{name}: {_application(flow)}" for name, flow in summary.flows.items() if flow.fct or flow.video]
    for name, probe in summary.probes.items():
        if probe.rtt_s:
            rtt = probe.rtt_s
            lines.append(f"{name}: RTT {milli(rtt.mean)} ms (p99 {milli(rtt.p99)} ms), {probe.loss or 0:.1%} lost")
    return lines


def _queue(queue: Queue) -> str:
    delay = queue.delay_s
    of = {"qdisc": " by the qdisc", "little": " by Little's law"}.get(queue.delay_of or "", "")
    text = f"queue delay{of} {milli(delay.p50)} ms (p99 {milli(delay.p99)} ms), " if delay else ""
    text += "".join(f"{part} {milli(delay.mean)} ms, " for part, delay in (queue.parts or {}).items())
    sce = f"{queue.sce_marks} SCE marks, " if queue.sce_marks else ""
    return f"{text}{queue.marks} marks, {sce}{queue.drops} drops"


def _datagrams(flow: Flow) -> str:
    delay = flow.delay_s
    text = f"one way {milli(delay.p50)} ms (p99 {milli(delay.p99)} ms), " if delay else ""
    jitter = f"jitter {milli(flow.jitter_s)} ms, " if flow.jitter_s is not None else ""
    return f"{text}{jitter}{flow.loss or 0:.2%} lost"


def _application(flow: Flow) -> str:
    """What a player saw, or how long objects took."""
    if flow.video is not None:
        seen = flow.video
        startup = "never played" if seen.startup_s is None else f"playing after {seen.startup_s:.1f} s"
        return f"{startup}, {mbit(seen.mean_rate_bps)} Mbit/s, {seen.stalls} stalls of {seen.stalled_s:.1f} s in all"
    fct = flow.fct.fct_s if flow.fct else None
    if flow.fct is None or fct is None:
        return "no object came to its end"
    times = "/".join(milli(getattr(fct, name)) for name in ("p50", "p95", "p99"))
    return f"{flow.fct.ended} of {flow.fct.begun} objects, completed in {times} ms (p50/p95/p99)"


def _rates(result: Result, summary: Summary, samples: Samples, console: Console) -> None:
    """Goodput over time, with labels on both axes."""
    from rich.text import Text

    tools = {name for name, _ in control_connections(result)}
    names = [name for name in summary.flows if ("flow", name, "goodput") in samples and name not in tools]
    if not names:
        return
    lines = [samples.of("flow", name, "goodput") for name in names]
    rates = [rated.rate_bps for rated in run_labels.passed(summary)]
    top = max(rates, default=0.0) or max(float(rate.max()) for _, rate in lines) or 1.0
    end = float(result.run.duration_s)
    braille = console.color_system is not None and not console.options.ascii_only
    ascii_only = console.options.ascii_only
    width, height = _CHART
    labels = {0: f"{top / 1e6:.4g}", height // 2: f"{top / 2e6:.4g}", height - 1: "0"}
    margin = max(len(label) for label in labels.values())
    width = max(min(width, console.width - margin - 2), 10)
    cells = chart(lines, span=(0.0, end), top=top, width=width, height=height, braille=braille)
    legend = Text("goodput [Mbit/s] ")
    for i, name in enumerate(names):
        legend.append(f"  {'━━' if braille else i + 1} {name}", style=_COLOURS[i % len(_COLOURS)])
    console.print(legend)
    for i, row in enumerate(cells):
        line = Text(f"{labels.get(i, ''):>{margin}} {'|' if ascii_only else '│'}")
        for cell in row:
            line.append(cell.text, style="" if cell.line is None else _COLOURS[cell.line % len(_COLOURS)])
        console.print(line)
    corner, dash = ("+", "-") if ascii_only else ("└", "─")
    console.print(Text(f"{'':>{margin}} {corner}{dash * width}"))
    last = f"{end:.4g} s"
    console.print(Text(f"{'':>{margin}}  {'0':<{width - len(last)}}{last}"))
