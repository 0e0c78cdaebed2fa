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
    names = list(dict.fromkeys("/".join(run_labels.title(shown.result).split("/")[:2]) for shown in several))
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return plain(f"{', '.join(names[:2])}{more}: {len(several)} runs")


def lines(several: Sequence[PlottedRun]) -> list[str]:
    """The configuration that was in effect, as the engines reported it."""
    if len(several) == 1:
        [shown] = several
        return [
            plain(text)
            for text in (*_heading(shown), *queues(shown), flows(shown), *recorded(shown), engine(shown))
            if text
        ]
    # What several runs have in common is said once; the rest with the runs that it is of.
    of: dict[str, list[str]] = {}
    for part in (queues, lambda shown: [flows(shown)], recorded, lambda shown: [engine(shown)]):
        for shown in several:
            for text in part(shown):
                of.setdefault(text, []).append(shown.label)
    return [
        plain(text if len(labels) == len(several) else f"{' | '.join(labels)}: {text}") for text, labels in of.items()
    ]


def failures(several: Sequence[PlottedRun]) -> list[str]:
    """The self-checks that failed: then the picture shows something else than was asked for. And mixed epochs."""
    found = epochs(shown.result for shown in several)
    for shown in several:
        of = f"{shown.label}: " if shown.label else ""
        found += [of + failure for failure in run_labels.failures(summary_of(shown.result))]
    return [plain(text) for text in found]


def epochs(results: Iterable[Result]) -> list[str]:
    """That the runs of a picture come from different model epochs; nothing if they do not."""
    warning = epoch_warning(results)
    return [] if warning is None else [warning]


def _heading(shown: PlottedRun) -> list[str]:
    heading = str(shown.run.title or "")
    return [heading] if heading else []


def queues(shown: PlottedRun) -> list[str]:
    """`mid>srv: 50 Mbit/s, fq_codel flows 1024 …`, for every bottleneck."""
    found = []
    counted = shown.result.counters.queues
    for queue in bottlenecks([shown]):
        if queue is None:
            continue
        capacity = shown.capacity(queue)
        rates = [rate for rate, _ in groupby(f"{rate / 1e6:g}" for rate in (capacity[1] if capacity else []))]
        rate = f"{', then '.join(rates)} Mbit/s, " if 0 < len(rates) <= 4 else f"{len(rates)} rates, " if rates else ""
        leaves = [name for name in counted if name == queue or name.startswith(queue + "/")]
        leaves = [name for name in leaves if not name.endswith("/root")] or leaves
        kinds = list(dict.fromkeys(counted[name].qdisc for name in leaves))
        more = f" and {len(kinds) - 2} more" if len(kinds) > 2 else ""
        found.append(f"{queue}: {rate}{'; '.join(kinds[:2])}{more}")
    return found


def flows(shown: PlottedRun) -> str:
    """`prague@2020-08, AccECN: prague; cubic, no ECN: f1 … f20 (20 flows)`."""
    groups: dict[str, list[str]] = {}
    for flow in shown.flows:
        cc, ecn = shown.ran(flow)
        ran = "UDP" if flow.transport != "tcp" else f"{run_labels.cc_words(cc or flow.cc)}, {run_labels.ecn_words(ecn)}"
        groups.setdefault(ran, []).append(shown.names[flow.name])
    said = []
    for ran, names in groups.items():
        which = ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]} … {names[-1]} ({len(names)} flows)"
        said.append(ran if names == [ran.split("@")[0].split(",")[0]] else f"{which}: {ran}")
    return "; ".join(said)


def recorded(shown: PlottedRun) -> list[str]:
    """What the names of a recording's flows leave out, and which connections are not in the picture."""
    said = [f"flows: {shown.between}"] if shown.between else []
    if shown.left_out:
        size = sum(size for _, size in shown.left_out)
        which = ", ".join(short_names([name for name, _ in shown.left_out[:2]])[0].values())
        more = f" and {len(shown.left_out) - 2} more" if len(shown.left_out) > 2 else ""
        said.append(f"not drawn, as a tool's own connection: {which}{more}, {size / 1e3:.3g} kB")
    return said


def engine(shown: PlottedRun) -> str:
    """The engine and the seed."""
    return f"engine {run_labels.engine_of(shown.result)}, seed {shown.run.seed}"


def averaged(several: Sequence[PlottedRun]) -> list[str]:
    """That a timed change lies in the steady state, so that what is taken there averages over it."""
    start, end = several[0].window
    within = {
        float(change.at_s)
        for shown in several
        for change in shown.run.changes
        if shown.window[0] < float(change.at_s) < shown.window[1]
    }
    if not within:
        return []
    times = "a timed change lies" if len(within) == 1 else f"{len(within)} timed changes lie"
    return [f"{times} in the steady state, {start:.4g} s to {end:.4g} s: what is taken there averages over it"]
