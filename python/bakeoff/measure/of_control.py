"""The measure of a congestion control's own state, from `--trace cc`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.catalogue import ANY_SIGN, SHARE, Unit, Value
from bakeoff.measure.measured_run import MeasuredRun, flow_of
from bakeoff.measure.registration import Edge, measure
from bakeoff.scenario.cc_words import parse
from bakeoff.scenario.python_cc import is_python

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array, Window
    from bakeoff.scenario.run import Run

STATS: Final = ("mean", "max", "min", "last", "share_above")
_UNITS: Final[dict[str, Unit]] = {
    "cwnd": "packet", "ssthresh": "packet", "srtt": "s", "pacing_rate": "bit/s", "state": "1",
}  # fmt: skip
"""Traced of every control."""
SAMPLED: Final = ("cwnd", "ssthresh", "srtt", "pacing_rate")
"""Those that series.parquet has too: where nothing is traced, they come from there."""

_CUBIC: Final = ("last_max_cwnd", "origin_point", "k_s", "cnt", "tcp_cwnd")
_SCE: Final = ("cnt", "loss_cwnd", "recent_sce")
_BBR: Final = ("mode", "bw", "min_rtt_us", "pacing_gain")
_VEGAS: Final = ("base_rtt_us", "min_rtt_us")
_OWN: Final[dict[str, tuple[str, ...]]] = {
    "prague": (
        "alpha", "frac_cwnd", "cwnd_cnt", "rate", "ai_per_rtt", "in_loss", "rate_mode", "classic_ecn",
    ),
    "dctcp": ("alpha",),
    "cubic": _CUBIC,
    "cubic-sce": (*_CUBIC, "recent_sce"),
    "dctcp-sce": _SCE,
    "reno-sce": _SCE,
    "reno": (),
    "none": (),
    "bbr": (*_BBR, "policed"),
    **dict.fromkeys(("bbr2", "bbr3"), (*_BBR, "phase", "inflight_hi", "inflight_lo")),
    "cdg": ("gradient_min_us", "gradient_max_us", "shadow_wnd", "backoff_cnt"),
    "illinois": ("alpha", "beta", "base_rtt_us", "max_rtt_us"),
    "bic": ("last_max_cwnd", "cnt"),
    "highspeed": ("ai",),
    "htcp": ("alpha", "beta", "max_b"),
    "hybla": ("rho",),
    "copa": ("inverse_delta", "velocity", "standing_rtt_us", "queue_delay_us", "competitive"),
    "ledbat": ("base_delay_ms", "queue_delay_ms"),
    "ledbat++": ("base_rtt_us", "queue_delay_us", "inverse_gain", "slowdown"),
    "scalable": (),
    "lp": ("owd_ms", "owd_min_ms", "owd_max_ms", "remote_hz"),
    "nv": ("rtt_us", "min_rtt_us", "max_rate", "allow_growth"),
    "vegas": _VEGAS,
    "veno": ("base_rtt_us", "diff"),
    "westwood": ("bw_est", "rtt_min"),
    "yeah": (*_VEGAS, "queue", "reno_count"),
}  # fmt: skip
"""What the simulator's controls trace besides, in any of their versions; `trace` in crates/sim/src/cc."""


def variables(cc: str) -> tuple[str, ...] | None:
    """What the trace of a flow's `cc` may have; None if that is not known, as of a control in Python."""
    own = None if is_python(cc) else _OWN.get(parse(cc).name)
    return None if own is None else (*_UNITS, *own)


def check_variable(run: Run, flow: str | int, variable: str) -> None:
    """MeasureError if the flow's control has no such variable, as far as that is known."""
    part = flow_of(run, flow)
    if part.transport != "tcp":
        raise MeasureError(f"flow '{part.name}' has no congestion control; expected a flow of TCP")
    found = variables(part.cc)
    if found is not None and variable not in found:
        raise _unknown(variable, part.cc, found)


def _unknown(variable: str, cc: str, found: tuple[str, ...]) -> MeasureError:
    near = get_close_matches(variable, found, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return MeasureError(f"'{cc}' has no variable '{variable}'{hint}; expected one of {', '.join(found)}")


def kind_of(arguments: Mapping[str, Value]) -> tuple[Unit, tuple[float, float]]:
    """The unit and the bounds of a call. MeasureError for an unknown `stat`, or `above` where it has no meaning."""
    stat = arguments.get("stat", "mean")
    if stat not in STATS:
        raise MeasureError(f"stat: '{stat}'; expected one of {', '.join(STATS)}")
    if (stat == "share_above") != (arguments.get("above") is not None):
        raise MeasureError("expected 'above' with stat=\"share_above\", and only there")
    if stat == "share_above":
        return "1", SHARE
    return _UNITS.get(str(arguments.get("variable")), "1"), ANY_SIGN


def is_traced_only(arguments: Mapping[str, Value]) -> bool:
    """Whether only a trace has the variable of a call."""
    return arguments.get("variable") not in SAMPLED


def over_window(time: Array, value: Array, window: Window, stat: str, above: float = 0.0) -> float:
    """A statistic of a value that holds from its sample to the next; its unit, or none of `share_above`.

    The value at the start of the window is that of the last sample before it. `mean` is sum(v dt) / sum(dt),
    `share_above` sum(dt where v > above) / sum(dt), `last` the value at the window's end. MeasureError if no sample
    precedes the window's end.
    """
    import numpy as np

    first = max(int(time.searchsorted(window[0], "right")) - 1, 0)
    end = int(time.searchsorted(window[1]))
    times, values = time[first:end], value[first:end]
    if not len(times):
        raise MeasureError(f"no value between {window[0]:g} s and {window[1]:g} s")
    if stat in ("max", "min"):
        return float(values.max() if stat == "max" else values.min())
    if stat == "last":
        return float(values[-1])
    held = np.diff(np.append(np.maximum(times, window[0]), window[1]))
    weighted = values if stat == "mean" else values > above
    return float((weighted * held).sum() / held.sum())


@measure(
    "cc", "flow", "1", "state of the congestion control",
    "`stat` of a [traced](results-folder.md#traceparquet) variable: mean (over time), max, min, last, share_above (of "
    "the time, with `above=`)",
    needs=SAMPLED, bounds=ANY_SIGN, kind_of=kind_of, kinds={"above": "any"},
)  # fmt: skip
def _cc(
    run: MeasuredRun,
    flow: str | int,
    variable: str,
    *,
    stat: str = "mean",
    above: float | None = None,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    part = flow_of(run.document, flow)
    check_variable(run.document, flow, variable)
    start, stop = run.window(begin, end)
    metric = f"cc.{variable}"
    if variable in SAMPLED and not run.has_trace:
        found = run.samples.of("flow", part.name, variable)
    else:
        found = run.traced(metric).of("flow", part.name, metric)
    return over_window(*found, (start, min(stop, part.stop_s)), stat, 0.0 if above is None else above)
