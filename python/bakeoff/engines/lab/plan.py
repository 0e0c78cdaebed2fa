"""The plan: every command, role and queue of one run, as data."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

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
    """A traffic tool that the agent starts: a server before the run, a client at its time."""

    name: str = ""
    file: str = ""
    """Its output, in the results folder."""
    start_s: float | None = None
    """Seconds from the start of the run; None for a server."""


@dataclass(frozen=True)
class Queue:
    """A leaf of a qdisc tree."""

    name: str
    """As in the results: `mid>srv`, `mid<cli/10`."""
    node: str
    netns: str | None
    dev: str
    at: str
    """Where it stands, in tc's words: `root` or `parent 1:1`."""
    qdisc: str
    """As asked for, in tc's words."""
    sampled: bool
    """Whether its length is sampled (egress) or only counted."""


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
    roles: tuple[dict[str, Any], ...]
    """The agent's, as in docs/agent.md, and `node`: where each is played."""
    queues: tuple[Queue, ...]
    captures: tuple[tuple[str, str], ...] = ()
    """Name of the interface in the results and the file that tcpdump writes, in the results folder."""
    files: tuple[tuple[str, str], ...] = ()
    """Name and text of what a program of the set-up reads, in the results folder while the run lasts."""
    programs: tuple[Program, ...] = ()
    """Traffic tools that a scenario names instead of the agent's roles."""

    def write_files(self, folder: Path) -> None:
        """Put `files` into the results folder."""
        for name, text in self.files:
            (folder / name).write_text(text, encoding="ascii")

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
        parts += ["# traffic", *(_told(role) for role in self.roles)]
        parts += [
            f"{program.line()}" + (" &" if program.start_s is None else f"  at {program.start_s:g} s")
            for program in self.programs
        ]
        parts += ["# statistics", *(command.line() for command in self.statistics)]
        parts += ["# teardown", *(command.line() for command in self.teardown)]
        return "\n".join(parts) + "\n"


def _told(role: dict[str, Any]) -> str:
    hidden = ("role", "node", "netns", "source")
    words = {key: value for key, value in role.items() if key not in hidden and value is not None}
    source = " ".join(str(value) for value in role.get("source", {}).values())
    told = " ".join(f"{key}={value}" for key, value in words.items())
    return f"{role['node']}: {role['role']} {told} {source}".rstrip()
