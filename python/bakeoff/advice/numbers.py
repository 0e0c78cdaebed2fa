"""What the people on a line notice, as numbers of one run. What each flow is, its source says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from bakeoff.errors import MeasureError
from bakeoff.measure import Samples, path, summary_of
from bakeoff.measure.delays import quantile
from bakeoff.scenario.access_line import LINE
from bakeoff.scenario.cc_words import parse

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.results.summary import Flow, Probe, Summary
    from bakeoff.scenario.run import Flow as RunFlow
    from bakeoff.scenario.run import Run as ResolvedRun

Unit = Literal["s", "1", "bit/s", "n"]
Way = Literal["up", "down"]

GRACE_S: Final = 10.0
"""A page that begins later than this before the end is not counted: nobody sees whether it takes ten seconds."""


class Number(NamedTuple):
    """A measured number."""

    value: float
    at_least: bool = False
    """The run ended before it could be seen how much more it is."""


class Run:
    """A run, with its flows sorted by what they are."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.document = result.run
        self.summary: Summary = summary_of(result)
        self._samples: Samples | None = None
        self.up_hop, self.down_hop = line_ends(self.document)

    @property
    def samples(self) -> Samples:
        """The series, read when first asked for."""
        if self._samples is None:
            self._samples = Samples(self.result.parts)
        return self._samples

    def way(self, flow: RunFlow) -> Way:
        """Which end of the line sends the flow."""
        return "up" if self.up_hop in path(self.document, flow) else "down"

    def named(self, *kinds: str, way: Way | None = None) -> list[str]:
        """The flows with these sources, or those of them that go one way."""
        return [
            flow.name for flow in self.document.flows if flow.source.kind in kinds and way in (None, self.way(flow))
        ]

    def calls(self) -> list[Flow]:
        """Streams of datagrams."""
        datagrams = [flow.name for flow in self.document.flows if flow.transport == "udp"]
        return [self.summary.flows[name] for name in datagrams]

    def games(self, *, l4s: bool) -> list[Probe]:
        """Probes whose packets are marked as L4S, or the others."""
        chosen = [probe.name for probe in self.document.probes if (probe.ecn == "ect1") == l4s]
        return [self.summary.probes[name] for name in chosen]

    def transfers(self, way: Way) -> dict[str, float]:
        """Rates of the long transfers, in bit/s."""
        rates = {name: self.summary.flows[name].steady_state.goodput_bps for name in self.named("bulk", way=way)}
        return {name: rate or 0.0 for name, rate in rates.items() if name not in self._datagrams()}

    def l4s(self, name: str) -> bool:
        """Whether a flow speaks L4S."""
        return any(flow.name == name and is_l4s(flow.cc) for flow in self.document.flows)

    def _datagrams(self) -> set[str]:
        return {flow.name for flow in self.document.flows if flow.transport == "udp"}


def is_l4s(cc: str | None) -> bool:
    """Whether a congestion control sends ECT(1) and answers each mark: Prague does."""
    return cc is not None and parse(cc).name == "prague"


def line_ends(run: ResolvedRun) -> tuple[tuple[str, str], tuple[str, str]]:
    """The hops at which the line's two ends send: (up, down). Links are written along the path."""
    ends = [link.ends for link in run.links]
    up = next((hop for hop in ends if hop[0] == LINE), None)
    down = next(((hop[1], hop[0]) for hop in ends if hop[1] == LINE), None)
    if up is None or down is None:
        raise MeasureError(f"the run has no node '{LINE}' with a link on either side")
    return up, down


def pages(run: Run, q: float) -> Number | None:
    """The q-quantile of the loading times of the pages that are counted [s].

    A page that the end of the run cuts off counts with the time that it had; a quantile among those is a lower bound.
    None if there is no page.
    """
    times = loading(run)
    if not times:
        return None
    value = quantile([time for time, _ in times], q)
    least = min((time for time, cut in times if cut), default=None)
    return Number(value, at_least=least is not None and value >= least)


def in_time(run: Run) -> Number | None:
    """The share of the pages that are counted which load within 10 s: every one of them had that time."""
    times = loading(run)
    return Number(sum(time <= GRACE_S and not cut for time, cut in times) / len(times)) if times else None


def loading(run: Run) -> list[tuple[float, bool]]:
    """How long each page took [s] that begins in the window and at least 10 s before the end, and if the end cut it."""
    start, end = run.summary.window_s
    times: list[tuple[float, bool]] = []
    for name in run.named("short"):
        try:
            begun, _ = run.samples.of("flow", name, "size", (start, end - GRACE_S))
        except MeasureError:
            continue
        try:
            ended = dict(zip(*(part.tolist() for part in run.samples.of("flow", name, "fct")), strict=True))
        except MeasureError:
            ended = {}
        times += [(ended.get(at, end - at), at not in ended) for at in begun.tolist()]
    return times


