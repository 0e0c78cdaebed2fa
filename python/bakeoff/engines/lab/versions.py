"""Versions of algorithms: `cubic@5.4` is the simulator's; a real kernel has the one it was built with.

Of the congestion controls that bakeoff's own kernel modules add, a parameter of the module chooses the version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from bakeoff import tc
from bakeoff.engines.lab import module_qdiscs
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run
from bakeoff.scenario.cc_words import parse
from bakeoff.scenario.run import Qdisc


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel module, and its value."""

    module: str
    name: str
    value: str


OFFERED: Final[Mapping[str, Parameter]] = {
    "prague@2020-08": Parameter("tcp_prague", "prague_form", "1"),
    "prague@2020-04": Parameter("tcp_prague", "prague_form", "2"),
    "prague@2021-06": Parameter("tcp_prague", "prague_form", "3"),
    "prague@2019-11": Parameter("tcp_prague", "prague_form", "4"),
    "prague@2019-09": Parameter("tcp_prague", "prague_form", "5"),
    "reno-sce@2019": Parameter("tcp_sce", "reno_form", "1"),
    "dctcp-sce@2019": Parameter("tcp_sce", "dctcp_form", "1"),
}
"""What the modules of this repository make of a parameter (kernel/modules)."""


def offered(modules: Mapping[str, bytes]) -> dict[str, Parameter]:
    """The versions that modules with these contents have, by name: the description of a parameter names its values."""

    def has(parameter: Parameter) -> bool:
        described = rb"\0parm=" + re.escape(parameter.name.encode()) + rb":[^\0]*\b" + parameter.value.encode() + b":"
        return re.search(described, modules.get(parameter.module, b"")) is not None

    return {version: parameter for version, parameter in OFFERED.items() if has(parameter)}


_OTHERS: Final = re.compile(r"'(\S+@\S+?)(?: [^']*)?' asked for: the kernel's own '|\b(inner_hash: false) asked for")


def lacking(noted: str) -> str | None:
    """`the kernel has no prague@2020-04`: what runs in the place of something else, by the notes in this text.

    None if a kernel runs what was asked for.
    """
    names = sorted({version or option for version, option in _OTHERS.findall(noted)})
    return f"the kernel has no {', '.join(names)}" if names else None


def named(run: Run) -> list[str]:
    """The versions of congestion controls and queues that a run names; what only a module has, is no version."""
    found: set[str] = set()

    def cc(text: str) -> str:
        asked = parse(text)
        found.update([asked.versioned] if asked.version else [])
        return text

    def line(words: str) -> str:
        found.update([tc.kind(words)] if module_qdiscs.is_version(words) else [])
        return words

    renamed(run, cc, line)
    return sorted(found)


def today(run: Run) -> Run:
    """The run without versions, which is with those of today: `prague@2020-08` becomes `prague`."""

    def cc(text: str) -> str:
        asked = parse(text)
        return " ".join((asked.name, *asked.parameters)) if asked.version else text

    def line(words: str) -> str:
        return " ".join((tc.kernel_kind(words), *words.split()[1:])) if module_qdiscs.is_version(words) else words

    return renamed(run, cc, line)


