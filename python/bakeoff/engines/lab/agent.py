"""The agent: where its binary is, and the document it gets."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path
from typing import Final, Literal, NotRequired, TypedDict

from bakeoff import data
from bakeoff.engines.lab.plan import Plan
from bakeoff.engines.lab.plan import Program as Planned
from bakeoff.errors import EngineError
from bakeoff.results import layout
from bakeoff.scenario import Run

NAME: Final = "bakeoff-agent"
OUTPUT: Final = "agent.tsv"
DRAIN_S: Final = 2.0
PROGRAMS_S: Final = 15.0
_PACKAGE: Final = Path(__file__).resolve().parents[2]


def find() -> Path:
    """The binary: $BAKEOFF_AGENT, the newest build of a checkout, the one in a wheel, or PATH. BakeoffError if none."""
    named = os.environ.get("BAKEOFF_AGENT")
    if named is not None:
        if not os.access(named, os.X_OK):
            raise EngineError(f"BAKEOFF_AGENT: {named}: not executable; expected the agent's binary")
        return Path(named).resolve()
    checkout = data.checkout()
    if checkout is not None:
        target = checkout / "target"
        places = [target / profile / NAME for profile in ("release", "ci", "debug")]
        builds = [path for path in places if os.access(path, os.X_OK)]
        if builds:
            return max(builds, key=lambda path: path.stat().st_mtime)
    in_wheel = _PACKAGE / "bin" / NAME
    if os.access(in_wheel, os.X_OK):
        return in_wheel
    found = shutil.which(NAME)
    if found is None:
        remedy = (
            f"expected it as {in_wheel}: install bakeoff's wheel again"
            if checkout is None
            else f"'make agent' in {checkout} makes it"
        )
        raise EngineError(f"{NAME} (the traffic agent) is missing; {remedy}, or set BAKEOFF_AGENT")
    return Path(found).resolve()


@cache
def version(path: Path) -> str:
    """What the binary calls itself."""
    import subprocess

    done = subprocess.run([str(path), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip().removeprefix(NAME).strip() or "unknown"


def drain_s(plan: Plan) -> float:
    """How long after the run answers are awaited, and what the programs of others take to end."""
    return PROGRAMS_S if plan.programs else DRAIN_S


class Epoch(TypedDict):
    """The instant of t = 0."""

    clock: Literal["monotonic", "realtime"]
    ns: int


class Queue(TypedDict):
    """A queue to read."""

    name: str
    netns: str | None
    dev: str
    at: str
    sampled: bool
    """At each tick, and not only at the end."""


class Change(TypedDict):
    """A command at a time of the run."""

    at_s: float
    node: str
    netns: str | None
    argv: list[str]


class Program(TypedDict):
    """A program to start."""

    name: str
    netns: str | None
    argv: list[str]
    start_s: float | None
    output: str
    error: NotRequired[str]
    folder: NotRequired[str]
    stop_s: NotRequired[float | None]
    exit: NotRequired[int | Literal["any"]]


class Document(TypedDict):
    """What the agent reads (`Document` in `crates/agent/src/plan.rs`)."""

    format: int
    sample_interval_s: float
    duration_s: float
    drain_s: float
    epoch: Epoch | None
    output: str
    roles: list[dict[str, object]]
    """Each as in `bakeoff.engines.lab.plan`, without `node`."""
    queues: list[Queue]
    changes: list[Change]
    programs: NotRequired[list[Program]]
    progress: NotRequired[str]


def document(
    run: Run,
    plan: Plan,
    output: str,
    find_program: dict[str, str],
    *,
    node: str | None = None,
    epoch: Epoch | None = None,
) -> Document:
    """PLAN.json (crates/agent/src/plan.rs); `find_program` gives the path of each program that changes use.

    With a `node`, only what that machine does; `epoch` is t = 0.
    """

    def ours(folder: str) -> bool:
        return node is None or folder == node

    document: Document = {
        "format": 1,
        "sample_interval_s": run.sample_interval_s,
        "duration_s": run.duration_s,
        "drain_s": drain_s(plan),
        "epoch": epoch,
        "output": output,
        "roles": [
            {key: value for key, value in role.items() if key != "node"} for role in plan.roles if ours(role["node"])
        ],
        "queues": [
            {"name": queue.name, "netns": queue.netns, "dev": queue.dev, "at": queue.at, "sampled": queue.sampled}
            for queue in plan.queues
            if ours(queue.node)
        ],
        "changes": [
            {
                "at_s": change.at_s,
                "node": change.node,
                "netns": change.netns,
                "argv": [find_program[change.argv[0]], *change.argv[1:]],
            }
            for change in plan.changes
            if ours(change.node)
        ],
    }
    programs = [_program(program, Path(output).parent, find_program) for program in plan.programs if ours(program.node)]
    if programs:
        document["programs"] = programs
    return document


def _program(program: Planned, folder: Path, find_program: dict[str, str]) -> Program:
    """What the agent is told of a program whose results lie in `folder`."""
    entry: Program = {
        "name": program.name,
        "netns": program.netns,
        "argv": [find_program.get(program.argv[0], program.argv[0]), *program.argv[1:]],
        "start_s": program.start_s,
        "output": str(folder / program.file),
    }
    if program.folder:
        own = folder / program.folder
        entry |= {"error": str(own / layout.PROGRAM_ERR), "folder": str(own), "exit": program.exit}
        if program.stop_s is not None:
            entry["stop_s"] = program.stop_s
    return entry
