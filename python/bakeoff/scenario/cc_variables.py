"""The variables of congestion controls that `--trace cc` has, and that the conditions of `when` name."""

from __future__ import annotations

from typing import Final, Literal

from bakeoff.scenario.cc_words import parse
from bakeoff.scenario.python_cc import is_python

Unit = Literal["packet", "s", "bit/s", "1"]

COMMON: Final[dict[str, Unit]] = {
    "cwnd": "packet", "ssthresh": "packet", "srtt": "s", "pacing_rate": "bit/s", "state": "1", "in_flight": "packet",
    "delivered": "packet", "lost": "packet", "app_limited": "1",
}  # fmt: skip
"""Traced of every control, with their units."""

_CUBIC: Final = ("last_max_cwnd", "origin_point", "k_s", "cnt", "tcp_cwnd")
_SCE: Final = ("cnt", "loss_cwnd", "recent_sce")
_BBR: Final = (
    "mode", "phase", "bw", "min_rtt_us", "pacing_gain", "cwnd_gain", "max_bw", "rounds", "full_bw_rounds",
    "full_bw_reached", "extra_acked", "idle_restart",
)  # fmt: skip
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
    **dict.fromkeys(
        ("bbr2", "bbr3"), (*_BBR, "full_bw_now", "probe_too_high", "bw_lo", "inflight_hi", "inflight_lo")
    ),
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

UNITS: Final[dict[str, Unit]] = {
    **COMMON, **dict.fromkeys(("inflight_hi", "inflight_lo", "extra_acked"), "packet"),
}  # fmt: skip
"""Units by variable; others have none."""

WORDS: Final[dict[str, tuple[str, ...]]] = {
    "mode": ("startup", "drain", "probe_bw", "probe_rtt"),
    "phase": ("up", "down", "cruise", "refill"),
    "state": ("open", "disorder", "cwr", "recovery", "loss"),
}
"""What the values 0, 1, … of a variable are called: BBR's modes and phases, and `icsk_ca_state`."""


def variables(cc: str) -> tuple[str, ...] | None:
    """What the trace of a flow's `cc` may have; None if that is not known, as of a control in Python."""
    own = None if is_python(cc) else _OWN.get(parse(cc).name)
    return None if own is None else (*COMMON, *own)


def known() -> list[str]:
    """The variables of all controls."""
    return list(dict.fromkeys([*COMMON, *(name for own in _OWN.values() for name in own)]))
