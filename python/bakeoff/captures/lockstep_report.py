"""A comparison of packets as text, JSON and picture."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bakeoff.captures.lockstep import Compared, ComparedFlow, PacketComparison
from bakeoff.captures.packets import Packet
from bakeoff.text import markup
from bakeoff.text.columns import Column
from bakeoff.text.markup import Block

if TYPE_CHECKING:
    from bakeoff.captures.sender_state import Sample
    from bakeoff.plots.mpl import Figure

    States = Sequence[Mapping[str, Sample]]

FORMAT = 1
_MOST_POINTS = 20_000
"""Of a line of the picture."""


def document(found: PacketComparison, states: tuple[States, States] | None = None) -> dict[str, Any]:
    """For `--json`; docs/compare.md names the keys."""
    flows = []
    for at, flow in enumerate(found.flows):
        shown: dict[str, Any] = {
            "ours": flow.ours,
            "theirs": flow.theirs,
            "start_apart_s": flow.start_apart_s,
            "parts": [_part(part) for part in flow.parts],
        }
        if states is not None:
            sides = zip(("ours", "theirs"), states, strict=True)
            shown["state"] = {side: {name: asdict(one) for name, one in of[at].items()} for side, of in sides}
        flows.append(shown)
    return {
        "format": FORMAT,
        "bound_s": found.bound_s,
        "same": found.same,
        "flows": flows,
        "unpaired": list(found.unpaired),
    }


def encoded(found: PacketComparison, states: tuple[States, States] | None = None) -> str:
    """The same as text."""
    return json.dumps(document(found, states), indent=2, allow_nan=False) + "\n"


def _part(part: Compared) -> dict[str, Any]:
    return {
        "kind": part.kind,
        "sender": part.sender,
        "ours": part.ours,
        "theirs": part.theirs,
        "same": part.same,
        "identical": part.identical,
        "until_loss": part.until_loss,
        "loss_s": part.loss_s,
        "first": None if part.first is None else asdict(part.first),
        "times": None if part.times is None else asdict(part.times),
    }


def text(found: PacketComparison, states: tuple[States, States] | None = None) -> str:
    """For a terminal."""
    blocks = [_table(found)]
    for at, flow in enumerate(found.flows):
        blocks += [_first(flow, part) for part in flow.parts if part.first is not None]
        if states is not None and (states[0][at] or states[1][at]):
            blocks.append(_state(flow, states[0][at], states[1][at]))
    remarks = [f"{name}: on one side only" for name in found.unpaired]
    return markup.written("terminal", blocks, remarks)


def _table(found: PacketComparison) -> Block:
    rows = [(flow, part) for flow in found.flows for part in flow.parts]
    times = [part.times for _, part in rows]
    return Block(
        "Packets, ours against theirs",
        [
            Column("flow", [flow.ours for flow, _ in rows], text=True),
            Column("from", [part.sender for _, part in rows], text=True),
            Column("kind", [part.kind for _, part in rows], text=True),
            Column("ours", [str(part.ours) for _, part in rows]),
            Column("theirs", [str(part.theirs) for _, part in rows]),
            Column("same", [str(part.same) for _, part in rows]),
            Column("first other\n[packet]", ["" if p.first is None else str(p.first.index + 1) for _, p in rows]),
            Column("|Δt| p50\n[µs]", ["" if one is None else f"{one.p50_s * 1e6:.1f}" for one in times]),
            Column("p90\n[µs]", ["" if one is None else f"{one.p90_s * 1e6:.1f}" for one in times]),
            Column("max\n[µs]", ["" if one is None else f"{one.max_s * 1e6:.1f}" for one in times]),
            Column(
                f"> {found.bound_s * 1e6:g} µs\nat [s]",
                [_seconds(None if one is None else one.first_beyond_s) for one in times],
            ),
            Column("for good\n[s]", [_seconds(None if one is None else one.apart_from_s) for one in times]),
            Column("first loss\n[s]", [_seconds(part.loss_s) for _, part in rows], keep=1),
        ],
    )


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def _first(flow: ComparedFlow, part: Compared) -> Block:
    first = part.first
    assert first is not None
    pairs: list[tuple[str, Packet | None, Packet | None]] = [("", mine, other) for mine, other in first.before]
    pairs.append((" ".join(first.what), first.ours, first.theirs))
    start = first.index - len(first.before) + 1
    return Block(
        f"{flow.ours}: the first {part.kind} packet from {part.sender} that differs, by {', '.join(first.what)}",
        [
            Column("packet", [str(start + row) for row in range(len(pairs))]),
            *_columns("ours", [mine for _, mine, _ in pairs], 9),
            *_columns("theirs", [other for _, _, other in pairs], 9),
        ],
        level=2,
    )


def _columns(side: str, packets: Sequence[Packet | None], keep: int) -> list[Column]:
    def cells(of: str) -> list[str]:
        return ["" if one is None else str(getattr(one, of)) for one in packets]

    return [
        Column(f"{side}\n[s]", [_seconds(None if one is None else one.time_s) for one in packets], keep),
        Column("seq", cells("seq"), keep),
        Column("ack", cells("ack"), 3),
        Column("bytes", cells("payload"), keep),
        Column("flags", cells("flags"), keep, text=True),
        Column("ECN", cells("ecn"), keep, text=True),
    ]


def _state(flow: ComparedFlow, ours: Mapping[str, Sample], theirs: Mapping[str, Sample]) -> Block:
    names = sorted(ours.keys() | theirs.keys())

    def shown(of: Mapping[str, Sample], what: str) -> list[str]:
        return [f"{getattr(of[name], what):.9g}" if name in of else "" for name in names]

    return Block(
        f"{flow.ours}: the sender at the first data packet that differs",
        [
            Column("state", names, text=True),
            Column("ours", shown(ours, "value")),
            Column("at [s]", shown(ours, "time_s"), 3),
            Column("theirs", shown(theirs, "value")),
            Column("at [s]", shown(theirs, "time_s"), 3),
        ],
        level=2,
    )


def figure(found: PacketComparison) -> Figure:
    """The difference of time over time: a panel per flow, a line for its data and one for its other packets."""
    from bakeoff.plots.mpl import Figure
    from bakeoff.plots.style import WIDTH_INCH, plain, styled

    with styled():
        made = Figure(figsize=(WIDTH_INCH, 1.0 + 2.2 * len(found.flows)), layout="constrained")
        panels = made.subplots(len(found.flows), 1, squeeze=False)[:, 0]
        for axes, flow in zip(panels, found.flows, strict=True):
            for part in flow.parts:
                step = max(1, len(part.matched_s) // _MOST_POINTS)
                label = plain(f"{part.kind} of {part.sender}")
                axes.plot(part.matched_s[::step], part.apart_s[::step] * 1e6, label=label, linewidth=0.8)
            axes.set_yscale("symlog", linthresh=found.bound_s * 1e6)
            axes.set_ylabel("ours - theirs [µs]")
            axes.set_title(plain(flow.ours), fontsize=10)
            axes.legend(fontsize=9)
        panels[-1].set_xlabel("time since the first packet [s]")
    return made


def draw(found: PacketComparison, path: Path) -> Path:
    """The picture as a file, `.svg`, `.png` or `.pdf`. BakeoffError for another suffix."""
    from bakeoff.plots.style import save

    return save(figure(found), path)
