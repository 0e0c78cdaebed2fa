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
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product
from typing import Any

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")

COPY = "n"
"""Reserved: the number of the copy in a flow with `count`."""


class ScenarioError(ValueError):
    """Something wrong in a scenario: `place` inside the file and what is wrong there."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}" if place else what)
        self.place = place
        self.what = what


@dataclass(frozen=True, slots=True)
class Choice:
    """One label of an axis, with its value."""

    label: str
    value: Any


Point = Mapping[str, Choice]
"""Axis name -> what was chosen."""


def did_you_mean(word: str, known: list[str]) -> str:
    """`; did you mean 'flows'?` or, without a near word, `; expected one of …`."""
    near = get_close_matches(word, known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; expected one of {', '.join(known)}" if known else ""


def points(vary: object, exclude: object = None) -> list[Point]:
    """The Cartesian product of the axes, in their order (the last moves fastest), without what is excluded.

    Raises ScenarioError for a malformed or empty matrix.
    """
    if vary is None:
        return [{}]
    if not isinstance(vary, dict):
        raise ScenarioError("vary", f"{_show(vary)}; expected a mapping of axis names")
    columns = [_axis(str(name), axis) for name, axis in vary.items()]
    names = [name for column in columns for name in (column[0] if column else ())]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError("vary", f"the axis '{name}' stands twice")
    spanned: list[Point] = [
        {name: choice for part in parts for name, choice in part.items()} for parts in product(*columns)
    ]
    rules = _rules(exclude, spanned)
    left = [point for point in spanned if not any(_fits(point, rule) for rule in rules)]
    if not left:
        raise ScenarioError("exclude", "excludes every point of the matrix; expected at least one run")
    return left


def _axis(name: str, axis: object) -> list[dict[str, Choice]]:
    place = f"vary.{name}"
    if not isinstance(axis, (list, dict)):
        raise ScenarioError(place, f"{_show(axis)}; expected a list or a mapping label -> value")
    if not axis:
        raise ScenarioError(place, "the matrix is empty; expected at least one value")
    if isinstance(axis, dict):
        rows = [{name: Choice(str(label), value)} for label, value in axis.items()]
    elif all(isinstance(row, dict) for row in axis):
        rows = [{str(key): Choice(_text(value), value) for key, value in row.items()} for row in axis]
        for index, row in enumerate(rows):
            if row.keys() != rows[0].keys() or not row:
                raise ScenarioError(
                    f"{place}[{index}]",
                    f"has the keys {_show(sorted(row))}; expected those of the first entry, {_show(sorted(rows[0]))}",
                )
    elif any(isinstance(row, (list, dict)) for row in axis):
        raise ScenarioError(place, "mixes values of unlike form; expected plain values, or mappings with the same keys")
    else:
        rows = [{name: Choice(_text(value), value)} for value in axis]
    for key in rows[0]:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", key) or key == COPY:
            raise ScenarioError(
                place, f"'{key}' cannot name an axis; expected letters, digits and underscores, not '{COPY}'"
            )
    labels = [tuple(choice.label for choice in row.values()) for row in rows]
    for entry in labels:
        if labels.count(entry) > 1:
            raise ScenarioError(place, f"the value {_show('-'.join(entry))} stands twice")
    return rows


def _rules(exclude: object, spanned: list[Point]) -> list[dict[str, list[str]]]:
    if exclude is None:
        return []
    if not isinstance(exclude, list) or not all(isinstance(rule, dict) and rule for rule in exclude):
        raise ScenarioError("exclude", f"{_show(exclude)}; expected a list of mappings axis -> label or labels")
    rules = []
    for index, rule in enumerate(exclude):
        for axis, wanted in rule.items():
            place = f"exclude[{index}].{axis}"
            if axis not in spanned[0]:
                raise ScenarioError(place, f"no such axis{did_you_mean(str(axis), list(spanned[0]))}")
            labels = list(dict.fromkeys(label_of(point, axis) for point in spanned))
            for label in wanted if isinstance(wanted, list) else [wanted]:
                if _text(label) not in labels:
                    raise ScenarioError(place, f"no label '{_text(label)}'{did_you_mean(_text(label), labels)}")
        rules.append({k: [_text(v) for v in (want if isinstance(want, list) else [want])] for k, want in rule.items()})
    return rules


def _fits(point: Point, rule: dict[str, list[str]]) -> bool:
    return all(label_of(point, axis) in labels for axis, labels in rule.items())


def label_of(point: Point, axis: str) -> str:
    """The label of `axis` at this point, with its own placeholders substituted."""
    return interpolate(point[axis].label, point, f"vary.{axis}", labels=True)


def interpolate(text: str, point: Point, place: str, *, labels: bool = False, inside: tuple[str, ...] = ()) -> str:
    """`text` with placeholders replaced; `labels` chooses what `{axis}` means. `{{` and `}}` are plain braces."""

    def replacement(found: re.Match[str]) -> str:
        name: str | None = found[1]
        if name is None:
            return found[0][0]
        if name == COPY:
            return found[0]
        value = _lookup(name, point, place, labels=labels, inside=inside)
        if isinstance(value, dict) and name in point:
            value = _lookup(f"{name}.label", point, place, labels=True, inside=inside)
        if isinstance(value, (dict, list)):
            raise ScenarioError(
                place, f"the placeholder '{found[0]}' stands for {_show(value)}; expected a plain value here"
            )
        return _text(value)

    return PLACEHOLDER.sub(replacement, text)


def substitute(data: Any, point: Point, place: str = "", inside: tuple[str, ...] = ()) -> Any:  # noqa: ANN401
    """`data` with the placeholders of every string, also of keys, substituted by values."""
    match data:
        case str():
            whole = PLACEHOLDER.fullmatch(data)
            if whole is None or whole[1] in (None, COPY):
                return interpolate(data, point, place, inside=inside)
            return _lookup(whole[1], point, place, labels=False, inside=inside)
        case dict():
            return {
                interpolate(str(key), point, place, inside=inside): substitute(
                    value, point, f"{place}.{key}" if place else str(key), inside
                )
                for key, value in data.items()
            }
        case list():
            return [substitute(value, point, f"{place}[{index}]", inside) for index, value in enumerate(data)]
    return data


def _lookup(name: str, point: Point, place: str, *, labels: bool, inside: tuple[str, ...]) -> Any:  # noqa: ANN401
    axis, _, field = name.partition(".")
    if axis not in point:
        raise ScenarioError(place, f"unknown placeholder '{{{name}}}'{did_you_mean(axis, list(point))}")
    if name in inside:
        raise ScenarioError(place, f"the placeholder '{{{name}}}' refers to itself")
    inside = (*inside, name)
    choice = point[axis]
    fields = choice.value if isinstance(choice.value, dict) else {}
    if field and field != "label":
        if field not in fields:
            raise ScenarioError(
                place, f"unknown placeholder '{{{name}}}'{did_you_mean(field, ['label', *map(str, fields)])}"
            )
        return substitute(fields[field], point, place, inside)
    if field or labels:
        return interpolate(choice.label, point, place, labels=True, inside=inside)
    return substitute(choice.value, point, place, inside)


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
