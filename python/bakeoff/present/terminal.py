"""What a newcomer sees of one run in a terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from bakeoff.measure import Samples, summary_of
from bakeoff.present import layout, words
from bakeoff.present.chart import chart
from bakeoff.present.columns import clean, rich_table
from bakeoff.present.records import records
from bakeoff.present.rows import rows

if TYPE_CHECKING:
    from rich.console import Console

    from bakeoff.present.rows import Row
    from bakeoff.results import Result
    from bakeoff.results.summary import Flow, Queue, Summary

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
    console.print(clean(words.title(result)), style="bold", markup=False, highlight=False)
    start, stop = summary.window_s
    for line in [*words.in_effect(result, summary), f"steady state {start:.4g} s to {stop:.4g} s"]:
        console.print(clean(line), style="dim", markup=False, highlight=False)
    console.print()
    [row] = rows([result])
    if len(summary.flows) > _MOST:
        console.print(rich_table(layout.grouped(row)))
    elif summary.flows:
        _shares(summary, console)
    console.print()
    for line in _together(summary):
        console.print(clean(line), markup=False, highlight=False)
    console.print()
    if summary.changes:
        _parts(row, summary, console)
    if 0 < len(summary.flows) <= _MOST:
        _rates(result, summary, samples, console)
    notes = [*words.failures(summary), *summary.missing]
    more = len(notes) - _NOTES
    for line in notes[:_NOTES] + ([f"and {more} more; summary.json has all"] if more > 0 else []):
        console.print(clean(line), style="bold red", markup=False, highlight=False)
    console.print(f"results: {clean(str(result.path))}", markup=False, highlight=False, soft_wrap=True)


def text(result: Result, width: int = 100) -> str:
    """The same as plain text."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None, legacy_windows=False)
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
        columns = layout.columns("phases", [(row, record) for record in found])
        console.print(rich_table([column for column in columns if column.head != layout.WHAT]))
    console.print()


def _shares(summary: Summary, console: Console) -> None:
    """Each flow beside those that share its bottleneck."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    heads = ("flow", "Mbit/s", "share", "", "RTT ms\nmean/p99", "marked", "retrans")
    for head in heads:
        table.add_column(head, justify="left" if head in ("flow", "") else "right", header_style="bold")
    flows = summary.flows
    for i, (name, flow) in enumerate(flows.items()):
        total = sum(_goodput(other) for other in flows.values() if other.bottleneck == flow.bottleneck)
        share = _goodput(flow) / total if total else 0.0
        there = flow.steady_state.goodput_bps is not None
        srtt = flow.srtt_s
        table.add_row(
            Text(clean(name), style=_COLOURS[i % len(_COLOURS)]),
            f"{_goodput(flow) / 1e6:.2f}" if there else "",
            f"{share:.0%}" if there else "",
            Text(_bar(share, ascii_only=console.options.ascii_only), style=_COLOURS[i % len(_COLOURS)]),
            f"{srtt.mean * 1e3:.1f}/{srtt.p99 * 1e3:.1f}" if srtt else "",
            "" if flow.mark_fraction is None else f"{flow.mark_fraction:.2%}",
            "" if flow.retransmissions is None else str(flow.retransmissions),
        )
    console.print(table)


def _goodput(flow: Flow) -> float:
    return flow.steady_state.goodput_bps or 0.0


def _bar(share: float, *, ascii_only: bool) -> str:
    if ascii_only:
        return "#" * round(share * _BAR)
    eighths = round(share * _BAR * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _together(summary: Summary) -> list[str]:
    """What is one number for all flows, and for the queue they share."""
    parts = []
    if summary.ratio_goodput is not None:
        parts.append(f"ratio {summary.ratio_goodput:.2f}:1")
    if summary.jain_goodput is not None:
        parts.append(f"Jain's index {summary.jain_goodput:.3f}")
    queues = words.passed(summary)
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
            lines.append(
                f"{name}: RTT {rtt.mean * 1e3:.1f} ms (p99 {rtt.p99 * 1e3:.1f} ms), {probe.loss or 0:.1%} lost"
            )
    return lines


def _queue(queue: Queue) -> str:
    delay = queue.delay_s
    of = {"qdisc": " by the qdisc", "little": " by Little's law"}.get(queue.delay_of or "", "")
    text = f"queue delay{of} {delay.p50 * 1e3:.1f} ms (p99 {delay.p99 * 1e3:.1f} ms), " if delay else ""
    text += "".join(f"{part} {delay.mean * 1e3:.1f} ms, " for part, delay in (queue.parts or {}).items())
    sce = f"{queue.sce_marks} SCE marks, " if queue.sce_marks else ""
    return f"{text}{queue.marks} marks, {sce}{queue.drops} drops"


def _datagrams(flow: Flow) -> str:
    delay = flow.delay_s
    text = f"one way {delay.p50 * 1e3:.1f} ms (p99 {delay.p99 * 1e3:.1f} ms), " if delay else ""
    jitter = f"jitter {flow.jitter_s * 1e3:.1f} ms, " if flow.jitter_s is not None else ""
    return f"{text}{jitter}{flow.loss or 0:.2%} lost"


def _application(flow: Flow) -> str:
    """What a player saw, or how long objects took."""
    if flow.video is not None:
        seen = flow.video
        startup = "never played" if seen.startup_s is None else f"playing after {seen.startup_s:.1f} s"
        return (
            f"{startup}, {seen.mean_rate_bps / 1e6:.2f} Mbit/s, {seen.stalls} stalls of {seen.stalled_s:.1f} s in all"
        )
    fct = flow.fct.fct_s if flow.fct else None
    if flow.fct is None or fct is None:
        return "no object came to its end"
    times = "/".join(f"{getattr(fct, name) * 1e3:.0f}" for name in ("p50", "p95", "p99"))
    return f"{flow.fct.ended} of {flow.fct.begun} objects, completed in {times} ms (p50/p95/p99)"


def _rates(result: Result, summary: Summary, samples: Samples, console: Console) -> None:
    """Goodput over time, with labels on both axes."""
    from rich.text import Text

    names = [name for name in summary.flows if ("flow", name, "goodput") in samples]
    if not names:
        return
    lines = [samples.of("flow", name, "goodput") for name in names]
    rates = [rated.rate_bps for rated in words.passed(summary)]
    top = max(rates, default=0.0) or max(float(rate.max()) for _, rate in lines) or 1.0
    end = float(result.resolved["duration_s"])
    braille = console.color_system is not None and not console.options.ascii_only
    ascii_only = console.options.ascii_only
    width, height = _CHART
    cells = chart(lines, span=(0.0, end), top=top, width=width, height=height, braille=braille)
    legend = Text("goodput [Mbit/s] ")
    for i, name in enumerate(names):
        legend.append(f"  {'━━' if braille else i + 1} {name}", style=_COLOURS[i % len(_COLOURS)])
    console.print(legend)
    labels = {0: f"{top / 1e6:g}", height // 2: f"{top / 2e6:g}", height - 1: "0"}
    margin = max(len(label) for label in labels.values())
    for i, row in enumerate(cells):
        line = Text(f"{labels.get(i, ''):>{margin}} {'|' if ascii_only else '│'}")
        for cell in row:
            line.append(cell.text, style="" if cell.line is None else _COLOURS[cell.line % len(_COLOURS)])
        console.print(line)
    corner, dash = ("+", "-") if ascii_only else ("└", "─")
    console.print(Text(f"{'':>{margin}} {corner}{dash * width}"))
    last = f"{end:g} s"
    console.print(Text(f"{'':>{margin}}  {'0':<{width - len(last)}}{last}"))
