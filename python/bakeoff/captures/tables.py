"""What files tell, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from bakeoff.captures.own_run import UNKNOWN
from bakeoff.tables.cells import decimals
from bakeoff.text.columns import Column, number
from bakeoff.text.markup import Block, terminal

if TYPE_CHECKING:
    from bakeoff.captures import CaptureFile, IrttFile
    from bakeoff.captures.against import Row
    from bakeoff.captures.report import Asked, Direction, Distribution, EcnCounts, Flow, Goodput, Quic, Report, Udp

T = TypeVar("T")

MOST: Final = 40
"""Flows of one kind that are shown if nobody asks for all: those with the most packets."""
_MODES: Final = {"none": "", "rfc3168": "RFC 3168", "accecn": "AccECN", "sce": "SCE"}


def text(
    found: Sequence[CaptureFile | IrttFile],
    *,
    every: bool = False,
    width: int | None = None,
    colour: bool | None = None,
) -> str:
    """Every file with its flows; `every` shows more than `MOST` of each kind."""
    from bakeoff.captures import CaptureFile

    blocks = [
        block for one in found for block in (capture(one, every=every) if isinstance(one, CaptureFile) else [irtt(one)])
    ]
    return terminal(blocks, [], width, colour, hint="a wider terminal or --json shows them")


def capture(found: CaptureFile, *, every: bool = False) -> list[Block]:
    """A capture as a whole, and its flows by kind."""
    report, datagrams = found.report, found.report.datagrams
    parts = (
        _flows("TCP", report.flows, lambda flow: flow.up.packets + flow.down.packets, _tcp, every=every),
        _flows("UDP", datagrams.udp, lambda flow: flow.up.packets + flow.down.packets, _udp, every=every),
        _flows("QUIC", datagrams.quic, lambda one: one.up.datagrams + one.down.datagrams, _quic, every=every),
        _flows("irtt", datagrams.irtt, lambda test: test.requests, _asked, every=every),
        _flows("echo requests", datagrams.echo, lambda session: session.requests, _asked, every=every),
    )
    head = Block(f"{found.file}: {_whole(report)}", [], _about(report))
    return [head, *(block for block in parts if block is not None)]


def irtt(found: IrttFile) -> Block:
    """A file of irtt's client."""
    test = found.to_json()["test"]
    rows = []
    for what, key in (
        ("round trip", "rtt_s"),
        ("one way to the server", "send_delay_s"),
        ("one way back", "receive_delay_s"),
        ("IPDV of round trips", "ipdv_s"),
        ("IPDV to the server", "send_ipdv_s"),
        ("IPDV back", "receive_ipdv_s"),
        ("in the server", "server_s"),
    ):
        if test[key]["n"]:
            rows.append((what, test[key]))
    columns = [Column("ms", [what for what, _ in rows], text=True)]
    columns += [
        Column(key, [number(1e3 * values[key], ".3f") for _, values in rows], keep=keep)
        for key, keep in (
            ("mean", 9), ("min", 6), ("p5", 2), ("p50", 9), ("p90", 3), ("p95", 4), ("p99", 9), ("p999", 1), ("max", 6),
        )
    ]  # fmt: skip
    share = test["lost"] / test["requests"] if test["requests"] else 0.0
    lost = f"{test['lost']:,} lost ({share:.2%}"
    if test["lost_up"] or test["lost_down"]:
        lost += f": {test['lost_up']:,} on the way to the server, {test['lost_down']:,} on the way back"
    every = f"one every {test['interval_s'] * 1e3:g} ms"
    told = [f"{test['requests']:,} requests, {every}, {test['replies']:,} replies, {lost})"]
    told += [
        f"{test[key]:,} {words}"
        for key, words in (("duplicates", "duplicate replies"), ("late", "late replies"))
        if test[key]
    ]
    if test["send_delay_s"]["n"]:
        told.append("one-way delays are right only if the clocks of both ends agree")
    ends = f", {test['client']} to {test['server']}" if test["client"] and test["server"] else ""
    return Block(f"{found.file}: irtt{ends}", columns, told)


