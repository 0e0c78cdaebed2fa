"""One run on the machines: take them, set up, traffic, statistics, and put everything back whatever happens."""

from __future__ import annotations

import contextlib
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from bakeoff.engines.lab import Command, Plan, agent, pcapng
from bakeoff.engines.ssh import replies, undo
from bakeoff.engines.ssh.connection import Connection, LostError, Offset, ended, excerpt, tail, talkative
from bakeoff.errors import RunError, TestbedError
from bakeoff.results import layout

if TYPE_CHECKING:
    from bakeoff.scenario import Run

# Made by root with mode 700, so that its name is a lock too; below a folder in which nobody else can make names.
FOLDER: Final = "/var/lib/bakeoff-{node}"
# What `stat` says of it.
_OURS: Final = "0 700 directory"
RESTORE: Final = "restore.sh"
# From the start of the agents to t = 0, when every one has to be ready; and as many times the slowest session so far,
# per machine, for its plan and its start.
_LEAD_S: Final = 4.0
_SESSIONS: Final = 3
_PATIENCE_S: Final = 20.0
# The largest file that is read here as a whole, in bytes. Captures, which are not, may be larger.
_TABLE: Final = 1 << 30
# Characters that a log keeps of what one command said: a run has hundreds of commands.
_LOGGED: Final = 1 << 16
_FLENT: Final = "data.flent.gz"

Background = list[tuple[Command, subprocess.Popen[bytes], IO[bytes]]]
"""Commands under way: the session of ssh, and the file with what it said."""


def folder_of(node: str) -> str:
    """Where a machine keeps what a run needs."""
    return FOLDER.format(node=node)


def need_free(machine: Connection) -> None:
    """BakeoffError if another run has the machine, or one was killed there."""
    found = _found(machine)
    if found is not None:
        raise TestbedError(_taken(machine, found))


def _found(machine: Connection) -> str | None:
    """Owner, mode and kind of what has the name of the machine's folder; None if there is nothing."""
    owner = machine.run(["stat", "-c", "%u %a %F", folder_of(machine.node)])
    return owner.text.strip() if owner.code == 0 else None


def _taken(machine: Connection, found: str) -> str:
    folder = folder_of(machine.node)
    if found != _OURS:
        # A script in it could be anybody's, and nobody is told to execute it.
        return (
            f"{machine.place}: {folder} is there and not bakeoff's: owner, mode and kind are '{found[:80]}', "
            f"expected '{_OURS}'; look into it, execute nothing in it, and delete it"
        )
    become = f"{machine.machine.become} " if machine.machine.become else ""
    return (
        f"{machine.place}: {folder} is there: another run has the machine, or one was killed; "
        f"if it was killed, put the machine back with: {become}sh {folder}/{RESTORE}"
    )


