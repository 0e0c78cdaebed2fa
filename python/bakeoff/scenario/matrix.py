"""The matrix: axes of variation, the points they span, and `{axis}` placeholders.

Four ways to write an axis:

    rtt: [10ms, 20ms]                       # a list: the label is the text
    qdisc: {fq1: fq_codel flows 1}          # label -> value
    rate: {10Mbit: {limit: 200}}            # label -> fields, used as {rate.limit}; {rate} is the label
    rtts: [{rtt1: 10ms, rtt2: 20ms}, ...]   # linked axes: rtt1 and rtt2 are axes that move together

`{axis}` is the value (in run names, titles and labels: the label); `{axis.label}` is always the label. A string that is
nothing but a placeholder becomes the value itself, so that numbers and mappings can be substituted whole.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final

from bakeoff.scenario import bounds, python_cc
from bakeoff.scenario.error import DocumentError, did_you_mean, quoted

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")

COPY: Final = "n"
"""Reserved: the number of the copy in a flow with `count`."""

_COMMAND_LINE = re.compile(r"programs\[\d+\]\.run")
_LONGEST: Final = 65_536
"""Characters of a text whose placeholders are filled in."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One label of an axis, with its value."""

    label: str
    value: Any


Point = Mapping[str, Choice]
"""Axis name -> what was chosen."""


def points(vary: object, exclude: object = None, *, yes: bool = False) -> list[Point]:
    """The Cartesian product of the axes, in their order (the last moves fastest), without what is excluded.

    Raises DocumentError for a malformed or empty matrix, and, unless `yes`, for one of very many runs.
    """
    if vary is None:
        return [{}]
    if not isinstance(vary, dict):
        raise DocumentError("vary", f"{quoted(vary)}; expected a mapping of axis names")
    columns = [_axis(str(name), axis) for name, axis in vary.items()]
    names = [name for column in columns for name in (column[0] if column else ())]
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise DocumentError("vary", f"duplicate axis '{twice}'")
    many = bounds.too_many_runs(prod(map(len, columns)))
    if many is not None and not yes:
        raise DocumentError("vary", many)
    spanned: list[Point] = [
        {name: choice for part in parts for name, choice in part.items()} for parts in product(*columns)
    ]
    rules = _rules(exclude, spanned)
    left = [point for point in spanned if not any(_fits(point, rule) for rule in rules)]
    if not left:
        raise DocumentError("exclude", "excludes every point of the matrix; expected at least one run")
    return left


def _axis(name: str, axis: object) -> list[dict[str, Choice]]:
    place = f"vary.{name}"
    if not isinstance(axis, (list, dict)):
        raise DocumentError(
            place, f"{quoted(axis)}; expected a list or a mapping label -> value, such as [{quoted(axis)}]"
        )
    if not axis:
        raise DocumentError(place, "the matrix is empty; expected at least one value")
    if isinstance(axis, dict):
        rows = [{name: Choice(str(label), value)} for label, value in axis.items()]
    elif all(isinstance(row, dict) for row in axis):
        rows = [{str(key): Choice(_label(value), value) for key, value in row.items()} for row in axis]
        for index, row in enumerate(rows):
            if row.keys() != rows[0].keys() or not row:
                raise DocumentError(
                    f"{place}[{index}]",
                    f"has the keys {quoted(sorted(row))}; expected those of the first entry, {quoted(sorted(rows[0]))}",
                )
    elif any(isinstance(row, (list, dict)) for row in axis):
        raise DocumentError(place, "mixed kinds of values; expected plain values, or mappings with the same keys")
    else:
        labels_of = [_label(value) for value in axis]
        # The class alone, unless another value is called so.
        names = [one if labels_of.count(one) == 1 else _text(value) for one, value in zip(labels_of, axis, strict=True)]
        rows = [{name: Choice(label, value)} for label, value in zip(names, axis, strict=True)]
    for key in rows[0]:
        _check_name(key, place)
    labels = Counter(tuple(choice.label for choice in row.values()) for row in rows)
    for entry, times in labels.items():
        if times > 1:
            raise DocumentError(place, f"duplicate value {quoted('-'.join(entry))}")
    return rows


def _label(value: object) -> str:
    """As `_text`, but of a class in a file of Python without the path."""
    return python_cc.label(value) if isinstance(value, str) else _text(value)


def _check_name(axis: str, place: str) -> None:
    if axis == COPY:
        raise DocumentError(
            place, f"'{COPY}': reserved name; {{{COPY}}} numbers the copies of a flow; expected another name"
        )
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", axis):
        raise DocumentError(
            place,
            f"'{axis}': invalid name of an axis; expected a letter, then letters, digits, '_' or '-'",
        )


