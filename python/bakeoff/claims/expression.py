"""Expressions over measures of runs: `goodput("prague") > 2 * goodput("cubic") and ping_p99() < "50ms"`.

The language is `bakeoff.expressions`; here its calls are measures, and `of` names the run that one is of. The name of a
measure alone means that measure: `jain` is `jain()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bakeoff.errors import MeasureError
from bakeoff.expressions.grammar import ExpressionError, Grammar
from bakeoff.expressions.nodes import ORDER, TEXT, Apply, Constant, Leaf, Node, limits, value_of, walk
from bakeoff.measure.catalogue import Measure, Parameter
from bakeoff.measure.functions import CATALOGUE

Argument = float | str | int


@dataclass(frozen=True)
class Call:
    """A measure of a run."""

    measure: str
    arguments: tuple[tuple[str, Argument], ...]
    of: str | None
    """The short name of the run; None where a claim is about each of its runs."""

    text: str = field(default="", compare=False)
    """As it was written."""

    def __str__(self) -> str:
        return self.text


Values = Mapping[Call, float | MeasureError]


@dataclass(frozen=True)
class Expression:
    """A checked expression."""

    text: str
    root: Node

    @property
    def unit(self) -> str | None:
        """`true or false`, a base unit, or None for a number of which nothing says the unit."""
        return self.root.unit

    @property
    def calls(self) -> list[Call]:
        """Every measure in it, each once."""
        keys = (node.key for node in walk(self.root) if isinstance(node, Leaf))
        return list(dict.fromkeys(key for key in keys if isinstance(key, Call)))

    @property
    def sides(self) -> list[tuple[str, Node]]:
        """What its comparisons compare, numbers that are written down aside: the words and the value."""
        compared = (node for node in walk(self.root) if isinstance(node, Apply) and node.name in ORDER)
        parts = (part for node in compared for part in node.parts if not isinstance(part, Constant))
        return list({part.text: part for part in parts}.items())

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest value that it can have, as far as its measures say."""
        return limits(self.root)

    def truth(self, values: Values) -> bool:
        """Whether it holds. MeasureError if a measure in it could not be taken."""
        return bool(value_of(self.root, values))

    def number(self, values: Values) -> float:
        """Its value in the base unit. MeasureError if a measure in it could not be taken, or for 0 / 0."""
        return float(value_of(self.root, values) or 0.0)


def parse(text: str, runs: Sequence[str]) -> Expression:
    """A checked expression; `runs` are the short names that `of` may have, none where a claim is about each run.

    ExpressionError says what is wrong with it, and what was expected.
    """
    root = _Measures(text, runs).read()
    if root.unit == TEXT:
        raise ExpressionError(f"'{root.text}': text; expected a number or a comparison")
    return Expression(" ".join(text.split()), root)


class _Measures(Grammar):
    known = CATALOGUE.names

    def __init__(self, text: str, runs: Sequence[str]) -> None:
        super().__init__(text)
        self._runs = runs

    def name(self, word: str) -> Node:
        return self.call(word, (), {}, f"{word}()")

    def call(self, name: str, places: Sequence[Node], named: Mapping[str, Node], words: str) -> Node:
        if name == "under_utilisation":
            return self._under_utilisation(places, named, words)
        measure = CATALOGUE.get(name)
        if measure is None:
            return super().call(name, places, named, words)
        return self._leaf(measure, *self._arguments(measure, places, dict(named), words), words)

    def _leaf(self, measure: Measure, arguments: tuple[tuple[str, Argument], ...], of: str | None, words: str) -> Leaf:
        unit, bounds = measure.unit, measure.bounds
        if measure.kind_of is not None:
            try:
                unit, bounds = measure.kind_of(dict(arguments))
            except MeasureError as error:
                raise ExpressionError(f"'{words}': {error}") from None
        return Leaf(Call(measure.name, arguments, of, words), unit, bounds, words)

    def _under_utilisation(self, places: Sequence[Node], named: Mapping[str, Node], words: str) -> Node:
        """`under_utilisation(of=, baseline=)`: the goodput of the one less that of the other."""
        if set(named) != {"of", "baseline"} or len(places) > 1:
            raise ExpressionError(
                f'\'{words}\': expected under_utilisation(of="RUN", baseline="RUN"), optionally with a '
                "name or pattern of flows first"
            )
        flows = tuple(("flows", _text(node, "flows")) for node in places)
        runs = (self._run(named[key], words) for key in ("of", "baseline"))
        several = [self._leaf(CATALOGUE["total_goodput"], flows, run, words) for run in runs]
        return super().call("under_utilisation", several, {}, words)

    def _arguments(
        self, measure: Measure, places: Sequence[Node], named: dict[str, Node], words: str
    ) -> tuple[tuple[tuple[str, Argument], ...], str | None]:
        parameters = {each.name: each for each in measure.parameters}
        positional = [each.name for each in measure.parameters if each.positional]
        form = f"expected {measure.signature}"
        of = self._run(named.pop("of"), words) if "of" in named else None
        if len(places) > len(positional):
            raise ExpressionError(f"'{words}' has {len(places)} positional values; {form}")
        given = dict(zip(positional, places, strict=False))
        if odd := next((name for name in named if name not in parameters or name in given), None):
            raise ExpressionError(f"'{words}': unexpected '{odd}'; {form}")
        given |= named
        required = (each.name for each in measure.parameters if each.required)
        if lacking := next((name for name in required if name not in given), None):
            raise ExpressionError(f"'{words}': missing '{lacking}'; {form}")
        if of is None and self._runs:
            raise ExpressionError(f"'{words}': missing 'of', the run; expected one of {', '.join(self._runs)}")
        return tuple((name, self._argument(parameters[name], node)) for name, node in sorted(given.items())), of

    def _argument(self, parameter: Parameter, node: Node) -> Argument:
        match parameter.kind:
            case "flow" if isinstance(node, Constant) and isinstance(node.value, float) and node.value.is_integer():
                return int(node.value)
            case "flow" | "flows" | "probe" | "queue" | "delayed" | "word":
                return _text(node, parameter.name)
        found = self.number(node)
        if not isinstance(found, Constant) or not isinstance(found.value, float):
            raise ExpressionError(f"'{node.text}': {parameter.name} is a measure; expected a constant")
        if parameter.kind != "any" and found.unit not in (None, parameter.kind):
            form = "a time such as '20s'" if parameter.kind == "s" else "a number"
            raise ExpressionError(f"{parameter.name}: '{node.text}'; expected {form}")
        return found.value

    def _run(self, node: Node, words: str) -> str:
        name = _text(node, "of")
        if not self._runs:
            raise ExpressionError(
                f"'{words}' refers to the run '{name}'; expected no run, or 'runs' as a mapping of names to runs"
            )
        if name not in self._runs:
            raise ExpressionError(f"'{words}': unknown run '{name}'; expected one of {', '.join(self._runs)}")
        return name


def _text(node: Node, name: str) -> str:
    if not isinstance(node, Constant) or not isinstance(node.value, str) or not node.value:
        raise ExpressionError(f"{name}: '{node.text}'; expected a name in quotation marks")
    return node.value
