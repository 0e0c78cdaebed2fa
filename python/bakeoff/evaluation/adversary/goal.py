"""What the adversary looks for: a measure, which of its values are bad, and who competes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log2
from typing import TYPE_CHECKING, Final, Literal

from bakeoff.claims.expression import parse
from bakeoff.errors import UsageError
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.expressions.nodes import TRUTH, Leaf
from bakeoff.measure.functions import CATALOGUE
from bakeoff.scenario.error import did_you_mean

if TYPE_CHECKING:
    from bakeoff.claims.expression import Expression

Bad = Literal["low", "high"]

ONE: Final = "one"
"""The flow in the seat of the control."""
OTHER: Final = "other"
"""The competitor."""
ITSELF: Final = "{cc}"
"""A competitor with the control of the seat."""
WORST: Final = 6.0
"""The highest score: a factor of 64."""

_FLOORS: Final = {"s": 1e-3, "packet": 10.0}
"""Added to both values, so that a ratio of two very small ones means nothing. Other units: 0.01; rates: `_OF_RATE`."""
_OF_RATE: Final = 0.02
"""The floor of rates, as a share of the link's."""
_MORE_IS_BETTER: Final = (
    "goodput", "total_goodput", "delivery_rate", "share", "video_rate", "utilisation", "jain", "jain_delivery_rate",
    "min_cwnd", "max_cwnd", "mean_cwnd",
)  # fmt: skip


@dataclass(frozen=True)
class Named:
    """A goal that has a name."""

    text: str
    bad: Bad
    beside: Literal["others", "itself", "any"]
    """`any`: nobody, or one of the others."""


NAMED: Final = {
    "starvation": Named('goodput("other")', "low", "others"),
    "own": Named('goodput("one")', "low", "any"),
    "delay": Named("queue_delay_p99()", "high", "any"),
    "loss": Named('resent_share("one")', "high", "any"),
    "fairness": Named(
        'min(goodput("one"), goodput("other")) / max(goodput("one"), goodput("other"))', "low", "itself"
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Goal:
    """A measure to make as bad as possible."""

    name: str
    """As it was asked for."""
    expression: Expression
    bad: Bad
    competitors: tuple[str | None, ...]
    """Each is searched by itself; None for no competitor."""

    @property
    def rtts(self) -> tuple[bool | None, ...]:
        """Beside itself a control is searched with equal and with unlike RTTs: fairness has a clause for each."""
        return (False, True) if self.competitors == (ITSELF,) else (None,)

    def score(self, ours: float | None, baseline: float | None, rate: float) -> float | None:
        """How much worse the control is than the baseline: the binary logarithm of the ratio of both values.

        Cut to `WORST`; None without a value. `rate` is the link's [bit/s]. Infinite values are the worst of a measure
        of which less is better.
        """
        if ours is None or baseline is None:
            return None
        floor = _OF_RATE * rate if self.expression.unit == "bit/s" else _FLOORS.get(self.expression.unit or "", 0.01)
        worse, better = (ours, baseline) if self.bad == "high" else (baseline, ours)
        if not (isfinite(worse) and isfinite(better)):
            return 0.0 if worse == better else WORST if worse > better else -WORST
        top, bottom = worse + floor, better + floor
        if top <= 0 or bottom <= 0:
            return None
        return max(-WORST, min(WORST, log2(top / bottom)))


def goal(text: str, cc: str, against: Sequence[str]) -> Goal:
    """A goal by its name, or a measure. UsageError for anything else."""
    others = tuple(each for each in dict.fromkeys(against) if each != cc)
    named = NAMED.get(text)
    if named is None:
        bad, words = _direction(text)
        expression = _parsed(words, text)
        takes_other = any(OTHER in map(str, dict(call.arguments).values()) for call in expression.calls)
        found = Goal(text, expression, bad or _bad(expression, text), others if takes_other else (None, *others))
    else:
        beside = {"others": others, "itself": (ITSELF,), "any": (None, *others)}[named.beside]
        found = Goal(text, _parsed(named.text, text), named.bad, beside)
    if not found.competitors:
        raise UsageError(f"--against: '{cc}' alone; expected another control for --worst {text}")
    return found


def _direction(text: str) -> tuple[Bad | None, str]:
    for bad in ("low", "high"):
        if text.startswith(f"{bad}:"):
            return bad, text.removeprefix(f"{bad}:")
    return None, text


def _parsed(words: str, text: str) -> Expression:
    try:
        expression = parse(words, ())
    except ExpressionError as error:
        hint = did_you_mean(text, list(NAMED)) if text.replace("-", "").isalpha() else f": {error}"
        raise UsageError(f"--worst: '{text}'{hint}") from None
    if expression.unit == TRUTH or not expression.calls:
        raise UsageError(f"--worst: '{text}'; expected a measure, such as goodput(\"one\"), or {', '.join(NAMED)}")
    return expression


def _bad(expression: Expression, text: str) -> Bad:
    """Which values of a single measure are bad. UsageError for an expression that does not say it."""
    if not isinstance(expression.root, Leaf):
        raise UsageError(
            f"--worst: '{text}': an expression of measures; expected 'low:EXPRESSION' or 'high:EXPRESSION'"
        )
    return "low" if CATALOGUE[expression.calls[0].measure].name in _MORE_IS_BETTER else "high"
