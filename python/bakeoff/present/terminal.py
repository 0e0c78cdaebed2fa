"""What a newcomer sees of one run in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff.measure import Samples, summary_of
from bakeoff.measure.bottleneck import leaves
from bakeoff.present import words
from bakeoff.present.chart import chart

if TYPE_CHECKING:
    from rich.console import Console

    from bakeoff.results import Result
    from bakeoff.results.summary import Flow, Summary

_COLOURS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7")
_BAR = 20
_CHART = (60, 8)


def duel(result: Result, console: Console) -> None:
    """Print who got what: shares, delays, marks, what was in effect, and the rates over time.

    Numbers are those of the steady state. On a terminal that is no UTF-8 the chart and the bars are ASCII. Raises
    MeasureError if the result has no samples of a flow.
    """
    summary = summary_of(result)
    samples = Samples(result.series)
    console.print(words.title(result), style="bold", markup=False, highlight=False)
    for line in words.in_effect(result, summary):
        console.print(line, style="dim", markup=False, highlight=False)
    console.print()
    _shares(summary, console)
    console.print()
    for line in _together(summary):
        console.print(line, markup=False, highlight=False)
    console.print()
    _rates(result, summary, samples, console)
    for line in [*words.failures(summary), *summary.missing]:
        console.print(line, style="bold red", markup=False, highlight=False)
    console.print(f"results: {result.path}", markup=False, highlight=False, soft_wrap=True)


def _shares(summary: Summary, console: Console) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    heads = ("flow", "Mbit/s", "share", "", "RTT ms\nmean/p99", "marked", "retrans")
    for head in heads:
        table.add_column(head, justify="left" if head in ("flow", "") else "right", header_style="bold")
    flows = summary.flows
    total = sum(_goodput(flow) for flow in flows.values())
    for i, (name, flow) in enumerate(flows.items()):
        share = _goodput(flow) / total if total else 0.0
        srtt = flow.srtt_s
        table.add_row(
            Text(name, style=_COLOURS[i % len(_COLOURS)]),
            f"{_goodput(flow) / 1e6:.2f}",
            f"{share:.0%}",
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
    if summary.utilisation is not None:
        parts.append(f"utilisation {summary.utilisation:.1%}")
    lines = [", ".join(parts)] if parts else []
    narrow = summary.bottleneck
    for name in leaves(narrow.queue, summary.queues) if narrow else ():
        queue = summary.queues[name]
        delay = queue.sojourn_s
        text = f"queue delay {delay.p50 * 1e3:.1f} ms (p99 {delay.p99 * 1e3:.1f} ms), " if delay else ""
        lines.append(f"{name}: {text}{queue.marks} marks, {queue.drops} drops")
    for name, probe in summary.probes.items():
        if probe.rtt_s:
            rtt = probe.rtt_s
            lines.append(
                f"{name}: RTT {rtt.mean * 1e3:.1f} ms (p99 {rtt.p99 * 1e3:.1f} ms), {probe.loss or 0:.1%} lost"
            )
    return lines


def _rates(result: Result, summary: Summary, samples: Samples, console: Console) -> None:
    """Goodput over time, with labels on both axes."""
    from rich.text import Text

    names = [name for name in summary.flows if ("flow", name, "goodput") in samples]
    if not names:
        return
    lines = [samples.of("flow", name, "goodput") for name in names]
    narrow = summary.bottleneck
    top = narrow.rate_bps if narrow else max(float(rate.max()) for _, rate in lines) or 1.0
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
