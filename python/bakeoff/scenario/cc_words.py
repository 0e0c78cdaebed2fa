"""The words of a flow's `cc`: `NAME[@VERSION] [PARAMETER VALUE]…`, or a class in a Python file.

The simulator's reader of the same words is `crates/document/src/cc.rs`; it alone knows the names.
"""

from typing import NamedTuple

from bakeoff.scenario import python_cc


class Cc(NamedTuple):
    """`prague@2020-08 rtt_target 25ms`, taken apart."""

    name: str
    """`prague`, as a kernel knows it; of `./mycc.py:MyCC` the class, `MyCC`."""
    version: str
    """`2020-08`; empty if none is written."""
    parameters: tuple[str, ...]
    """`rtt_target`, `25ms`."""

    @property
    def versioned(self) -> str:
        """`prague@2020-08`"""
        return f"{self.name}@{self.version}" if self.version else self.name


def parse(cc: str) -> Cc:
    """The parts of `cc`, whose name is empty if there are no words."""
    if python_cc.is_python(cc) or python_cc.names_file(cc):
        module = python_cc.split(cc)
        return Cc(python_cc.short(cc), "", module.words if module else ())
    first, *parameters = cc.split() or [""]
    name, _, version = first.partition("@")
    return Cc(name, version, tuple(parameters))


def is_met(asked: str, ran: str) -> bool:
    """Whether a flow that asked for `asked` got it in `ran`; a name without a version asks for any of them."""
    if python_cc.is_python(asked) or python_cc.is_python(ran):
        return asked == ran
    one, other = parse(asked), parse(ran)
    return one.name == other.name and one.version in ("", other.version)
