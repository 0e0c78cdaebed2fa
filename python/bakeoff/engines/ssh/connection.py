"""A machine that is reached with the `ssh` program: commands on it, files to it and from it, its clock.

OpenSSH does all that is about identity (its configuration, keys, agent, known_hosts). One connection per machine
carries all commands (ControlMaster), its socket in a folder that only this user can read.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from bakeoff.engines.ssh.inventory import Machine
from bakeoff.errors import RunError, TestbedError

# OpenSSH's exit code for what went wrong with itself.
_OF_SSH: Final = 255
_PATIENCE_S: Final = 60.0
_OPTIONS: Final = (
    "BatchMode=yes",
    "ConnectTimeout=10",
    # A machine that is lost is noticed in 15 s.
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
)
# Non-login shells of users often lack the system's folders.
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# sshd does not end what it started when the connection goes: this ends its command when its input ends.
_LEASH: Final = """exec 3<&0
"$@" </dev/null &
child=$!
{ cat <&3; kill -TERM $child; } >/dev/null 2>&1 &
watch=$!
wait $child 2>/dev/null
code=$?
exec 2>/dev/null
kill $watch
exit $code"""
_CLOCK: Final = "while read -r x; do date +%s%N; done"
_ROUNDS: Final = 20
# A machine is a stranger: what it says ends at these sizes, in bytes, and at these times.
_SAID: Final = 16 << 20
_CLOCK_SAID: Final = 64
_TOLD: Final = 1 << 20
_OPEN_S: Final = 120.0
# Lines and characters of an answer that a message shows.
_LINES: Final = 20
_SHOWN: Final = 2000
FILE: Final = 16 << 30
"""The largest file that is copied from a machine."""
_SLOWEST_RATE: Final = 1e6
"""Bytes per second: slower than that, a file has not arrived in time."""
_CLOCK_NS: Final = 86_400 * 10**9
"""How far a machine's clock may be from the controller's: a day."""


class LostError(RunError):
    """The machine cannot be reached."""


@dataclass(frozen=True)
class Answer:
    """What a command left."""

    code: int
    out: bytes
    text: str
    """Standard output and error, as text."""

    @property
    def shown(self) -> str:
        """What was said, for a message: its beginning and its end if it is long."""
        lines = self.text.strip().splitlines()
        if len(lines) > _LINES:
            lines[_LINES // 2 : -_LINES // 2] = [f"… ({len(lines) - _LINES:,} lines omitted) …"]
        return excerpt("\n".join(lines), _SHOWN)


@dataclass(frozen=True)
class Offset:
    """A machine's clock against the controller's, CLOCK_REALTIME."""

    ns: int
    """How far it is ahead."""
    uncertainty_ns: int
    """Half of the shortest round trip: the truth lies within."""


@dataclass
class Connection:
    """One machine of the testbed."""

    node: str
    machine: Machine
    config: str | None
    control: Path
    """Folder for the socket of the connection."""
    _shell: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> str:
        """For messages: `node 'mid' (mid.lab)`."""
        return f"node '{self.node}' ({self.machine.host})"

    def open(self) -> None:
        """Connect; LostError with OpenSSH's own words if that fails."""
        # A file: the connection stays in the background and would keep a pipe open.
        with tempfile.TemporaryFile() as errors:
            argv = self._ssh("-o", "ControlMaster=yes", "-o", "ControlPersist=60", "-f", "-N", after=())
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
            )
            problem = ended(process, errors.fileno(), _OPEN_S)
            if problem is not None:
                raise LostError(f"{self.place}: {problem} while connecting")
            if process.returncode != 0:
                raise LostError(f"{self.place}: {_last(tail(errors), process.returncode)}")

    def close(self) -> None:
        """End the connection."""
        self._drop_shell()
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                self._ssh("-O", "exit", after=()), capture_output=True, check=False, timeout=5, start_new_session=True
            )

    def run(self, words: Sequence[str], *, timeout_s: float = _PATIENCE_S) -> Answer:
        """One command as root to its end. LostError if the machine does not answer.

        All go to one shell there: a session of ssh per command would take longer than the command.
        """
        end = secrets.token_hex(16)
        line = f"{shlex.join(words)} </dev/null 2>&1; printf '\\n%s %d\\n' {end} $?\n"
        try:
            return self._answer(line.encode(), end.encode(), time.monotonic() + timeout_s, words)
        except BaseException:
            # What it says later would be taken for the answer to the next command.
            self._drop_shell()
            raise

    def _answer(self, line: bytes, end: bytes, deadline: float, words: Sequence[str]) -> Answer:
        if self._shell is None:
            self._shell = subprocess.Popen(
                self._command(["sh"], root=True),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
            )
            # A machine that takes nothing would hold a write for ever.
            assert self._shell.stdin is not None
            os.set_blocking(self._shell.stdin.fileno(), False)
        shell = self._shell
        assert shell.stdin is not None
        assert shell.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            if shell.stdin.write(line) != len(line):
                raise LostError(f"{self.place}: connection lost before: {shlex.join(words)}")
        errors = bytearray()
        last = re.compile(rb"\n" + end + rb" (\d{1,3})\n")
        looked = 0
        while (ended := last.search(errors, looked)) is None:
            # The end is at most some 40 bytes long, and may have come in part.
            looked = max(0, len(errors) - 64)
            [(_, more)] = self._heard([shell.stdout], deadline, words)
            if not more:
                code = self._code(shell, deadline, words)
                raise LostError(f"{self.place}: {_last(errors.decode(errors='replace'), code)}")
            errors += more
            self._bounded(len(errors), _SAID, words)
        out = bytes(errors[: ended.start()])
        return Answer(int(ended[1]), out, out.decode(errors="replace"))

    def _heard(
        self, pipes: Sequence[IO[bytes]], deadline: float, words: Sequence[str]
    ) -> list[tuple[IO[bytes], bytes]]:
        """What came next from which of the pipes, nothing of one that ended. LostError after the deadline."""
        left = deadline - time.monotonic()
        # Looked at each time: a machine that never stops talking is as late as one that is silent.
        ready = select.select(pipes, [], [], left)[0] if left > 0 else []
        if not ready:
            raise LostError(f"{self.place}: timed out: {shlex.join(words)}")
        return [(pipe, os.read(pipe.fileno(), 1 << 16)) for pipe in ready]

    def _bounded(self, got: int, most: int, words: Sequence[str]) -> None:
        if got > most:
            raise LostError(f"{self.place}: more than {most:,} bytes of output from: {shlex.join(words)}")

    def _code(self, process: subprocess.Popen[bytes], deadline: float, words: Sequence[str]) -> int:
        """How ssh ended. LostError if it does not, although all was said."""
        try:
            return process.wait(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise LostError(f"{self.place}: timed out: {shlex.join(words)}") from None

    def _drop_shell(self) -> None:
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.kill()
            with shell:
                pass

    def _session(
        self,
        words: Sequence[str],
        *,
        root: bool = True,
        stdin: bytes = b"",
        take: Callable[[bytes], object] | None = None,
        most: int | None = None,
        timeout_s: float = _PATIENCE_S,
    ) -> Answer:
        """One command in a session of its own, which files pass through.

        `take` gets its output piece by piece in place of the answer. LostError if more than `most` bytes come.
        """
        deadline = time.monotonic() + timeout_s
        out, errors = bytearray(), bytearray()
        got = 0
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            with subprocess.Popen(
                self._command(words, root),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            ) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                pipes: list[IO[bytes]] = [process.stdout, process.stderr]
                try:
                    while pipes:
                        for pipe, more in self._heard(pipes, deadline, words):
                            if not more:
                                pipes.remove(pipe)
                            elif pipe is process.stderr:
                                errors += more
                                self._bounded(len(errors), _SAID, words)
                            else:
                                got += len(more)
                                self._bounded(got, _SAID if most is None else most, words)
                                (take or out.extend)(more)
                    code = self._code(process, deadline, words)
                except BaseException:
                    process.kill()
                    raise
        if code == _OF_SSH:
            raise LostError(f"{self.place}: {_last(errors.decode(errors='replace'), code)}")
        return Answer(code, bytes(out), (out + errors).decode(errors="replace"))

    def ask(self, *words: str, root: bool = True) -> str:
        """What a command prints; BakeoffError if it fails."""
        done = self.run(words) if root else self._session(words, root=False)
        if done.code != 0:
            raise TestbedError(f"{self.place}: {shlex.join(words)}: exit code {done.code}: {done.shown}")
        return done.out.decode(errors="replace")

    def start(self, words: Sequence[str], output: int) -> subprocess.Popen[bytes]:
        """A command in the background, its output to the file `output`.

        It gets SIGTERM when its standard input is closed, or when the connection is lost.
        """
        leashed = ["sh", "-c", _LEASH, "leash", *words]
        return subprocess.Popen(
            self._command(leashed, root=True),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def put(self, content: bytes, path: str, mode: str = "600") -> None:
        """Write a file on the machine and check that it arrived whole; RunError if not."""
        import hashlib

        script = 'umask 077; cat >"$1" && chmod "$2" "$1" && sha256sum "$1"'
        done = self._session(["sh", "-c", script, "put", path, mode], stdin=content)
        wanted = hashlib.sha256(content).hexdigest()
        if done.code != 0 or not done.out.decode(errors="replace").startswith(wanted):
            raise RunError(f"{self.place}: {path}: incomplete transfer: {done.shown}")

    def fetch(self, path: str, to: Path, most: int = FILE) -> None:
        """Copy a file of the machine to the new file `to`; RunError if it cannot be read, or is too large.

        It goes to the disk as it comes. What is there already is never written to.
        """
        answer = self._session(["stat", "-L", "-c", "%s", path], most=_TOLD)
        size = answer.out.strip()
        if answer.code != 0:
            raise RunError(f"{self.place}: {path} cannot be read: {answer.shown}")
        if not size.isdigit() or len(size) > 20:
            raise RunError(f"{self.place}: {path}: unknown size: 'stat' printed {answer.text[:80]!r}")
        free = shutil.disk_usage(to.parent).free
        if int(size) > min(most, free):
            limit = f"{free:,} bytes are free here" if free < most else f"expected at most {most:,}"
            raise RunError(f"{self.place}: {path} has {int(size):,} bytes; {limit}")
        within_s = _PATIENCE_S + int(size) / _SLOWEST_RATE
        with to.open("xb") as file:
            done = self._session(["cat", path], take=file.write, most=int(size), timeout_s=within_s)
        if done.code != 0:
            raise RunError(f"{self.place}: {path} cannot be read: {done.shown}")

    def offset(self) -> Offset:
        """Compare clocks: several round trips, of which the shortest tells most. LostError if there is no answer.

        BakeoffError if the clocks are days apart.
        """
        words = ["sh", "-c", _CLOCK]
        deadline = time.monotonic() + _PATIENCE_S
        best: Offset | None = None
        with subprocess.Popen(
            self._command(words, root=False),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                for _ in range(_ROUNDS):
                    asked = time.time_ns()
                    with contextlib.suppress(BrokenPipeError):
                        process.stdin.write(b"\n")
                    answer = self._line(process.stdout, deadline)
                    answered = time.time_ns()
                    half = (answered - asked + 1) // 2
                    if best is None or half < best.uncertainty_ns:
                        best = Offset(answer - asked - half, half)
            finally:
                process.kill()
        assert best is not None
        if abs(best.ns) > _CLOCK_NS:
            raise TestbedError(
                f"{self.place}: its clock is {best.ns / 86_400e9:+,.1f} days off the controller's; expected less than "
                "one"
            )
        return best

    def _line(self, pipe: IO[bytes], deadline: float) -> int:
        """Nanoseconds since 1970, as `date` gives them on one line."""
        output = b""
        while not output.endswith(b"\n") and len(output) <= _CLOCK_SAID:
            [(_, more)] = self._heard([pipe], deadline, ["date", "+%s%N"])
            if not more:
                break
            output += more
        stripped = output.strip()
        if not stripped.isdigit() or len(stripped) > 20:
            text = stripped[:_CLOCK_SAID].decode(errors="replace")
            raise LostError(f"{self.place}: its clock cannot be read: 'date +%s%N' printed {text!r}")
        return int(stripped)

    def _command(self, words: Sequence[str], root: bool) -> list[str]:
        become = shlex.split(self.machine.become) if root else []
        # The login shell takes one string: every word is quoted for it.
        return self._ssh(after=(shlex.join([*become, "env", f"PATH={_PATH}", "LC_ALL=C", *words]),))

    def _ssh(self, *options: str, after: tuple[str, ...]) -> list[str]:
        program = shutil.which("ssh")
        if program is None:
            raise TestbedError("ssh is not installed; install: openssh-client")
        config = ["-F", self.config] if self.config is not None else []
        user = ["-l", self.machine.user] if self.machine.user is not None else []
        settings = [word for option in (*_OPTIONS, f"ControlPath={self.control}/%C") for word in ("-o", option)]
        return [program, *config, *settings, "-T", *user, *options, self.machine.host, *after]


def private_folder() -> Path:
    """A folder that only this user can read, with a name short enough for a socket's."""
    return Path(tempfile.mkdtemp(prefix="bakeoff-ssh-", dir=os.environ.get("XDG_RUNTIME_DIR") or None))


def ended(process: subprocess.Popen[bytes], output: int, timeout_s: float, most: int = _TOLD) -> str | None:
    """Wait for what writes to the file `output`; what is wrong if it is too late or says too much: it is dead then."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            process.wait(timeout=max(0.0, min(0.2, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            problem = talkative(output, most)
            if problem is None and time.monotonic() < deadline:
                continue
            process.kill()
            process.wait()
            return problem or f"timeout after {timeout_s:.0f} s"
        return None


def talkative(output: int, most: int = _TOLD) -> str | None:
    """What is wrong if more than `most` bytes are in the file `output`."""
    return f"more than {most:,} bytes came" if os.fstat(output).st_size > most else None


def excerpt(errors: str, most: int) -> str:
    """The text, or its beginning and its end if it has more than `most` characters."""
    if len(errors) <= most:
        return errors
    half = most // 2
    return f"{errors[:half]}\n… ({len(errors) - 2 * half:,} characters omitted) …\n{errors[-half:]}"


def tail(file: IO[bytes], most: int = 1 << 16) -> str:
    """The end of a file, as text."""
    file.seek(max(0, os.fstat(file.fileno()).st_size - most))
    return file.read().decode(errors="replace")


def _last(errors: str, code: int) -> str:
    lines = [line for line in errors.strip().splitlines() if line.strip()]
    return lines[-1].strip()[:1000] if lines else f"ssh ended with exit code {code}"
