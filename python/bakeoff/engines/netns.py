"""The engine `netns`: the host's own kernel, in real time, in network namespaces. Needs root."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from bakeoff import lockfile
from bakeoff.engines import Outcome, controls, only_kernel_runs_programs, only_make, place
from bakeoff.engines.kernel import host_programs
from bakeoff.errors import BakeoffError, EngineError, RefusedError, RunError
from bakeoff.results import layout, parts, write_json

if TYPE_CHECKING:
    from bakeoff.engines.lab import Command, Plan
    from bakeoff.scenario import Run

# Whatever is called so is ours: with the lock in hand, what a killed run left behind.
PREFIX: Final = "bakeoff-"
_TCP_MEM: Final = Path("/proc/sys/net/ipv4/tcp_mem")
_LOCK: Final = Path("/run/bakeoff-netns.lock")
_NETNS: Final = Path("/run/netns")
_PLAN: Final = "plan.json"
_AGENT_PLAN: Final = "agent-plan.json"
# What a run takes besides its own time: set-up with the wait for carriers, and the drain.
_AROUND_S: Final = 7.0
_PATIENCE_S: Final = 10.0
_SERVERS_NS: Final = 3_000_000_000
_NEEDED: Final = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21, "CAP_NET_RAW": 13}


class Namespaces:
    """The engine `netns`; see `bakeoff.engines.Engine`."""

    one_at_a_time = True
    repeatable = False

    def check(self, run: Run) -> str:
        """See `bakeoff.engines.Engine`. Asks the kernel for each qdisc and congestion control that the run names."""
        made = plan(run)
        if lacking := missing_capabilities():
            raise EngineError(f"engine netns: missing capabilities {', '.join(lacking)}; run as root")
        for name in sorted({c.argv[0] for c in (*made.setup, *made.changes, *made.programs, *made.statistics)}):
            host_programs.need(name)
        for node, why in _lacking(made):
            raise RefusedError(f"{node}: {why}", place=place(run))
        return made.text()

    def execute(self, run: Run, folder: Path) -> Outcome:
        """See `bakeoff.engines.Engine`. Runs that are started side by side wait for each other."""
        from bakeoff.engines.lab import agent, convert

        made = plan(run, folder)
        write_json(folder / _PLAN, made.to_json())
        paths = {name: str(host_programs.need(name)) for name in {c.argv[0] for c in (*made.changes, *made.programs)}}
        made.write_files(folder)
        tsv = folder / agent.OUTPUT
        document = folder / _AGENT_PLAN
        with (
            _alone(),
            (folder / layout.SETUP_LOG).open("a", encoding="utf-8") as setup_log,
            (folder / layout.TEARDOWN_LOG).open("a", encoding="utf-8") as teardown_log,
        ):
            try:
                with _background(made.setup, setup_log, made.captures):
                    # A client finds its server only if that had the time to listen.
                    now = time.time_ns()
                    epoch = agent.Epoch(clock="realtime", ns=now + _SERVERS_NS) if made.programs else None
                    write_json(document, agent.document(run, made, str(tsv.resolve()), paths, epoch=epoch))
                    _traffic(agent.find(), document, run.duration_s + agent.drain_s(made))
                for command in made.statistics:
                    _do(command, teardown_log, "teardown")
            finally:
                _clean(teardown_log)
                made.remove_files(folder)
        series, counters, counted = convert.convert(run, made, folder, tsv)
        tsv.unlink()
        document.unlink()
        return Outcome(parts(series), counters, (*made.notes, *counted))

    outcome = execute

    def versions(self) -> dict[str, str]:
        """Kernel, iproute2, agent and bakeoff."""
        from bakeoff.engines.lab import agent
        from bakeoff.version import version

        iproute2 = host_programs.iproute2_version(host_programs.need("tc"))
        return {
            "bakeoff": version(),
            "kernel": os.uname().release,
            "iproute2": ".".join(map(str, iproute2)) if iproute2 else "unknown",
            "agent": agent.version(agent.find()),
        }

    def estimate_s(self, run: Run) -> float:
        """Real time: a run's length and what surrounds it."""
        return run.duration_s + _AROUND_S


def choose(make: str | None) -> Namespaces:
    """There is one make only."""
    only_make("netns", make)
    return Namespaces()


def plan(run: Run, folder: Path | None = None) -> Plan:
    """The run's plan, with notes on what differs from what was asked for; captures go to `folder`."""
    from bakeoff.engines.lab import plan as make

    only_kernel_runs_programs(run, "netns")

    captures = str(folder.resolve()) if folder is not None else "."
    try:
        ethtool = host_programs.find("ethtool") is not None
        made = make(run, prefix=PREFIX, ethtool=ethtool, captures=captures, netem=_has_netem())
    except BakeoffError as error:
        raise error.at(place(run)) from error
    note = _tcp_memory(run, int(_TCP_MEM.read_text(encoding="ascii").split()[0]))
    return made if note is None else replace(made, notes=(*made.notes, note))


