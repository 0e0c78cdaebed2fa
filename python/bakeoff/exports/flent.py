"""A run as a data file of Flent (`.flent.gz`), which `flent` and `flent-gui` open.

Source: the documentation of Flent's data format (doc/data-format.rst) and what Flent 2.1.1 does with a file; format
version 4. A file is one JSON object in gzip. Its `raw_values` hold our samples at the times they were taken, one entry
for all that was sampled together; `results` hold the rates, round trips and socket statistics again on one grid of
times, for Flent's CSV, summaries and combined plots.

Flent computes sums, averages and fairness by itself when it loads a file. What a test's plots show, and how their
series are called, is the test's: `flent_test` chooses it. Times count from T0, which lies so far before the first flow
as in Flent's own runs, because its box plots and CDFs leave out the first and the last five seconds.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bakeoff.errors import ExportError
from bakeoff.exports.flent_test_kind import Claim, claim
from bakeoff.measure import MeasureError, Samples
from bakeoff.measure.delays import little_over_time
from bakeoff.scenario.run import Short, Video
from bakeoff.version import version

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.results import Result
    from bakeoff.scenario.run import Flow, Run

SUFFIX: Final = ".flent.gz"
EPOCH: Final = 1_700_000_000
"""T0 in seconds of Unix time, of every file: a run's time is its own, and equal runs give equal bytes."""
LEAD_S: Final = 5
"""Flent's DELAY: how long it measures before and after the load."""
FORMAT: Final = 1
"""Of what stands under `metadata.BAKEOFF`."""

Entry = dict[str, Any]

_FLOW: Final = {
    "goodput": ("val", 1e-6),
    "cwnd": ("tcp_cwnd", 1.0),
    "srtt": ("tcp_rtt", 1e3),
    "delivery_rate": ("tcp_delivery_rate", 1e-6),
    "pacing_rate": ("tcp_pacing_rate", 1e-6),
}
_PROBE: Final = {"rtt": ("val", 1e3)}
_QUEUE: Final = {
    "backlog": ("backlog_bytes", 1.0),
    "qlen": ("backlog_pkts", 1.0),
    "sojourn": ("delay", 1e3),
    "sent": ("sent_bytes", 1.0),
}
_NAMES: Final = {"flow": _FLOW, "probe": _PROBE, "queue": _QUEUE}
"""Our metrics with Flent's keys, and what a value in our unit is multiplied by for Flent's (Mbit/s, ms, packets)."""
_COUNTED: Final = {"drops": "dropped", "marks": "ecn_mark"}
"""Of queues: what is cumulative with us, and per interval in Flent."""
_SOCKET: Final = ("tcp_cwnd", "tcp_rtt", "tcp_delivery_rate", "tcp_pacing_rate")
_MOST_STEPS: Final = 20_000
"""Of the grid: Flent reads the whole of it for each series."""


def suffixes(_: Result) -> list[str]:
    """One file for a run."""
    return [SUFFIX]


def files(result: Result) -> Iterator[tuple[str, bytes]]:
    """The data file. BakeoffError if the run has neither a flow nor a probe with samples."""
    text = msgspec.json.encode(document(result))
    # No file name and no time in the header: equal runs give equal bytes.
    yield SUFFIX, gzip.compress(msgspec.json.format(text, indent=1) + b"\n", compresslevel=6, mtime=0)


def document(result: Result) -> dict[str, Any]:
    """The JSON object of a run's data file."""
    run, samples = result.run, Samples(result.parts)
    chosen = claim(run, list(samples.names("queue")))
    start = _lead(run)
    t0 = EPOCH - start
    raw = {name: _entries(samples, kind, of, t0 + start) for (kind, of), name in chosen.series.items()}
    for flow in run.flows:
        name = chosen.series["flow", flow.name]
        raw[name] = [entry for entry in raw[name] if _is_while(flow, run, entry["t"] - t0 - start)]
    raw = {name: entries for name, entries in raw.items() if entries}
    if not any(chosen.series[kind, of] in raw for kind, of in chosen.series if kind != "queue"):
        raise ExportError("no samples of flows or probes; a Flent file needs them")
    total = start + run.duration_s + _trail(run)
    step = max(run.sample_interval_s, total / _MOST_STEPS)
    grid = [round(step * n, 6) for n in range(int(total / step) + 1)]
    return {
        "version": 4,
        "x_values": grid,
        "results": _on_grid(raw, t0, grid),
        "raw_values": raw,
        "metadata": _metadata(result, chosen, samples, raw, t0=t0, start=start, total=total, step=step),
    }


def _lead(run: Run) -> int:
    """Whole seconds from T0 to the run's beginning, so that the first flow begins at Flent's LEAD_S or later."""
    first = min((flow.start_s for flow in run.flows), default=0.0)
    return max(0, LEAD_S - int(first))


def _trail(run: Run) -> float:
    """Seconds after the run's end, so that LEAD_S come after the last flow."""
    last = max((flow.stop_s for flow in run.flows), default=run.duration_s)
    return max(0.0, LEAD_S - (run.duration_s - last))


def _is_while(flow: Flow, run: Run, at_s: float) -> bool:
    """Whether a flow lasts then. What is sampled of a connection that stands idle after its end is no rate of it."""
    if isinstance(flow.source, Short | Video):
        return True
    return at_s <= flow.stop_s + run.sample_interval_s + 1e-6


