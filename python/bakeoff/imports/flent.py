"""Data files of Flent: any test, format versions 1 to 4, packed or plain.

Source: the documentation of Flent's data format (doc/data-format.rst), and what Flent 2.1.1 makes of a file when it
loads one. A file that `bakeoff export` wrote tells which run it was, and comes back as that run.

What a series is, its name says: `TCP …` and `SCTP …` are flows with a congestion window, `UDP …` flows without one,
`Ping (ms) …` probes, `qdisc_stats_…` queues. Sums, averages and fairness, which Flent computes itself, are left out;
so are other series (of processors, radios, web pages), which the recording then says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bakeoff.errors import RecordingError
from bakeoff.imports.document import ABSENT, Keys, Scalar, decoded, is_there, need_few
from bakeoff.imports.flent_network import Network, control_of, file_word
from bakeoff.imports.flent_series import MOST_SERIES, STEP_S, Kind, Meta, Points, Series, own_rows, points_of, rows_of
from bakeoff.imports.recording import Recording, recorded
from bakeoff.measure import Samples
from bakeoff.results import RunRecord
from bakeoff.results.sample_rows import frame
from bakeoff.results.series import parts

if TYPE_CHECKING:
    from bakeoff.results.series import Parts
    from bakeoff.scenario.run import Run

KEYS: Final = frozenset({"metadata", "results", "x_values"})
WANTED: Final = frozenset({*KEYS, "version", "raw_values"})
NEWEST: Final = 4
FORMAT: Final = 1
"""Of `metadata.BAKEOFF`."""
_MOST_FACTS: Final = 4 << 20
"""Bytes of a part of the metadata that is read as it comes."""
_HOUR_S: Final = 3600.0
_FURTHEST_S: Final = 1e7
"""Seconds between T0 and a sample: four months."""
_COMPUTED: Final = re.compile(r".* (?:avg|sum|fairness|totals)|TCP totals")
_PART_OF_A_SERIES: Final = re.compile(r".*::[a-z_]+")
"""`TCP upload::1::tcp_rtt`, `VoIP::jitter`: values of a series that has its own points."""


class Metadata(msgspec.Struct):
    """What is read of it."""

    NAME: str
    TITLE: Scalar = None
    NOTE: Scalar = None
    HOST: Scalar = None
    HOSTS: list[Scalar] | None = None
    LOCAL_HOST: Scalar = None
    T0: str | None = None
    TIME: str | None = None
    TOTAL_LENGTH: float | None = None
    STEP_SIZE: float | None = None
    FLENT_VERSION: Scalar = None
    NETPERF_WRAPPER_VERSION: Scalar = None
    KERNEL_NAME: Scalar = None
    KERNEL_RELEASE: Scalar = None
    SYSCTLS: msgspec.Raw = ABSENT
    EGRESS_INFO: msgspec.Raw = ABSENT
    REMOTE_METADATA: msgspec.Raw = ABSENT
    SERIES_META: msgspec.Raw = ABSENT
    BAKEOFF: msgspec.Raw = ABSENT


class Own(msgspec.Struct):
    """What is read of `metadata.BAKEOFF`, besides what run.json has."""

    export: int
    begin_s: float
    """Seconds from T0 to the beginning of the run."""
    series: dict[str, tuple[str, str]]
    """From the series to the kind and the name of what was sampled."""
    counters: dict[str, Any]
    computed_delays: list[str] = []
    """Queues whose delay nobody told: it was computed for Flent's plots, and is computed again."""


def read(keys: Keys, path: Path) -> Recording:
    """What a data file tells. BakeoffError names the file, the first key that is wrong, and the expected form."""
    metadata = decoded(keys["metadata"], Metadata, f"{path}: metadata")
    version = _version(keys, path)
    if is_there(metadata.BAKEOFF):
        return _own(keys, metadata, metadata.BAKEOFF, path)
    meta: dict[str, Meta] = {}
    if is_there(metadata.SERIES_META):
        need_few(metadata.SERIES_META, b"[", MOST_SERIES, f"{path}: metadata.SERIES_META", "series")
        meta = decoded(metadata.SERIES_META, dict[str, Meta], f"{path}: metadata.SERIES_META")
    return _recorded(points_of(keys, meta, version, str(path)), meta, metadata, path)


def _version(keys: Keys, path: Path) -> int:
    """As Flent takes it: 1 where none is said, or no number."""
    text: Any = decoded(keys["version"], Scalar, f"{path}: version") if "version" in keys else None  # type: ignore[arg-type]
    try:
        version = int(text)
    except (TypeError, ValueError, OverflowError):
        version = 1
    if version > NEWEST:
        raise RecordingError(f"{path}: version: {version}; unknown version of Flent's format; expected 1 to {NEWEST}")
    return version


