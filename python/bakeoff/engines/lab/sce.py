"""SCE on a kernel that has it by the module tcp_sce: AccECN carries the marks, and there are no sysctls of SCE.

Linux's `net.ipv4.tcp_ecn`: 0 no ECN; 1 asks for that of RFC 3168 and 2 for none, and both grant no more than that; 3
asks for AccECN, 4 for that of RFC 3168 and 5 for none, and these grant AccECN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bakeoff.engines.lab.versions import Parameter
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run
from bakeoff.scenario.cc_words import parse
from bakeoff.scenario.run import Flow

MODULE: Final = "tcp_sce"
ECHO: Final = "net.ipv4.tcp_sce"
PACING: Final = "net.ipv4.tcp_sce_pacing"
_ECN: Final = "net.ipv4.tcp_ecn"
_OPTION: Final = "net.ipv4.tcp_ecn_option"
# Grants AccECN, and asks for what it asked for before; Linux's own is 2.
_GRANTING: Final[Mapping[str, str]] = {"1": "4", "2": "5"}


def by_module(offered: Mapping[str, Parameter]) -> bool:
    """Whether the kernel that offers these versions has SCE by the module."""
    return any(parameter.module == MODULE for parameter in offered.values())


def _flows(run: Run) -> list[tuple[int, Flow]]:
    return [
        (index, flow)
        for index, flow in enumerate(run.flows)
        if flow.transport == "tcp" and parse(flow.cc).name.endswith("-sce")
    ]


def pacing(run: Run) -> list[Parameter]:
    """The module's parameter for what senders set by `net.ipv4.tcp_sce_pacing`, or flows by `pacing on` and `off`.

    RefusedError if two flows of SCE pace differently: the parameter counts for the whole kernel.
    """
    sysctls = {node.name: node.sysctls for node in run.nodes}
    paced: list[tuple[str, bool]] = []
    for index, flow in _flows(run):
        words = parse(flow.cc).parameters
        own = dict(zip(words[::2], words[1::2], strict=False)).get("pacing", "sysctl")
        if own == "sysctl":
            own = sysctls[flow.from_].get(PACING, "0").strip()
            paced.append((f"nodes: '{flow.from_}' has {PACING} {own}", own == "1"))
        else:
            paced.append((f"flows[{index}].cc: '{flow.cc}' has pacing {own}", own == "on"))
    for note, value in paced:
        if value != paced[0][1]:
            raise RefusedError(
                f"{note}, but {paced[0][0]}"
                f", but the pacing of module {MODULE} applies to the whole kernel; expected one value for all SCE flows"
            )
    return [Parameter(MODULE, "sce_pacing", "1")] if paced and paced[0][1] else []


def on_accecn(run: Run) -> tuple[Run, list[str]]:
    """The run for such a kernel, and what is different from what the scenario asked for.

    A receiver of SCE with `net.ipv4.tcp_sce` 1 is made to grant AccECN with its option; it asks for what it asked for.
    """
    paced = bool(pacing(run))
    receivers = {flow.to for _, flow in _flows(run)}
    notes, nodes = [], []
    for index, node in enumerate(run.nodes):
        sysctls = {key: value for key, value in node.sysctls.items() if key not in (ECHO, PACING)}
        place = f"nodes[{index}].sysctls"
        ecn = sysctls.get(_ECN, "2").strip()
        if ECHO in node.sysctls:
            notes.append(f"{place}: '{ECHO}' is not set: mainline Linux has none, and AccECN carries the marks of SCE")
        if PACING in node.sysctls:
            notes.append(f"{place}: '{PACING}' is not set: {MODULE} has sce_pacing={int(paced)} for the whole kernel")
        if node.name in receivers and node.sysctls.get(ECHO, "0").strip() == "1":
            wanted = {_ECN: _GRANTING.get(ecn, ecn), _OPTION: "2"}
            changed = {key: value for key, value in wanted.items() if sysctls.get(key) != value}
            if ecn != "0" and changed:
                sysctls |= changed
                text = " and ".join(f"'{key}' is {value}" for key, value in changed.items())
                notes.append(f"{place}: {text}: '{node.name}' negotiates AccECN with SCE senders")
        elif node.name in receivers and ecn in ("3", "4", "5"):
            notes.append(f"{place}: '{node.name}' negotiates AccECN; senders receive SCE marks without '{ECHO}'")
        nodes.append(node.model_copy(update={"sysctls": sysctls}))
    return run.model_copy(update={"nodes": nodes}), notes
