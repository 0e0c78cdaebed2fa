"""The congestion window of iperf3 in packets: it tells bytes, and rarely the MSS that they are a multiple of.

iperf3 multiplies `tcpi_snd_cwnd` by `tcpi_snd_mss`, which on Linux is the payload of a segment with its options. What a
file has may be another MSS: `tcp_mss_default` is `TCP_MAXSEG` of the control connection (32768 on loopback), and
`tcp_mss` what `--set-mss` asked for, 12 bytes of timestamps included. The path MTU tells it, too. So it is the first of
these that divides every window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bakeoff.results.iperf3_form import Start, Stream

_TIMESTAMPS: Final = 12
"""Bytes of TCP's option with its padding."""
_HEADERS: Final = (40, 60)
"""Bytes of IPv4 or IPv6 with TCP's."""
_LEAST: Final = 36
"""Bytes: Linux's least of 48, less the timestamps."""


class Segments:
    """The MSS of a test, by its windows."""

    def __init__(self, start: Start, flows: Sequence[Sequence[Stream]]) -> None:
        self._reported = start.tcp_mss or start.tcp_mss_default or None
        self._asked = start.tcp_mss or None
        self._is_linux = start.system_info.startswith("Linux")
        streams = [stream for streams in flows for stream in streams if stream.snd_cwnd]
        self.mss = self._of(streams)
        """Payload of a full segment [byte]; None if it is not known."""
        self._unknown = sum(self.window(stream) is None for stream in streams)

    def window(self, stream: Stream) -> float | None:
        """The congestion window in packets at the end of an interval; None if it is not known."""
        mss = self._of([stream]) if self.mss is None else self.mss
        return stream.snd_cwnd / mss if stream.snd_cwnd and mss else None

    def note(self) -> str | None:
        """What is said of windows that are left out."""
        if not self._unknown:
            return None
        why = "has no MSS" if self._reported is None else "has no MSS that divides them"
        return f"ignored windows, which are in bytes: the file {why}"

    def _of(self, streams: Sequence[Stream]) -> int | None:
        # Other systems tell a window that is no multiple of the MSS.
        if not self._is_linux:
            return self._reported
        if not streams:
            return None if self._asked else self._reported
        several = {stream.pmtu for stream in streams}
        pmtu = several.pop() if len(several) == 1 else None
        windows = {stream.snd_cwnd for stream in streams if stream.snd_cwnd}
        return next((mss for mss in self._known(pmtu) if not any(window % mss for window in windows)), None)

    def _known(self, pmtu: int | None) -> Iterator[int]:
        """What the MSS may be, the likeliest first."""
        candidates = [] if self._reported is None else [self._reported]
        if self._asked is not None:
            candidates.insert(0, self._asked - _TIMESTAMPS)
        for headers in _HEADERS if pmtu else ():
            candidates += [(pmtu or 0) - headers - _TIMESTAMPS, (pmtu or 0) - headers]
        yield from (mss for mss in candidates if mss >= _LEAST)
