"""A capture of our own run beside what the run counted itself.

Each number is read twice: from the packets of an interface, as anybody's capture is read, and from counters.json. What
can be said depends on where the interface is: a queue counts what left it, a sender what it sent, a receiver what
reached it. Where packets can stand between the place that counts and the capture, `may_lack` says how many.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.captures import CaptureFile, Ecn, capture
from bakeoff.errors import BakeoffError, TraceError
from bakeoff.measure.bottleneck import path
from bakeoff.results.captures import of_folder
from bakeoff.results.packed_captures import split

if TYPE_CHECKING:
    from bakeoff.captures.report import Direction, Endpoint, Report, Udp
    from bakeoff.measure.bottleneck import Hop
    from bakeoff.results import Result
    from bakeoff.results.counters import Queue
    from bakeoff.scenario.run import Flow, Link, Run, Traffic

FIRST_PORT: Final = 5201
"""Of the first flow, at the end that receives; the next flow has the next port (crates/sim/src/packet/frame.rs)."""
_WIREGUARD_PORT: Final = 51_820
_MOST_FRAME: Final = 1514
"""Bytes of a frame that is one segment."""
_MOST_PAYLOAD: Final = 1472
"""Bytes of a datagram."""
_MOST_CE: Final = 8
"""Packets that one ACK can tell to have had CE: the ACE field has three bits."""


@dataclass(frozen=True)
class Row:
    """One number, twice."""

    interface: str
    of: str
    """A flow, a probe or a tunnel; empty for all packets."""
    what: str
    captured: int
    counted: int
    may_lack: int = 0
    """So many can be counted and not captured: they stood in a queue when the run ended, or were dropped there."""
    may_exceed: int = 0
    """So many can be captured and not counted: they were on their way when the run ended."""

    @property
    def agrees(self) -> bool:
        """Whether both are equal, but for what the capture may lack or have more."""
        return -self.may_lack <= self.captured - self.counted <= self.may_exceed


@dataclass
class _Way:
    """What the capture shows of a flow's packets towards its receiver, or of those that come back."""

    packets: int = 0
    data_packets: int = 0
    data_bytes: int = 0
    payload: int = 0
    ce: int = 0
    data_ce: int = 0
    data_ect1: int = 0
    ect1: int = 0
    retransmits: int = 0
    pure_acks: int = 0
    acked: int = 0
    echoed: int | None = None

    def tcp(self, own: Direction) -> None:
        """Add a connection."""
        self.packets += own.packets
        self.data_packets += own.data.packets
        self.data_bytes += own.data.frame_bytes
        self.payload += own.data.payload_bytes
        self.ce += own.ecn.ce
        self.ect1 += own.ecn.ect1
        self.data_ce += own.data.ecn.ce
        self.data_ect1 += own.data.ecn.ect1
        self.retransmits += own.data.retransmits
        self.pure_acks += own.acks.pure
        self.acked += own.data.acked_bytes
        if own.marks.echoed_ce_packets is not None:
            self.echoed = (self.echoed or 0) + own.marks.echoed_ce_packets


def compare(result: Result, interface: str, report: Report) -> list[Row]:
    """Every number that both the capture at the interface and the run's counters tell.

    BakeoffError if the capture cannot be one of this run, or if another engine did the run.
    """
    if result.record.engine.partition(":")[0] != "sim":
        raise TraceError(
            f"{result.path}: a run of the engine {result.record.engine}; expected a run of the simulator, the only "
            "engine that counts every packet"
        )
    seen = _Seen(result, report)
    parts = (_queue, _sender, _receiver, _answers, _probes, _tunnels)
    return [row for part in parts for row in part(_Place(result, interface, seen))]


def compare_all(
    several: Sequence[Result],
    files: Sequence[Path] = (),
    *,
    run: str | None = None,
    ecn: Ecn = "auto",
    tell: Callable[[int], None] = lambda _: None,
) -> list[tuple[str, list[Row]]]:
    """The numbers of captures beside those of the runs that they are of, with the run's name for each capture.

    `files` are by default all captures of the runs that ended well; each belongs to the run in whose folder it is, or
    to the only one. `run` selects runs by name or glob. `tell` gets the number of captures read. BakeoffError if no run
    is left, if a capture could be of several, or as for `compare`.
    """
    chosen = [
        one for one in several if one.ok and (run is None or fnmatchcase(one.key, run) or fnmatchcase(one.run.run, run))
    ]
    if not chosen:
        raise TraceError("--against: no finished run" + (f" matches '{run}'" if run else ""))
    found = []
    for number, (result, file) in enumerate(_pairs(files, chosen), start=1):
        with tempfile.TemporaryDirectory(prefix="bakeoff-") as folder:
            for part in split(file, Path(folder)):
                report = CaptureFile(str(file), capture(part, ecn=ecn)).report
                names = [interface.name for interface in report.capture.interfaces]
                if len(names) != 1 or names[0] is None:
                    raise TraceError(f"{file}: an interface without a name; expected a capture of a run")
                found.append((result.key, compare(result, names[0], report)))
        tell(number)
    return found


