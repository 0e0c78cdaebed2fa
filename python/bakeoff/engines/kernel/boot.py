"""Boot a virtual-time kernel for one run, and say how it ended.

The guest's root is the host's `/`, mounted read-only; what it writes goes to a `hostfs` mount of the results folder
that PID 1 makes itself. The kernel process is confined (launch.py), whatever the guest does and whoever built it. No
root is needed and the guest has no network device of the host.

PID 1 is `init`, started as `INIT init SCRIPT` (docs of the agent). It powers the machine off when it is done; a PID 1
that ends in any other way is a kernel panic, recognised in the console log.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import mmap
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from bakeoff import files
from bakeoff.engines.kernel import cache, core
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.kernel.seed import library
from bakeoff.errors import KernelError, RunError

CONSOLE: Final = "console.log"

# The wall clock of every run begins at the same instant; nanoseconds since 1970 (14 November 2023).
_START_NS: Final = 1_700_000_000_000_000_000
_LAUNCH: Final = Path(__file__).with_name("launch.py")
# Boot and set-up cost wall time while virtual time stands still.
_STARTUP_S: Final = 60.0
# A kernel with one of these checks each lock or each access to memory: so many times as slow, or nearly.
_CHECKS_ITSELF: Final = ("PROVE_LOCKING", "KASAN", "SLUB_DEBUG_ON", "DEBUG_OBJECTS")
_SLOW: Final = 10.0
_CONSOLE_LIMIT: Final = 64 << 20
_CONSOLE_END: Final = 1 << 20
_FULL: Final = 1 << 20
# Versions of Landlock.
_TRUNCATE_SINCE: Final = 3
_SIGNALS_SINCE: Final = 6

Clock = Literal["virtual", "real"]
Status = Literal["ok", "panic", "init-ended", "hang", "disk-full", "not-started", "failed"]


@dataclass(frozen=True)
class Outcome:
    """How a boot ended."""

    status: Status
    """`ok`: PID 1 powered off. `panic`: the kernel's own. `init-ended`: PID 1 exited or was killed. `hang`: out of
    its budget of wall time.
    `disk-full`: no room for the results or for the guest's memory. `not-started`: the kernel process ended before its
    first line, because this machine or sandbox forbids what it needs. `failed`: anything else."""
    reason: str
    """One sentence; empty if `ok`."""
    exit_code: int
    """Of the kernel process; negative for a signal."""
    wall_s: float
    console: Path
    confined: bool
    """Whether Landlock and seccomp kept the kernel process to its files, besides the read-only root."""
    seeded: bool
    """Whether the guest's random generator was seeded from `seed`; otherwise ports and sequence numbers differ from
    boot to boot."""

    def to_json(self) -> dict[str, object]:
        """The same as plain values."""
        return asdict(self) | {"console": str(self.console)}


def boot(
    kernel: BuiltKernel,
    script: Path,
    *,
    results: Path,
    init: Path,
    simulated_s: float | None,
    memory: str = "256M",
    wall_per_simulated_s: float = 2.0,
    seed: int = 0,
    parameters: Sequence[str] = (),
    readable: Sequence[Path] = (),
    folders: Sequence[str] = (),
    stopped: Callable[[], str | None] = lambda: None,
    clock: Clock = "virtual",
    line: tuple[int, int] | None = None,
) -> Outcome:
    """Run `init` as PID 1 of `kernel` with `script`, and wait for the end.

    `results` must exist and is the only folder written to (`console.log` is written there besides what the guest
    writes). `parameters` are words of the kernel's command line, such as `tcp_cubic.beta=600`. `readable` are files and
    folders that the guest needs besides the kernel, its modules, `init`, `script`, the system's folders and what
    'bakeoff kernel fetch-programs' unpacked. `folders` of the results are the guest's to write into.

    `stopped` is asked four times a second; what it answers ends the boot as the reason of a hang.

    The kernel and its guest have one core of those that this process may use (`core.taken`).

    The budget is 60 s + `simulated_s` × `wall_per_simulated_s` of wall time, and ten times that for a kernel that was
    built to check its locks or its memory; a kernel that needs more is killed. `simulated_s` None: there is no budget.

    The guest's `clock` stands still while its programs compute (`virtual`), or is the machine's (`real`). `line` are
    file descriptors that the guest's /dev/tty1 reads from and writes to; they are closed here.
    Several boots may run at once, in threads or processes. On KeyboardInterrupt, or any other exception, the kernel and
    its helpers are killed before it goes on. BakeoffError if a path is wrong or this machine cannot give the guest its
    memory.
    """
    _check(script, results, init, memory)
    console = results / CONSOLE
    slow = _SLOW if any(kernel.options.get(symbol) == "y" for symbol in _CHECKS_ITSELF) else 1.0
    budget_s = math.inf if simulated_s is None else slow * (_STARTUP_S + simulated_s * wall_per_simulated_s)
    # A statically linked kernel loads no library.
    seed_library = library() if kernel.options.get("STATIC_LINK") != "y" else None
    with core.taken() as own_core, _private_folders(script, init) as (folder, memory_folder):
        uml_dir = folder / "uml"
        command = command_line(kernel, memory=memory, uml_dir=uml_dir, parameters=parameters, clock=clock, line=line)
        environment = {"TMPDIR": str(memory_folder), "HOME": str(folder)}
        if seed_library is not None:
            environment |= {"LD_PRELOAD": str(seed_library), "BAKEOFF_SEED": str(seed)}
        needed = [folder, script, init, kernel.binary, *kernel.modules, *readable, cache.root() / "programs"]
        needed += [seed_library] if seed_library is not None else []
        spec = {
            "parent": os.getpid(),
            "core": own_core,
            "environment": environment,
            "results": str(results.resolve()),
            "writable": [str(uml_dir), str(memory_folder)],
            "readable": [str(path.resolve()) for path in needed],
        }
        started = time.monotonic()
        with console.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LAUNCH), json.dumps(spec), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
                start_new_session=True,
                pass_fds=line or (),
            )
            for end in line or ():
                os.close(end)
            overdue = _wait(process, started + budget_s, log.fileno(), stopped)
        wall_s = time.monotonic() - started
        memory_left = shutil.disk_usage(memory_folder).free
    # Before anything in there is opened: now that every process of the guest is gone, nobody can put it back.
    planted = files.sweep(results, folders)
    try:
        log_text = read_console(console)
    except RunError as problem:
        log_text = ""
        planted = planted or [str(problem)]
    status, reason = _judge(process.returncode, log_text, overdue=overdue, results=results, memory_left=memory_left)
    if planted:
        status = "failed"
        reason = f"deleted non-regular files from the guest's results: {', '.join(planted)}"
    if status == "hang" and overdue == "time":
        times = f", × {slow:g} because it checks itself" if slow > 1 else ""
        reason += f" of {budget_s:.0f} s (60 s + {simulated_s:g} simulated seconds × {wall_per_simulated_s:g} s{times})"
        reason += f"; last console line: {_last_line(log_text)!r}"
    return Outcome(
        status=status,
        reason=reason,
        exit_code=process.returncode,
        wall_s=wall_s,
        console=console,
        confined=confinement() == "",
        seeded=seed_library is not None,
    )


def command_line(
    kernel: BuiltKernel,
    *,
    memory: str,
    uml_dir: Path,
    parameters: Sequence[str] = (),
    clock: Clock = "virtual",
    line: tuple[int, int] | None = None,
) -> list[str]:
    """The kernel's command line.

    It is mixed into the guest's random generator, so what differs from run to run stays out of it: `uml_dir=` is
    taken out by UML itself, and
    `init` and the script are named through the kernel process's working folder, which hostfs resolves on the host.
    """
    words = [
        str(kernel.binary),
        f"uml_dir={uml_dir}/",
        "umid=run",
        f"mem={memory}",
        *(["time-travel=inf-cpu", f"time-travel-start={_START_NS}"] if clock == "virtual" else []),
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        "con=null",
        "con0=fd:0,fd:1",
        *([f"con1=fd:{line[0]},fd:{line[1]}"] if line is not None else []),
        "noreboot",
        "norandmaps",
        "oops=panic",
        # Tells the kernel's own lines on the console from those of PID 1.
        "printk.time=1",
        "random.trust_cpu=on",
        # No tunl0, gre0, sit0 … in every namespace.
        "sysctl.net.core.fb_tunnels_only_for_init_net=1",
        "init=/proc/self/cwd/init",
        *parameters,
    ]
    if clock == "virtual" and kernel.options.get("CRYPTO_JITTERENTROPY") == "y":
        # IPsec selects it in older trees, such as 6.12. Its initcall times memory accesses and never ends where they
        # take no time. The DRBG continues without it (drbg_prepare_hrng).
        words.insert(1, "initcall_blacklist=jent_mod_init")
    if _has_seccomp(kernel.release):
        words.insert(1, "seccomp=auto")
    return [*words, "--", "init", "/proc/self/cwd/script.json"]


def _has_seccomp(release: str) -> bool:
    """UML's seccomp mode, two to three times faster than ptrace, came with 6.16; older kernels do not know the word."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return match is not None and (int(match[1]), int(match[2])) >= (6, 16)


