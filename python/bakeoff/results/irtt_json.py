"""What `irtt client -o` writes, read: round trips, one-way delays and losses of one test.

Source: result.go and recorder.go of irtt 0.9. The file's durations are nanoseconds, ours are seconds. Both forms of
`start_time` are read: a time as in RFC 3339 (0.9.0), and an object of two clocks (later).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from bakeoff import files
from bakeoff.errors import ResultsError

if TYPE_CHECKING:
    import polars as pl

_LARGEST: Final = 1 << 30
"""Bytes, unpacked. An hour of a request every 10 ms takes about 300 MB."""

Ns = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Lost = Literal["false", "true", "true_up", "true_down"]
"""`true_up`: the server never had the request; `true_down`: its reply was lost; `true`: nobody knows which."""


class _Time(msgspec.Struct):
    wall: Ns | None = None
    monotonic: Ns | None = None


class _Ends(msgspec.Struct):
    send: _Time = msgspec.field(default_factory=_Time)
    receive: _Time = msgspec.field(default_factory=_Time)


class _Stamps(msgspec.Struct):
    client: _Ends
    server: _Ends = msgspec.field(default_factory=_Ends)


class _Delays(msgspec.Struct):
    rtt: Ns | None = None
    send: Ns | None = None
    receive: Ns | None = None


class _RoundTrip(msgspec.Struct):
    seqno: Count
    lost: Lost
    timestamps: _Stamps
    delay: _Delays
    ipdv: _Delays


class _Params(msgspec.Struct):
    interval: Ns
    duration: Ns | None = None
    length: Count | None = None
    dscp: Count | None = None
    """The whole byte of traffic class, in spite of its name: DSCP and ECN."""


class _Config(msgspec.Struct):
    params: _Params
    local_address: str | None = None
    remote_address: str | None = None


class _Version(msgspec.Struct):
    irtt: str | None = None


class _System(msgspec.Struct):
    hostname: str | None = None


class _Stats(msgspec.Struct):
    duplicates: Count | None = None
    late_packets: Count | None = None
    server_packets_received: Count | None = None


class _File(msgspec.Struct):
    config: _Config
    stats: _Stats
    round_trips: list[_RoundTrip]
    version: _Version = msgspec.field(default_factory=_Version)
    system_info: _System = msgspec.field(default_factory=_System)


@dataclass(frozen=True)
class IrttTest:
    """One test of irtt, in seconds; what the file does not tell is None."""

    version: str | None
    """Of irtt."""
    hostname: str | None
    """Where the client ran."""
    local_address: str | None
    remote_address: str | None
    interval_s: float
    """Between requests, as asked for."""
    length: int | None
    """Bytes of payload of each request."""
    traffic_class: int | None
    """The byte with DSCP and ECN that the client asked for."""
    started_ns: int | None
    """When the first request was sent: nanoseconds since 1970 of the client's clock."""
    duplicates: int | None
    """Replies that came again."""
    late: int | None
    """Replies that came after one to a later request."""
    server_received: int | None
    """Requests that had reached the server, as its last reply told."""
    round_trips: pl.DataFrame
    """A row per request in order of `seqno`: `time` (s since the first request), `rtt_s` (less the time in the server,
    where its stamps tell), `send_delay_s` and `receive_delay_s` (one way, right only if both clocks agree),
    `ipdv_s`, `send_ipdv_s`, `receive_ipdv_s` (signed, RFC 3393), `server_s` (between the server's two stamps) and
    `lost` (`false`, `true_up`, `true_down`, or `true` if nobody knows which way). Null where nothing was measured."""

    @property
    def sent(self) -> int:
        """Requests."""
        return self.round_trips.height

    @property
    def received(self) -> int:
        """Requests whose reply came."""
        return int((self.round_trips["lost"] == "false").sum())

    def series(self, name: str) -> pl.DataFrame:
        """The samples of a probe `name` in the columns of series.parquet: metrics `lost` and `rtt`."""
        import polars as pl

        trips = self.round_trips
        columns = [pl.lit("probe").alias("kind"), pl.lit(name).alias("name")]
        lost = trips.filter(pl.col("lost") != "false").select(
            "time", *columns, pl.lit("lost").alias("metric"), pl.lit(1.0).alias("value")
        )
        rtt = trips.filter(pl.col("rtt_s").is_not_null()).select(
            "time", *columns, pl.lit("rtt").alias("metric"), pl.col("rtt_s").alias("value")
        )
        return pl.concat([lost, rtt])


