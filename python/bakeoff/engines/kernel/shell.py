"""A shell, or one command, inside the network of a run: the run's kernel with its set-up, and no traffic unless asked.

The clock is the machine's by default, because a person types in real time; a command without a terminal may have the
runs' own clock, which stands still while programs compute.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff.engines import place
from bakeoff.engines.kernel import check as kernel_check
from bakeoff.engines.kernel import guest_memory, host_programs, virtual
from bakeoff.engines.kernel.boot import Clock, boot
from bakeoff.engines.kernel.command_stream import CommandStream
from bakeoff.engines.kernel.virtual import GUEST, VirtualTime
from bakeoff.errors import KernelError, RefusedError, RunError
from bakeoff.results import write_json

if TYPE_CHECKING:
    from bakeoff.engines.lab.topology import Topology
    from bakeoff.scenario import Run

_SCRIPT: Final = "script.json"
_LINE: Final = "/dev/tty1"
# Ahead of everything else: a tmpfs of the guest's own.
_BIN: Final = "/tmp/bin"  # noqa: S108
_ON: Final = (
    '#!/bin/sh\nNODE=$1\nexport NODE\nshift\n[ $# -gt 0 ] || set -- {shell}\nexec {ip} netns exec "$NODE" "$@"\n'
)
_PASSED_ON: Final = ("TERM", "COLORTERM", "LANG", "LC_ALL", "TZ")


@dataclass(frozen=True)
class Asked:
    """What is to be done in the network."""

    node: str
    """Where it begins."""
    command: str | None = None
    """One command, in the words of a shell; None: a shell."""
    terminal: bool = False
    clock: Clock = "real"
    traffic: bool = False
    """Whether the run's flows and probes begin with it."""
    reads: tuple[Path, ...] = ()
    """Files and folders that it may read besides those of the system."""
    folder: Path | None = None
    """Where it begins and may write files, which stay; None: one that goes with it."""


def first_host(run: Run) -> str:
    """The host that sends the first flow; without flows the first host."""
    if run.flows:
        return run.flows[0].from_
    return next(node.name for node in run.nodes if node.kind != "bridge")


def check(engine: VirtualTime, run: Run, asked: Asked) -> None:
    """BakeoffError if the kernel, or this machine, cannot do what is asked. The first one ever boots the kernel."""
    if asked.node not in (names := [node.name for node in run.nodes]):
        raise RefusedError(f"'{asked.node}': unknown node; expected one of {', '.join(names)}", place=place(run))
    _check_kernel(engine, asked)
    plan = replace(engine.plan(run), programs=())
    kernel_check.require(run, engine.report, place=place(run))
    virtual.host_paths(plan)


def enter(engine: VirtualTime, run: Run, asked: Asked) -> int:
    """Boot the run's kernel, make its network, and do what is asked, which was checked; its exit code.

    RunError if it failed half-way.
    """
    from bakeoff.engines.lab import agent

    run = run.model_copy(update={"captures": [], "trace": []})
    with tempfile.TemporaryDirectory(prefix="bakeoff-shell-") as temporary:
        folder = asked.folder or Path(temporary)
        script = Path(temporary) / _SCRIPT
        plan = replace(engine.plan(run), programs=())
        plan.write_files(folder)
        write_json(script, _script(engine, run, asked, folder.resolve()))
        line = CommandStream(terminal=asked.terminal)
        try:
            with line.attached():
                outcome = boot(
                    engine.kernel,
                    script,
                    results=folder,
                    init=agent.find(),
                    simulated_s=None,
                    memory=guest_memory.guest(run).option,
                    seed=run.seed,
                    parameters=engine.built_in(run),
                    readable=[*map(Path, virtual.host_paths(plan).values()), *asked.reads],
                    stopped=line.stopped,
                    clock=asked.clock,
                    line=line.guest,
                )
                line.join()
        finally:
            plan.remove_files(folder)
            (folder / agent.OUTPUT).unlink(missing_ok=True)
        if line.broken is not None:
            raise line.broken
        virtual.judge(folder, outcome.status, outcome.reason, [])
        (folder / virtual.STATUS).unlink()
    if line.exit_code is None:
        raise RunError("the kernel exited before the shell")
    return line.exit_code