def _own(keys: Keys, metadata: Metadata, raw: msgspec.Raw, path: Path) -> Recording:
    """A run that `bakeoff export` wrote."""
    place = f"{path}: metadata.BAKEOFF"
    facts = _facts(raw, place)
    if not isinstance(facts, dict) or facts.get("export") != FORMAT:
        raise RecordingError(f"{place}: unknown format; expected 'export': {FORMAT}")
    own = decoded(raw, Own, place)
    record = RunRecord.of(facts, place)
    t0 = _parsed(metadata.T0 or "", f"{path}: metadata.T0") + own.begin_s
    rows = own_rows(keys.get("raw_values", msgspec.Raw(b"{}")), own.series, t0, f"{path}: raw_values")
    rows = (row for row in rows if row[1:4:2] != ("queue", "sojourn") or row[2] not in own.computed_delays)
    return Recording(record.model_copy(update={"taken": None}), frame(rows), own.counters, names_its_run=True)


def _recorded(points: Points, meta: Mapping[str, Meta], metadata: Metadata, path: Path) -> Recording:
    """A run that Flent recorded."""
    t0 = 0.0 if points.is_relative else _t0(metadata, points, path)
    facts = {
        key: _facts(value, f"{path}: metadata.{key}") if isinstance(value, msgspec.Raw) else value
        for key in Metadata.__struct_fields__
        if key != "SERIES_META" and (value := getattr(metadata, key)) not in (None, ABSENT)
    }
    series, left = _chosen(points, meta, metadata.STEP_SIZE or STEP_S)
    if not any(one.kind in ("flow", "probe") for one in series):
        raise RecordingError(f"{path}: raw_values: no samples; expected a flow (TCP …, UDP …) or a probe (Ping (ms) …)")
    network = Network(series, facts)
    for one in series:
        if one.kind == "queue":
            one.name = network.queue_name(one.name)
    _need_names(series, path)
    rows = [row for one in series for row in rows_of(one, t0)]
    earliest, latest = min(row[0] for row in rows), max(row[0] for row in rows)
    if earliest < -_FURTHEST_S or latest > _FURTHEST_S:
        away = max(latest, -earliest)
        raise RecordingError(f"{path}: metadata.T0: {away:.0f} s from a sample; expected the start of the test")
    # A run has no time before its beginning.
    samples = frame((row[0] - min(0.0, earliest), *row[1:]) for row in rows)
    of = parts(samples)
    title = _line(metadata.TITLE) or ""
    run, effective = network.run(Samples(of), title=title, run=file_word(title or path.name.partition(".")[0]))
    if left:
        listed = ", ".join(left[:5]) + (f" and {len(left) - 5} more" if len(left) > 5 else "")
        effective.append(f"ignored series that are not a flow, probe or queue: {listed}")
    record = recorded(
        run,
        engine="flent",
        versions=_versions(metadata),
        date=_date(metadata, path),
        host=_line(metadata.LOCAL_HOST),
        note=_line(metadata.NOTE),
        effective=[f"recorded by Flent, read from {path.name}", *effective],
    )
    return Recording(record, samples, _counters(series, of, run, facts))


def _facts(raw: msgspec.Raw, place: str) -> Any:  # noqa: ANN401 (any JSON value)
    """A part of the metadata as it comes."""
    if len(bytes(raw)) > _MOST_FACTS:
        raise RecordingError(f"{place}: {len(bytes(raw)):,} bytes; expected at most {_MOST_FACTS:,}")
    return decoded(raw, Any, place)


def _chosen(points: Points, meta: Mapping[str, Meta], step_s: float) -> tuple[list[Series], list[str]]:
    """The series of flows, probes and queues, and the names of the others."""
    found, left = [], []
    for key, of in points.of.items():
        if _COMPUTED.fullmatch(key) or (points.is_relative and _PART_OF_A_SERIES.fullmatch(key)):
            continue
        kind: Kind
        if key.startswith(("TCP", "SCTP", "UDP ")):
            kind, name = "flow", key.removeprefix("TCP ")
        elif key.startswith("Ping (ms)"):
            kind, name = "probe", key.removeprefix("Ping (ms)").strip(" :") or "ping"
        elif key.startswith("qdisc_stats_"):
            kind, name = "queue", key.removeprefix("qdisc_stats_")
        else:
            left.append(repr(key)[:80])
            continue
        one = Series(kind, _line(name) or "?", key, of, meta.get(key, Meta()), min(max(step_s, 1e-4), 1e9))
        if next(rows_of(one, 0.0), None) is not None:
            found.append(one)
    return found, left


