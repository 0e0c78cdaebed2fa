"""The probes of a run as irtt writes its tests: a file for each probe, as `irtt client --tstamp=none --stats=none -o`.

Source: result.go and recorder.go of irtt 0.9, `json_format` 1; all times are nanoseconds. Our probes have no stamps of
the server, so that there are no one-way delays, and nobody tells which way a packet was lost: as in irtt without stamps
and statistics of the server. What irtt measures of its own timers and calls is left at `n` 0, and addresses are the
names of nodes. The wall clock begins at a fixed day, so that the same run gives the same bytes.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bakeoff.errors import ExportError
from bakeoff.exports.names import parts
from bakeoff.measure import Samples
from bakeoff.scenario.headers import IP_UDP
from bakeoff.version import version

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.scenario.run import Probe

SUFFIX: Final = ".irtt.json.gz"
EPOCH_NS: Final = 1_700_000_000 * 10**9
"""Of the wall clock when the run begins, as in data files of Flent."""
_BEGIN_NS: Final = 10**9
"""Of the monotonic clock then: irtt leaves out a time of 0."""
_ECN: Final = {"not-ect": 0, "ect1": 1, "ect0": 2, "ce": 3}

Part = dict[str, Any]


def suffixes(result: Result) -> list[str]:
    """A file for each probe. BakeoffError if there is none."""
    names = [probe.name for probe in result.run.probes]
    if not names:
        raise ExportError("no probes; an irtt file needs one")
    return [f".{part}{SUFFIX}" for part in parts(names)]


def files(result: Result) -> Iterator[tuple[str, bytes]]:
    """One document after the other."""
    ends = suffixes(result)
    samples = Samples(result.parts)
    for suffix, probe in zip(ends, result.run.probes, strict=True):
        text = msgspec.json.format(msgspec.json.encode(document(result, samples, probe)), indent=1)
        yield suffix, gzip.compress(text + b"\n", compresslevel=6, mtime=0)


def document(result: Result, samples: Samples, probe: Probe) -> Part:
    """What irtt would have written of a probe. BakeoffError if nothing was sampled of it."""
    trips = _trips(samples, probe.name)
    if not trips:
        raise ExportError(f"probe '{probe.name}' has no samples")
    length = max(0, probe.size - IP_UDP)
    answered = [ns for _, ns in trips if ns is not None]
    changes = [abs(two - one) for (_, one), (_, two) in pairwise(trips) if one is not None and two is not None]
    lasted = trips[-1][0] - trips[0][0]
    none = _stats([])
    params = {
        "proto_version": 1,
        "duration": _ns(min(probe.stop_s, result.run.duration_s) - probe.start_s),
        "interval": _ns(probe.every_s),
        "length": length,
        "received_stats": "none",
        "stamp_at": "none",
        "clock": "both",
        "dscp": probe.dscp << 2 | _ECN[probe.ecn],
        "server_fill": "",
    }
    return {
        "version": {"irtt": f"bakeoff {version()}", "protocol": 1, "json_format": 1},
        "system_info": {"os": None, "cpus": None, "go_version": None, "hostname": probe.from_},
        "config": {
            "local_address": probe.from_,
            "remote_address": probe.to,
            "open_timeouts": None,
            "params": params,
            "loose": False,
            "ip_version": "IPv4",
            "df": 0,
            "ttl": 0,
            "timer": None,
            "waiter": None,
            "filler": "none",
            "fill_one": False,
            "server_fill": "",
            "thread_lock": False,
            "supplied": None,
        },
        "stats": {
            "start_time": _clocks(trips[0][0]),
            "send_call": none,
            "timer_error": none,
            "rtt": _stats(answered),
            "send_delay": none,
            "receive_delay": none,
            "server_packets_received": 0,
            "bytes_sent": length * len(trips),
            "bytes_received": length * len(answered),
            "duplicates": 0,
            "late_packets": _late(trips),
            "wait": 0,
            "duration": lasted,
            "packets_sent": len(trips),
            "packets_received": len(answered),
            "packet_loss_percent": 100 * (len(trips) - len(answered)) / len(trips),
            "upstream_loss_percent": 0,
            "downstream_loss_percent": 0,
            "duplicate_percent": 0,
            "late_packets_percent": 100 * _late(trips) / len(answered) if answered else 0,
            "ipdv_send": none,
            "ipdv_receive": none,
            "ipdv_round_trip": _stats(changes),
            "server_processing_time": none,
            "timer_err_percent": 0,
            "timer_misses": 0,
            "timer_miss_percent": 0,
            "send_rate": _rate(length * len(trips), lasted),
            "receive_rate": _rate(length * len(answered), lasted),
        },
        "round_trips": [_round_trip(number, trips) for number in range(len(trips))],
    }


def _trips(samples: Samples, name: str) -> list[tuple[int, int | None]]:
    """When each request was sent, and its round-trip time, None if it was lost [ns], in order."""
    found: list[tuple[int, int | None]] = []
    for metric in ("rtt", "lost"):
        if ("probe", name, metric) in samples:
            times, values = samples.of("probe", name, metric)
            answered = metric == "rtt"
            found += [
                (_ns(time), _ns(value) if answered else None)
                for time, value in zip(times.tolist(), values.tolist(), strict=True)
            ]
    return sorted(found, key=lambda trip: trip[0])


def _round_trip(number: int, trips: Sequence[tuple[int, int | None]]) -> Part:
    sent, rtt = trips[number]
    before = trips[number - 1][1] if number else None
    client = {"receive": {} if rtt is None else _clocks(sent + rtt), "send": _clocks(sent)}
    return {
        "seqno": number,
        "lost": "true" if rtt is None else "false",
        "timestamps": {"client": client, "server": {"receive": {}, "send": {}}},
        "delay": {} if rtt is None else {"rtt": rtt},
        "ipdv": {} if rtt is None or before is None else {"rtt": rtt - before},
    }


def _late(trips: Sequence[tuple[int, int | None]]) -> int:
    """Replies that came after one to a later request."""
    arrived = sorted((sent + rtt, number) for number, (sent, rtt) in enumerate(trips) if rtt is not None)
    latest = late = 0
    for _, number in arrived:
        late += number < latest
        latest = max(latest, number)
    return late


def _clocks(at_ns: int) -> Part:
    return {"wall": EPOCH_NS + at_ns, "monotonic": _BEGIN_NS + at_ns}


def _stats(values: Sequence[int]) -> Part:
    """As irtt's statistics of durations: whole nanoseconds, the variance with n - 1, no median without values."""
    if not values:
        return {"total": 0, "n": 0, "min": 0, "max": 0, "mean": 0, "stddev": 0, "variance": 0}
    total, count = sum(values), len(values)
    mean = total / count
    variance = sum((value - mean) ** 2 for value in values) / (count - 1) if count > 1 else 0.0
    return {
        "total": total,
        "n": count,
        "min": min(values),
        "max": max(values),
        "mean": int(mean),
        "median": int(median(values)),
        "stddev": int(math.sqrt(variance)),
        "variance": int(variance),
    }


def _rate(size: int, lasted_ns: int) -> Part:
    bps = int(8 * size / (lasted_ns / 1e9)) if lasted_ns else 0
    for factor, unit, digits in ((1e9, "Gbps", 3), (1e6, "Mbps", 2), (1e3, "Kbps", 1)):
        if bps >= factor:
            return {"bps": bps, "string": f"{bps / factor:.{digits}f} {unit}"}
    return {"bps": bps, "string": f"{bps} bps"}


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