def _whole(report: Report) -> str:
    of = report.capture
    packed = "" if of.compression == "none" else f", {of.compression}"
    return (
        f"{of.container}{packed}, {of.packets:,} packets, {of.frame_bytes / 1e6:,.3f} MB on the wire, "
        f"{of.duration_s:.3f} s"
    )


def _about(report: Report) -> list[str]:
    """What is not in the flows' rows."""
    of = report.capture
    kinds = (
        (of.tcp_packets, "TCP"), (of.udp_packets, "UDP"), (of.icmp_packets, "ICMP"), (of.tunnel_packets, "in tunnels"),
        (of.other_packets, "of other protocols"), (of.fragments, "fragments"), (of.not_ip, "not IP"),
        (of.malformed, "malformed"), (of.flows_beyond, "of flows beyond the bound"),
    )  # fmt: skip
    lines = [", ".join(f"{count:,} {what}" for count, what in kinds if count)]
    ecn = _ecn(of.ecn)
    lines += [f"ECN of IP packets: {ecn}"] if ecn else []
    if any(flow.ecn.chosen_by == UNKNOWN for flow in report.flows):
        lines.append("unknown ECN feedback: one direction without handshake; expected --ecn sce|accecn|rfc3168")
    return [line for line in (*lines, *of.notes) if line]


def _mode(flow: Flow) -> str:
    return UNKNOWN if flow.ecn.chosen_by == UNKNOWN else _MODES.get(flow.ecn.mode, flow.ecn.mode)


def _ecn(counts: EcnCounts) -> str:
    named = ((counts.not_ect, "Not-ECT"), (counts.ect0, "ECT(0)"), (counts.ect1, "ECT(1)"), (counts.ce, "CE"))
    return ", ".join(f"{count:,} {name}" for count, name in named if count)


def _flows(
    title: str,
    flows: Sequence[T],
    packets: Callable[[T], int],
    columns: Callable[[Sequence[T]], list[Column]],
    *,
    every: bool,
) -> Block | None:
    """A table of these, or of those with the most packets; None without any."""
    if not flows:
        return None
    shown: Sequence[T] = flows
    more: list[str] = []
    if not every and len(flows) > MOST:
        kept = sorted(range(len(flows)), key=lambda i: -packets(flows[i]))[:MOST]
        shown = [flows[i] for i in sorted(kept)]
        more = [f"{len(flows) - MOST:,} more with fewer packets each: --all shows them"]
    made = [column for column in columns(shown) if column.keep == 9 or any(column.cells)]
    return Block(title, made, more, level=2)


def _tcp(flows: Sequence[Flow]) -> list[Column]:
    """A row for each direction; a direction without payload has its packets and what it echoes."""
    sides = [(flow, up, flow.up if up else flow.down) for flow in flows for up in (True, False)]

    def data(form: Callable[[Direction], str]) -> list[str]:
        return [form(own) if own.data.packets else "" for _, _, own in sides]

    def counted(form: Callable[[Direction], int | None]) -> list[str]:
        return [f"{value:,}" if (value := form(own)) else "" for _, _, own in sides]

    def goodput(form: Callable[[Goodput], float | None]) -> list[str]:
        return [_mbits(form(own.data.goodput)) if own.data.goodput else "" for _, _, own in sides]

    return [
        Column("", [str(flow.number) if up else "" for flow, up, _ in sides]),
        Column("from", [(flow.client if up else flow.server).text() for flow, up, _ in sides], text=True),
        Column("ECN", [(_mode(flow) if up else "") for flow, up, _ in sides], 6, text=True),
        Column("in", [" ".join(flow.tunnels) if up else "" for flow, up, _ in sides], 4, text=True),
        Column("packets", [f"{own.packets:,}" for _, _, own in sides]),
        Column("payload\nMB", data(lambda own: _megabytes(own.data.payload_bytes)), 5),
        Column("goodput\nMbit/s", goodput(lambda told: told.mean_bps)),
        Column("passed\nMbit/s", [_mbits(_passed(flow, own)) for flow, _, own in sides], 7),
        Column("least\nMbit/s", goodput(lambda told: told.min_bps), 1),
        Column("most\nMbit/s", goodput(lambda told: told.max_bps), 1),
        Column("RTT ms\np50/p99", data(lambda own: _pair(own.rtt_s)), 8),
        Column("by stamps\np50/p99", data(lambda own: _pair(own.timestamp_rtt_s)), 2),
        Column("CE", counted(lambda own: own.marks.ce), 8),
        Column("SCE", counted(lambda own: own.marks.sce), 7),
        Column("CE\nechoed", counted(_echoed), 5),
        Column("retrans", counted(lambda own: own.data.retransmits), 7),
        Column("gaps", counted(lambda own: own.data.gaps), 3),
        Column("lost\nkB", data(lambda own: f"{own.data.lost_bytes / 1e3:.1f}" if own.data.lost_bytes else ""), 2),
        Column("reordered", counted(lambda own: own.data.reordered), 3),
        Column("dup\nACKs", counted(lambda own: own.acks.duplicates), 4),
        Column("zero\nwindows", counted(lambda own: own.acks.zero_windows), 1),
        Column("from s", [f"{flow.start_s:.3f}" if up else "" for flow, up, _ in sides], 1),
        Column("to s", [f"{flow.end_s:.3f}" if up else "" for flow, up, _ in sides], 1),
        Column("begin", ["" if flow.begin_seen or not up else "unseen" for flow, up, _ in sides], 3, text=True),
    ]