def _check_kernel(engine: VirtualTime, asked: Asked) -> None:
    needed = ["DEVTMPFS_MOUNT", *(["UNIX98_PTYS"] if asked.terminal else [])]
    for symbol in needed:
        if engine.kernel.options.get(symbol) != "y":
            raise KernelError(f"kernel {engine.kernel.name}: built without CONFIG_{symbol}; a shell needs it")


def _script(engine: VirtualTime, run: Run, asked: Asked, folder: Path) -> dict[str, Any]:
    """For PID 1 (crates/agent/src/shell.rs)."""
    from bakeoff.engines.lab import agent
    from bakeoff.engines.lab.topology import topology

    plan = replace(engine.plan(run), programs=())
    net = topology(run)
    shell = _shell()
    borrowed = Path(host_programs.search_path().partition(":")[0])
    needed = [*map(str, asked.reads), *([str(borrowed / "x")] if borrowed.is_dir() else [])]
    prepared = engine.prepared(run, plan, folder, needed)
    on = _ON.format(shell=shlex.join(shell), ip=shlex.quote(str(host_programs.need("ip"))))
    sh = str(host_programs.need("sh"))
    own = [
        _step(sh, f"mkdir {_BIN} && cat > {_BIN}/on && chmod 755 {_BIN}/on", on),
        _step(sh, f"cat > {_BIN}/.hosts && mount --bind {_BIN}/.hosts /etc/hosts", hosts(run, net)),
        _step(sh, "for n in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do ln -sf /proc/self/${n#*:} /dev/${n%:*}; done"),
    ]
    if asked.terminal:
        options = {"type": "devpts", "source": "devpts", "target": "/dev/pts", "options": "ptmxmode=0666"}
        prepared["mounts"].append(options)
    script = prepared | {
        "setup": [*prepared["setup"], *own],
        "shell": {
            "node": asked.node,
            "netns": net.namespaces[asked.node],
            "argv": shell if asked.command is None else [shell[0], "-c", asked.command],
            "env": _environment(run, asked.node, os.environ),
            "folder": GUEST,
            "line": _LINE,
            "terminal": asked.terminal,
        },
    }
    if asked.traffic:
        script["plan"] = agent.document(run, plan, f"{GUEST}/{agent.OUTPUT}", virtual.paths(plan))
    return script


def _step(sh: str, text: str, stdin: str | None = None) -> dict[str, Any]:
    return {"node": "shell", "netns": None, "argv": [sh, "-c", text], "stdin": stdin}


def hosts(run: Run, net: Topology) -> str:
    """The guest's /etc/hosts: each node by its name, its interfaces as NODE.PEER, ends of tunnels as NODE.TUNNEL."""
    from bakeoff.engines.lab import tunnels

    lines = ["127.0.0.1 localhost"]
    named: set[str] = set()
    for (node, peer), interface in net.interfaces.items():
        if interface.address is not None:
            # A node's own name is the address of its first link, as in `programs`.
            own = [] if node in named else [node]
            lines.append(" ".join([interface.address, *own, f"{node}.{peer}"]))
            named.add(node)
    lines += [f"{address} {node}.{tunnel}" for address, tunnel, node in tunnels.ends(run)]
    return "\n".join(lines) + "\n"


def _shell() -> list[str]:
    """bash without what a user's own set-up does, or sh."""
    bash = host_programs.host_program("bash")
    return [str(bash), "--norc"] if bash is not None else [str(host_programs.need("sh"))]


def _environment(run: Run, node: str, ours: Mapping[str, str]) -> dict[str, str]:
    label = "".join(c if c.isalnum() or c in " .,:;/+=@%()_-" else "_" for c in run.run)
    passed = {name: ours[name] for name in _PASSED_ON if name in ours}
    return passed | {
        "PATH": f"{_BIN}:{host_programs.search_path()}",
        "HOME": GUEST,
        "USER": "root",
        "SHELL": _shell()[0],
        "NODE": node,
        "PS1": f"{label} $NODE# ",
        "HISTFILE": "",
    }