def _pairs(files: Sequence[Path], chosen: list[Result]) -> list[tuple[Result, Path]]:
    """Each capture with the run that it is of: that in whose folder it lies, or the only one."""
    if not files:
        found = [(result, file) for result in chosen for file in of_folder(result.path)]
        if not found:
            raise TraceError("--against: no captures in these runs; record them with bakeoff run PATTERN --capture all")
        return found
    pairs = []
    for file in files:
        own = [result for result in chosen if result.path.resolve() == file.resolve().parent] or chosen
        if len(own) > 1:
            raise TraceError(f"--against: {file} matches {len(own)} runs; choose one with --run RUN")
        pairs.append((own[0], file))
    return pairs


class _Seen:
    """The packets of a capture by the run's own names."""

    def __init__(self, result: Result, report: Report) -> None:
        self.report = report
        self.there: dict[str, _Way] = {}
        self.back: dict[str, _Way] = {}
        names = [flow.name for flow in result.run.flows]
        probes = [probe.name for probe in result.run.probes]
        self.requests: dict[str, int] = {}
        self.replies: dict[str, int] = {}
        self.udp: dict[int, int] = {}
        for flow in report.flows:
            name, swapped = _of(names, flow.client, flow.server, result)
            up, down = (flow.down, flow.up) if swapped else (flow.up, flow.down)
            self.there.setdefault(name, _Way()).tcp(up)
            self.back.setdefault(name, _Way()).tcp(down)
        for udp in report.datagrams.udp:
            if _WIREGUARD_PORT <= udp.server.port < _WIREGUARD_PORT + 255:
                number = udp.server.port - _WIREGUARD_PORT
                self.udp[number] = self.udp.get(number, 0) + udp.up.packets + udp.down.packets
            else:
                self._datagrams(names + probes, udp, result)
        for session in report.datagrams.echo:
            number = session.identifier - 1
            if not len(names) <= number < len(names) + len(probes):
                raise _foreign(result, f"echo requests with the identifier {session.identifier}")
            name = probes[number - len(names)]
            self.requests[name] = session.requests
            # Where replies alone pass, none has a request.
            self.replies[name] = session.replies + session.unmatched_replies

    def _datagrams(self, names: list[str], flow: Udp, result: Result) -> None:
        name, swapped = _of(names, flow.client, flow.server, result)
        up, down = (flow.down, flow.up) if swapped else (flow.up, flow.down)
        for ways, own in ((self.there, up), (self.back, down)):
            way = ways.setdefault(name, _Way())
            way.packets += own.packets
            way.data_packets += own.packets
            way.data_bytes += own.ip_bytes + 14 * own.packets
            way.payload += own.payload_bytes
            for ecn in ("ce", "ect1"):
                count = getattr(own.ecn, ecn)
                setattr(way, ecn, getattr(way, ecn) + count)
                setattr(way, f"data_{ecn}", getattr(way, f"data_{ecn}") + count)


def _of(names: Sequence[str], client: Endpoint, server: Endpoint, result: Result) -> tuple[str, bool]:
    """The flow that has these ends, and whether its sender is the server."""
    for end, swapped in ((server, False), (client, True)):
        number = end.port - FIRST_PORT
        if 0 <= number < len(names):
            return names[number], swapped
    raise _foreign(result, f"a flow from {client.text()} to {server.text()}")


def _foreign(result: Result, what: str) -> BakeoffError:
    return TraceError(f"unexpected {what} in the capture; expected a capture of the run {result.key}")


