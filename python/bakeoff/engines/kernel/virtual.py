"""The engine `kernel`: plan, script for PID 1, boot in virtual time, and what came out as a results folder.

It takes the newest kernel that was built; `kernel:NAME` and `kernel:PATH` take another one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import msgspec

from bakeoff import files
from bakeoff.engines import Outcome, place
from bakeoff.engines.kernel import cache as folders
from bakeoff.engines.kernel import check as kernel_check
from bakeoff.engines.kernel import check_cache, console, guest_memory, host_programs, registry
from bakeoff.engines.kernel.boot import boot, read_console
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.kernel.stall import PROGRESS, Watch, stall_reason
from bakeoff.errors import BakeoffError, NoKernelError, RefusedError, RunError
from bakeoff.results import layout, parts, write_json

if TYPE_CHECKING:
    from bakeoff.engines.lab import Command, Plan
    from bakeoff.engines.lab.versions import Parameter
    from bakeoff.scenario import Run

PLAN: Final = "plan.json"
_SCRIPT: Final = "script.json"
STATUS: Final = "agent-status.json"
"""What the guest's first process leaves there."""
_MOST_STATUS: Final = 1 << 20
"""Bytes of the guest's status: a message at most."""
GUEST: Final = "/tmp/out"  # noqa: S108 (a tmpfs of the guest's own)
"""Where the guest has the folder of its results."""
# What is younger than 5 s is no leak, and what the first look finds may be one that is just being made. The kernel
# tells the console of what it finds.
_LOOK_FOR_LEAKS: Final = (
    "mount -t debugfs none /sys/kernel/debug && cd /sys/kernel/debug"
    " && for look in 1 2; do sleep 6; echo scan > kmemleak; done && cat kmemleak"
)
# Wall time that a simulated second may take: what programs of others do with it nobody knows.
_WALL_BOUND: Final = 2.0
_WALL_WITH_PROGRAMS: Final = 60.0
# Set-up, settling and the drain behind the run, in virtual seconds.
_AROUND_S: Final = 20.0
# For --dry-run: what boot with set-up, and a simulated second, cost (docs/kernel-engine.md).
_WALL_PER_S: Final = 0.04
_BOOT_S: Final = 1.3