def _need_names(series: Sequence[Series], path: Path) -> None:
    names: dict[tuple[str, str], str] = {}
    for one in series:
        other = names.setdefault((one.kind, one.name), one.key)
        if other != one.key:
            raise RecordingError(
                f"{path}: raw_values: {other!r:.80} and {one.key!r:.80} both map to {one.kind} '{one.name}'; "
                "expected unique names"
            )


def _counters(series: Sequence[Series], samples: Parts, run: Run, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the file counts; a key that it does not tell is absent."""
    import numpy as np

    from bakeoff.measure.delays import quantile

    nothing = np.empty(0), np.empty(0)
    found: dict[str, dict[str, Any]] = {"flows": {}, "queues": {}, "probes": {}}
    start, end = run.window_s
    qdisc = run.interfaces[0].egress.qdisc if run.interfaces and run.interfaces[0].egress else "unknown"
    for one in series:
        if one.kind == "flow":
            counted: dict[str, Any] = {"cc": control_of(one, facts) if one.transport == "tcp" else "none"}
            counted |= {"mss": one.meta.count("TCP_MSS"), "retransmits": one.meta.count("TCP_RETRANSMIT")}
            counted["received_bytes"] = one.meta.count("BYTES_RECVD")
            found["flows"][one.name] = {key: value for key, value in counted.items() if value is not None}
        elif one.kind == "probe":
            (time, rtt), (lost, _) = (samples.get((one.kind, one.name, metric), nothing) for metric in ("rtt", "lost"))
            inside = sorted(rtt[(start <= time) & (time <= end)].tolist())
            counts: dict[str, Any] = {"rtt": {"n": len(inside)}}
            if inside:
                shares = {"p5": 0.05, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
                counts["rtt"] |= {"mean_s": sum(inside) / len(inside), "min_s": inside[0], "max_s": inside[-1]}
                counts["rtt"] |= {f"{name}_s": quantile(inside, share) for name, share in shares.items()}
            if one.tells_loss:
                counts |= {"sent": len(rtt) + len(lost), "received": len(rtt)}
            found["probes"][one.name] = counts
        else:
            totals = {metric: samples.get((one.kind, one.name, metric), nothing)[1] for metric in ("drops", "marks")}
            # A qdisc that sets no marks tells of none: then it is not known to have set 0.
            if all(len(total) for total in totals.values()):
                found["queues"][one.name] = {
                    "qdisc": qdisc if ">" in one.name else "unknown",
                    "marks": round(totals["marks"][-1]),
                    "drops": {"dropped": round(totals["drops"][-1])},
                }
    return found


def _t0(metadata: Metadata, points: Points, path: Path) -> float:
    """Unix time [s] of x = 0.

    Older files tell the time of an unnamed zone: as in Flent, whole hours bring it to the samples.
    """
    first = points.earliest()
    recorded = metadata.T0 or metadata.TIME
    if recorded is None:
        if first is None:
            raise RecordingError(f"{path}: metadata.T0: missing; expected the start of the test")
        return first
    at = _parsed(recorded, f"{path}: metadata.{'T0' if metadata.T0 else 'TIME'}")
    if not recorded.endswith("Z") and first is not None:
        at += _HOUR_S * round((first - at) / _HOUR_S)
    return at


def _parsed(text: str, place: str) -> float:
    for form in ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    raise RecordingError(f"{place}: '{text}': invalid time; expected for example 2026-11-23T12:00:00.000000Z")


def _date(metadata: Metadata, path: Path) -> datetime | None:
    recorded = metadata.TIME or metadata.T0
    if recorded is None:
        return None
    return datetime.fromtimestamp(_parsed(recorded, f"{path}: metadata.TIME"), UTC).replace(microsecond=0)


def _versions(metadata: Metadata) -> dict[str, str]:
    names = {
        "flent": _line(metadata.FLENT_VERSION) or _line(metadata.NETPERF_WRAPPER_VERSION),
        "kernel": " ".join(filter(None, (_line(metadata.KERNEL_NAME), _line(metadata.KERNEL_RELEASE)))),
    }
    return {name: recorded for name, recorded in names.items() if recorded}


def _line(recorded: Scalar) -> str | None:
    """A line of text, or None of what is none."""
    if not isinstance(recorded, str):
        return None
    return "".join(c if c.isprintable() else " " for c in recorded).strip()[:500] or None