def _check(script: Path, results: Path, init: Path, memory: str) -> None:
    if not script.is_file():
        raise KernelError(f"{script}: no such script for PID 1")
    if not results.is_dir():
        raise KernelError(f"{results}: no such results folder")
    if not os.access(init, os.X_OK):
        raise KernelError(f"{init}: not executable; expected the agent's binary")
    if not re.fullmatch(r"[1-9]\d*[KMG]", memory):
        raise KernelError(f"memory {memory!r}: expected a number and K, M or G, such as 256M")


@contextlib.contextmanager
def _private_folders(script: Path, init: Path) -> Iterator[tuple[Path, Path]]:
    """A folder that names init and script for the guest, and one for the file behind the guest's memory."""
    with (
        tempfile.TemporaryDirectory(prefix="bakeoff-boot-") as folder,
        tempfile.TemporaryDirectory(prefix="bakeoff-memory-", dir=memory_parent()) as memory,
    ):
        (Path(folder) / "init").symlink_to(init.resolve())
        (Path(folder) / "script.json").symlink_to(script.resolve())
        (Path(folder) / "uml").mkdir()
        yield Path(folder), Path(memory)


def memory_parent() -> str:
    """A folder whose files can be mapped executable, in memory if there is one (containers mount /dev/shm noexec)."""
    for parent in ("/dev/shm", tempfile.gettempdir()):  # noqa: S108
        try:
            with tempfile.TemporaryFile(dir=parent) as file:
                file.truncate(mmap.PAGESIZE)
                mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise KernelError(f"{parent}: full; expected space for the guest's memory") from error
            continue
        return parent
    raise KernelError(
        f"no folder for the guest's memory: /dev/shm and {tempfile.gettempdir()} are mounted noexec or not writable"
    )


