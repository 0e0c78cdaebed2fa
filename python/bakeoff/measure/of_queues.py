"""The measures of queues in the catalogue: the bottleneck's, unless one is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.measure.bottleneck import bottleneck
from bakeoff.measure.catalogue import SHARE
from bakeoff.measure.delays import PARTS, distribution, little
from bakeoff.measure.marks import drops, marks, sce_marks
from bakeoff.measure.measured_run import MeasuredRun, flow_of
from bakeoff.measure.registration import Edge, Take, family, known, measure
from bakeoff.measure.stations import stations

if TYPE_CHECKING:
    from bakeoff.results.summary import Distribution


@measure(
    "rate",
    "queue",
    "bit/s",
    "rate",
    "rate of the link or shaper, whichever is lower, averaged over the window",
    at="rate_bps",
)
def _rated(run: MeasuredRun, queue: str | None) -> float:
    return run.rated(queue).rate_bps


@measure(
    "utilisation", "queue", "1", "utilisation",
    "bits sent over the bits that the rate allows, at the named queue or the first flow's bottleneck",
    needs=("sent",), at="utilisation", bounds=SHARE, percent=True, decimals=1,
)  # fmt: skip
def _utilisation(run: MeasuredRun, queue: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
    whole = begin is None and end is None
    if whole and queue is None:
        return known(run.summary.utilisation, "the utilisation")
    if whole:
        station = run.rated(queue)
        return known(station.utilisation, f"the utilisation of '{station.queue}'")
    window = run.window(begin, end)
    wanted = run.rated(queue).queue if queue else bottleneck(run.document, run.document.flows[0], window).queue
    places = stations(run.document, run.counters, run.samples, window)
    found = next((station for station in places if station.queue == wanted and station.sampled(run.samples)), None)
    if found is None:
        raise MeasureError(f"no 'sent' samples of the queue '{wanted}'")
    return found.utilisation(run.samples, window)


def _part_of(queue: str | None) -> tuple[str | None, str | None]:
    """`L` and `C` are those of the bottleneck, `QUEUE/L` those of another queue."""
    whole, _, part = (queue or "").rpartition("/")
    return (whole or None, part) if part in PARTS else (queue, None)


def _over_time(of: str) -> Take:
    def take(run: MeasuredRun, queue: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
        whole, part = _part_of(queue)
        name = run.queue(whole)
        counted = run.of_queue(name)
        found: Distribution | None = (counted.parts or {}).get(part) if part else counted.as_time_passes_s
        if begin is not None or end is not None:
            metric = PARTS[part] if part else "sojourn"
            window = run.window(begin, end)
            if part is None and ("queue", name, metric) not in run.samples:
                found = little(run.samples, name, window)
            else:
                found = distribution(run.samples.of("queue", name, metric, window)[1])
        if found is None:
            raise MeasureError(f"no delays of queue '{queue or name}'; expected an egress queue, or L or C of dualpi2")
        return float(getattr(found, of))

    return take


family(
    "mean p50 p99 max", "queue_delay", "queue", "queue delay",
    "the queue delay by the best definition that the engine offers (column `delay_of`)", at="delay_s", stem="delay",
    aliases={"p50": ("queue_delay",)},
)  # fmt: skip
family(
    "mean p50 p99 max", "queue_delay_over_time", "queue", "queue delay over time",
    "the queue delay sampled over time, on every engine", _over_time,
    needs=("sojourn", "backlog", "sent", *PARTS.values()),
    aliases={of: (f"queue_{of}",) for of in ("mean", "p50", "p99", "max")},
)  # fmt: skip
family(
    "mean p50 p99", "little_delay", "queue", "queue delay by Little's law",
    "the queue delay by Little's law: backlog / departure rate", at="sojourn_little_s",
)  # fmt: skip
for _part in PARTS:
    family(
        "mean p50 p99", f"{_part.lower()}_delay", "queue", f"delay in the {_part} queue",
        f"the delay in the {_part} queue of dualpi2", at=f"parts.{_part}",
        aliases={"mean": (f"queue_delay_{_part.lower()}",)},
    )  # fmt: skip


def _count(count: Callable[..., float]) -> Take:
    def take(run: MeasuredRun, flow: str | int | None = None, *, queue: str | None = None) -> float:
        name = None if flow is None else flow_of(run.document, flow).name
        where = run.queue(queue)
        return float(count(run.counters, where, None if _alone_on_linux(run, where) else name))

    return take


def _alone_on_linux(run: MeasuredRun, queue: str) -> bool:
    """Whether the queue's packets are counted as a whole, as Linux does, and all of them are of one flow."""
    found = run.counters.queues.get(queue)
    if found is None or not found.sent or any(each.flows for each in run.counters.queues.values()):
        return False
    document = run.document
    return len(document.flows) == 1 and not document.probes and not document.programs


for _name, _label, _count_of, _formula in (
    ("marks", "CE marks", marks, "CE marks of the bottleneck over the whole run, or of one flow's packets"),
    ("sce_marks", "SCE marks", sce_marks, "SCE marks, likewise"),
    ("drops", "drops", drops, "drops, likewise"),
):
    measure(_name, "queue", "packet", _label, _formula, at=_name)(_count(_count_of))
