"""The host's end of the line to a command in the guest (`crates/agent/src/shell.rs` is the other end).

A frame is its kind (one letter), the length of what it carries (two bytes, big end first), and that. From the guest:
`r` it is ready, `o` and `e` output and errors, `x` the exit code (four bytes). To the guest: `i` input (nothing: its
end), `w` rows and columns of the terminal (two bytes each), `s` the number of a signal (one byte).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import signal
import struct
import termios
import threading
import tty
from collections.abc import Iterator
from types import FrameType
from typing import IO, Any, Final

_HEAD: Final = struct.Struct(">cH")
_CODE: Final = struct.Struct(">i")
_MOST: Final = 4096
"""Bytes that a frame carries at most."""
_IN, _OUT, _ERR = 0, 1, 2


class CommandStream:
    """Passes on between the standard streams of this process and a command in the guest, in two threads."""

    def __init__(self, *, terminal: bool) -> None:
        self.terminal = terminal
        """Whether the command has a terminal, which is then this process's."""
        self.exit_code: int | None = None
        """Of the command, when it has ended."""
        self.broken: OSError | None = None
        """Why its output can be written no more, or nobody types."""
        self.ready = False
        self._saved: list[Any] | None = None
        self._listener: threading.Thread | None = None
        # Handlers of signals write a byte here, so that one thread alone writes to the guest.
        self._asked, self._ask = os.pipe()
        guest_reads, self._to_guest = os.pipe()
        from_guest, guest_writes = os.pipe()
        os.set_blocking(self._ask, False)
        self.guest: tuple[int, int] = (guest_reads, guest_writes)
        """What the guest's line reads from and writes to; whoever boots it closes them here."""
        self._from_guest: IO[bytes] = os.fdopen(from_guest, "rb")

    def stopped(self) -> str | None:
        """Why the guest has to end, as `boot` asks it."""
        return None if self.broken is None else "connection closed"

    def join(self) -> None:
        """Wait until the guest is gone and all that it said is passed on."""
        if self._listener is not None:
            self._listener.join()

    @contextlib.contextmanager
    def attached(self) -> Iterator[None]:
        """Pass on until the block ends; then the terminal is as it was before."""
        before = {number: signal.getsignal(number) for number in (signal.SIGWINCH, signal.SIGINT)}
        listener = threading.Thread(target=self._tell, daemon=True)
        self._listener = threading.Thread(target=self._listen, args=(listener,), daemon=True)
        self._listener.start()
        if self.terminal:
            signal.signal(signal.SIGWINCH, lambda *_: self._note(b"w"))
        else:
            signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._note(b"q")
            if listener.is_alive():
                listener.join()
            if self._saved is not None:
                termios.tcsetattr(_IN, termios.TCSADRAIN, self._saved)
            for end in (self._to_guest, self._asked, self._ask):
                os.close(end)

    def _note(self, what: bytes) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._ask, what)

    def _interrupt(self, *_: int | FrameType | None) -> None:
        """The first Ctrl-C is the command's; another one, or one before it has begun, ends everything."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not self.ready:
            raise KeyboardInterrupt
        self._note(b"s")

    def _listen(self, listener: threading.Thread) -> None:
        with self._from_guest as guest:
            while len(head := guest.read(_HEAD.size)) == _HEAD.size:
                kind, length = _HEAD.unpack(head)
                payload = guest.read(length)
                if kind == b"r" and not self.ready:
                    self._begin()
                    listener.start()
                elif kind in (b"o", b"e"):
                    try:
                        _write(_ERR if kind == b"e" else _OUT, payload)
                    except OSError as error:
                        self.broken = error
                        return
                elif kind == b"x" and length == _CODE.size:
                    [self.exit_code] = _CODE.unpack(payload)

    def _begin(self) -> None:
        self.ready = True
        if self.terminal:
            self._saved = termios.tcgetattr(_IN)
            tty.setraw(_IN, termios.TCSADRAIN)

    def _tell(self) -> None:
        """Send input, sizes and signals until the block of `attached` ends or the guest is gone."""
        sources = [_IN, self._asked]
        with contextlib.suppress(OSError):
            if self.terminal:
                self._send(b"w", _size())
            while True:
                waiting, _, _ = select.select(sources, [], [])
                if self._asked in waiting:
                    asked = os.read(self._asked, 64)
                    if b"q" in asked:
                        return
                    if b"w" in asked:
                        self._send(b"w", _size())
                    if b"s" in asked:
                        self._send(b"s", bytes([signal.SIGINT]))
                if _IN in waiting:
                    read = self._read()
                    self._send(b"i", read)
                    if not read:
                        sources.remove(_IN)

    def _read(self) -> bytes:
        """What was typed or given; nothing at its end. A terminal that is gone ends everything."""
        try:
            read = os.read(_IN, _MOST)
            if read or not self.terminal:
                return read
            self.broken = OSError(errno.EIO, "the terminal is gone")
        except OSError as error:
            self.broken = error
        return b""

    def _send(self, kind: bytes, payload: bytes) -> None:
        _write(self._to_guest, _HEAD.pack(kind, len(payload)) + payload)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _size() -> bytes:
    """Rows and columns of the terminal, as a frame has them."""
    rows, columns, _, _ = struct.unpack("HHHH", fcntl.ioctl(_IN, termios.TIOCGWINSZ, bytes(8)))
    return struct.pack(">HH", rows, columns)
