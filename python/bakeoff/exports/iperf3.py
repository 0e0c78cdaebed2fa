"""The flows of a run as iperf3 writes its tests: a file for each flow, as of `iperf3 -c … -J --get-server-output`.

Source: what iperf3 3.12 writes. The document is the client's, whose host sends, and `server_output_json` that of the
server. `version` says that it is ours. A key that iperf3 always writes and of which nothing is known here is null:
ports, the cookie, the sizes of buffers, the load of the CPU, the variance of round-trip times. Addresses are the
names of nodes.

iperf3's client counts what an application handed to its kernel, which is not known here. Of TCP the bytes of the
intervals are those that reached the receiving socket, on both sides, and `sum_sent` holds the payload that was sent,
without retransmissions. Of UDP the client's intervals are the datagrams that were sent, and the server's tell what
arrived and what was lost of them. An interval is as long as the sampling interval of the run, and time begins with the
flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bakeoff.errors import ExportError
from bakeoff.exports import datagrams
from bakeoff.exports.names import parts
from bakeoff.measure import Samples
from bakeoff.scenario.run import Bytes, ConstantRate, Periodic
from bakeoff.version import version

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.results.counters import Flow as Counted
    from bakeoff.scenario.run import Flow

SUFFIX: Final = ".iperf3.json"
_SOCKET: Final = 5
"""The first that iperf3 has for data."""

Part = dict[str, Any]


def suffixes(result: Result) -> list[str]:
    """A file for each flow. BakeoffError if there is none."""
    names = [flow.name for flow in result.run.flows]
    if not names:
        raise ExportError("no flows; an iperf3 file needs one")
    return [f".{part}{SUFFIX}" for part in parts(names)]


def files(result: Result) -> Iterator[tuple[str, bytes]]:
    """One document after the other."""
    ends = suffixes(result)
    samples = Samples(result.parts)
    for suffix, flow in zip(ends, result.run.flows, strict=True):
        text = msgspec.json.encode(document(result, samples, flow))
        yield suffix, msgspec.json.format(text, indent=1) + b"\n"


def document(result: Result, samples: Samples, flow: Flow) -> Part:
    """What iperf3 would have written of a flow."""
    counted = result.counters.flow(flow.name)
    udp = flow.transport == "udp"
    intervals = _intervals(result, samples, flow, counted.mss)
    start = _start(result, flow, counted, udp=udp)
    received = counted.received_bytes
    if received is None:
        received = sum(part["bytes"] for part in intervals)
    lasted = intervals[-1]["end"] if intervals else 0.0
    about = _datagrams(result, samples, flow, counted) if udp else {}
    sent = _sent_datagrams(flow, about, received) if udp else _sent(counted, received)
    sender = _total(lasted, sent) | ({} if udp else {"retransmits": counted.retransmits})
    receiver = _total(lasted, received)
    if udp:
        streams: list[Part] = [{"udp": {"socket": _SOCKET, **sender, **about, "sender": True}}]
    else:
        ends = {"sender": sender | _of_socket(intervals), "receiver": receiver}
        streams = [{kind: {"socket": _SOCKET, **each, "sender": True} for kind, each in ends.items()}]
    end: Part = {"streams": streams}
    if udp:
        end["sum"] = sender | about | {"sender": True}
        # As of iperf3: the sender knows of no losses.
        packets = {"jitter_ms": 0, "lost_packets": 0, "packets": about["packets"], "lost_percent": 0}
        end["sum_sent"] = sender | packets | {"sender": True}
        end["sum_received"] = receiver | about | {"sender": False}
    else:
        end["sum_sent"] = sender | {"sender": True}
        end["sum_received"] = receiver | {"sender": True}
    load = dict.fromkeys(("host_total", "host_user", "host_system", "remote_total", "remote_user", "remote_system"))
    end["cpu_utilization_percent"] = load
    if not udp:
        end |= {"sender_tcp_congestion": counted.cc, "receiver_tcp_congestion": None}
    arrived = list(map(_arrived, intervals))
    if udp:
        _add_datagrams(samples, flow, intervals, arrived)
    return {
        "start": start,
        "intervals": [{"streams": [part], "sum": _sum(part)} for part in intervals],
        "end": end,
        "server_output_json": {
            "start": {key: of for key, of in start.items() if key != "connecting_to"}
            | {"accepted_connection": {"host": flow.from_, "port": None}},
            "intervals": [{"streams": [part], "sum": _sum(part)} for part in arrived],
            "end": _server_end(lasted, receiver, about, udp=udp) | {"cpu_utilization_percent": load},
        },
    }


def _server_end(lasted: float, receiver: Part, about: Part, *, udp: bool) -> Part:
    """What the server tells at the end: it has sent nothing."""
    own = {"sender": False}
    nothing = _total(lasted, 0)
    if udp:
        whole = receiver | about | own
        return {
            "streams": [{"udp": {"socket": _SOCKET, **whole}}],
            "sum": whole,
            "sum_sent": nothing | {"jitter_ms": 0, "lost_packets": 0, "packets": 0, "lost_percent": 0} | own,
            "sum_received": whole,
        }
    ends = {"sender": nothing, "receiver": receiver}
    return {
        "streams": [{kind: {"socket": _SOCKET, **each, **own} for kind, each in ends.items()}],
        "sum_sent": nothing | own,
        "sum_received": receiver | own,
        "receiver_tcp_congestion": None,
    }


def _start(result: Result, flow: Flow, counted: Counted, *, udp: bool) -> Part:
    made = result.record.provenance
    date = made.date.astimezone(UTC) if made else datetime.fromtimestamp(0, UTC)
    source = flow.source
    hosts = {"local_host": flow.from_, "local_port": None, "remote_host": flow.to, "remote_port": None}
    rate = source.rate_bps if isinstance(source, ConstantRate) else 0
    return {
        "connected": [{"socket": _SOCKET, **hosts}],
        "version": f"bakeoff {version()}",
        "system_info": f"{result.record.engine} {result.key}",
        "timestamp": {
            "time": date.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            "timesecs": int(date.timestamp()),
        },
        "connecting_to": {"host": flow.to, "port": None},
        "cookie": None,
        **({} if udp else {"tcp_mss_default": counted.mss}),
        "target_bitrate": rate,
        "sock_bufsize": 0,
        "sndbuf_actual": None,
        "rcvbuf_actual": None,
        "test_start": {
            "protocol": "UDP" if udp else "TCP",
            "num_streams": 1,
            "blksize": _size(flow) if udp else None,
            "omit": 0,
            "duration": round(_stop(result, flow) - flow.start_s, 6),
            "bytes": source.bytes if isinstance(source, Bytes) else 0,
            "blocks": 0,
            "reverse": 0,
            "tos": flow.dscp << 2,
            "target_bitrate": rate,
        },
    }


def _size(flow: Flow) -> int | None:
    """Bytes of a write, or of the payload of a datagram; None where the source has no such size."""
    return flow.source.size if isinstance(flow.source, ConstantRate | Periodic) else None


def _stop(result: Result, flow: Flow) -> float:
    return min(flow.stop_s, result.run.duration_s)


def _intervals(result: Result, samples: Samples, flow: Flow, mss: int | None) -> list[Part]:
    """What happened between one sample of the flow and the next, from its start to its stop."""
    name, start = flow.name, flow.start_s
    if ("flow", name, "received") not in samples:
        if result.counters.flow(name).received_bytes == 0:
            return []
        raise ExportError(f"flow '{name}' has no 'received' samples")
    time, total = (values.tolist() for values in samples.of("flow", name, "received"))
    socket = {metric: _nearest(samples, name, metric, time) for metric in ("cwnd", "srtt", "retrans")}
    last = _stop(result, flow) + result.run.sample_interval_s
    found: list[Part] = []
    before, had, again = 0.0, 0.0, 0.0
    for number, (at, now) in enumerate(zip(time, total, strict=True)):
        if at <= start or at > last + 1e-9:
            continue
        since = round(at - start, 6)
        part: Part = {
            "socket": _SOCKET,
            "start": before,
            "end": since,
            "seconds": round(since - before, 6),
            "bytes": round(now - had),
            "bits_per_second": (now - had) * 8 / (since - before) if since > before else 0.0,
        }
        if socket["retrans"]:
            counted = socket["retrans"].get(number, again)
            part["retransmits"] = round(counted - again)
            again = counted
        window, rtt = (socket[metric].get(number) for metric in ("cwnd", "srtt"))
        if window is not None or rtt is not None:
            part |= {
                "snd_cwnd": round(window * mss) if mss and window is not None else None,
                "snd_wnd": None,
                "rtt": round(rtt * 1e6) if rtt is not None else None,
                "rttvar": None,
                "pmtu": None,
            }
        found.append(part | {"omitted": False, "sender": True})
        before, had = since, now
    return found


def _nearest(samples: Samples, flow: str, metric: str, times: Sequence[float]) -> dict[int, float]:
    """What was sampled of the sender's socket, by the index of the time that is nearest to each sample.

    The two ends of a recorded flow were not sampled at quite the same times.
    """
    import numpy as np

    if ("flow", flow, metric) not in samples:
        return {}
    at, values = samples.of("flow", flow, metric)
    middles = (np.array(times[1:]) + np.array(times[:-1])) / 2
    return dict(zip(middles.searchsorted(at).tolist(), values.tolist(), strict=True))


def _sum(part: Part) -> Part:
    own = ("socket", "snd_cwnd", "snd_wnd", "rtt", "rttvar", "pmtu")
    return {key: value for key, value in part.items() if key not in own}


def _arrived(part: Part) -> Part:
    """The same interval as the server tells it."""
    return {key: value for key, value in (_sum(part) | {"sender": False}).items() if key != "retransmits"} | {
        "socket": _SOCKET
    }


def _sent(counted: Counted, received: int) -> int:
    """Payload that was sent, without retransmissions: whole segments, so that the last one may be shorter."""
    packets, again, mss = counted.sent_packets, counted.retransmits, counted.mss
    if packets is None or again is None or mss is None:
        return received
    return max(received, (packets - again) * mss)


def _sent_datagrams(flow: Flow, about: Part, received: int) -> int:
    """Payload of the datagrams that were sent; what arrived, if it is not known how many or how large these were."""
    size = _size(flow)
    return received if about["packets"] is None or size is None else int(about["packets"]) * size


def _add_datagrams(samples: Samples, flow: Flow, sent: list[Part], arrived: list[Part]) -> None:
    """Put the datagrams of each interval into it: what the sender sent, and what the receiver missed of it."""
    start = flow.start_s
    intervals = datagrams.of_intervals(samples, flow.name, [part["end"] + start for part in sent])
    for one, other, (packets, lost, jitter_s) in zip(sent, arrived, intervals, strict=True) if intervals else ():
        one["packets"] = packets
        if (size := _size(flow)) is not None:
            one["bytes"] = packets * size
            one["bits_per_second"] = one["bytes"] * 8 / one["seconds"] if one["seconds"] else 0.0
        other |= {"jitter_ms": None if jitter_s is None else jitter_s * 1e3, "lost_packets": lost, "packets": packets}
        other["lost_percent"] = 100 * lost / packets if packets else 0


def _total(lasted: float, size: int) -> Part:
    rate = size * 8 / lasted if lasted else 0.0
    return {"start": 0, "end": lasted, "seconds": lasted, "bytes": size, "bits_per_second": rate}


def _of_socket(intervals: list[Part]) -> Part:
    """The largest window and the round-trip times of all samples, as iperf3 takes them."""
    windows = [part["snd_cwnd"] for part in intervals if part.get("snd_cwnd") is not None]
    rtts = [part["rtt"] for part in intervals if part.get("rtt") is not None]
    if not windows and not rtts:
        return {}
    return {
        "max_snd_cwnd": max(windows, default=None),
        "max_snd_wnd": None,
        "max_rtt": max(rtts, default=None),
        "min_rtt": min(rtts, default=None),
        "mean_rtt": round(sum(rtts) / len(rtts)) if rtts else None,
    }


def _datagrams(result: Result, samples: Samples, flow: Flow, counted: Counted) -> Part:
    """Jitter over the measurement window, and datagrams lost over the whole run."""
    name = flow.name
    packets, lost = counted.sent_packets, datagrams.lost(samples, name)
    if lost is None and packets is not None:
        lost = 0
    measured = result.summary.flows.get(name) if result.summary is not None else None
    jitter = measured.jitter_s if measured is not None else None
    return {
        "jitter_ms": None if jitter is None else jitter * 1e3,
        "lost_packets": lost,
        "packets": packets,
        "lost_percent": 100 * lost / packets if packets and lost is not None else None,
    }