def _passed(flow: Flow, own: Direction) -> float | None:
    """Payload that passed the capture, over the flow's time."""
    if not own.data.packets or flow.end_s <= flow.start_s:
        return None
    return own.data.payload_bytes * 8 / (flow.end_s - flow.start_s)


def _echoed(own: Direction) -> int | None:
    """What the other end echoed of this direction's CE: packets by AccECN, else ACKs with ECE."""
    marks = own.marks
    return marks.echoed_ce_packets if marks.echoed_ce_packets is not None else marks.ece_acks


def _udp(flows: Sequence[Udp]) -> list[Column]:
    """A row for each direction that has datagrams."""
    sides = [(flow, up, flow.up if up else flow.down) for flow in flows for up in (True, False)]
    sides = [side for side in sides if side[1] or side[2].packets]
    return [
        Column("", [str(flow.number) if up else "" for flow, up, _ in sides]),
        Column("from", [(flow.client if up else flow.server).text() for flow, up, _ in sides], text=True),
        Column("", [(flow.protocol or "") if up else "" for flow, up, _ in sides], 5, text=True),
        Column("packets", [f"{own.packets:,}" for _, _, own in sides]),
        Column("payload\nMB", [_megabytes(own.payload_bytes) for _, _, own in sides], 5),
        Column("IP\nMbit/s", [_mbits(own.throughput_bps) for _, _, own in sides]),
        Column("CE", [f"{own.ecn.ce:,}" if own.ecn.ce else "" for _, _, own in sides], 8),
        Column("ECT(1)", [f"{own.ecn.ect1:,}" if own.ecn.ect1 else "" for _, _, own in sides], 4),
        Column("gap ms\np50/p99", [_pair(own.gap_s) for _, _, own in sides], 6),
        Column("from s", [f"{flow.start_s:.3f}" if up else "" for flow, up, _ in sides], 1),
        Column("to s", [f"{flow.end_s:.3f}" if up else "" for flow, up, _ in sides], 1),
    ]


def _quic(connections: Sequence[Quic]) -> list[Column]:
    """A row for each direction; the round trips are those of the spin bit."""
    sides = [(one, up, one.up if up else one.down) for one in connections for up in (True, False)]
    return [
        Column("", [str(one.number) if up else "" for one, up, _ in sides]),
        Column("from", [(one.client if up else one.server).text() for one, up, _ in sides], text=True),
        Column("version", [" ".join(one.versions) if up else "" for one, up, _ in sides], 6, text=True),
        Column("datagrams", [f"{own.datagrams:,}" for _, _, own in sides]),
        Column("payload\nMB", [_megabytes(own.payload_bytes) for _, _, own in sides]),
        Column("spin bit", [own.spin.state if own.spin else "" for _, _, own in sides], 7, text=True),
        Column("RTT ms\np50/p99", [_pair(own.spin.rtt_s) if own.spin else "" for _, _, own in sides], 8),
        Column("from s", [f"{one.start_s:.3f}" if up else "" for one, up, _ in sides], 1),
        Column("to s", [f"{one.end_s:.3f}" if up else "" for one, up, _ in sides], 1),
    ]


