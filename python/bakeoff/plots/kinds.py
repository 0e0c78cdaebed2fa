"""The kinds of pictures: their names, what they show, and what draws them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

from bakeoff.errors import PlotError

if TYPE_CHECKING:
    from bakeoff.plots.picture import Picture

Of = Literal["run", "campaign"]


@dataclass(frozen=True)
class Kind:
    """A kind of picture."""

    name: str
    shows: str
    """One sentence for people."""
    of: Of
    """`run`: one run, or several laid over each other. `campaign`: the measures of many runs."""
    draw: Callable[..., Picture] | None = None
    """From runs, and a `scale` if it knows scales."""
    scales: bool = False
    """Whether `scale` means something to it."""
    swept: bool = False
    """Whether it takes axes of the matrix and a measure."""


def _of(module: str, name: str) -> Callable[..., Picture]:
    """The function of a module of this package, which is imported when it first draws: names alone come at once."""

    def draw(*plotted: object) -> Picture:
        picture: Picture = getattr(import_module(f"bakeoff.plots.{module}"), name)(*plotted)
        return picture

    return draw


KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        "tcp_delivery_with_rtt",
        "every flow's delivery rate over time, and below it TCP's and the probes' round-trip times",
        "run",
        _of("time_series", "delivery_with_rtt"),
        scales=True,
    ),
    Kind(
        "totals_with_tcp_rtt",
        "the sum of all goodputs over time, and below it round-trip times",
        "run",
        _of("time_series", "totals_with_tcp_rtt"),
        scales=True,
    ),
    Kind(
        "upload_with_ping_and_tcp_rtt",
        "every flow's goodput over time, and below it round-trip times",
        "run",
        _of("time_series", "upload_with_ping_and_tcp_rtt"),
        scales=True,
    ),
    Kind(
        "all_scaled_delivery",
        "delivery rates up and down and round-trip times, without outliers",
        "run",
        _of("time_series", "all_scaled"),
    ),
    Kind(
        "cwnd",
        "congestion windows, slow start thresholds, and alpha where a control has one and it was traced",
        "run",
        _of("time_series", "cwnd"),
    ),
    Kind(
        "queue",
        "delay, backlog, marks and drops of the queues at the bottlenecks over time",
        "run",
        _of("queues", "queue"),
    ),
    Kind(
        "call",
        "what UDP flows felt: one-way delay, jitter and loss over time, and what else was on the line",
        "run",
        _of("call", "call"),
    ),
    Kind("box_totals", "rates and round-trip times as boxes", "run", _of("distributions", "box_totals")),
    Kind(
        "ping_cdf",
        "the cumulative distribution of the probes' round-trip times",
        "run",
        _of("distributions", "ping_cdf"),
    ),
    Kind("queue_cdf", "the cumulative distribution of the queue's delay", "run", _of("distributions", "queue_cdf")),
    Kind(
        "fct_cdf",
        "the cumulative distribution of short flows' completion times",
        "run",
        _of("distributions", "fct_cdf"),
    ),
    Kind(
        "induced_latency_cdf",
        "the share of probes that waited longer than so much, on a logarithmic axis",
        "run",
        _of("distributions", "induced_latency_cdf"),
    ),
    Kind(
        "bars", "who gets what: a bar for every flow of every run of a campaign, beside what was published", "campaign"
    ),
    Kind("sweep", "a measure against a numeric axis of the matrix, with intervals over seeds", "campaign", swept=True),
    Kind("heatmap", "a measure over two axes of the matrix", "campaign", swept=True),
)


def kind(name: str) -> Kind:
    """The kind of that name. BakeoffError lists those there are."""
    found = next((one for one in KINDS if one.name == name), None)
    if found is None:
        raise PlotError(f"plot kind: unknown '{name}'; expected one of {', '.join(one.name for one in KINDS)}")
    return found