def _wait(
    process: subprocess.Popen[bytes], deadline: float, console: int, stopped: Callable[[], str | None]
) -> str | None:
    """Wait for the end; stop at the deadline, if the console floods or for a reason of `stopped`, and say why.

    Leaves no process behind.
    """
    try:
        ended = os.pidfd_open(process.pid)
        try:
            while (left := deadline - time.monotonic()) > 0:
                if select.select([ended], [], [], min(left, 0.25))[0]:
                    return None
                if os.fstat(console).st_size > _CONSOLE_LIMIT:
                    return "console"
                if (reason := stopped()) is not None:
                    return reason
            return "time"
        finally:
            os.close(ended)
    finally:
        # UML's stubs are in the kernel's process group; after an orderly end there is nobody left to kill.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read_console(console: Path) -> str:
    """The console log; of a flood only both ends, and no more than the limit stays on disk.

    RunError if it is missing, or not a regular file.
    """
    with files.plain_opened(console, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= _CONSOLE_END:
            return file.read().decode(errors="replace")
        if size > _CONSOLE_LIMIT:
            file.truncate(_CONSOLE_LIMIT)
            size = _CONSOLE_LIMIT
        head = file.read(_CONSOLE_END // 2)
        file.seek(size - _CONSOLE_END // 2)
        return (head + file.read()).decode(errors="replace")


def _judge(code: int, log: str, *, overdue: str | None, results: Path, memory_left: int) -> tuple[Status, str]:
    """Status and reason from what is left: the exit code, the console, and why it was killed, if it was."""
    last = f"last line: {_last_line(log)!r}"
    panic = re.search(r"Kernel panic - not syncing: (.*)", log)
    verdict: tuple[Status, str]
    if _full(results, log):
        verdict = "disk-full", f"no space left where the results are written ({results})"
    elif overdue == "time":
        verdict = "hang", "the kernel did not end within its budget"
    elif overdue == "console":
        verdict = "failed", f"more than {_CONSOLE_LIMIT >> 20} MiB on the console; {last}"
    elif overdue is not None:
        verdict = "hang", overdue
    elif panic is not None:
        verdict = _panic(log, panic)
    elif code == 0 and "Power down" in log:
        verdict = "ok", ""
    elif code == -signal.SIGBUS or memory_left < _FULL:
        verdict = "disk-full", "no space left for the guest's memory (the file system behind it is full)"
    elif "Linux version" not in log:
        verdict = "not-started", f"this machine does not let the kernel start; {last}"
    elif code < 0:
        verdict = "failed", f"the kernel process was killed by {signal.Signals(-code).name}; {last}"
    else:
        verdict = "failed", f"the kernel process ended with exit code {code} without powering off; {last}"
    return verdict


def _panic(log: str, panic: re.Match[str]) -> tuple[Status, str]:
    before = _before(log, panic.start())
    ended = re.search(r"Attempted to kill init! exitcode=0x([0-9a-f]+)", panic[1])
    if ended is not None:
        return "init-ended", _wait_status(int(ended[1], 16)) + before
    if "No working init found" in panic[1] or "Requested init" in panic[1]:
        return "failed", f"PID 1 cannot be executed in the guest: {panic[1].strip()}{before}"
    return "panic", f"kernel panic: {panic[1].strip()}"


def _full(results: Path, log: str) -> bool:
    return "No space left on device" in log or shutil.disk_usage(results).free < _FULL


def _wait_status(status: int) -> str:
    if status & 0x7F:
        return f"PID 1 (the agent) was killed by {signal.Signals(status & 0x7F).name}"
    return f"PID 1 (the agent) ended with exit code {status >> 8 & 0xFF}"


def _before(log: str, position: int) -> str:
    """What PID 1 said last: the last line ahead of `position` without the time stamp of the kernel's own."""
    started = log.rfind("as init process", 0, position)
    for line in reversed(log[started:position].splitlines()[1:] if started >= 0 else []):
        if line.strip() and not re.match(r"\[\s*\d+\.\d+\]", line):
            return f": {line.strip()!r}"
    return ""


def _last_line(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def python_files() -> list[Path]:
    """What a guest needs to read whose programs are for this Python: its binary and library, and no site-packages of a
    virtual environment."""
    return [Path(sys.executable), Path(sys.prefix) / "pyvenv.cfg", Path(sys.base_prefix)]


def confinement() -> str:
    """What this host cannot keep the kernel process from, for want of Landlock or seccomp; empty if nothing."""
    import ctypes

    from bakeoff.engines.kernel import launch

    libc = ctypes.CDLL(None, use_errno=True)
    abi = launch.landlock_abi(libc)
    open_to = []
    if abi == 0:
        open_to.append("has no Landlock: reading and writing all files of this user")
    elif abi < _TRUNCATE_SINCE:
        open_to.append(f"has Landlock {abi}: emptying files of this user by truncate(2)")
    if abi < _SIGNALS_SINCE:
        open_to.append("has no signal scope (Landlock 6): ending other processes of this user")
    if not launch.has_seccomp(libc):
        open_to.append("has no seccomp: changing modes and times of files, and sockets")
    return "; ".join(open_to)