class _Place:
    """An interface of a run and what was captured there."""

    def __init__(self, result: Result, name: str, seen: _Seen) -> None:
        self.result, self.name, self.seen = result, name, seen
        self.counters = result.counters
        leaves = ">" in name
        self.node, self.peer = name.split(">" if leaves else "<")
        self.leaves = leaves
        nodes = {node.name: node for node in result.run.nodes}
        self.whole_buffers = any(node.offloads for node in nodes.values())
        """Whether a frame of the capture may be several segments."""

    @property
    def link(self) -> Link:
        """The cable of the interface."""
        ends = {self.node, self.peer}
        return next(link for link in self.result.run.links if set(link.ends) == ends)

    @property
    def held(self) -> int | None:
        """How many packets the medium behind the queue may have held at the end; None if it may also drop some.

        What leaves a queue for parallel paths waits in a fifo of its path, and is captured when it leaves that.
        """
        features = self.link.features
        if not self.leaves or not features:
            return 0
        return None if "multipath" in features else self._queued

    @property
    def _queued(self) -> int:
        """The packets that the whole network held at the end."""
        total = self.result.counters.conservation
        return 0 if total is None else total.queued

    def flows(self, transport: str | None = None) -> Iterator[tuple[Flow, list[Hop]]]:
        """The flows with their hops."""
        for flow in self.result.run.flows:
            if transport is None or flow.transport == transport:
                yield flow, path(self.result.run, flow)

    def readable(self, flow: Traffic) -> bool:
        """Whether its packets can be told apart: no tunnel encrypts them."""
        kinds = {tunnel.name: tunnel.kind for tunnel in self.result.run.tunnels}
        return kinds.get(flow.tunnel or "") not in ("wireguard", "ipsec")

    def queues(self, name: str | None = None) -> dict[str, Queue]:
        """The queues of an interface, the outermost first."""
        name = name or self.name
        found = {key: q for key, q in self.counters.queues.items() if key == name or key.startswith(f"{name}/")}
        return dict(sorted(found.items(), key=lambda item: not item[0].endswith("/root")))

    def row(self, of: str, what: str, captured: int, counted: int, may_lack: int = 0, *, may_exceed: int = 0) -> Row:
        """A number."""
        return Row(self.name, of, what, captured, counted, may_lack, may_exceed)

    def way_to(self, node: str) -> int | None:
        """How many packets that are captured here may not have reached `node`, which is next, when the run ended.

        None if that cannot be said: it is not next, or the line or a queue behind it loses some.
        """
        run = self.result.run
        if node != (self.peer if self.leaves else self.node):
            return None
        other = self.peer if node == self.node else self.node
        behind = self.queues(f"{node}<{other}")
        if any(sum(queue.drops.values()) for queue in behind.values()):
            return None
        waiting = sum(queue.queued for queue in behind.values())
        if not self.leaves:
            return waiting
        link = self.link
        if link.loss or link.features or any(change.action.kind == "link" for change in run.changes):
            return None
        if link.delay_s == 0 and link.rate_bps is None:
            return waiting
        return self._queued


def _queue(at: _Place) -> Iterator[Row]:
    """What the queue of the interface counted as it left."""
    queues = at.queues()
    held = at.held
    if not at.leaves or not queues or held is None:
        return
    outermost = next(iter(queues.values()))
    capture = at.seen.report.capture
    if not at.whole_buffers:
        yield at.row("", "packets", capture.packets, outermost.sent or 0, held)
        yield at.row("", "bytes", capture.frame_bytes, outermost.sent_bytes or 0, held * _MOST_FRAME)
    for flow, hops in at.flows():
        if not at.readable(flow):
            continue
        there = (at.node, at.peer) in hops
        way = (at.seen.there if there else at.seen.back).get(flow.name, _Way())
        counted = outermost.flows.get(flow.name)
        if not at.whole_buffers:
            yield at.row(flow.name, "packets", way.packets, counted.packets if counted else 0, held)
        if there:
            yield from _marks(at, flow, hops, way)


def _marks(at: _Place, flow: Flow, hops: Sequence[Hop], way: _Way) -> Iterator[Row]:
    """The marks of this queue, if no other before it can have marked the flow or changed its ECN field."""
    name, index = flow.name, hops.index((at.node, at.peer))
    before = [key for a, b in hops[:index] for key in (f"{a}>{b}", f"{b}<{a}")]
    own = list(at.queues().values())
    of_flow = [queue.flows[name] for queue in own if name in queue.flows]
    if _mangled(at.result.run, [f"{b}<{a}" for a, b in hops[:index]]) or flow.tunnel:
        return
    for key, codepoint, captured in (("marks", "CE", way.ce), ("sce_marks", "SCE", way.ect1)):
        earlier = sum(
            getattr(queue.flows[name], key)
            for one in before
            for queue in at.queues(one).values()
            if name in queue.flows
        )
        counted = sum(getattr(each, key) for each in of_flow)
        if earlier or (key == "sce_marks" and not counted):
            continue
        # Marked on entry, and still there or dropped since.
        lacking = sum(queue.queued for queue in own) + sum(each.drops for each in of_flow)
        lacking += at.held or 0
        if key == "sce_marks":
            # A queue may mark a packet SCE, then CE.
            lacking += sum(each.marks for each in of_flow)
        yield at.row(name, f"{codepoint} marks", captured, counted, min(lacking, counted))


def _mangled(run: Run, places: Sequence[str]) -> bool:
    """Whether a rule at one of these interfaces sets the ECN field."""
    return any(
        f"{interface.node}<{interface.peer}" in places and any(rule.set_ecn is not None for rule in interface.mangle)
        for interface in run.interfaces
    )


