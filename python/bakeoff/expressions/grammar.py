"""The language of expressions: `goodput("prague") > 2 * goodput("cubic") and not (jain < 90% or qdisc == "pie")`.

It has numbers, quantities, texts, lists, names, calls, `+ - * /`, comparisons, `in`, `not in`, `and`, `or`, `not` and
parentheses, with Python's precedence. What names and calls mean is the subclass's. Everything is checked while it is
read: units, possible values, and that truths and numbers stand where they may. Nothing is executed as Python.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from math import isfinite
from typing import Final

from bakeoff.errors import ClaimError
from bakeoff.expressions import quantity
from bakeoff.expressions.nodes import (
    FUNCTIONS,
    LIST,
    NOTHING,
    ORDER,
    TEXT,
    TRUTH,
    Apply,
    Constant,
    Leaf,
    Node,
)

_LONGEST: Final = 2000
"""Characters of an expression."""
_DEEPEST: Final = 50
_COMPARES: Final = 4
_NEGATES: Final = 7
_POWER: Final = {
    "or": 1, "and": 2, "not": 3, **dict.fromkeys((*ORDER, "in", "not in"), _COMPARES), "+": 5, "-": 5, "*": 6, "/": 6,
}  # fmt: skip
"""How strongly each operator binds what stands beside it."""
_MEANT: Final = {
    "=": "'==' for equal", "is": "'==' for equal", "<>": "'!='", "!": "'not'", **dict.fromkeys(("&", "&&"), "'and'"),
    **dict.fromkeys(("|", "||"), "'or'"), "**": "+ - * /", "//": "+ - * /",
}  # fmt: skip
_TEXT: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_NAME: Final = r"not\s+in\b|[^\W\d]\w*(?:\.\w+|\[\w+\])*"
_NUMBER: Final = (
    r"(?P<number>(?:[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    r"(?P<quantity>\s?(?!(?:and|or|not|in|is)\b)[A-Za-zµ]+(?:/s\b)?|\s?%)?"
)
_SIGN: Final = r"<=|>=|==|!=|<>|&&|\|\||\*\*|//|\S"


class ExpressionError(ClaimError):
    """What is wrong in an expression, in its own words."""


class Grammar(ABC):
    """One text that is read. Subclasses say what a name and a call mean, and what `"a" in NAME` does."""

    expected = "expected numbers, quantities, measures, + - * /, comparisons, and, or, not"
    known: Iterable[str] = ()
    """Functions besides `FUNCTIONS`."""

    def __init__(self, text: str, names: Iterable[str] = ()) -> None:
        """`names` are those that are no identifiers: `cubic-1_cc`. ExpressionError for a text that is too long."""
        if len(text) > _LONGEST:
            raise ExpressionError(f"has {len(text):,} characters; expected at most {_LONGEST:,}")
        own = [rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(names, key=len, reverse=True)]
        form = rf"(?P<text>{_TEXT})|(?P<name>{'|'.join([*own, _NAME])})|{_NUMBER}|{_SIGN}"
        self._text = text
        self._tokens = list(re.finditer(form, text))
        self._at = 0
        self._level = 0

    def read(self) -> Node:
        """The checked form of the whole text. ExpressionError says what is wrong with it, and what was expected."""
        found = self._read(0)
        if self._at < len(self._tokens):
            raise self._unreadable()
        return found if found.unit == TRUTH else self._value(found)

    @abstractmethod
    def name(self, word: str) -> Node:
        """What a name means."""

    def part(self, one: Node, other: Node, words: str) -> Node:
        """`"codel" in qdisc`."""
        raise ExpressionError(f"'{words}': expected a list after 'in', not '{other.text}' after '{one.text}'")

    def truth(self, node: Node) -> Node:
        """The node if it is true or false."""
        if node.unit != TRUTH:
            raise ExpressionError(f"'{_short(node.text)}' is a number; expected a comparison")
        return node

    def call(self, name: str, places: Sequence[Node], named: Mapping[str, Node], words: str) -> Node:
        """What a call means: in all languages one of `FUNCTIONS`."""
        if name not in FUNCTIONS:
            near = get_close_matches(name, [*self.known, *FUNCTIONS], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ExpressionError(f"unknown measure '{name[:60]}'{hint}; {self.expected}")
        _, least, most = FUNCTIONS[name]
        if named or not least <= len(places) <= most:
            many = f"{least}" if least == most else f"{least} or more"
            raise ExpressionError(f"'{_short(words)}': expected {many} values for {name}, without names")
        parts = [self.number(part) for part in places]
        unit = self._one_unit(parts, words)
        return self._apply(name, parts, "1" if name.startswith("harm") else unit, words)

    def number(self, node: Node) -> Node:
        """The node if it is a number; a text is a quantity."""
        found = self._value(self._quantity(node))
        if found.unit in (TEXT, NOTHING):
            raise ExpressionError(f"'{_short(node.text)}' is {quantity.KINDS[found.unit]}; expected a number")
        return found

    def _read(self, power: int) -> Node:
        """All that operators stronger than `power` hold together."""
        start = self._at
        left = self._operand()
        while (strength := _POWER.get(sign := self._word(), 0)) > power and sign != "not":
            if strength == _COMPARES:
                left = self._comparison(left, start)
                continue
            self._at += 1
            right = self._read(strength)
            if sign in ("and", "or"):
                parts = left.parts if isinstance(left, Apply) and left.name == sign else (self.truth(left),)
                left = self._apply(sign, (*parts, self.truth(right)), TRUTH, self._words(start))
            else:
                left = self._arithmetic(sign, self.number(left), self.number(right), self._words(start))
        return left

    def _operand(self) -> Node:  # noqa: PLR0911 (a table of tokens)
        if self._at == len(self._tokens):
            raise self._unreadable()
        token = self._tokens[self._at]
        word, start = self._word(), self._at
        self._at += 1
        if word == "not":
            part = self.truth(self._nested(_POWER["not"]))
            return self._apply("not", [part], TRUTH, self._words(start))
        if word == "-":
            part = self.number(self._nested(_NEGATES))
            if isinstance(part, Constant) and isinstance(part.value, float):
                return Constant(-part.value, part.unit, self._words(start))
            return self._apply("-", [Constant(0.0, part.unit, "0"), part], part.unit, self._words(start))
        if word in ("(", "["):
            parts = [self._unnamed(*each) for each in self._list(")" if word == "(" else "]")]
            alone = word == "(" and len(parts) == 1 and self._word(-2) != ","
            return parts[0] if alone else self._apply(LIST, parts, LIST, self._words(start))
        match token.lastgroup:
            case "number":
                return self._constant(token[0])
            case "quantity":
                return Constant(token[0], TEXT, token[0])
            case "text":
                return Constant(re.sub(r"\\(.)", r"\1", token[0][1:-1]), TEXT, _quoted(token[0]))
            case "name" if word not in _POWER and word not in _MEANT:
                if self._word() != "(":
                    return self.name(word)
                self._at += 1
                given = self._list(")")
                places = [part for name, part in given if name is None]
                named = {name: part for name, part in given if name is not None}
                return self.call(word, places, named, self._words(start))
        self._at = start
        raise self._unreadable()

    def _constant(self, word: str) -> Constant:
        value = float(word)
        if not isfinite(value):
            raise ExpressionError(f"'{_short(word)}' is too large; expected at most 1e308")
        return Constant(value, None, word)

    def _unnamed(self, name: str | None, node: Node) -> Node:
        if name is not None:
            raise ExpressionError(f"'{name} =' is not supported here; expected {_MEANT['=']}")
        return node

    def _list(self, end: str) -> list[tuple[str | None, Node]]:
        """What commas separate up to the end, each with its name: `of="a"`."""
        parts = []
        while self._word() != end:
            named = self._word(1) == "="
            name = self._word() if named else None
            self._at += 2 * named
            parts.append((name, self._nested(0)))
            if self._word() not in (",", end):
                raise self._unreadable()
            self._at += self._word() == ","
        self._at += 1
        return parts

    def _comparison(self, left: Node, start: int) -> Node:
        """A chain of comparisons: `0.8 < jain < 1`."""
        sides, signs = [left], []
        while _POWER.get(self._word()) == _COMPARES:
            signs.append(self._word())
            self._at += 1
            sides.append(self._read(_COMPARES))
        words = self._words(start)
        pairs = [self._compared(*each, words) for each in zip(signs, sides, sides[1:], strict=False)]
        return pairs[0] if len(pairs) == 1 else self._apply("and", pairs, TRUTH, words)

    def _compared(self, sign: str, one: Node, other: Node, words: str) -> Node:
        if sign == "not in":
            return self._apply("not", [self._compared("in", one, other, words)], TRUTH, words)
        if sign == "in" and isinstance(other, Apply) and other.unit == LIST:
            same = [self._compared("==", one, each, words) for each in other.parts]
            return self._apply("or", same, TRUTH, words)
        pair = [self._value(one), self._value(other)]
        if sign == "in":
            return self.part(pair[0], pair[1], words)
        if not any(isinstance(side, Leaf) and side.unit == TEXT for side in pair):
            labels = frozenset[str]().union(*(side.labels for side in pair if isinstance(side, Leaf)))
            pair = [self._quantity(side, labels) for side in pair]
        self._one_unit(pair, words)
        for side, beside in (pair, reversed(pair)):
            if isinstance(side, Constant):
                _check_possible(side, beside, sign, _short(words))
        return self._apply(sign, pair, TRUTH, words)

    def _arithmetic(self, sign: str, one: Node, other: Node, words: str) -> Node:
        if sign in "+-":
            unit = self._one_unit([one, other], words)
        elif sign == "*":
            unit = _product(one.unit, other.unit)
        else:
            unit = "1" if one.unit == other.unit and one.unit else one.unit if other.unit in (None, "1") else None
        return self._apply(sign, [one, other], unit, words)

    def _value(self, node: Node) -> Node:
        if node.unit == TRUTH:
            raise ExpressionError(f"'{_short(node.text)}' is a boolean; expected a number")
        if node.unit == LIST:
            raise ExpressionError(f"'{_short(node.text)}' is not supported here; {self.expected}")
        return node

    def _quantity(self, node: Node, labels: frozenset[str] = frozenset()) -> Node:
        """A text as the quantity that it is; it may stay one of the labels."""
        if not isinstance(node, Constant) or not isinstance(node.value, str):
            return node
        try:
            value, unit = quantity.parse(node.value)
        except ValueError as error:
            if node.value in labels:
                return replace(node, unit=None)
            raise ExpressionError(str(error)) from None
        return Constant(value, unit, node.text)

    def _one_unit(self, parts: Sequence[Node], words: str) -> str | None:
        """The one unit of all parts, None if none is known. ExpressionError if there are two."""
        # A plain number may be one of packets.
        known: dict[str, Node] = {}
        for part in parts:
            if part.unit is not None and part.unit != NOTHING:
                known.setdefault(part.unit.replace("packet", ""), part)
        if len(known) > 1:
            one, *_, other = sorted(known.values(), key=lambda part: isinstance(part, Constant))
            form = quantity.example(one.unit) if isinstance(other, Constant) else "one unit"
            raise ExpressionError(f"'{_short(words)}': {_described(one)}, and {_described(other)}; expected {form}")
        return next((part.unit for part in known.values()), None)

    def _apply(self, name: str, parts: Sequence[Node], unit: str | None, words: str) -> Apply:
        if not parts:
            raise ExpressionError(f"'{_short(words)}' is empty; {self.expected}")
        return Apply(name, tuple(parts), unit, words, self._not_too_deep(1 + max(part.depth for part in parts)))

    def _nested(self, power: int) -> Node:
        self._level = self._not_too_deep(self._level + 1)
        found = self._read(power)
        self._level -= 1
        return found

    def _not_too_deep(self, level: int) -> int:
        if level > _DEEPEST:
            raise ExpressionError(f"'{self._text[:60]}…' is nested too deeply; expected at most {_DEEPEST} levels")
        return level

    def _word(self, ahead: int = 0) -> str:
        """The next word or sign, or one after it; empty for a text or at the end."""
        if self._at + ahead >= len(self._tokens) or self._tokens[self._at + ahead].lastgroup == "text":
            return ""
        return " ".join(self._tokens[self._at + ahead][0].split())

    def _words(self, start: int) -> str:
        """What was read since the token with the number `start`, as messages and tables quote it."""
        return _quoted(" ".join(self._text[self._tokens[start].start() : self._tokens[self._at - 1].end()].split()))

    def _unreadable(self) -> ExpressionError:
        text = _short(" ".join(self._text.split()))
        if self._at >= len(self._tokens):
            return ExpressionError(f"'{text}': unexpected end; {self.expected}")
        token = self._tokens[self._at]
        meant = f"expected {_MEANT[token[0]]}" if token[0] in _MEANT else self.expected
        return ExpressionError(
            f"'{text}': syntax error at '{_short(token[0])}', character {token.start() + 1}; {meant}"
        )


def _check_possible(side: Constant, beside: Node, sign: str, words: str) -> None:
    """ExpressionError for a value that what it is compared with cannot have: `jain() < 60`."""
    value = side.value
    if value is None and sign not in ("==", "!="):
        raise ExpressionError(f"'{words}': expected == None or != None")
    if not isinstance(value, float) or not isinstance(beside, Leaf):
        return
    if beside.unit == TEXT:
        raise ExpressionError(f"'{words}': {beside.text} is a string; expected a quoted string, such as \"{value:g}\"")
    if side.unit is None and value and not beside.bare:
        meant = quantity.with_unit(value, beside.unit)
        raise ExpressionError(
            f"'{words}': {_described(beside)}, and '{value:g}' has no unit; expected for example \"{meant}\""
        )
    low, high = beside.bounds
    if not low <= value <= high:
        bounds = f"is from {low:g} to {high:g}" if isfinite(high) else f"is at least {low:g}"
        meant = f', such as "{value:g}%"' if side.unit is None and high < value <= 100 else ""
        raise ExpressionError(f"'{words}': {beside.text} {bounds}; expected a number in this range{meant}")


def _product(one: str | None, other: str | None) -> str | None:
    if one in (None, "1"):
        return other if other is not None else one
    return one if other in (None, "1") else None


def _described(node: Node) -> str:
    return f"{_short(node.text)} is {quantity.KINDS[node.unit or '']}"


def _quoted(text: str) -> str:
    """With texts in the quotation marks that claims have, where none of them has such a mark inside."""
    return text if '"' in text else text.replace("'", '"')


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