def read(path: Path | str) -> IrttTest:
    """Read a file of `irtt client -o`, packed by gzip or not. BakeoffError names the first key that is wrong."""
    try:
        text = files.unpacked(path, _LARGEST)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None
    return parse(text, str(path))


def is_irtt(text: bytes) -> bool:
    """Whether the beginning of a file is that of one of irtt's, which always has its versions first."""
    head = text[:200].translate(None, b" \t\r\n")
    return head.startswith(b'{"version":{"irtt":')


def parse(text: bytes, place: str) -> IrttTest:
    """The test that the text tells; `place` is where it is from. BakeoffError names the first key that is wrong."""
    try:
        found = msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(
            f"{place}: {_problem(error)}; expected a file of 'irtt client -o', with round_trips"
        ) from None
    for before, trip in zip(found.round_trips, found.round_trips[1:], strict=False):
        if trip.seqno <= before.seqno:
            raise ResultsError(
                f"{place}: round_trips: seqno {trip.seqno} after {before.seqno}; expected increasing numbers"
            )
    params = found.config.params
    return IrttTest(
        version=found.version.irtt,
        hostname=found.system_info.hostname,
        local_address=found.config.local_address,
        remote_address=found.config.remote_address,
        interval_s=params.interval / 1e9,
        length=params.length,
        traffic_class=params.dscp,
        started_ns=found.round_trips[0].timestamps.client.send.wall if found.round_trips else None,
        duplicates=found.stats.duplicates,
        late=found.stats.late_packets,
        server_received=found.stats.server_packets_received,
        round_trips=_frame(found.round_trips, place),
    )


def _frame(trips: list[_RoundTrip], place: str) -> pl.DataFrame:
    import polars as pl

    # One clock for all of them: the monotonic one, which nobody sets, unless the client was told to keep the other.
    clock = "monotonic" if all(trip.timestamps.client.send.monotonic is not None for trip in trips) else "wall"
    sent: list[int] = []
    for trip in trips:
        at: int | None = getattr(trip.timestamps.client.send, clock)
        if at is None:
            raise ResultsError(f"{place}: round_trips: seqno {trip.seqno}: timestamps.client.send has no {clock}")
        if sent and at < sent[-1]:
            raise ResultsError(
                f"{place}: round_trips: seqno {trip.seqno} was sent before its predecessor; expected increasing times"
            )
        sent.append(at)
    columns = {
        "rtt_s": [trip.delay.rtt for trip in trips],
        "send_delay_s": [trip.delay.send for trip in trips],
        "receive_delay_s": [trip.delay.receive for trip in trips],
        "ipdv_s": [trip.ipdv.rtt for trip in trips],
        "send_ipdv_s": [trip.ipdv.send for trip in trips],
        "receive_ipdv_s": [trip.ipdv.receive for trip in trips],
        "server_s": [_in_server(trip.timestamps.server) for trip in trips],
    }
    return pl.DataFrame(
        {
            "seqno": pl.Series([trip.seqno for trip in trips], dtype=pl.Int64),
            "time": pl.Series([(at - sent[0]) / 1e9 for at in sent], dtype=pl.Float64),
            **{
                name: pl.Series([None if ns is None else ns / 1e9 for ns in of], dtype=pl.Float64)
                for name, of in columns.items()
            },
            "lost": pl.Series([trip.lost for trip in trips], dtype=pl.String),
        }
    )


def _in_server(ends: _Ends) -> int | None:
    for clock in ("monotonic", "wall"):
        received, sent = getattr(ends.receive, clock), getattr(ends.send, clock)
        if received and sent:
            return int(sent - received)
    return None


def _problem(error: Exception) -> str:
    """`Expected `int`, got `str` - at `$.round_trips[...].seqno`` with the key before the reason."""
    reason, _, path = str(error).partition(" - at `$")
    place = path.rstrip("`").lstrip(".")
    return f"{place}: {reason}" if place else reason