def _tcp_memory(run: Run, pages: int) -> str | None:
    """What to know where this machine's TCP may hold less than the run's does; `pages`: the first of its limits."""
    from bakeoff.engines.lab import tcp_memory

    held = tcp_memory.held(run)
    if held <= pages * tcp_memory.PAGE:
        return None
    return (
        f"net.ipv4.tcp_mem: from {pages} pages ({pages * tcp_memory.PAGE >> 20} MiB) on this machine lets no window "
        f"grow, and counts nothing; TCP may hold up to {held >> 20} MiB in this run"
    )


def missing_capabilities() -> list[str]:
    """Which of the capabilities that a run needs this process does not have."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    held = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
    return [name for name, bit in _NEEDED.items() if not held >> bit & 1]


def _lacking(made: Plan) -> Iterator[tuple[str, str]]:
    """(place, reason) of everything that the plan asks for and this host's kernel does not have."""
    from bakeoff.engines.lab import needs

    for role in made.roles:
        if "cc" in role and not _has_cc(role["cc"]):
            module = controls.module(role["cc"])
            other = controls.elsewhere(role["cc"], "netns")
            yield f"flow '{role['name']}'", f"cc '{role['cc']}' is not in this host's kernel; module {module}{other}"
    for node, what in needs.lacking(made, lambda _, argv: _tried(argv)):
        yield node, f"this host's kernel {what}"


@cache
def _has_cc(name: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            # With CAP_NET_ADMIN the kernel loads the module by itself.
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as error:
            return error.errno != errno.ENOENT
    return True


def _has_netem() -> bool:
    return "qdisc kind is unknown" not in _tried(("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "netem"))


@cache
def _tried(argv: tuple[str, ...]) -> str:
    """What a command says in a namespace of its own, which goes with it."""
    path = str(host_programs.need(argv[0]))
    return _run(["unshare", "--net", path, *argv[1:]])[1]


def _run(argv: Sequence[str]) -> tuple[int, str]:
    """The exit code of a command, and what it says in English."""
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env=os.environ | {"LC_ALL": "C"},
    )
    return done.returncode, done.stdout + done.stderr


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other run uses the host's namespaces, and take away what a killed one left."""
    lock = lockfile.opened(_LOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _clean(None)
        yield
    finally:
        os.close(lock)


def _clean(log: IO[str] | None) -> None:
    """Delete every namespace of ours, whatever happened; devices go with them."""
    for path in sorted(_NETNS.glob(f"{PREFIX}*")):
        _, error = _run([str(host_programs.need("ip")), "netns", "del", path.name])
        if log is not None:
            log.write(f"+ {path.name}: ip netns del {path.name}\n{error}")


@contextlib.contextmanager
def _background(setup: Sequence[Command], log: IO[str], captured: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Do the set-up; what it starts in the background is ended with the block. `captured` is `Plan.captures`."""
    from bakeoff.engines.lab import pcapng

    running: list[tuple[Command, subprocess.Popen[str]]] = []
    try:
        for command in setup:
            if command.background:
                log.write(f"+ {command.line()} &\n")
                running.append((command, subprocess.Popen(_argv(command), stdout=log, stderr=log, text=True)))
            else:
                _do(command, log, "setup")
        yield
        for command, process in running:
            if process.poll() is not None:
                raise RunError(pcapng.why_ended(command, process.returncode, captured))
    finally:
        for _, process in running:
            _end(process)


def _do(command: Command, log: IO[str], phase: str) -> None:
    """One command to its end, logged; RunError with node, command and output if it fails."""
    code, error = _run(_argv(command))
    log.write(f"+ {command.line()}\n{error}")
    log.flush()
    if code != 0:
        raise RunError(f"{phase}: {command.line()}: exit code {code}: {error.strip()}")


def _argv(command: Command) -> list[str]:
    inside = [str(host_programs.need("ip")), "netns", "exec", command.netns] if command.netns is not None else []
    return [*inside, str(host_programs.need(command.argv[0])), *command.argv[1:]]


def _traffic(binary: Path, document: Path, duration_s: float) -> None:
    """Run the agent to its end; RunError if it fails or does not end."""
    process = subprocess.Popen(
        [str(binary), "run", str(document)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        output, _ = process.communicate(timeout=duration_s + _AROUND_S + _PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        raise RunError(
            f"timeout: the agent did not exit within {duration_s + _AROUND_S + _PATIENCE_S:.0f} s"
        ) from error
    finally:
        _end(process)
        if process.stdout is not None:
            process.stdout.close()
    if process.returncode != 0:
        raise RunError(f"agent: {output.strip() or f'exit code {process.returncode}'}")


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        deadline = time.monotonic() + _PATIENCE_S
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
        process.kill()
    process.wait()
