"""The plan: every command, role and queue of one run, as data."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, NotRequired, TypedDict, final

from bakeoff.scenario.run import Ecn

FORMAT: Final = 1


@dataclass(frozen=True)
class Command:
    """A program and its arguments, on a node: in its network namespace, or on the machine that it is.

    No shell is involved.
    """

    node: str
    argv: tuple[str, ...]
    netns: str | None = None
    """Name of the namespace; None for the machine's own, be it this one or the node's."""
    background: bool = False
    """Left running until the end of the run."""

    def line(self) -> str:
        """For people: `mid: tc qdisc show dev mid.srv`, quoted as a shell would take it."""
        return f"{self.node}: {shlex.join(self.argv)}"


@dataclass(frozen=True)
class TimedCommand(Command):
    """A command at a time of the run, in seconds from its start."""

    at_s: float = 0.0


@dataclass(frozen=True)
class Program(Command):
    """What the agent starts: a server before the run, a client at its time.

    It is a traffic tool that `tools` names, or, with a `folder`, a program of the scenario.
    """

    name: str = ""
    file: str = ""
    """Its output, in the results folder."""
    start_s: float | None = None
    """Seconds from the start of the run; None for a server."""
    folder: str = ""
    """Of a scenario's program: where it starts and writes, in the results folder."""
    stop_s: float | None = None
    exit: int | Literal["any"] = 0
    reads: tuple[str, ...] = ()
    """What a scenario's program may read besides the system's files."""


@dataclass(frozen=True)
class Queue:
    """A leaf of a qdisc tree."""

    name: str
    """As in the results: `mid>srv`, `mid<cli/10`."""
    node: str
    netns: str | None
    dev: str
    at: str
    """Where it stands, in tc's words: `root` or `parent 1:1`, or `handle 2:` if a change puts it to another place."""
    qdisc: str
    """As asked for before any change, in tc's words."""
    sampled: bool
    """Whether its length is sampled (egress) or only counted."""


class Placed(TypedDict):
    """Where a role is played."""

    node: str
    netns: str | None
    """Name of the namespace; None for the machine's own."""


@final
class TcpSink(Placed):
    """Receives a TCP flow.

    `crates/agent/src/plan.rs` describes this and the other roles.
    """

    role: Literal["tcp-sink"]
    name: str
    port: int
    dscp: int
    """Of the ACKs."""
    cc: str
    answers: NotRequired[Literal["objects", "segments"]]
    """What it tells the application that sends; nothing if absent."""


class Sending(Placed):
    """What senders of both protocols are told."""

    name: str
    to: str
    """`10.0.0.2:5201`"""
    dscp: int
    start_s: float
    stop_s: float
    source: dict[str, object]
    """What the application offers, as in the resolved run."""
    local_port: int


@final
class TcpSource(Sending):
    """Sends it."""

    role: Literal["tcp-source"]
    cc: str
    max_pacing_rate_bps: int | None


@final
class UdpSink(Placed):
    """Receives datagrams."""

    role: Literal["udp-sink"]
    name: str
    port: int
    start_s: float
    stop_s: float
    source: dict[str, object]
    """What is sent to it, which it compares with what came."""


@final
class UdpSource(Sending):
    """Sends them."""

    role: Literal["udp-source"]


@final
class UdpReflector(Placed):
    """Answers a probe."""

    role: Literal["udp-reflector"]
    port: int


@final
class Probe(Placed):
    """Asks every `every_s` seconds with an IP packet of `size` bytes."""

    role: Literal["udp-probe", "icmp-probe"]
    name: str
    to: str
    """`10.0.0.2:25201`, or for ICMP `10.0.0.2`."""
    every_s: float
    size: int
    dscp: int
    ecn: Ecn
    start_s: float
    stop_s: float


Role = TcpSink | TcpSource | UdpSink | UdpSource | UdpReflector | Probe


@dataclass(frozen=True)
class Plan:
    """What a run does on real Linux. `plan.json` in a results folder."""

    notes: tuple[str, ...]
    """Where what is in effect differs from what the scenario asked for."""
    namespaces: tuple[str, ...]
    setup: tuple[Command, ...]
    changes: tuple[TimedCommand, ...]
    statistics: tuple[Command, ...]
    """After the run: tc's statistics, sysctls, the kernel, TCP metrics."""
    teardown: tuple[Command, ...]
    """Takes away what `setup` made. None for machines: there each command's inverse depends on what was before."""
    roles: tuple[Role, ...]
    """The agent's: receivers before senders."""
    queues: tuple[Queue, ...]
    captures: tuple[tuple[str, str], ...] = ()
    """Name of the interface in the results and the file that tcpdump writes, in the results folder."""
    files: tuple[tuple[str, str], ...] = ()
    """Name and content (Latin-1) of what a program of the set-up reads, in the results folder while the run lasts."""
    programs: tuple[Program, ...] = ()
    """Traffic tools that a scenario names instead of the agent's roles, and programs that it names."""

    def write_files(self, folder: Path) -> None:
        """Put `files` into the results folder."""
        for name, text in self.files:
            (folder / name).write_bytes(text.encode("latin-1"))

    def remove_files(self, folder: Path) -> None:
        """Take `files` away: they stand in plan.json."""
        for name, _ in self.files:
            (folder / name).unlink(missing_ok=True)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return {"format": FORMAT, **asdict(self)}

    def text(self) -> str:
        """The plan for people: what `--dry-run` prints."""
        parts = [f"# {note}" for note in self.notes]
        parts += ["# set-up", *(command.line() + (" &" if command.background else "") for command in self.setup)]
        if self.changes:
            parts += ["# changes", *(f"{command.at_s:g} s  {command.line()}" for command in self.changes)]
        parts += ["# traffic", *(_described(role) for role in self.roles)]
        parts += [
            f"{program.line()}" + (" &" if program.start_s is None else f"  at {program.start_s:g} s")
            for program in self.programs
        ]
        parts += ["# statistics", *(command.line() for command in self.statistics)]
        parts += ["# teardown", *(command.line() for command in self.teardown)]
        return "\n".join(parts) + "\n"


def _described(role: Role) -> str:
    hidden = ("role", "node", "netns", "source")
    fields = {key: value for key, value in role.items() if key not in hidden and value is not None}
    offered = role["source"] if role["role"] == "tcp-source" or role["role"] == "udp-source" else {}
    source = " ".join(str(value) for value in offered.values())
    text = " ".join(f"{key}={value}" for key, value in fields.items())
    return f"{role['node']}: {role['role']} {text} {source}".rstrip()
