"""What a file of irtt's client tells, in the words of this project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.results.irtt_json import IrttTest

_QUANTILES: Final = {"p5": 0.05, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def document(test: IrttTest) -> dict[str, Any]:
    """The test as JSON: seconds and counts; what the file does not tell is null."""
    trips = test.round_trips
    lost = trips["lost"]
    return {
        "test": {
            "version": test.version,
            "hostname": test.hostname,
            "client": test.local_address,
            "server": test.remote_address,
            "interval_s": test.interval_s,
            "length": test.length,
            "traffic_class": test.traffic_class,
            "start_ns": test.started_ns,
            "duration_s": float(trips["time"][-1]) if test.sent else None,
            "requests": test.sent,
            "replies": test.received,
            "lost": test.sent - test.received,
            "lost_up": int((lost == "true_up").sum()),
            "lost_down": int((lost == "true_down").sum()),
            "duplicates": test.duplicates,
            "late": test.late,
            "server_received": test.server_received,
            "rtt_s": distribution(trips["rtt_s"]),
            "send_delay_s": distribution(trips["send_delay_s"]),
            "receive_delay_s": distribution(trips["receive_delay_s"]),
            "ipdv_s": distribution(trips["ipdv_s"].abs()),
            "send_ipdv_s": distribution(trips["send_ipdv_s"].abs()),
            "receive_ipdv_s": distribution(trips["receive_ipdv_s"].abs()),
            "server_s": distribution(trips["server_s"]),
        }
    }


def distribution(values: pl.Series) -> dict[str, float | int]:
    """n, mean, least, greatest and quantiles (the nearest rank) of the values that there are."""
    known = values.drop_nulls()
    if known.is_empty():
        return {"n": 0}
    found: dict[str, float | int] = {"n": known.len(), "mean": float(known.mean()), "min": float(known.min())}  # type: ignore[arg-type]
    ordered = known.sort()
    for key, share in _QUANTILES.items():
        # The smallest value that at least this share of all do not exceed.
        rank = -(-known.len() * round(share * 1000) // 1000)
        found[key] = float(ordered[max(rank, 1) - 1])
    found["max"] = float(ordered[-1])
    return found