def _asked(several: Sequence[Asked]) -> list[Column]:
    """Requests and replies."""
    return [
        Column("", [str(one.number) for one in several]),
        Column("from", [one.ends[0] for one in several], text=True),
        Column("to", [one.ends[1] for one in several], text=True),
        Column("requests", [f"{one.requests:,}" for one in several]),
        Column("replies", [f"{one.replies:,}" for one in several], 6),
        Column("lost", [f"{one.lost / one.requests:.2%}" if one.replies else "" for one in several]),
        Column("RTT ms\nmean", [_ms(one.rtt_s.mean) for one in several], 5),
        Column("RTT ms\np50/p99", [_pair(one.rtt_s) for one in several], 8),
        Column("IPDV ms\np50/p99", [_pair(one.ipdv_s) for one in several], 4),
        Column("twice", [f"{one.duplicate_replies:,}" if one.duplicate_replies else "" for one in several], 3),
        Column("late", [f"{one.late_replies:,}" if one.late_replies else "" for one in several], 3),
    ]


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.{decimals(count / 1e6, 3)}f}"


def _mbits(rate_bps: float | None) -> str:
    return "" if rate_bps is None else f"{rate_bps / 1e6:,.{decimals(rate_bps / 1e6, 3)}f}"


def _ms(value_s: float | None) -> str:
    return "" if value_s is None else f"{value_s * 1e3:.{decimals(value_s * 1e3, 2)}f}"


def _pair(values: Distribution) -> str:
    return f"{_ms(values.p50)}/{_ms(values.p99)}" if values.n else ""


def against(compared: Sequence[tuple[str, Sequence[Row]]], width: int | None = None, colour: bool | None = None) -> str:
    """The numbers that differ, and how many agree; of a single capture all of them."""
    rows = [(key, row) for key, found in compared for row in found]
    shown = rows if len(compared) == 1 else [(key, row) for key, row in rows if not row.agrees]
    differing = sum(not row.agrees for _, row in rows)
    runs = len({key for key, _ in compared})
    title = (
        f"captures {len(compared):,}, runs {runs:,}: {len(rows) - differing:,} of {len(rows):,} numbers agree with the "
        "counters of their runs"
    )
    columns = [
        Column("run", [key for key, _ in shown], 1 if runs == 1 else 9, text=True),
        Column("interface", [row.interface for _, row in shown], text=True),
        Column("of", [row.of or "all" for _, row in shown], text=True),
        Column("what", [row.what for _, row in shown], text=True),
        Column("captured", [f"{row.captured:,}" for _, row in shown]),
        Column("counted", [f"{row.counted:,}" for _, row in shown]),
        Column("", [_verdict(row) for _, row in shown], text=True),
    ]
    block = Block(title, columns if shown else [])
    return terminal([block], [], width, colour, hint="a wider terminal or --json shows them")


def _verdict(row: Row) -> str:
    if row.captured == row.counted:
        return "equal"
    if row.agrees and row.captured < row.counted:
        return f"{row.counted - row.captured:,} of {row.may_lack:,} that never left or were dropped"
    if row.agrees:
        return f"{row.captured - row.counted:,} of {row.may_exceed:,} that were on their way at the end"
    return "differ"


def against_json(compared: Sequence[tuple[str, Sequence[Row]]]) -> dict[str, object]:
    """The same for programs: every number."""
    rows = [
        {
            "run": key,
            "interface": row.interface,
            "of": row.of,
            "what": row.what,
            "captured": row.captured,
            "counted": row.counted,
            "may_lack": row.may_lack,
            "may_exceed": row.may_exceed,
            "agrees": row.agrees,
        }
        for key, found in compared
        for row in found
    ]
    return {"format": 1, "captures": len(compared), "differ": sum(not row["agrees"] for row in rows), "numbers": rows}
