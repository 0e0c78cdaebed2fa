"""Conditions on a sender's state: `cc.mode == probe_bw and cc.phase == up`, `time >= 4s`, `cc.in_flight > 100`.

Comparisons of traced variables with numbers, quantities, or the words of `cc_variables`, all of which must hold.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from bakeoff.scenario.cc_variables import UNITS, WORDS, known
from bakeoff.scenario.error import did_you_mean
from bakeoff.scenario.units import parse_rate, parse_time

Comparison = Literal["eq", "ne", "lt", "le", "gt", "ge"]

SIGNS: Final[dict[str, Comparison]] = {"==": "eq", "!=": "ne", "<=": "le", ">=": "ge", "<": "lt", ">": "gt"}
COMPARE: Final[dict[Comparison, Callable[[Any, float], Any]]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
TIME: Final = "time"
FORM: Final = "comparisons such as 'cc.mode == probe_bw and cc.in_flight > 100'"
LONGEST: Final = 500
"""Characters."""

_TERM: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.+-]*) *(==|!=|<=|>=|<|>) *(\S(?:.*\S)?)")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class Term(NamedTuple):
    """A comparison of a variable (`cc.cwnd`, or `time` in seconds) with a number in its unit."""

    variable: str
    is_: Comparison
    value: float


def parse(text: str, *, any_name: bool = False) -> list[Term]:
    """The terms of a condition, whose variables some control of the simulator has, or which may be `any_name`.

    ValueError says what is wrong and what was expected.
    """
    if len(text) > LONGEST:
        raise ValueError(f"a condition of {len(text)} characters; expected at most {LONGEST}")
    return [_term(part.strip(), any_name=any_name) for part in re.split(r"\band\b", text)]


def _term(text: str, *, any_name: bool) -> Term:
    match = _TERM.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}'; expected {FORM}")
    variable, sign, value = match.groups()
    name = variable.removeprefix("cc.")
    if variable != TIME and (name == variable or not (any_name or name in known())):
        names = [TIME, *(f"cc.{each}" for each in known())]
        raise ValueError(f"'{variable}': unknown variable{did_you_mean(variable, names)}")
    return Term(variable, SIGNS[sign], _value(value, name, variable))


def _value(text: str, name: str, variable: str) -> float:
    if _NUMBER.fullmatch(text) and variable != TIME:
        return float(text)
    words = WORDS.get(name, ()) if variable != TIME else ()
    if text in words:
        return float(words.index(text))
    if variable == TIME or UNITS.get(name) == "s":
        return parse_time(text)
    if UNITS.get(name) == "bit/s":
        return float(parse_rate(text))
    raise ValueError(f"'{text}': no value of {variable}{did_you_mean(text, words) if words else '; expected a number'}")