def _worst(values: Iterable[float | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return Number(max(known)) if known else None


def _videos(run: Run, take: Callable[[Any], float]) -> list[float]:
    found = [run.summary.flows[name].video for name in run.named("video")]
    return [take(video) for video in found if video is not None]


def _stalled(run: Run) -> Number | None:
    """Seconds in which the video stood still; a player that never began stood still throughout."""
    end = run.document.duration_s
    stalled = _videos(run, lambda video: video.stalled_s if video.startup_s is not None else end)
    return Number(max(stalled)) if stalled else None


def _video_rate(run: Run) -> Number | None:
    rates = _videos(run, lambda video: video.mean_rate_bps)
    return Number(min(rates)) if rates else None


def _sum(run: Run, way: Way) -> Number | None:
    rates = run.transfers(way)
    return Number(sum(rates.values())) if rates else None


def _used(run: Run, way: Way) -> Number | None:
    hop = run.up_hop if way == "up" else run.down_hop
    name = f"{hop[0]}>{hop[1]}"
    used = next((rated.utilisation for rated in run.summary.rated if rated.hop == name), None)
    return Number(used) if used is not None else None


def _l4s_share(run: Run, way: Way) -> Number | None:
    """A transfer with L4S has so many times what one without has, on average."""
    rates = run.transfers(way)
    fast = [rate for name, rate in rates.items() if run.l4s(name)]
    slow = [rate for name, rate in rates.items() if not run.l4s(name)]
    if not fast or not any(slow):
        return None
    return Number((sum(fast) / len(fast)) / (sum(slow) / len(slow)))


def _slowest(run: Run) -> Number | None:
    """What the slowest long transfer of either direction gets, over an equal share of what all of them get."""
    shares: list[float] = []
    for transfers in (run.transfers("up"), run.transfers("down")):
        total = sum(transfers.values())
        if len(transfers) > 1 and total > 0:
            shares.append(min(transfers.values()) * len(transfers) / total)
    return Number(min(shares)) if shares else None


def _ping(run: Run, of: Literal["p50", "p99"], *, l4s: bool = False) -> Number | None:
    pings = [probe.rtt_s for probe in run.games(l4s=l4s)]
    return _worst((ping.p50 if of == "p50" else ping.p99) if ping else None for ping in pings)


@dataclass(frozen=True)
class Measure:
    """Something that people notice."""

    key: str
    group: str
    words: str
    unit: Unit
    take: Callable[[Run], Number | None]
    bound: float | None = None
    """What is good enough."""
    more: bool = False
    """More is better."""
    need: str = ""
    """What is needed, as a sentence about the bound."""
    relative: bool = False
    """The bound is a share of what the best choice has."""

    def good(self, number: Number, best: float = 1.0) -> bool:
        """Whether a number meets the bound, if there is one; `best` is what a relative bound is a share of."""
        if self.bound is None:
            return True
        bound = self.bound * best if self.relative else self.bound
        return number.value >= bound if self.more else number.value <= bound


_CARRIES: Final = "the line carries at least 80 % of what it carries with the choice that fills it most"

MEASURES: Final = (
    Measure("call_delay_p99_s", "call", "99 of 100 arrive within", "s",
            lambda run: _worst(call.delay_s.p99 if call.delay_s else None for call in run.calls()),
            bound=0.1, need="99 of 100 packets of the call arrive within 100 ms"),
    Measure("call_loss", "call", "lost", "1", lambda run: _worst(call.loss for call in run.calls()),
            bound=0.01, need="at most 1 % of the call's packets are lost"),
    Measure("call_jitter_s", "call", "jitter", "s", lambda run: _worst(call.jitter_s for call in run.calls())),
    Measure("game_p50_s", "game", "ping, half of them", "s", lambda run: _ping(run, "p50")),
    Measure("game_p99_s", "game", "ping, 99 of 100", "s", lambda run: _ping(run, "p99"),
            bound=0.1, need="99 of 100 pings of the game take at most 100 ms"),
    Measure("game_jitter_s", "game", "jitter", "s",
            lambda run: _worst(probe.jitter_s for probe in run.games(l4s=False))),
    Measure("game_loss", "game", "lost", "1", lambda run: _worst(probe.loss for probe in run.games(l4s=False)),
            bound=0.01, need="at most 1 % of the game's packets are lost"),
    Measure("l4s_game_p99_s", "game with L4S", "ping, 99 of 100", "s", lambda run: _ping(run, "p99", l4s=True)),
    Measure("l4s_game_loss", "game with L4S", "lost", "1",
            lambda run: _worst(probe.loss for probe in run.games(l4s=True))),
    Measure("page_p50_s", "web page", "half of them load within", "s", lambda run: pages(run, 0.5)),
    Measure("page_p95_s", "web page", "95 of 100 load within", "s", lambda run: pages(run, 0.95)),
    Measure("page_in_time", "web page", "load within 10 s", "1", in_time,
            bound=0.95, more=True, need="95 of 100 web pages load within 10 s"),
    Measure("video_stalled_s", "video", "stands still for", "s", _stalled,
            bound=0.5, need="the video stands still for at most half a second"),
    Measure("video_rate_bps", "video", "picture", "bit/s", _video_rate, more=True),
    Measure("uploads_bps", "transfers", "uploads together", "bit/s", lambda run: _sum(run, "up"), more=True),
    Measure("downloads_bps", "transfers", "downloads together", "bit/s", lambda run: _sum(run, "down"), more=True),
    Measure("used_up", "transfers", "line in use, up", "1", lambda run: _used(run, "up"), bound=0.8, more=True,
            need=f"up, {_CARRIES}", relative=True),
    Measure("used_down", "transfers", "line in use, down", "1", lambda run: _used(run, "down"), bound=0.8, more=True,
            need=f"down, {_CARRIES}", relative=True),
    Measure("slowest_share", "sharing", "slowest, of an equal share", "1", _slowest,
            bound=0.1, more=True, need="the slowest long transfer has at least 10 % of an equal share"),
    Measure("l4s_share_up", "sharing", "L4S upload to another", "n", lambda run: _l4s_share(run, "up")),
    Measure("l4s_share_down", "sharing", "L4S download to another", "n", lambda run: _l4s_share(run, "down")),
)  # fmt: skip
"""In the order of the page. docs/advise.md has the formula of each, and where the bounds come from."""


def numbers(result: Result) -> dict[str, Number]:
    """Every number that the run has, by `Measure.key`; what the household has no traffic for is left out."""
    run = Run(result)
    taken = {measure.key: measure.take(run) for measure in MEASURES}
    return {key: number for key, number in taken.items() if number is not None}