def _sender(at: _Place) -> Iterator[Row]:
    """What the sender of a flow counted, at its own interface."""
    for flow, hops in at.flows():
        counted = at.counters.flow(flow.name)
        held = at.held
        if not at.leaves or hops[0] != (at.node, at.peer) or at.whole_buffers or not at.readable(flow) or held is None:
            continue
        way = at.seen.there.get(flow.name, _Way())
        queues = list(at.queues().values())
        dropped = sum(queue.flows[flow.name].drops for queue in queues if flow.name in queue.flows)
        lacking = held + dropped + sum(queue.queued for queue in queues)
        yield at.row(flow.name, "data packets", way.data_packets, counted.sent_packets or 0, lacking)
        if not flow.tunnel:
            yield at.row(flow.name, "data bytes", way.data_bytes, counted.sent_bytes or 0, lacking * _MOST_FRAME)
        if flow.transport == "tcp":
            yield at.row(flow.name, "retransmissions", way.retransmits, counted.retransmits or 0, lacking)


def _receiver(at: _Place) -> Iterator[Row]:
    """What reached the receiver of a flow, at its own interface or as it left for there."""
    for flow, hops in at.flows():
        before, receiver = hops[-1]
        if {before, receiver} != {at.node, at.peer} or at.whole_buffers or not at.readable(flow):
            continue
        more = at.way_to(receiver)
        if more is None or _mangled(at.result.run, [f"{receiver}<{before}"]) or flow.tunnel:
            continue
        counted = at.counters.flow(flow.name)
        way = at.seen.there.get(flow.name, _Way())
        yield at.row(flow.name, "CE received", way.data_ce, counted.received_ce or 0, may_exceed=more)
        yield at.row(flow.name, "ECT(1) received", way.data_ect1, counted.received_ect1 or 0, may_exceed=more)
        if flow.transport == "udp":
            yield at.row(
                flow.name, "payload bytes", way.payload, counted.received_bytes or 0, may_exceed=more * _MOST_PAYLOAD
            )


def _answers(at: _Place) -> Iterator[Row]:
    """The ACKs of a flow, where its receiver sends them and where its sender has them."""
    for flow, hops in at.flows("tcp"):
        if at.whole_buffers or not at.readable(flow):
            continue
        counted = at.counters.flow(flow.name)
        way, there = at.seen.back.get(flow.name, _Way()), at.seen.there.get(flow.name, _Way())
        if at.leaves and hops[-1] == (at.peer, at.node) and at.held is not None:
            queues = list(at.queues().values())
            dropped = sum(queue.flows[flow.name].drops for queue in queues if flow.name in queue.flows)
            lacking = at.held + dropped + sum(queue.queued for queue in queues)
            yield at.row(flow.name, "ACKs", way.pure_acks, counted.acks or 0, lacking)
        sender = hops[0][0]
        if set(hops[0]) == {at.node, at.peer} and there.echoed is not None:
            more = at.way_to(sender)
            if more is not None:
                yield at.row(
                    flow.name, "CE echoed", there.echoed, counted.delivered_ce or 0, may_exceed=more * _MOST_CE
                )


def _probes(at: _Place) -> Iterator[Row]:
    """Requests where they are sent, replies where they come back."""
    for probe in at.result.run.probes:
        name, hops = probe.name, path(at.result.run, probe)
        counted = at.counters.probe(name)
        if set(hops[0]) != {at.node, at.peer} or not at.readable(probe):
            continue
        udp, own = probe.proto == "udp", at.leaves and at.node == probe.from_
        if own and not at.queues():
            requests = at.seen.there.get(name, _Way()).packets if udp else at.seen.requests.get(name, 0)
            yield at.row(name, "requests", requests, counted.sent or 0)
        elif not own and (more := at.way_to(probe.from_)) is not None:
            replies = at.seen.back.get(name, _Way()).packets if udp else at.seen.replies.get(name, 0)
            yield at.row(name, "replies", replies, counted.received or 0, may_exceed=more)


def _tunnels(at: _Place) -> Iterator[Row]:
    """The packets of tunnels that encrypt, where they begin."""
    ipsec = 0
    for number, tunnel in enumerate(at.result.run.tunnels):
        ends = tunnel.ends
        if not at.leaves or at.node not in ends or tunnel.kind not in ("wireguard", "ipsec") or at.queues():
            continue
        other = ends[1] if ends[0] == at.node else ends[0]
        sent = at.counters.tunnels[tunnel.name][f"{at.node}>{other}"].sent or 0
        if tunnel.kind == "wireguard":
            yield at.row(tunnel.name, "packets", at.seen.udp.get(number, 0), sent)
        else:
            ipsec += sent
    if ipsec:
        yield at.row("ipsec", "packets", at.seen.report.capture.other_packets, ipsec)
