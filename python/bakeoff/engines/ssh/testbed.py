"""The engine `ssh`: every node of a run is a machine of a testbed, in real time. See docs/lab.md.

`ssh:FILE` is the testbed of one inventory.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from bakeoff import lockfile
from bakeoff.engines import Outcome, controls, only_kernel_runs_programs, place
from bakeoff.engines.kernel import cache as cache_folder
from bakeoff.engines.ssh import connection, inventory
from bakeoff.engines.ssh.connection import Connection, LostError, Offset
from bakeoff.engines.ssh.inventory import Inventory
from bakeoff.errors import BakeoffError, RefusedError, TestbedError, UnreachableError
from bakeoff.results import parts, write_json

if TYPE_CHECKING:
    from bakeoff.engines.lab import Plan
    from bakeoff.engines.ssh.machine_info import MachineInfo
    from bakeoff.scenario import Run

_PLAN: Final = "plan.json"
# What a run takes besides its own time: a hundred commands over ssh, the wait for carriers, the start of agents.
_AROUND_S: Final = 20.0


@dataclass
class Testbed:
    """The machines of one inventory. What they are like is asked once."""

    named: str
    one_at_a_time: ClassVar = True
    repeatable: ClassVar = False
    _facts: dict[str, MachineInfo] = field(default_factory=dict)

    @cached_property
    def inventory(self) -> Inventory:
        """BakeoffError names what is wrong in the file."""
        return inventory.read(Path(self.named))

    @cached_property
    def connections(self) -> dict[str, Connection]:
        """node -> connection, not open yet; they are closed when Python ends."""
        for line in inventory.need_permission(Path(self.named), self.inventory):
            print(f"OpenSSH starts on this machine: {line}", file=sys.stderr)
        folder = connection.private_folder()
        made = {
            node: Connection(node, machine, self.inventory.config, folder)
            for node, machine in self.inventory.nodes.items()
        }

        def close() -> None:
            for machine in made.values():
                machine.close()
            shutil.rmtree(folder, ignore_errors=True)

        atexit.register(close)
        return made

    def check(self, run: Run) -> str:
        """See `Engine.check`. Connects to every node of the run, and looks at it."""
        from bakeoff.engines.lab import needs

        made = self.plan(run)
        for machine in self._machines(run):
            try:
                self._check_node(run, made, machine)
            except LostError as error:
                raise UnreachableError(str(error)) from None
        cached = cache(self._tried)
        for node, what in needs.lacking(made, cached):
            raise RefusedError(f"{node}: the kernel there {what}", place=place(run))
        notes = "".join(f"# {note}\n" for note in self._clock_notes(run, self._clocks(run)))
        return notes + made.text() + "# reverts each set-up command\n"

    def plan(self, run: Run, captures: str = ".") -> Plan:
        """The run's plan, with the machines' devices; captures go to that folder of each."""
        only_kernel_runs_programs(run, "ssh")
        from bakeoff.engines.lab import Device, plan

        # The plan of a run that cannot be is refused before any machine is asked.
        known = {
            node: {peer: Device(interface.device) for peer, interface in machine.interfaces.items()}
            for node, machine in self.inventory.nodes.items()
        }
        try:
            plan(run, machines=known)
            devices = {node.name: dict(self.facts(node.name).devices) for node in run.nodes}
            return plan(run, captures=captures, machines=devices)
        except BakeoffError as error:
            raise error.at(place(run)) from error

    def facts(self, node: str) -> MachineInfo:
        """What the node's machine is like; BakeoffError if it cannot be one."""
        from bakeoff.engines.ssh import machine_info

        if node not in self._facts:
            machine = self.connections[node]
            try:
                machine.open()
            except LostError as error:
                raise UnreachableError(str(error)) from None
            try:
                self._facts[node] = machine_info.gather(machine)
            except BaseException:
                # Who asks again connects again, and nothing would end the first connection.
                machine.close()
                raise
        return self._facts[node]

    def execute(self, run: Run, folder: Path) -> Outcome:
        """See `Engine.execute`. RunError names the node if one fails, is lost, or cannot be put back."""
        from bakeoff.engines.lab import convert
        from bakeoff.engines.ssh.session import Session

        with self._alone():
            made = self.plan(run, captures="{folder}")
            write_json(folder / _PLAN, made.to_json())
            clocks = self._clocks(run)
            session = Session(run, made, {m.node: m for m in self._machines(run)}, clocks, folder)
            tsvs = session.conduct()
            after = self._clocks(run)
        series, counters, counted = convert.convert(run, made, folder, *tsvs)
        for tsv in tsvs:
            tsv.unlink()
        moved = [
            f"node '{node}': its clock went {(after[node].ns - clocks[node].ns) / 1e6:+.3f} ms during the run"
            for node in clocks
        ]
        return Outcome(parts(series), counters, (*made.notes, *self._clock_notes(run, clocks), *moved, *counted))

    outcome = execute

    def versions(self) -> dict[str, str]:
        """Kernel and iproute2 of each node, agent and bakeoff."""
        from bakeoff.engines.lab import agent
        from bakeoff.version import version

        versions = {"bakeoff": version(), "agent": agent.version(agent.find())}
        for node, facts in self._facts.items():
            versions[f"kernel {node}"] = facts.kernel
            versions[f"tc {node}"] = facts.iproute2
        return versions

    def estimate_s(self, run: Run) -> float:
        """Real time: a run's length and what surrounds it."""
        return run.duration_s + _AROUND_S

    def _machines(self, run: Run) -> list[Connection]:
        return [self.connections[node.name] for node in run.nodes]

    def _check_node(self, run: Run, made: Plan, machine: Connection) -> None:
        from bakeoff.engines.lab import agent
        from bakeoff.engines.ssh import machine_info, session

        agent.find()
        commands = (*made.setup, *made.changes, *made.programs, *made.statistics)
        machine_info.need_programs(machine, sorted({c.argv[0] for c in commands if c.node == machine.node}))
        ccs = [role["cc"] for role in made.roles if role["node"] == machine.node and "cc" in role]
        for name in machine_info.lacking_ccs(machine, ccs):
            module = controls.module(name)
            raise RefusedError(
                f"{machine.place}: cc '{name}' is missing in its kernel; expected module {module}"
                f"{controls.elsewhere(name, 'ssh')}",
                place=place(run),
            )
        session.need_free(machine)

    def _tried(self, node: str, argv: tuple[str, ...]) -> str:
        try:
            return self.connections[node].run(["unshare", "--net", *argv]).text
        except LostError as error:
            raise UnreachableError(str(error)) from None

    def _clocks(self, run: Run) -> dict[str, Offset]:
        """node -> its clock; BakeoffError if it cannot be known as well as samples are apart."""
        clocks = {}
        for machine in self._machines(run):
            try:
                offset = machine.offset()
            except LostError as error:
                raise UnreachableError(str(error)) from None
            if offset.uncertainty_ns > run.sample_interval_s * 1e9:
                raise TestbedError(
                    f"{machine.place}: clock uncertainty of ± {offset.uncertainty_ns / 1e6:.1f} ms (half of the "
                    f"shortest round trip); expected at most the sample interval, {run.sample_interval_s * 1e3:g} ms"
                )
            clocks[machine.node] = offset
        return clocks

    def _clock_notes(self, run: Run, clocks: dict[str, Offset]) -> list[str]:
        notes = [
            f"node '{node}': its clock is {offset.ns / 1e6:+.3f} ms from the controller's, "
            f"± {offset.uncertainty_ns / 1e6:.3f} ms; the run's times are corrected by it"
            for node, offset in clocks.items()
        ]
        if any(probe.proto == "udp" for probe in run.probes):
            notes.append("probes: one-way delays are available between roles on one kernel only")
        return notes

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait until no other run of this user's uses the testbed."""
        name = hashlib.sha256(str(Path(self.named).resolve()).encode()).hexdigest()[:16]
        # Not in /tmp, where others could hold or replace it.
        folder = cache_folder.root() / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = lockfile.opened(folder / f"ssh-{name}.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


@cache
def choose(named: str | None) -> Testbed:
    """The testbed of this inventory file; BakeoffError without one."""
    if not named:
        raise TestbedError("engine ssh: missing inventory; expected --engine ssh --inventory FILE")
    return Testbed(named)
