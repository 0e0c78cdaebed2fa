"""The words above a picture: which runs it shows, and what was in effect in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from bakeoff.measure import summary_of
from bakeoff.plots.plotted_run import PlottedRun, bottlenecks, short_names
from bakeoff.plots.style import plain
from bakeoff.results.epochs import epoch_warning
from bakeoff.tables import run_labels

if TYPE_CHECKING:
    from bakeoff.results import Result


def title(several: Sequence[PlottedRun]) -> str:
    """The run, or the scenarios that several are of."""
    if len(several) == 1:
        return plain(run_labels.title(several[0].result))
    names = list(dict.fromkeys("/".join(run_labels.title(plotted.result).split("/")[:2]) for plotted in several))
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return plain(f"{', '.join(names[:2])}{more}: {len(several)} runs")


def lines(several: Sequence[PlottedRun]) -> list[str]:
    """The configuration that was in effect, as the engines reported it."""
    if len(several) == 1:
        [plotted] = several
        return [
            plain(text)
            for text in (*_heading(plotted), *queues(plotted), flows(plotted), *recorded(plotted), engine(plotted))
            if text
        ]
    # What several runs have in common is said once; the rest with the runs that it is of.
    of: dict[str, list[str]] = {}
    for part in (queues, lambda plotted: [flows(plotted)], recorded, lambda plotted: [engine(plotted)]):
        for plotted in several:
            for text in part(plotted):
                of.setdefault(text, []).append(plotted.label)
    found = []
    for text, labels in of.items():
        apart = " \N{EN DASH} " if any(":" in label for label in labels) else ": "
        found.append(plain(text if len(labels) == len(several) else f"{' | '.join(labels)}{apart}{text}"))
    return found


def failures(several: Sequence[PlottedRun]) -> list[str]:
    """The self-checks that failed: then the picture shows something else than was asked for. And mixed epochs."""
    found = epochs(plotted.result for plotted in several)
    for plotted in several:
        of = f"{plotted.label}: " if plotted.label else ""
        found += [of + failure for failure in run_labels.failures(summary_of(plotted.result))]
    return [plain(text) for text in found]


def epochs(results: Iterable[Result]) -> list[str]:
    """That the runs of a picture come from different model epochs; nothing if they do not."""
    warning = epoch_warning(results)
    return [] if warning is None else [warning]


def _heading(plotted: PlottedRun) -> list[str]:
    heading = str(plotted.run.title or "")
    return [heading] if heading else []


def queues(plotted: PlottedRun) -> list[str]:
    """`mid>srv: 50 Mbit/s, fq_codel flows 1024 …`, for every bottleneck."""
    found = []
    counted = plotted.result.counters.queues
    for queue in bottlenecks([plotted]):
        if queue is None:
            continue
        capacity = plotted.capacity(queue)
        rates = [rate for rate, _ in groupby(f"{rate / 1e6:g}" for rate in (capacity[1] if capacity else []))]
        rate = f"{', then '.join(rates)} Mbit/s, " if 0 < len(rates) <= 4 else f"{len(rates)} rates, " if rates else ""
        leaves = [name for name in counted if name == queue or name.startswith(queue + "/")]
        leaves = [name for name in leaves if not name.endswith("/root")] or leaves
        kinds = list(dict.fromkeys(counted[name].qdisc for name in leaves))
        more = f" and {len(kinds) - 2} more" if len(kinds) > 2 else ""
        found.append(f"{queue}: {rate}{'; '.join(kinds[:2])}{more}")
    return found


def flows(plotted: PlottedRun) -> str:
    """`prague@2020-08, AccECN: prague; cubic, no ECN: f1 … f20 (20 flows)`."""
    groups: dict[str, list[str]] = {}
    for flow in plotted.flows:
        cc, ecn = plotted.ran(flow)
        ran = "UDP" if flow.transport != "tcp" else f"{run_labels.cc_words(cc or flow.cc)}, {run_labels.ecn_words(ecn)}"
        groups.setdefault(ran, []).append(plotted.names[flow.name])
    notes = []
    for ran, names in groups.items():
        which = ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]} … {names[-1]} ({len(names)} flows)"
        notes.append(ran if names == [ran.split("@")[0].split(",")[0]] else f"{which}: {ran}")
    return "; ".join(notes)


def recorded(plotted: PlottedRun) -> list[str]:
    """What the names of a recording's flows leave out, and which connections are not in the picture."""
    notes = [f"flows: {plotted.between}"] if plotted.between else []
    if plotted.left_out:
        size = sum(size for _, size in plotted.left_out)
        which = ", ".join(short_names([name for name, _ in plotted.left_out[:2]])[0].values())
        more = f" and {len(plotted.left_out) - 2} more" if len(plotted.left_out) > 2 else ""
        notes.append(f"not drawn, as a tool's own connection: {which}{more}, {size / 1e3:.3g} kB")
    return notes


def engine(plotted: PlottedRun) -> str:
    """The engine and the seed."""
    return f"engine {run_labels.engine_of(plotted.result)}, seed {plotted.run.seed}"


def averaged(several: Sequence[PlottedRun]) -> list[str]:
    """That a timed change lies in the steady state, so that what is taken there averages over it."""
    start, end = several[0].window
    within = {
        float(change.at_s)
        for plotted in several
        for change in plotted.run.changes
        if plotted.window[0] < float(change.at_s) < plotted.window[1]
    }
    if not within:
        return []
    times = "a timed change lies" if len(within) == 1 else f"{len(within)} timed changes lie"
    return [f"{times} in the steady state, {start:.4g} s to {end:.4g} s: what is taken there averages over it"]
