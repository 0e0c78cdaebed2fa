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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bakeoff.engines.ssh.inventory import Machine
from bakeoff.errors import BakeoffError

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


class LostError(RuntimeError):
    """The machine cannot be reached."""


@dataclass(frozen=True)
class Answer:
    """What a command left."""

    code: int
    out: bytes
    said: str
    """Standard output and error, as text."""


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
        with tempfile.TemporaryFile() as told:
            argv = self._ssh("-o", "ControlMaster=yes", "-o", "ControlPersist=60", "-f", "-N", after=())
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=told, stderr=told, start_new_session=True, check=False
            )
            told.seek(0)
            if done.returncode != 0:
                raise LostError(f"{self.place}: {_last(told.read().decode(errors='replace'), done.returncode)}")

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
        shell = self._shell
        assert shell.stdin is not None
        assert shell.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            shell.stdin.write(line)
        said = b""
        last = re.compile(rb"\n" + end + rb" (\d+)\n")
        while (ended := last.search(said)) is None:
            ready, _, _ = select.select([shell.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise LostError(f"{self.place}: no answer in time to: {shlex.join(words)}")
            more = os.read(shell.stdout.fileno(), 1 << 16)
            if not more:
                raise LostError(f"{self.place}: {_last(said.decode(errors='replace'), shell.wait())}")
            said += more
        out = said[: ended.start()]
        return Answer(int(ended[1]), out, out.decode(errors="replace"))

    def _drop_shell(self) -> None:
        shell, self._shell = self._shell, None
        if shell is not None:
            shell.kill()
            with shell:
                pass

    def _session(self, words: Sequence[str], *, root: bool = True, stdin: bytes = b"") -> Answer:
        """One command in a session of its own, which files pass through."""
        try:
            done = subprocess.run(
                self._command(words, root),
                input=stdin,
                capture_output=True,
                check=False,
                timeout=_PATIENCE_S,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise LostError(f"{self.place}: no answer in {_PATIENCE_S:.0f} s to: {shlex.join(words)}") from None
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode == _OF_SSH:
            raise LostError(f"{self.place}: {_last(done.stderr.decode(errors='replace'), done.returncode)}")
        return Answer(done.returncode, done.stdout, said)

    def ask(self, *words: str, root: bool = True) -> str:
        """What a command prints; BakeoffError if it fails."""
        done = self.run(words) if root else self._session(words, root=False)
        if done.code != 0:
            raise BakeoffError(f"{self.place}: {shlex.join(words)}: exit code {done.code}: {done.said.strip()}")
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
        """Write a file on the machine and check that it arrived whole; RuntimeError if not."""
        import hashlib

        script = 'umask 077; cat >"$1" && chmod "$2" "$1" && sha256sum "$1"'
        done = self._session(["sh", "-c", script, "put", path, mode], stdin=content)
        wanted = hashlib.sha256(content).hexdigest()
        if done.code != 0 or not done.out.decode(errors="replace").startswith(wanted):
            raise RuntimeError(f"{self.place}: {path} did not arrive whole: {done.said.strip()}")

    def fetch(self, path: str, to: Path) -> None:
        """Copy a file of the machine here; RuntimeError if it cannot be read."""
        done = self._session(["cat", path])
        if done.code != 0:
            raise RuntimeError(f"{self.place}: {path} cannot be read: {done.said.strip()}")
        to.write_bytes(done.out)

    def offset(self) -> Offset:
        """Compare clocks: several round trips, of which the shortest tells most. LostError if there is no answer."""
        process = subprocess.Popen(
            self._command(["sh", "-c", _CLOCK], root=False),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        best: Offset | None = None
        with process:
            for _ in range(_ROUNDS):
                asked = time.time_ns()
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(b"\n")
                answer = process.stdout.readline().strip()
                answered = time.time_ns()
                if not answer.isdigit():
                    process.kill()
                    raise LostError(f"{self.place}: its clock cannot be read: 'date +%s%N' said {answer.decode()!r}")
                half = (answered - asked + 1) // 2
                if best is None or half < best.uncertainty_ns:
                    best = Offset(int(answer) - asked - half, half)
            process.stdin.close()
        assert best is not None
        return best

    def _command(self, words: Sequence[str], root: bool) -> list[str]:
        become = shlex.split(self.machine.become) if root else []
        # The login shell takes one string: every word is quoted for it.
        return self._ssh(after=(shlex.join([*become, "env", f"PATH={_PATH}", "LC_ALL=C", *words]),))

    def _ssh(self, *options: str, after: tuple[str, ...]) -> list[str]:
        program = shutil.which("ssh")
        if program is None:
            raise BakeoffError("ssh is not installed; install: openssh-client")
        config = ["-F", self.config] if self.config is not None else []
        user = ["-l", self.machine.user] if self.machine.user is not None else []
        settings = [word for option in (*_OPTIONS, f"ControlPath={self.control}/%C") for word in ("-o", option)]
        return [program, *config, *settings, "-T", *user, *options, self.machine.host, *after]


def private_folder() -> Path:
    """A folder that only this user can read, with a name short enough for a socket's."""
    return Path(tempfile.mkdtemp(prefix="bakeoff-ssh-", dir=os.environ.get("XDG_RUNTIME_DIR") or None))


def _last(said: str, code: int) -> str:
    lines = [line for line in said.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"ssh ended with exit code {code}"
