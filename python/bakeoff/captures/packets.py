"""The packets of TCP connections in captures, one by one, with sequence numbers that begin at 0.

A capture is one file, or all of a run's folder. In a run each packet appears at several interfaces; each direction of a
connection is taken from the capture in which it appears first, which is the sending host's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from bakeoff.errors import TraceError
from bakeoff.results.captures import of_folder

if TYPE_CHECKING:
    from bakeoff._sim import Packets

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE = (1 << bit for bit in range(9))
_FLAGS: Final = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE")
_ECN: Final = ("Not-ECT", "ECT(1)", "ECT(0)", "CE")

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """The packets of one direction of a connection at one interface, in the order of the capture."""

    capture: str
    """Name of the file."""
    at_ns: Integers
    """Time since the connection's first packet, in ns."""
    seq: Integers
    """Of the first byte; 0 is the SYN's."""
    ack: Integers
    """Acknowledgement number; 0 is the other direction's SYN. -1 without the flag ACK."""
    payload: Integers
    """Bytes."""
    flags: Integers
    """FIN is bit 0, CWR bit 7, AE bit 8."""
    ecn: Integers
    """The two bits."""

    def __len__(self) -> int:
        return len(self.at_ns)

    def chosen(self, rows: npt.NDArray[np.bool_]) -> Stream:
        """These rows of it."""
        columns = (self.at_ns, self.seq, self.ack, self.payload, self.flags, self.ecn)
        return Stream(self.capture, *(column[rows] for column in columns))

    def packet(self, row: int) -> Packet:
        """One row."""
        return Packet(
            time_s=float(self.at_ns[row]) * 1e-9,
            seq=int(self.seq[row]),
            ack=int(self.ack[row]),
            payload=int(self.payload[row]),
            flags=flag_names(int(self.flags[row])),
            ecn=_ECN[int(self.ecn[row])],
        )


@dataclass(frozen=True)
class Packet:
    """A packet as it is shown."""

    time_s: float
    """Since the connection's first packet."""
    seq: int
    """0 is the SYN's."""
    ack: int
    payload: int
    """Bytes."""
    flags: str
    """Names, joined by a stroke."""
    ecn: str


@dataclass(frozen=True)
class Connection:
    """A TCP connection. The client is who sends first."""

    client: str
    """`10.0.0.1:32768`."""
    server: str
    start_ns: int
    """Time of its first packet by the capture's clock, since 1970."""
    up: Stream
    """From the client."""
    down: Stream

    @property
    def name(self) -> str:
        """`10.0.0.1:32768>10.0.0.3:5201`."""
        return f"{self.client}>{self.server}"


def flag_names(flags: int) -> str:
    """`PSH|ACK`, and `none`."""
    return "|".join(name for bit, name in enumerate(_FLAGS) if flags >> bit & 1) or "none"


def read(path: Path) -> list[Connection]:
    """The connections of a capture, or of all captures of a run's folder, in order of their first packets.

    TraceError names the file and what was expected.
    """
    files = of_folder(path) if path.is_dir() else [path]
    if not files:
        raise TraceError(f"{path}: no captures; expected a run done with --capture all")
    from bakeoff import _sim

    found: dict[tuple[str, str], tuple[str, dict[str, Integers]]] = {}
    for file in files:
        try:
            columns = _sim.packets(str(file))
        except ValueError as error:
            raise TraceError(str(error)) from None
        for ends, rows in _directions(columns):
            if ends not in found or rows["at_ns"][0] < found[ends][1]["at_ns"][0]:
                found[ends] = (file.name, rows)
    firsts = sorted(found, key=lambda ends: (int(found[ends][1]["at_ns"][0]), ends))
    connections = [_connection(ends, found) for ends in firsts if _is_client(ends, found)]
    if not connections:
        raise TraceError(f"{path}: no TCP connections in the capture")
    return connections


def _directions(columns: Packets) -> list[tuple[tuple[str, str], dict[str, Integers]]]:
    directions = columns["direction"]
    order = np.argsort(directions, kind="stable")
    bounds = np.searchsorted(directions[order], np.arange(len(columns["ends"]) + 1))
    numbers: dict[str, npt.NDArray[np.integer]] = {
        "at_ns": columns["at_ns"],
        "seq": columns["seq"],
        "ack": columns["ack"],
        "payload": columns["payload"],
        "flags": columns["flags"],
        "ecn": columns["ecn"],
    }
    return [
        (ends, {name: column[order[first:last]].astype(np.int64) for name, column in numbers.items()})
        for ends, first, last in zip(columns["ends"], bounds[:-1], bounds[1:], strict=True)
    ]


_Found = dict[tuple[str, str], tuple[str, dict[str, Integers]]]


def _is_client(ends: tuple[str, str], found: _Found) -> bool:
    """Whether this direction has the connection's first packet; a SYN/ACK is never that."""
    rows = found[ends][1]
    other = found.get((ends[1], ends[0]))
    if other is None:
        return True
    syn_ack = SYN | ACK
    if (rows["flags"][0] & syn_ack == syn_ack) != (other[1]["flags"][0] & syn_ack == syn_ack):
        return bool(rows["flags"][0] & syn_ack != syn_ack)
    mine, others = int(rows["at_ns"][0]), int(other[1]["at_ns"][0])
    return mine < others or (mine == others and ends[0] <= ends[1])


def _connection(ends: tuple[str, str], found: _Found) -> Connection:
    none = {name: np.zeros(0, np.int64) for name in ("at_ns", "seq", "ack", "payload", "flags", "ecn")}
    up_file, up = found[ends]
    down_file, down = found.get((ends[1], ends[0]), (up_file, none))
    start = int(up["at_ns"][0])
    up_first, down_first = _first_number(up, down), _first_number(down, up)
    return Connection(
        client=ends[0],
        server=ends[1],
        start_ns=start,
        up=_stream(up_file, up, start, up_first, down_first),
        down=_stream(down_file, down, start, down_first, up_first),
    )


def _first_number(rows: dict[str, Integers], other: dict[str, Integers]) -> int:
    """The initial sequence number: the SYN's, or that before the first packet's, or before what the other side
    acknowledges first.
    """
    if len(rows["seq"]):
        return int(rows["seq"][0]) - (0 if rows["flags"][0] & SYN else 1)
    acknowledges = other["ack"][other["flags"] & ACK != 0]
    return int(acknowledges[0]) - 1 if len(acknowledges) else 0


def _stream(file: str, rows: dict[str, Integers], start_ns: int, first: int, other_first: int) -> Stream:
    ack = np.full(len(rows["ack"]), -1, np.int64)
    has_ack = rows["flags"] & ACK != 0
    ack[has_ack] = unwrapped(rows["ack"][has_ack], other_first)
    return Stream(
        capture=file,
        at_ns=rows["at_ns"] - start_ns,
        seq=unwrapped(rows["seq"], first),
        ack=ack,
        payload=rows["payload"],
        flags=rows["flags"],
        ecn=rows["ecn"],
    )


def unwrapped(numbers: Integers, first: int) -> Integers:
    """Sequence numbers of 32 bits as distances from `first`; each is less than 2³¹ from the one before it."""
    steps = np.diff(numbers, prepend=first)
    return np.cumsum((steps + (1 << 31)) % (1 << 32) - (1 << 31))