class _Ended(msgspec.Struct, frozen=True):
    """What the guest's first process says of its end (crates/agent/src/init.rs)."""

    status: Literal["ok", "failed"]
    phase: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class VirtualTime:
    """The kernel engine with one kernel: the newest one that was built, or that of this name or path."""

    named: str | None = None
    one_at_a_time: ClassVar = False
    repeatable: ClassVar = True

    @cached_property
    def kernel(self) -> BuiltKernel:
        """BakeoffError if there is none."""
        if self.named is not None:
            return registry.get(self.named)
        kernels = registry.list_kernels()
        if not kernels:
            raise NoKernelError("no virtual-time kernel; build one with 'bakeoff kernel build --source DIR|TARBALL'")
        return max(kernels, key=lambda kernel: kernel.binary.stat().st_mtime)

    @cached_property
    def report(self) -> kernel_check.Report:
        """What the kernel has, from one boot: of this command, or of an earlier one."""
        return check_cache.report(self.kernel)

    @cached_property
    def _versions_offered(self) -> dict[str, Parameter]:
        """Those of bakeoff's own modules that the kernel was built with."""
        from bakeoff.engines.lab import versions

        return versions.offered({path.stem: path.read_bytes() for path in self.kernel.modules})

    @cached_property
    def _parameters_offered(self) -> frozenset[tuple[str, str]]:
        """(module, parameter) that scenarios have words for and this kernel has, in a module or built in."""
        from bakeoff.engines.lab import parameters

        contents = {path.stem: path.read_bytes() for path in self.kernel.modules}
        built_in = self.kernel.binary.read_bytes()
        return frozenset(
            (module, name)
            for module, name in parameters.OFFERED
            if (
                f"\0parm={name}:".encode() in contents[module]
                if module in contents
                else f"\0{module}.{name}\0".encode() in built_in
            )
        )

    @cached_property
    def qdiscs_offered(self) -> frozenset[str]:
        """The queues that bakeoff's own modules add to this kernel."""
        from bakeoff.engines.lab import module_qdiscs

        return module_qdiscs.offered(self.kernel.modules)

    def check(self, run: Run) -> str:
        """See `Engine.check`. The first one ever boots the kernel, to ask it what it has.

        A kernel that somebody else built is not executed: what it has, its configuration says. The run asks it itself.
        """
        plan = self.plan(run)
        if still := stall_reason(run):
            raise RefusedError(still, place=place(run))
        kernel = self.kernel
        report = kernel_check.configured(kernel) if kernel.foreign else self.report
        kernel_check.require(run, report, place=place(run))
        _need_programs(run)
        host_paths(plan)
        if not kernel.foreign:
            return plan.text()
        return f"# will execute {kernel.binary} (SHA-256 {kernel.fingerprint}), confined\n{plan.text()}"

    def plan(self, run: Run) -> Plan:
        """The plan of a run, with notes on what differs from what was asked for."""
        from dataclasses import replace

        from bakeoff.engines.lab import plan
        from bakeoff.engines.lab.planner import refuse

        try:
            refuse(run)
        except BakeoffError as error:
            raise error.at(place(run)) from error
        _ = self.kernel  # what no kernel can do has been said by now
        guest = guest_memory.guest(run)
        try:
            made = plan(
                run,
                ethtool=host_programs.find("ethtool") is not None,
                captures=GUEST,
                tcp_pages=guest.tcp_pages,
                versions_offered=self._versions_offered,
                parameters_offered=self._parameters_offered,
                qdiscs_offered=self.qdiscs_offered,
            )
        except BakeoffError as error:
            raise error.at(place(run)) from error
        hz = self.kernel.options.get("HZ", "unknown")
        others = sorted({str(node.hz) for node in run.nodes} - {hz})
        ticks = [f"nodes[].hz: {', '.join(others)} asked for: the kernel's HZ is {hz}"] if others else []
        notes = [guest.note] if guest.note else []
        return replace(made, notes=(*made.notes, *ticks, *notes))

    def execute(self, run: Run, folder: Path) -> Outcome:
        """See `Engine.execute`. RunError if the set-up, the kernel or the agent failed."""
        from bakeoff.engines.lab import agent, convert
        from bakeoff.engines.lab import scenario_programs as lab_programs

        plan = self.plan(run)
        if self.kernel.foreign:
            kernel_check.require(run, self.report, place=place(run))
        write_json(folder / PLAN, plan.to_json())
        plan.write_files(folder)
        _need_programs(run)
        lab_programs.make_folders(plan, folder)
        script = folder / _SCRIPT
        write_json(script, self._script(run, plan, folder.resolve()))
        outcome = boot(
            self.kernel,
            script,
            results=folder,
            init=agent.find(),
            simulated_s=run.duration_s + _AROUND_S,
            memory=guest_memory.guest(run).option,
            seed=run.seed,
            parameters=self.built_in(run),
            wall_per_simulated_s=_WALL_WITH_PROGRAMS if plan.programs else _WALL_BOUND,
            readable=[
                *(Path(path) for path in host_paths(plan).values()),
                *(Path(path) for program in plan.programs for path in program.reads),
            ],
            folders=lab_programs.folders(plan),
            stopped=Watch(run, folder) if plan.programs else lambda: None,
        )
        script.unlink()
        (folder / PROGRESS).unlink(missing_ok=True)
        plan.remove_files(folder)
        judge(folder, outcome.status, outcome.reason, plan.captures)
        if trouble := console.trouble(read_console(outcome.console)):
            raise RunError(f"kernel: {trouble}; see {outcome.console.name}")
        tsv = folder / agent.OUTPUT
        series, counters, counted = convert.convert(run, plan, folder, tsv)
        tsv.unlink()
        (folder / STATUS).unlink()
        return Outcome(parts(series), counters, (*plan.notes, *counted))

    outcome = execute

    def versions(self) -> dict[str, str]:
        """Kernel, its fingerprint, iproute2, agent and bakeoff."""
        from bakeoff.engines.lab import agent
        from bakeoff.version import version

        return {
            "bakeoff": version(),
            "kernel": self.kernel.release,
            "kernel fingerprint": self.kernel.fingerprint,
            "iproute2": _iproute2(),
            "agent": agent.version(agent.find()),
        }

    def estimate_s(self, run: Run) -> float:
        """About how many seconds of one core a run takes."""
        duration_s: float = run.duration_s
        return _BOOT_S + duration_s * _WALL_PER_S

    def built_in(self, run: Run) -> list[str]:
        """Words of the kernel's command line."""
        modules = {path.stem for path in self.kernel.modules}
        return [
            f"{each.module}.{each.name}={each.value}" for each in self._parameters(run) if each.module not in modules
        ]

    def _parameters(self, run: Run) -> list[Parameter]:
        """Of the kernel's modules and of what is built in, for this run."""
        from bakeoff.engines.lab import parameters, sce, versions

        offered = self._versions_offered
        return [
            *versions.given(run, offered).values(),
            *(sce.pacing(run) if sce.by_module(offered) else []),
            *parameters.given(run, self._parameters_offered),
        ]

    def prepared(self, run: Run, plan: Plan, folder: Path, needed: Sequence[str] = ()) -> dict[str, Any]:
        """What the script of every boot begins with: mounts, modules and the set-up; `folder` is the guest's GUEST.

        `needed` are files and folders that the guest reads besides those of the system.
        """
        found = host_paths(plan)
        needed = [*needed, *(path for program in plan.programs for path in program.reads)]
        given = self._parameters(run)
        loaded = [
            {
                "node": "kernel",
                "netns": None,
                "argv": [
                    str(host_programs.need("insmod")),
                    str(module),
                    *(f"{parameter.name}={parameter.value}" for parameter in given if parameter.module == module.stem),
                ],
            }
            for module in self.kernel.modules
        ]
        return {
            "format": 1,
            "mounts": [
                _mount(GUEST, folder),
                *_covered([*found.values(), *map(str, self.kernel.modules), *needed]),
            ],
            "log": f"{GUEST}/{layout.SETUP_LOG}",
            "setup": [*loaded, *_steps(plan.setup, paths(plan))],
            "status": f"{GUEST}/{STATUS}",
        }

    def _script(self, run: Run, plan: Plan, folder: Path) -> dict[str, Any]:
        from bakeoff.engines.lab import agent

        found = paths(plan)
        looked = []
        if self.kernel.options.get("DEBUG_KMEMLEAK") == "y":
            argv = [str(host_programs.need("sh")), "-c", _LOOK_FOR_LEAKS]
            looked.append({"node": "kernel", "netns": None, "argv": argv})
        return {
            **self.prepared(run, plan, folder),
            "plan": agent.document(run, plan, f"{GUEST}/{agent.OUTPUT}", found)
            | ({"progress": f"{GUEST}/{PROGRESS}"} if plan.programs else {}),
            "teardown_log": f"{GUEST}/{layout.TEARDOWN_LOG}",
            "teardown": [*_steps(plan.statistics, found), *looked],
        }