def given(run: Run, offered: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The versions that flows of the run ask for and a kernel with these modules has, with what it takes.

    RefusedError if two flows ask for different versions of one of them: parameters count for the whole kernel.
    """
    chosen: dict[str, tuple[int, Parameter | None]] = {}
    names = {parse(version).name for version in offered}
    for index, flow in enumerate(run.flows):
        asked = parse(flow.cc)
        if flow.transport != "tcp" or asked.name not in names:
            continue
        parameter = offered.get(asked.versioned)
        first, before = chosen.setdefault(asked.name, (index, parameter))
        if before != parameter:
            raise RefusedError(
                f"flows[{index}].cc: '{flow.cc}': flows[{first}] is '{run.flows[first].cc}', but a kernel has one "
                f"version of '{asked.name}'; expected the same version, or --engine sim"
            )
    taken = {parameter for _, parameter in chosen.values()}
    return {version: parameter for version, parameter in offered.items() if parameter in taken}


def plain(run: Run, qdiscs: Collection[str] = ()) -> Run:
    """The run with the names of a kernel that has these `qdiscs` by our modules: `dualpi2@2020` becomes `dualpi2`,
    `prague@2020-08` becomes `prague`."""
    return renamed(run, lambda cc: parse(cc).name, lambda words: module_qdiscs.line(words, qdiscs))


def renamed(run: Run, cc: Callable[[str], str], line: Callable[[str], str]) -> Run:
    """The run with what `cc` makes of each flow's congestion control, and `line` of each queue's words."""

    def tree(qdisc: Qdisc | None) -> Qdisc | None:
        return None if qdisc is None else renamed_tree(qdisc, line)

    interfaces = [
        end.model_copy(update={"egress": tree(end.egress), "ingress": tree(end.ingress)}) for end in run.interfaces
    ]
    timed = []
    for change in run.changes:
        action = change.action
        if action.kind == "qdisc-replace":
            action = action.model_copy(update={"qdisc": tree(action.qdisc)})
        elif action.kind == "qdisc-change":
            action = action.model_copy(update={"qdisc": line(action.qdisc)})
        timed.append(change.model_copy(update={"action": action}))
    flows = [flow.model_copy(update={"cc": cc(flow.cc)}) for flow in run.flows]
    return run.model_copy(update={"interfaces": interfaces, "flows": flows, "changes": timed})


def renamed_tree(qdisc: Qdisc, line: Callable[[str], str]) -> Qdisc:
    """The queue, and those below it, with what `line` makes of each one's words."""

    def below(child: Qdisc | None) -> Qdisc | None:
        return None if child is None else renamed_tree(child, line)

    classes = [cls.model_copy(update={"child": below(cls.child)}) for cls in qdisc.classes]
    return qdisc.model_copy(update={"qdisc": line(qdisc.qdisc), "classes": classes, "child": below(qdisc.child)})


def notes(run: Run, given: Mapping[str, Parameter], qdiscs: Collection[str] = ()) -> list[str]:
    """One note for each algorithm whose version is the simulator's: a kernel has the one it was built with.

    The versions `given` are in effect there as well, and the `qdiscs` of our modules.
    """
    notes = [
        f"flows[{index}].cc: '{flow.cc}' asked for: the kernel's own '{parse(flow.cc).name}' is in effect"
        for index, flow in enumerate(run.flows)
        if parse(flow.cc).version and flow.transport == "tcp" and parse(flow.cc).versioned not in given
    ]
    kinds: dict[str, str] = {}

    def look(qdisc: Qdisc | None, place: str) -> None:
        if qdisc is None:
            return
        kind = tc.kind(qdisc.qdisc)
        if module_qdiscs.kernel_kind(kind, qdiscs) not in (kind, *qdiscs):
            kinds.setdefault(kind, place)
        for index, cls in enumerate(qdisc.classes):
            look(cls.child, f"{place}.classes[{index}].child")
        look(qdisc.child, f"{place}.child")

    for index, end in enumerate(run.interfaces):
        look(end.egress, f"interfaces[{index}].egress")
        look(end.ingress, f"interfaces[{index}].ingress")
    for index, change in enumerate(run.changes):
        if change.action.kind == "qdisc-replace":
            look(change.action.qdisc, f"changes[{index}].action.qdisc")
        elif change.action.kind == "qdisc-change":
            look(Qdisc(qdisc=change.action.qdisc), f"changes[{index}].action.qdisc")
    return notes + [
        f"{place}: '{kind}' asked for: the kernel's own '{tc.kernel_kind(kind)}' is in effect"
        for kind, place in kinds.items()
    ]
