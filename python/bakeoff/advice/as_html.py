"""The advice as one page of HTML that needs nothing else, with pictures, to pass on."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff.advice import sentences
from bakeoff.advice.quantities import around, few, figure, groups, head, limits, scale, unit
from bakeoff.errors import MeasureError
from bakeoff.measure import ends
from bakeoff.measure.delays import arrivals
from bakeoff.text.templates import environment

if TYPE_CHECKING:
    from bakeoff.advice.household import Advice, Choice, Variant
    from bakeoff.scenario.access_line import Asked

_DRAWN: Final = {
    "call_delay_p99_s": "How late the call's packets arrive (99 of 100 arrive within)",
    "game_p99_s": "The game's ping (99 of 100 are at most)",
    "call_loss": "How many of the call's packets are lost",
    "page_p95_s": "How long web pages take (95 of 100 load within)",
    "video_stalled_s": "How long the video stands still",
    "downloads_bps": "What the downloads get together",
}
"""The measures that have a picture, with its title."""


class Bar(NamedTuple):
    """A choice in a picture of bars; lengths are per cent of the picture's width."""

    head: str
    text: str
    length: float
    low: float
    high: float
    bad: bool


class Bars(NamedTuple):
    """One measure of all choices."""

    title: str
    unit: str
    need: str
    bound: float | None
    """Where what is needed ends, in per cent; None if it lies outside, or nothing is needed."""
    bars: tuple[Bar, ...]


class Line(NamedTuple):
    """A choice over time: `points` as SVG has them, in a box of 1000 by 1000."""

    head: str
    points: str


class Over(NamedTuple):
    """The call over time, with a logarithmic axis of delay."""

    lines: tuple[Line, ...]
    rows: tuple[tuple[float, str], ...]
    """Ticks: per cent from the top, and what is written there."""
    columns: tuple[tuple[float, str], ...]


def page(asked: Asked, advice: Advice) -> str:
    """The whole page. Texts that come from files are shown as they are written, HTML in them too."""
    record = advice.main.choices[0].results[0].record
    made = record.provenance
    origin = f"bakeoff {made.version}, model epoch {made.model_epoch}, {made.date:%-d %B %Y}" if made else "bakeoff"
    return (
        environment("bakeoff.advice")
        .get_template("advice.html.j2")
        .render(
            title=sentences.title(asked),
            paragraphs=sentences.recommendation(advice),
            pictures=[found for key in _DRAWN if (found := bars(advice, advice.main, key)) is not None],
            over=over_time(advice.main),
            tables=[
                (
                    sentences.variant(variant),
                    [(head(choice), choice.label == variant.verdict.choice) for choice in variant.choices],
                    groups(advice, variant),
                )
                for variant in advice.variants
            ],
            rule=sentences.rule(advice),
            assumptions=sentences.assumptions(asked, advice),
            choices=sentences.choices(advice),
            commands=[(head(choice), lines) for choice, lines in sentences.commands(advice)],
            made=f"{origin}, engine {record.engine}",
            style=_style(),
        )
    )


def bars(advice: Advice, variant: Variant, key: str) -> Bars | None:
    """The bars of a measure, longest at the picture's full width; None if there is no such measure."""
    measure = next((measure for measure in advice.measures if measure.key == key), None)
    if measure is None:
        return None
    known = [(choice, found) for choice in variant.choices if (found := choice.interval(key)) is not None]
    span = {choice.label: ends(found, limits(measure)) or (found["mean"],) * 2 for choice, found in known}
    longest = max((high for _, high in span.values()), default=0.0) or 1.0
    drawn = []
    for choice, found in known:
        low, high = span[choice.label]
        at_least = "at least " if choice.means[key].at_least else ""
        drawn.append(
            Bar(
                head(choice),
                f"{at_least}{figure(found['mean'] * scale(measure))}{around(measure, found)}{few(choice, found)}",
                100 * found["mean"] / longest,
                100 * low / longest,
                100 * high / longest,
                measure in choice.missed,
            )
        )
    bound = 100 * measure.bound / longest if measure.bound and not measure.relative else None
    return Bars(_DRAWN[key], unit(measure), measure.need, bound if bound and bound <= 100 else None, tuple(drawn))


def over_time(variant: Variant) -> Over | None:
    """The slowest packet of the call in each second of the first repetition, a line per choice; None without a call."""
    found = {head(choice): points for choice in variant.choices if (points := _slowest(choice))}
    values = [value for points in found.values() for _, value in points]
    if not values:
        return None
    end = max(time for points in found.values() for time, _ in points)
    low, high = floor(log10(min(values))), log10(max(values))
    top = max(high, low + 1)

    def down(value: float) -> float:
        return 1000 * (top - log10(value)) / (top - low)

    lines = tuple(
        Line(name, " ".join(f"{1000 * time / end:.1f},{down(value):.1f}" for time, value in points))
        for name, points in found.items()
    )
    marks = [mantissa * 10.0**power for power in range(low, floor(top) + 1) for mantissa in (1, 2, 5)]
    rows = tuple((down(mark) / 10, f"{mark * 1e3:g} ms") for mark in marks if low <= log10(mark) <= top)
    step = next(step for step in (5, 10, 20, 60, 120) if end / step <= 7)
    columns = tuple((100 * at / end, f"{at} s") for at in range(0, int(end) + 1, step))
    return Over(lines, rows, columns)


def _slowest(choice: Choice) -> list[tuple[float, float]]:
    """(second, delay) of the slowest packet that was sent in each second, of the call in either direction."""
    from bakeoff.measure import Samples

    result = choice.results[0]
    samples = Samples(result.parts)
    most: dict[int, float] = {}
    for flow in result.run.flows:
        if flow.transport != "udp":
            continue
        try:
            sent, took = arrivals(samples, flow.name)
        except MeasureError:
            continue
        for time, delay in zip(sent.tolist(), took.tolist(), strict=True):
            second = int(time)
            if delay > most.get(second, 0.0):
                most[second] = delay
    return [(second + 0.5, delay) for second, delay in sorted(most.items())]


def _style() -> str:
    from importlib.resources import files

    return files("bakeoff.advice").joinpath("style.css").read_text(encoding="utf-8")
