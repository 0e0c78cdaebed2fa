"""A made-up result with known numbers, for tests of what reads results."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl

from bakeoff.errors import BakeoffError
from bakeoff.results import parts
from bakeoff.results.counters import Counters
from bakeoff.scenario.run import Run

if TYPE_CHECKING:
    from bakeoff.results.series import Parts

Rows = list[tuple[float, str, str, str, float]]


@dataclass(frozen=True)
class StandIn:
    """The attributes of bakeoff.results.Result."""

    path: Path
    meta: dict[str, Any]
    resolved: dict[str, Any]
    """The document of `run`: tests change it."""
    series: Any
    counted: dict[str, Any]
    """The content of counters.json, likewise."""
    summary: dict[str, Any] | None = None

    @property
    def run(self) -> Run:
        return as_run(self.resolved)

    @property
    def counters(self) -> Counters:
        return Counters.of(self.counted, "counters.json")

    @property
    def key(self) -> str:
        return "/".join(self.resolved[part] for part in ("suite", "scenario", "run"))

    @property
    def record(self) -> Any:
        told = {key: self.meta.get(key) for key in ("provenance", "status", "engine", "error", "order")}
        return SimpleNamespace(kept="all", **told)

    @property
    def ok(self) -> bool:
        return bool(self.meta["status"] == "ok")

    @property
    def parts(self) -> Parts:
        return parts(self.series)

    def parts_of(self, metrics: Collection[str]) -> Parts:
        return {key: columns for key, columns in self.parts.items() if key[2] in metrics}

    def trace_parts(self, metrics: Collection[str] | None = None) -> Parts:
        raise BakeoffError("has no trace")


def as_run(document: dict[str, Any]) -> Run:
    """The run of a document, as it is read."""
    return _run(json.dumps(document))


@lru_cache(maxsize=64)
def _run(text: str) -> Run:
    return Run.from_json(text)


def frame(rows: Rows) -> pl.DataFrame:
    schema = {"time": pl.Float64, "kind": pl.String, "name": pl.String, "metric": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def histogram(p50: float, p99: float, n: int = 1000) -> dict[str, float]:
    low = p50 / 2
    return {
        "n": n,
        "mean_s": p50,
        "min_s": low,
        "max_s": p99 * 1.1,
        "p5_s": low,
        "p50_s": p50,
        "p90_s": p99,
        "p95_s": p99,
        "p99_s": p99,
        "p999_s": p99,
    }


def resolved(
    *,
    scenario: str = "s6-rfc3168",
    run: str = "ns-prague-vs-cubic-ecn-pie-50Mbit-20ms",
    point: dict[str, str] | None = None,
    flows: tuple[tuple[str, str], ...] = (("prague", "prague@2020-08"), ("cubic", "cubic")),
    rate: str = "50mbit",
    child: str = "pie ecn",
    seed: int = 1,
) -> dict[str, Any]:
    """The document of docs/resolved-run.md."""
    shaper = {
        "qdisc": "htb default 1",
        "classes": [{"id": "1", "class": f"rate {rate} ceil {rate}", "child": {"qdisc": child}}],
    }
    delay = {"qdisc": "netem delay 10ms limit 1000000"}
    host = {"kind": "host", "sysctls": {"net.ipv4.tcp_ecn": "3"}, "hz": 250, "offloads": False}
    document = {
        "format": 1,
        "suite": "l4s-tests",
        "scenario": scenario,
        "run": run,
        "title": "",
        "seed": seed,
        "duration_s": 60.0,
        "sample_interval_s": 0.05,
        "window_s": [18.0, 58.0],
        "nodes": [{"name": "cli", **host}, {"name": "mid", **host, "kind": "bridge"}, {"name": "srv", **host}],
        "links": [
            {"ends": ["cli", "mid"], "rate_bps": None, "delay_s": 0.0, "mtu": 1500},
            {"ends": ["mid", "srv"], "rate_bps": None, "delay_s": 0.0, "mtu": 1500},
        ],
        "interfaces": [
            {"node": "mid", "peer": "cli", "tx_queue_len": 1000, "ingress": delay, "egress": shaper},
            {"node": "mid", "peer": "srv", "tx_queue_len": 1000, "ingress": delay, "egress": shaper},
        ],
        "tunnels": [],
        "flows": [
            {
                "name": name,
                "from": "cli",
                "to": "srv",
                "cc": cc,
                "transport": "tcp",
                "dscp": (19 + 16 * i) % 64,
                "start_s": 0.0,
                "stop_s": 60.0,
                "source": {"kind": "bulk"},
                "max_pacing_rate_bps": None,
                "tunnel": None,
            }
            for i, (name, cc) in enumerate(flows)
        ],
        "probes": [
            {
                "name": "ping",
                "proto": "icmp",
                "from": "cli",
                "to": "srv",
                "every_s": 0.05,
                "size": 84,
                "dscp": 0,
                "ecn": "not-ect",
                "start_s": 0.0,
                "stop_s": 60.0,
            }
        ],
        "changes": [],
        "captures": [],
        "point": {"qdisc": "pie", "other": "cubic", "ecn": "on"} if point is None else point,
        "present": {"rtt_axis_s": [0.02, 0.07], "rate_axis_bps": [0, 55_000_000]},
    }
    return json.loads(json.dumps(document))  # no part is shared


def made(
    rates: tuple[float, ...] = (45.7e6, 1.9e6), *, noise: float = 0.0, path: Path = Path("results/x"), **words: Any
) -> StandIn:
    """A 60 s run sampled every 50 ms: flow i delivers at `rates[i]` (amplitude `noise`), its srtt is 25 ms + 1 ms i."""
    run = resolved(**words)
    rows: Rows = []
    names = [flow["name"] for flow in run["flows"]]
    steps = [i * 0.05 for i in range(1, 1201)]
    for i, (name, rate) in enumerate(zip(names, rates, strict=True)):
        period = 3.0 + 4.0 * i
        for time in steps:
            phase = (time % period) / period - 0.5
            jitter = 0.15 * math.sin(211.0 * time + i)
            ramp = min(1.0, time / 2)
            now = rate * ramp * (1 + noise * (phase + jitter))
            srtt = 0.025 + 0.001 * i + noise * 0.012 * (phase + jitter) + 0.02 * math.exp(-time)
            rows += [
                (time, "flow", name, "delivery_rate", now),
                (time, "flow", name, "goodput", now),
                (time, "flow", name, "received", rate * time / 8),
                (time, "flow", name, "srtt", srtt),
                (time, "flow", name, "cwnd", now * srtt / 8 / 1448),
                (time, "flow", name, "retrans", 3.0),
            ]
    for time in steps:
        saw = noise * ((time % 3.0) / 3.0 - 0.5)
        rows += [
            (time, "probe", "ping", "rtt", 0.0255 + 0.015 * saw),
            (time, "queue", "mid>srv", "qlen", 20 + 20 * saw),
            (time, "queue", "mid>srv", "backlog", 30000 + 30000 * saw),
            (time, "queue", "mid>srv", "sojourn", 0.005 + 0.005 * saw),
            (time, "queue", "mid>srv", "marks", time * 10),
            (time, "queue", "mid>srv", "drops", 2.0),
        ]
    ecn = ["accecn" if flow["cc"].startswith("prague") else "rfc3168" for flow in run["flows"]]
    counters = {
        "flows": {
            flow["name"]: {
                "cc": flow["cc"],
                "ecn": mode,
                "mss": 1448,
                "sent_packets": 0,
                "sent_bytes": 0,
                "received_bytes": 0,
                "delivered": 200_000,
                "delivered_ce": 10_000,
                "retransmits": 3,
                "lost": 3,
                "rtos": 0,
                "tlps": 0,
                "rtt": histogram(0.025 + 0.001 * i, 0.032),
            }
            for i, (flow, mode) in enumerate(zip(run["flows"], ecn, strict=True))
        },
        "queues": {
            "mid>srv": {
                "qdisc": "pie limit 1000p target 15ms tupdate 15ms alpha 2 beta 20 ecn",
                "enqueued": 0,
                "sent": 0,
                "sent_bytes": 0,
                "queued": 0,
                "marks": 600,
                "drops": {"overlimit": 1, "aqm": 1, "overload": 0, "loss": 0},
                "flows": {name: {"packets": 10_000, "marks": 300, "drops": 1} for name in names},
                "sojourn": histogram(0.005, 0.0125),
            }
        },
        "probes": {"ping": {"sent": 1200, "received": 1200, "rtt": histogram(0.0255, 0.033)}},
        "conservation": {"sent": 10, "delivered": 8, "dropped": 1, "queued": 1},
        "events": 0,
    }
    meta = {"format": 1, "engine": "sim", "versions": {"bakeoff": "0.1.0"}, "seed": run["seed"], "status": "ok"}
    return StandIn(path, meta, run, frame(rows), counters)


def of_controls(*ccs, names=None, rates=None, **words):
    """A run with one flow per control."""
    names = names or [f"{cc}-{i}" for i, cc in enumerate(ccs)]
    return made(rates or (4e6,) * len(ccs), flows=tuple(zip(names, ccs, strict=True)), **{"point": {}, **words})


def honest(result):
    """The stand-in, with the feedback that its sysctls negotiate."""
    for flow in result.counted["flows"].values():
        flow["ecn"] = "accecn"
    return result


def with_call(result):
    """The stand-in with a call whose datagrams took 30 ms, of which one in twenty was lost."""
    call = {**result.resolved["flows"][0], "name": "call", "transport": "udp", "cc": "none"}
    call["source"] = {"kind": "periodic", "size": 160, "count": 1, "every_s": 0.02}
    result.resolved["flows"].append(call)
    samples = [(20 + i * 0.02, "flow", "call", "delay", 0.03) for i in range(95)]
    samples += [(30 + i, "flow", "call", "missing", 1.0) for i in range(5)]
    samples += [(i * 0.05, "flow", "call", "received", 400.0 * i) for i in range(1200)]
    return replace(result, series=result.series.extend(frame(samples)))