@cache
def choose(named: str | None) -> VirtualTime:
    """The engine with the kernel of this name or path; None: the newest that was built."""
    return VirtualTime(named)


@cache
def _iproute2() -> str:
    version = host_programs.iproute2_version(host_programs.need("tc"))
    return ".".join(map(str, version)) if version else "unknown"


def host_paths(plan: Plan) -> dict[str, str]:
    """The host's path of each program that the plan names, but the agent; BakeoffError if one is missing."""
    from bakeoff.engines.lab import agent

    names = sorted({command.argv[0] for command in (*plan.setup, *plan.changes, *plan.statistics)})
    found = {name: str(host_programs.need(name)) for name in names if name != agent.NAME}
    for program in plan.programs:
        name = program.argv[0]
        found[name] = str(host_programs.host_program(name) or host_programs.need(name))
    return found


def paths(plan: Plan) -> dict[str, str]:
    """How the guest starts each program that the plan names; by its name the agent starts itself, whatever its file is
    called."""
    from bakeoff.engines.lab import agent

    return host_paths(plan) | {agent.NAME: agent.NAME}


def _steps(commands: Sequence[Command], found: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {"node": c.node, "netns": c.netns, "argv": [found[c.argv[0]], *c.argv[1:]], "background": c.background}
        for c in commands
    ]


def _need_programs(run: Run) -> None:
    """BakeoffError names a program of the scenario that is not on this machine."""
    for index, program in enumerate(run.programs):
        name = program.argv[0]
        if host_programs.host_program(name) is None:
            what = "is not an executable program" if "/" in name else "is not installed on this machine"
            install = f"; install: {host_programs.PACKAGES[name]}" if name in host_programs.PACKAGES else ""
            raise RefusedError(f"programs[{index}].run: '{name}' {what}{install}", place=place(run))


def _mount(target: str, source: Path) -> dict[str, str]:
    return {"type": "hostfs", "source": "none", "target": target, "options": str(source)}


def _covered(paths: list[str]) -> list[dict[str, str]]:
    """The guest has a /tmp and a /run of its own: what is needed from the host's is mounted once more."""
    needed = {str(Path(path).parent) for path in paths}
    if any(_is_covered(path) for path in needed):
        # A borrowed program is a script that names libraries elsewhere in the cache.
        needed.add(str(folders.root()))
    return [_mount(path, Path(path)) for path in sorted(needed) if _is_covered(path)]


def _is_covered(path: str) -> bool:
    return path.startswith(("/tmp/", "/run/"))  # noqa: S108


def judge(folder: Path, status: str, reason: str, captured: Sequence[tuple[str, str]]) -> None:
    """RunError if the kernel or the agent did not get to its end; says which command, if one failed."""
    from bakeoff.engines.lab import pcapng

    path = folder / STATUS
    ended = _read_end(path) if os.path.lexists(path) else None
    if status != "ok":
        raise RunError(f"kernel: {status}: {reason}")
    if ended is None:
        raise RunError(f"no status from the agent; see {layout.SETUP_LOG} and console.log")
    if ended.status != "ok":
        spent = pcapng.spent(folder, captured)
        if spent is not None:
            raise RunError(spent)
        raise RunError(f"{ended.phase}: {ended.error}")


def _read_end(path: Path) -> _Ended:
    """What the guest says of its end. RunError if it says nothing of the kind: it may be anybody's kernel."""
    try:
        return msgspec.json.decode(files.plain_bytes(path, _MOST_STATUS), type=_Ended)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RunError(f"{path.name}: {error}; expected a status written by the guest") from None