def _entries(samples: Samples, kind: str, name: str, start: float) -> list[Entry]:
    """What was sampled of a flow, probe or queue: an entry for each time. `start`: Unix time of the run's beginning.

    What Flent has no key for keeps our name, after `bakeoff_`, and our unit.
    """
    import numpy as np

    entries: dict[float, Entry] = {}

    def put(time: Array, key: str, values: Array) -> None:
        for at, value in zip(time.tolist(), values.tolist(), strict=True):
            entries.setdefault(at, {"t": round(start + at, 6)})[key] = value

    for metric, (time, values) in samples.all_of(kind, name):
        if metric in _NAMES[kind]:
            key, factor = _NAMES[kind][metric]
            put(time, key, np.round(values * factor, 9))
            if metric == "goodput":
                put(time, "dur", np.round(np.diff(time, prepend=2 * time[0] - time[1] if len(time) > 1 else 0.0), 6))
        elif kind == "queue" and metric in _COUNTED:
            put(time, _COUNTED[metric], np.diff(values, prepend=0.0))
        elif (kind, metric) == ("probe", "lost"):
            for at in time.tolist():
                entries[at] = {"t": round(start + at, 6), "lost": True, "lost_dir": None}
        else:
            put(time, f"bakeoff_{metric}", values)
    if kind == "queue" and _is_by_littles_law(samples, name):
        with suppress(MeasureError):
            time, values = little_over_time(samples, name)
            put(time, "delay", np.round(values * 1e3, 9))
    ordered = [entries[at] for at in sorted(entries)]
    if kind == "probe":
        for number, entry in enumerate(ordered):
            entry["seq"] = number
            # As ping and irtt tell it: when the answer came.
            if "val" in entry:
                entry["t"] = round(entry["t"] + entry["val"] / 1e3, 6)
        ordered.sort(key=lambda entry: entry["t"])
    return ordered


def _is_by_littles_law(samples: Samples, queue: str) -> bool:
    """Whether nobody told the delay of a queue, so that it is computed, as for our own pictures."""
    return ("queue", queue, "sojourn") not in samples


def _on_grid(raw: Mapping[str, Sequence[Entry]], t0: float, grid: Sequence[float]) -> dict[str, list[float | None]]:
    """Every series on the grid of times, by straight lines between its points; nothing before and after them."""
    import numpy as np

    found: dict[str, list[float | None]] = {}
    for name, entries in raw.items():
        keys = ("dropped", "ecn_mark", "backlog_bytes", "delay") if name.startswith("qdisc_stats_") else _SOCKET
        for key in ("val", *keys):
            points = [(entry["t"] - t0, entry[key]) for entry in entries if key in entry]
            if points:
                time, value = np.array(points, dtype=float).T
                on = np.interp(grid, time, value, left=np.nan, right=np.nan)
                series = name if key == "val" else f"{name}::{key}"
                found[series] = [None if math.isnan(number) else round(number, 6) for number in on.tolist()]
    return found


def _metadata(
    result: Result,
    chosen: Claim,
    samples: Samples,
    raw: Mapping[str, Sequence[Entry]],
    *,
    t0: float,
    start: float,
    total: float,
    step: float,
) -> dict[str, Any]:
    run, made = result.run, result.record.provenance
    first = run.traffic[0]
    seed = f" seed {run.seed}" if run.seed > 1 else ""
    return {
        "NAME": chosen.test,
        "TITLE": " ".join(dict.fromkeys((run.scenario, run.run))) + seed,
        "NOTE": made.note if made else None,
        "HOST": chosen.hosts[0] if chosen.hosts else first.to,
        "HOSTS": chosen.hosts or [first.to],
        "LOCAL_HOST": first.from_,
        "LENGTH": round(total - 2 * LEAD_S),
        "TOTAL_LENGTH": round(total, 6),
        "STEP_SIZE": step,
        "TIME": _date(made.date.timestamp() if made else t0),
        "T0": _date(t0),
        "IP_VERSION": 4,
        "FLENT_VERSION": f"bakeoff {version()}",
        "DATA_FILENAME": f"{result.key.replace('/', '_')}{SUFFIX}",
        "TEST_PARAMETERS": chosen.parameters,
        "FAILED_RUNNERS": 0,
        "SERIES_META": _series_meta(result, chosen, raw),
        "BAKEOFF": {
            "export": FORMAT,
            "begin_s": start,
            "series": {name: list(of) for of, name in chosen.series.items()},
            "computed_delays": [q for q in samples.names("queue") if _is_by_littles_law(samples, q)],
            **result.record.about(),
            "resolved": run.model_dump(mode="json"),
            "counters": result.all_counters(),
        },
    }


def _series_meta(result: Result, chosen: Claim, raw: Mapping[str, Sequence[Entry]]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for (kind, name), series in chosen.series.items():
        values = [entry["val"] for entry in raw.get(series, ()) if "val" in entry]
        meta: Entry = {"UNITS": {"flow": "Mbits/s", "probe": "ms", "queue": "misc"}[kind]}
        if values:
            meta["MEAN_VALUE"] = sum(values) / len(values)
        if kind == "probe" and values:
            meta |= {"MIN_VALUE": min(values), "MAX_VALUE": max(values)}
        if kind == "flow":
            counted = result.counters.flow(name)
            known = {
                "CONG_CONTROL": counted.cc,
                "TCP_MSS": counted.mss,
                "TCP_RETRANSMIT": counted.retransmits,
                "BYTES_RECVD": counted.received_bytes,
            }
            meta |= {key: value for key, value in known.items() if value is not None}
        found[series] = meta
    return found


def _date(at_s: float) -> str:
    """As Flent writes times: with a fraction and `Z`, without which it fails or guesses a zone."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
