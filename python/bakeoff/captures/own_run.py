"""ECN feedback of flows whose SYN/ACK a capture lacks: from the run in whose folder the capture is, or unknown.

One direction of a connection does not decide it: SCE's ACKs have the bits of AccECN's ACE field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bakeoff.errors import BakeoffError
from bakeoff.scenario.cc_words import parse

if TYPE_CHECKING:
    from pathlib import Path

    from bakeoff.results import Result

_FIRST_PORT: Final = 5201
"""Of the first flow, at the end that receives (crates/sim/src/packet/frame.rs)."""
UNKNOWN: Final = "unknown"
"""`ecn.chosen_by` of a flow of which one direction alone is there, without SYN/ACK and run."""


def settled(path: Path, told: bytes, reread: Callable[[str], bytes]) -> bytes:
    """The report with the modes of the run's counters; `reread` gives the report in another mode.

    A flow that no run tells of, and of which the capture has one direction, is marked as `UNKNOWN`.
    """
    flows = _flows(told)
    open_ones = {number: flow for number, flow in enumerate(flows) if _is_open(flow)}
    if not open_ones:
        return told
    modes = _modes(path, open_ones)
    reports = {mode: _flows(reread(mode)) for mode in set(modes.values())}
    for number, flow in open_ones.items():
        if number in modes:
            new = reports[modes[number]][number]
            flows[number] = new | {"ecn": new["ecn"] | {"chosen_by": "run"}}
        elif not all(flow[way].get("packets") for way in ("up", "down")):
            flows[number] = flow | {"ecn": flow["ecn"] | {"chosen_by": UNKNOWN}}
    parts = msgspec.json.decode(told, type=dict[str, msgspec.Raw])
    parts["flows"] = msgspec.Raw(msgspec.json.encode(flows))
    return msgspec.json.encode(parts)


def _flows(told: bytes) -> list[dict[str, Any]]:
    parts = msgspec.json.decode(told, type=dict[str, msgspec.Raw])
    return msgspec.json.decode(parts["flows"], type=list[dict[str, Any]])


def _is_open(flow: dict[str, Any]) -> bool:
    ecn = flow["ecn"]
    return ecn["chosen_by"] == "packets" and ecn["accepted"] is None and ecn["mode"] != "none"


def _modes(path: Path, flows: dict[int, dict[str, Any]]) -> dict[int, str]:
    from bakeoff import results
    from bakeoff.results import layout

    if not (path.parent / layout.RUN).is_file():
        return {}
    try:
        result = results.read(path.parent)
        return dict(_of_run(result, flows)) if result.ok else {}
    except BakeoffError:
        return {}  # a folder of somebody else's, with files of these names


def _of_run(result: Result, flows: dict[int, dict[str, Any]]) -> Iterator[tuple[int, str]]:
    names = [flow.name for flow in result.run.flows]
    sce = any(parse(flow.cc or "").name.endswith("-sce") for flow in result.run.flows)
    told = {"off": "none", "accecn": "accecn", "rfc3168": "sce" if sce else "rfc3168"}
    for number, flow in flows.items():
        ports = [flow[end]["port"] - _FIRST_PORT for end in ("server", "client")]
        index = next((one for one in ports if 0 <= one < len(names)), None)
        mode = told.get(str(result.counters.flow(names[index]).ecn)) if index is not None else None
        if mode is not None:
            yield number, mode
