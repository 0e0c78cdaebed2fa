"""The kernel's side: the real qdisc in virtual time, many replays in one boot."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from bakeoff import files, jsonfile
from bakeoff.engines.kernel import host_programs, virtual
from bakeoff.engines.kernel.boot import boot, python_files
from bakeoff.engines.lab import agent, module_qdiscs
from bakeoff.errors import BakeoffError, RunError
from bakeoff.replay.arrivals import Arrivals
from bakeoff.replay.port import START_NS, Port, commands, flows, priority
from bakeoff.replay.sim import Replayed

# The draining of a long queue, and the wait for the instant at which it begins, besides what the arrivals take.
_AROUND_S: Final = 26.0
_MEMORY: Final = "768M"

T = TypeVar("T")


@dataclass(frozen=True)
class Recorded:
    """What a kernel did."""

    kernel: str
    """Its release."""
    hz: int
    replays: tuple[Replayed | str, ...]
    """One for each that was asked for, in order; a text says why there is none (tc or the kernel refused)."""


def record(jobs: Sequence[tuple[Port, Arrivals]], *, kernel: str | None = None, seed: int = 1) -> Recorded:
    """Replay through the real qdisc; each replay has devices and a qdisc of its own. `kernel`: name or path; None: the
    newest that was built. The kernel's random numbers follow from `seed`, and go on from one replay to the next.

    BakeoffError if there is no kernel or no `ip` and `tc`; RunError if the kernel did not come to its end.
    """
    built = virtual.choose(kernel).kernel
    for program in ("ip", "tc"):
        host_programs.need(program)
    with tempfile.TemporaryDirectory(prefix="bakeoff-replay-") as name:
        folder = Path(name)
        results = folder / "results"
        results.mkdir()
        script = folder / "script.json"
        offered = module_qdiscs.offered(built.modules)
        frames, replays = _jobs(jobs, offered)
        if offered:
            # The guest has a /tmp of its own, with this folder in it.
            shutil.copy2(agent.find(), results / agent.NAME)
        script.write_text(
            json.dumps(
                {
                    "results": str(results),
                    "path": host_programs.search_path(),
                    "modules": [str(path) for path in built.modules],
                    "start_ns": START_NS,
                    "arrivals": frames,
                    "flows": max(flows(*job) for job in jobs),
                    "replays": replays,
                }
            )
        )
        init = folder / "init"
        init.write_text(f"#!{sys.executable} -IS\n{Path(virtual.__file__).with_name('replay_guest.py').read_text()}")
        init.chmod(0o755)
        simulated_s = sum(arrivals.packets[-1].ns / 1e9 + _AROUND_S for _, arrivals in jobs)
        outcome = boot(
            built,
            script,
            results=results,
            init=init,
            simulated_s=simulated_s,
            memory=_MEMORY,
            seed=seed,
            readable=python_files(),
        )
        if outcome.status != "ok":
            raise RunError(f"kernel: {outcome.status}: {outcome.reason}")
        hashes = _decoded(results / "hashes.json", tuple[int, ...])
        answers = tuple(_answer(results / f"{number}.json", hashes[: flows(*job)]) for number, job in enumerate(jobs))
    return Recorded(built.release, int(built.options.get("HZ", "1000")), answers)


def _jobs(
    jobs: Sequence[tuple[Port, Arrivals]], offered: Collection[str]
) -> tuple[dict[str, list[list[int]]], list[dict[str, object]]]:
    """The sequences as replay_guest.py reads them, each once, and the replays that name them."""
    frames: dict[str, list[list[int]]] = {}
    names: dict[tuple[int, tuple[int, ...]], str] = {}
    replays: list[dict[str, object]] = []
    for port, arrivals in jobs:
        count = flows(port, arrivals)
        priorities = tuple(priority(port, flow) for flow in range(count))
        name = names.setdefault((id(arrivals), priorities), f"{arrivals.name}-{len(names)}")
        if name not in frames:
            frames[name] = [[p.ns, p.bytes, p.flow, priorities[p.flow], p.ecn] for p in arrivals.packets]
        made = commands(port, count, offered)
        # What the agent makes, it also shows; tc would show the same without words and numbers.
        shows = [["tc", "-s", "-d", "qdisc", "show", "dev", "veth0"]] if made[0][0] == "tc" else []
        shows += [[*module_qdiscs.show("veth0")]] if agent.NAME in {command[0] for command in made} else []
        replays.append(
            {
                "arrivals": name,
                "commands": [_in_guest(command) for command in made],
                "show": [_in_guest(command) for command in shows],
            }
        )
    return frames, replays


def _in_guest(command: list[str]) -> list[str]:
    return [f"/tmp/out/{agent.NAME}", *command[1:]] if command[0] == agent.NAME else command  # noqa: S108


def _answer(path: Path, hashes: tuple[int, ...]) -> Replayed | str:
    answer = _decoded(path, _Answer)
    if answer.error is not None:
        return answer.error
    return Replayed(answer.arrivals, answer.departures, answer.show, hashes)


class _Answer(msgspec.Struct):
    """What `replay_guest.py` writes of a replay."""

    arrivals: tuple[int, ...] = ()
    departures: tuple[tuple[int, int, int], ...] = ()
    show: str = ""
    error: str | None = None


def _decoded(path: Path, form: type[T]) -> T:
    """RunError if the guest, which may be anybody's kernel, wrote something else."""
    try:
        return jsonfile.decoded(files.plain_text(path), path.name, form)
    except BakeoffError as error:
        raise RunError(f"kernel: {error}") from None
