"""What pydantic found wrong in a scenario, said by its place in the file and with what was expected there."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from bakeoff.scenario.error import DocumentError, did_you_mean, quoted, unquoted

Step = str | int
Found = Mapping[str, Any]
"""One error as pydantic lists it: type, loc, msg, input, ctx."""


def explain(
    error: ValidationError, document: Mapping[str, Any], scheduled: Mapping[int, str] | None = None
) -> DocumentError:
    """The first mistake in `document`, and how many there are besides.

    `scheduled` has the places of those entries of `changes` that nobody wrote, because they stand for a schedule.
    """
    found = [(_steps(each, document), each) for each in error.errors()]
    first = found[0][0]
    places = list(dict.fromkeys(tuple(steps) for steps, _ in found))
    # What may be one thing or another is wrong once for each: of these the one that went furthest was meant.
    alternatives = [steps for steps in places if steps[: len(first)] == tuple(first)]
    chosen = max(alternatives, key=len)
    what = _what([each for steps, each in found if tuple(steps) == chosen], chosen)
    more = len(places) - len(alternatives)
    tail = f" (and {more} more mistake{'s' * (more > 1)})" if more else ""
    return DocumentError(_place(chosen, scheduled or {}), what + tail)


def _steps(error: Found, document: Mapping[str, Any]) -> list[Step]:
    """The way to the mistake through what was written, without pydantic's own steps."""
    here: Any = document
    steps: list[Step] = []
    for number, step in enumerate(error["loc"]):
        inside = isinstance(here, dict) and step in here
        if inside or (isinstance(here, list) and isinstance(step, int) and step < len(here)):
            here = here[step]
            steps.append(step)
        elif error["type"] == "missing" and number == len(error["loc"]) - 1:
            steps.append(step)
    return steps


def _place(steps: Sequence[Step], scheduled: Mapping[int, str]) -> str:
    match steps:
        case ["changes", int(index), *_] if index in scheduled:
            return scheduled[index]
    place = ""
    for step in steps:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
    return place


def _what(errors: Sequence[Found], steps: Sequence[Step]) -> str:
    """The value and what is expected, by any of the ways in which the one place may be read."""
    first = errors[0]
    placeholder = next((text for each in errors if (text := unquoted(each["input"])) is not None), None)
    if placeholder is not None:
        return placeholder
    if first["type"] == "extra_forbidden":
        return f"unknown key '{first['loc'][-1]}'"
    if first["type"] == "missing":
        keys = [step for step in steps if isinstance(step, str)]
        example = _EXAMPLES.get(".".join(keys[-2:]), _EXAMPLES.get(keys[-1]))
        return "is missing" if example is None else f"is missing; expected for example '{keys[-1]}: {example}'"
    expected = list(dict.fromkeys(_expected(each) for each in errors if each["type"] != "value_error"))
    reasons = [str(each["ctx"]["error"]) for each in errors if each["type"] == "value_error"]
    if reasons:
        return " or ".join([reasons[0], *expected])
    literals = [word for each in errors if each["type"] == "literal_error" for word in _literals(each)]
    value = first["input"]
    if literals and isinstance(value, str) and "did you mean" in did_you_mean(value, literals):
        return quoted(value) + did_you_mean(value, literals)
    key = next((step for step in reversed(steps) if isinstance(step, str)), "")
    example = f" such as {_LISTS[key]}" if "a list" in expected and key in _LISTS else ""
    return f"{quoted(value)}; expected {' or '.join(expected)}{example}"


def _expected(error: Found) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BOUNDS:
        name, bound = _BOUNDS[kind]
        entries = " entry" if context[name] == 1 else " entries"
        return bound.format(context[name]) + (entries if kind.startswith("too_") else "")
    if kind == "literal_error":
        literals = _literals(error)
        return f"'{literals[0]}'" if len(literals) == 1 else f"one of {', '.join(literals)}"
    if kind in ("string_pattern_mismatch", "string_too_short"):
        keys = [step for step in error["loc"] if isinstance(step, str) and step != "[key]"]
        form = f"a form as {context['pattern']}" if "pattern" in context else "text that is not empty"
        return _FORMS.get(".".join(keys[-2:]), _FORMS.get(keys[-1], form))
    return _KINDS.get(kind, str(error["msg"]).replace("Input should be ", ""))


def _literals(error: Found) -> list[str]:
    return re.findall(r"'([^']*)'", error["ctx"]["expected"])


_KINDS: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
_BOUNDS: Final = {
    "too_short": ("min_length", "at least {}"),
    "too_long": ("max_length", "at most {}"),
    "greater_than": ("gt", "more than {:g}"),
    "greater_than_equal": ("ge", "at least {:g}"),
    "less_than_equal": ("le", "at most {}"),
}
_LISTS: Final = {
    "captures": "['mid>srv']",
    "changes": "[{at: 10s, rate: 5mbit}]",
    "flows": "[{name: a, cc: cubic}]",
    "links": "[{ends: [mid, srv], delay: 5ms}]",
    "path": "[cli, mid, srv]",
    "probes": "[{name: ping, type: icmp, every: 50ms}]",
}
"""By the key whose value is one."""
_NAME: Final = "a name without spaces, slashes, '<' or '>'"
_FORMS: Final = {
    "name": _NAME,
    "scenario": _NAME,
    "suite": _NAME,
    "path": f"{_NAME} for each node",
    "nodes": _NAME,
    "ends": f"{_NAME} for each node",
    "steady_state.ends": "'at end', '2s before end', '1s before last sample' or 'at 58s'",
    "interface": "an interface such as 'mid>srv'",
    "device": "the name of a device such as 'enp1s0'",
    "captures": "an interface such as 'mid>srv'",
    "id": "hexadecimal digits",
    "parent": "hexadecimal digits",
}
_EXAMPLES: Final = {
    "access": "[100us, 900us]",
    "at": "mid",
    "because": "the spread of five repetitions",
    "buffer": "30s",
    "burst": "100kB",
    "by": "flow",
    "cause.kind": "open",
    "cause.says": "not known yet",
    "changes.at": "10s",
    "claims": "[{id: fair, says: both flows get the same, where: {section: '4.2'}, needs: a modem}]",
    "count": "100",
    "document": "{name: l4s-tests, title: Tests of L4S}",
    "duration": "60s",
    "ends": "[cli, mid]",
    "every": "50ms",
    "flows": "[{name: a, cc: cubic}]",
    "from": "cli",
    "id": '"1"',
    "kind": "router",
    "mean_gap": "100ms",
    "modem": "cli",
    "name": "a",
    "network": "{path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 50mbit, qdisc: fq_codel}}",
    "node": "mid",
    "of": "goodput(a)",
    "paths": "[{rate: 10mbit, delay: 5ms}, {rate: 20mbit}]",
    "peer": "srv",
    "published": "46.2 Mbit/s",
    "qdisc": "fq_codel",
    "rate": "50mbit",
    "rates": "[1mbit, 3mbit]",
    "run": "l4s-tests/s6-rfc3168/ns-cubic*",
    "says": "both flows get the same",
    "section": '"4.2"',
    "segment": "4s",
    "size": "160B",
    "size_p5": "10kB",
    "size_p95": "1MB",
    "title": "Tests of L4S",
    "tolerance": "10%",
    "tunnels.kind": "wireguard",
    "where": '{section: "4.2"}',
    "window": "40s",
    "words": "rate 10mbit ceil 10mbit",
}
"""Of every key that has to be there; `at` and `kind` mean different things in different places."""