@dataclass
class Session:
    """The run `plan` on `machines` (node -> connection), its logs and files in `folder`."""

    run: Run
    plan: Plan
    machines: dict[str, Connection]
    clocks: dict[str, Offset]
    folder: Path
    slowest_s: float = 0.0
    """How long the slowest session of ssh took."""
    taken: list[str] = field(default_factory=list)
    attempted: list[Command] = field(default_factory=list)
    before: dict[str, undo.Before] = field(default_factory=dict)
    running: Background = field(default_factory=list)

    def conduct(self) -> list[Path]:
        """The agents' output files. RunError names what failed, and what could not be put back."""
        with (
            (self.folder / layout.SETUP_LOG).open("a", encoding="utf-8") as setup_log,
            (self.folder / layout.TEARDOWN_LOG).open("a", encoding="utf-8") as teardown_log,
        ):
            failed: BaseException | None = None
            try:
                self._take()
                self._set_up(setup_log)
                tsvs = self._traffic()
                for command in self.plan.statistics:
                    self._do(command, teardown_log, "teardown")
                self._end_background()
                for name, file in self.plan.captures:
                    node = next(c.node for c in self.plan.setup if c.background and c.argv[-1].endswith(f"/{file}"))
                    self.machines[node].fetch(f"{folder_of(node)}/{file}", self.folder / file)
                    del name
            except BaseException as problem:
                failed = problem
            with _uninterrupted():
                left = self._put_back(teardown_log)
        if failed is not None:
            if not left:
                raise failed
            if not isinstance(failed, Exception):
                print("\n".join(left), file=sys.stderr)  # a Ctrl-C has no message
                raise failed
            raise RunError("; ".join([str(failed), *left])) from failed
        if left:
            raise RunError("; ".join(left))
        return tsvs

    def _take(self) -> None:
        """A folder on every machine, with the agent in it."""
        binary = agent.find().read_bytes()
        for node, machine in self.machines.items():
            made = machine.run(["mkdir", "-m", "700", folder_of(node)])
            found = _found(machine)
            if made.code != 0 and found is not None:
                raise TestbedError(_taken(machine, found))
            if made.code != 0:
                raise TestbedError(f"{machine.place}: {folder_of(node)} cannot be created: {made.shown}")
            if found != _OURS:
                raise TestbedError(_taken(machine, found or "nothing"))
            self.taken.append(node)
            began = time.monotonic()
            machine.put(binary, f"{folder_of(node)}/{agent.NAME}", mode="700")
            self.slowest_s = max(self.slowest_s, time.monotonic() - began)
            version = machine.run([f"{folder_of(node)}/{agent.NAME}", "--version"])
            if version.code != 0:
                raise RunError(f"{machine.place}: the agent does not start: {version.shown}")
            self.before[node] = undo.read(machine, [c for c in self.plan.setup if c.node == node])
            machine.put(self._restoring(node).encode(), f"{folder_of(node)}/{RESTORE}")

    def _restoring(self, node: str) -> str:
        """For a person, if this process is killed: the commands that put the machine back."""
        backs = [undo.inverse(c, self.before[node]) for c in reversed(self.plan.setup) if c.node == node]
        lines = [shlex.join(words) for words in backs if words is not None]
        return "\n".join([*lines, f"rm -r {shlex.quote(folder_of(node))}", ""])

    def _set_up(self, log: IO[str]) -> None:
        for command in self.plan.setup:
            if command.background:
                log.write(f"+ {command.line()} &\n")
                self._start(command, log)
            else:
                self.attempted.append(command)
                self._do(command, log, "setup")

    def _start(self, command: Command, log: IO[str]) -> None:
        words = [word.replace("{folder}", folder_of(command.node)) for word in command.argv]
        output = (self.folder / f".{command.node}.{len(self.running)}.out").open("w+b")
        process = self.machines[command.node].start(words, output.fileno())
        self.running.append((command, process, output))
        log.flush()

    def _do(self, command: Command, log: IO[str], phase: str) -> None:
        done = self.machines[command.node].run(command.argv)
        log.write(f"+ {command.line()}\n{excerpt(done.text, _LOGGED)}")
        log.flush()
        if done.code != 0:
            raise RunError(f"{phase}: {command.line()}: exit code {done.code}: {done.shown}")

    def _lead_s(self) -> float:
        return _LEAD_S + _SESSIONS * len(self.machines) * self.slowest_s

    def _documents(self) -> dict[str, agent.Document]:
        """node -> the agent's plan, for nodes where there is something to do."""
        zero = time.time_ns() + int(self._lead_s() * 1e9)
        found = {}
        for node in self.machines:
            epoch = agent.Epoch(clock="realtime", ns=zero + self.clocks[node].ns)
            output = f"{folder_of(node)}/{agent.OUTPUT}"
            programs = {command.argv[0]: command.argv[0] for command in self.plan.changes}
            document = agent.document(self.run, self.plan, output, programs, node=node, epoch=epoch)
            for program in document.get("programs", ()):
                program["argv"] = [word.replace("{folder}", folder_of(node)) for word in program["argv"]]
            if any(document.get(part) for part in ("roles", "queues", "changes", "programs")):
                found[node] = document
        return found

    def _traffic(self) -> list[Path]:
        """Run the agents to their end, and fetch what they wrote."""
        import json

        documents = self._documents()
        for node, document in documents.items():
            self.machines[node].put(json.dumps(document).encode(), f"{folder_of(node)}/agent-plan.json")
        first = len(self.running)
        for node in documents:
            words = (f"{folder_of(node)}/{agent.NAME}", "run", f"{folder_of(node)}/agent-plan.json")
            with (self.folder / layout.SETUP_LOG).open("a", encoding="utf-8") as log:
                self._start(Command(node, words), log)
        agents = self.running[first:]
        deadline = time.monotonic() + self._lead_s() + self.run.duration_s + agent.drain_s(self.plan) + _PATIENCE_S
        self._wait_for(agents, deadline)
        tsvs = []
        for command, process, output in agents:
            if process.returncode != 0:
                raise RunError(f"{self.machines[command.node].place}: agent: {_output_of(process, output)}")
            tsv = self.folder / f"{command.node}.{agent.OUTPUT}"
            self.machines[command.node].fetch(f"{folder_of(command.node)}/{agent.OUTPUT}", tsv, _TABLE)
            replies.need_sane(self.machines[command.node].place, tsv, self.run)
            tsvs.append(tsv)
        for program in self.plan.programs:
            machine, folder = self.machines[program.node], folder_of(program.node)
            machine.fetch(f"{folder}/{program.file}", self.folder / program.file, _TABLE)
            # flent names its data file itself; here its name is ours, whatever the machine says.
            if program.argv[0] == "flent":
                files = machine.ask("find", folder, "-maxdepth", "1", "-type", "f", "-name", "*.flent.gz").splitlines()
                if len(files) != 1:
                    raise RunError(f"{machine.place}: {len(files)} data files from flent; expected one")
                machine.fetch(files[0], self.folder / _FLENT, _TABLE)
        return tsvs

    def _wait_for(self, agents: Background, deadline: float) -> None:
        """RunError names the machine whose agent failed, is late, or says more than it has to say."""
        while waiting := [each for each in agents if each[1].poll() is None]:
            for command, process, output in agents:
                if process.poll() not in (None, 0):
                    raise RunError(f"{self.machines[command.node].place}: agent: {_output_of(process, output)}")
            for command, _, output in self.running:
                problem = talkative(output.fileno())
                if problem is not None:
                    raise RunError(f"{self.machines[command.node].place}: {problem} from: {command.line()}")
            if time.monotonic() > deadline:
                late = ", ".join(self.machines[command.node].place for command, _, _ in waiting)
                raise RunError(f"{late}: timeout: the agent did not exit")
            time.sleep(0.05)

    def _end_background(self) -> None:
        """End what still runs, tcpdump; RunError if it had ended by itself before."""
        for command, process, output in self.running:
            if command.background and process.poll() == 0:
                raise RunError(pcapng.why_ended(command, 0, self.plan.captures))
            if command.background and process.poll() is not None:
                raise RunError(f"{command.line()}: exited before the end of the run: {_output_of(process, output)}")
        self._release()

    def _release(self) -> None:
        for _, process, output in self.running:
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            ended(process, output.fileno(), _PATIENCE_S)
            output.close()
            Path(str(output.name)).unlink(missing_ok=True)
        self.running.clear()

    def _put_back(self, log: IO[str]) -> list[str]:
        """Take every attempted command back, last first, on every machine; what could not be, one line per node."""
        self._release()
        last = self.attempted[-1] if self.attempted else None
        failures: dict[str, str] = {}
        lost: set[str] = set()
        steps = [
            (c, replace(c, argv=words))
            for c in reversed(self.attempted)
            if (words := undo.inverse(c, self.before[c.node])) is not None
        ]
        remove = [(None, Command(node, ("rm", "-r", folder_of(node)))) for node in self.taken]
        for what, back in [*steps, *remove]:
            node = back.node
            if node in lost or (what is None and node in failures):
                continue
            try:
                done = self.machines[node].run(back.argv, timeout_s=_PATIENCE_S)
            except LostError as error:
                lost.add(node)
                failures[node] = f"teardown: {error}"
                log.write(f"+ {back.line()}\n{error}\n")
                continue
            log.write(f"+ {back.line()}\n{excerpt(done.text, _LOGGED)}")
            # The command that failed in the set-up may have left nothing to take back.
            if done.code != 0 and what is not last:
                failures.setdefault(node, f"teardown: {back.line()}: exit code {done.code}: {done.shown}")
        return [
            f"{failure} (on the machine, {folder_of(node)}/{RESTORE} puts it back)"
            for node, failure in failures.items()
        ]


def _output_of(process: subprocess.Popen[bytes], output: IO[bytes]) -> str:
    lines = tail(output).strip().splitlines()
    return lines[-1].removeprefix(f"{agent.NAME}: ")[:1000] if lines else f"exit code {process.returncode}"


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C may not stop the teardown."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