def _rules(exclude: object, spanned: list[Point]) -> list[dict[str, list[str]]]:
    if exclude is None:
        return []
    if not isinstance(exclude, list) or not all(isinstance(rule, dict) and rule for rule in exclude):
        raise DocumentError("exclude", f"{quoted(exclude)}; expected a list of mappings axis -> label or labels")
    rules = []
    for index, rule in enumerate(exclude):
        for axis, wanted in rule.items():
            place = f"exclude[{index}].{axis}"
            if axis not in spanned[0]:
                raise DocumentError(place, f"no such axis{did_you_mean(str(axis), list(spanned[0]))}")
            labels = list(dict.fromkeys(label_of(point, axis) for point in spanned))
            for label in wanted if isinstance(wanted, list) else [wanted]:
                if not {_text(label), _label(label)} & set(labels):
                    raise DocumentError(place, f"no label '{_text(label)}'{did_you_mean(_text(label), labels)}")
        several = {axis: wanted if isinstance(wanted, list) else [wanted] for axis, wanted in rule.items()}
        rules.append({axis: [form(v) for v in wanted for form in (_text, _label)] for axis, wanted in several.items()})
    return rules


def _fits(point: Point, rule: dict[str, list[str]]) -> bool:
    return all(label_of(point, axis) in labels for axis, labels in rule.items())


def label_of(point: Point, axis: str) -> str:
    """The label of `axis` at this point, with its own placeholders substituted."""
    return interpolate(point[axis].label, point, f"vary.{axis}")


def interpolate(text: str, point: Point, place: str) -> str:
    """`text` with placeholders replaced by labels. `{{` and `}}` are plain braces."""
    return _Filling(point).text(text, place, labels=True)


def substitute(data: Any, point: Point) -> Any:  # noqa: ANN401 (plain data)
    """`data` with the placeholders of every string, also of keys, substituted by values.

    A command line of `programs` keeps the placeholders that name no axis, and its double braces: addresses are filled
    in when the network is made. Parts may be shared: what a placeholder stands for is made once.
    """
    return _Filling(point).data(data, "")


class _Filling:
    """Fills placeholders in at one point; `inside` are those whose own value is being made."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.found: dict[tuple[str, bool], Any] = {}

    def text(self, text: str, place: str, *, labels: bool, inside: tuple[str, ...] = ()) -> str:
        """`labels` chooses what `{axis}` means."""
        if "{" not in text and "}" not in text:
            return text
        later = _COMMAND_LINE.fullmatch(place) is not None and not inside

        def replacement(found: re.Match[str]) -> str:
            name: str | None = found[1]
            if later and (name is None or name.partition(".")[0] not in self.point):
                return found[0]
            if name is None:
                return found[0][0]
            if name == COPY:
                return found[0]
            value = self.lookup(name, place, labels=labels, inside=inside)
            if isinstance(value, dict) and name in self.point:
                value = self.lookup(f"{name}.label", place, labels=True, inside=inside)
            if isinstance(value, (dict, list)):
                raise DocumentError(
                    place, f"the value of placeholder '{found[0]}' is {quoted(value)}; expected a plain value here"
                )
            return _text(value)

        filled = PLACEHOLDER.sub(replacement, text)
        if len(filled) > max(_LONGEST, len(text)):
            raise DocumentError(place, f"is {len(filled):,} characters with its placeholders filled in")
        return filled

    def data(self, data: Any, place: str, inside: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 (plain data)
        match data:
            case str():
                whole = PLACEHOLDER.fullmatch(data) if "{" in data else None
                if whole is None or whole[1] in (None, COPY) or _COMMAND_LINE.fullmatch(place):
                    return self.text(data, place, labels=False, inside=inside)
                return self.lookup(whole[1], place, labels=False, inside=inside)
            case dict():
                return {
                    self.text(str(key), place, labels=False, inside=inside): self.data(
                        value, f"{place}.{key}" if place else str(key), inside
                    )
                    for key, value in data.items()
                }
            case list():
                return [self.data(value, f"{place}[{index}]", inside) for index, value in enumerate(data)]
        return data

    def lookup(self, name: str, place: str, *, labels: bool, inside: tuple[str, ...]) -> Any:  # noqa: ANN401
        """What `{name}` stands for."""
        if name in inside:
            raise DocumentError(place, f"the placeholder '{{{name}}}' refers to itself")
        key = (name, labels)
        if key not in self.found:
            self.found[key] = self._made(name, place, labels=labels, inside=(*inside, name))
        return self.found[key]

    def _made(self, name: str, place: str, *, labels: bool, inside: tuple[str, ...]) -> Any:  # noqa: ANN401
        axis, _, field = name.partition(".")
        if axis not in self.point:
            raise DocumentError(place, f"unknown placeholder '{{{name}}}'{_axes(axis, list(self.point))}")
        choice = self.point[axis]
        fields = choice.value if isinstance(choice.value, dict) else {}
        if field and field != "label":
            if field not in fields:
                raise DocumentError(
                    place, f"unknown placeholder '{{{name}}}'{did_you_mean(field, ['label', *map(str, fields)])}"
                )
            return self.data(fields[field], place, inside)
        if field or labels:
            return self.text(choice.label, place, labels=True, inside=inside)
        return self.data(choice.value, place, inside)


def _axes(word: str, axes: list[str]) -> str:
    if axes:
        return did_you_mean(word, axes)
    return f"; the scenario has no 'vary'; expected '{{{{{word}}}}}' for literal braces"


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
