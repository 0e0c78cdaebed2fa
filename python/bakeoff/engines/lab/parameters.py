"""Parameters of congestion controls on a real kernel: `cubic beta 600` is Linux's `tcp_cubic.beta`, one for a kernel.

The words are those that the simulator reads (crates/sim/src/cc). Where a module of Linux, or of this repository, has
the same parameter, a kernel that boots for one run can be given it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from bakeoff import tc
from bakeoff.engines.lab import versions
from bakeoff.engines.lab.versions import Parameter
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run, cc_words


class _Meaning(NamedTuple):
    """What a word of a scenario is to a module."""

    module: str
    name: str
    value: Callable[[str], str] = str


def _us(text: str) -> str:
    return str(round(tc.time(text) * 1e6))


_CUBIC: Final = {
    word: _Meaning("tcp_cubic", word)
    for word in (
        "fast_convergence",
        "beta",
        "initial_ssthresh",
        "bic_scale",
        "tcp_friendliness",
        "hystart_detect",
        "hystart_low_window",
        "hystart_ack_delta_us",
    )
} | {"hystart": _Meaning("tcp_cubic", "hystart", lambda text: {"on": "1", "off": "0"}.get(text, text))}
_PRAGUE: Final = {
    word: _Meaning("tcp_prague", f"prague_{word}")
    for word in ("alpha_mode", "burst_shift", "cwnd_mode", "cwnd_transit", "max_tso_segs", "rtt_transition")
} | {"rtt_target": _Meaning("tcp_prague", "prague_rtt_target", _us)}
_PRAGUE_2020: Final = {
    "ecn_fallback": _Meaning("tcp_prague", "prague_ecn_fallback"),
    "rtt_scaling": _Meaning(
        "tcp_prague",
        "prague_rtt_scaling",
        {"none": "0", "rate": "1", "scalable": "2", "additive": "3"}.__getitem__,
    ),
}
_SCE: Final = {"mss": _Meaning("tcp_sce", "sce_mss", {"mss_cache": "0", "rcv_mss": "1"}.__getitem__)}
_KNOWN: Final[Mapping[str, Mapping[str, _Meaning]]] = {
    "cubic": _CUBIC,
    "dctcp": {word: _Meaning("tcp_dctcp", word) for word in ("dctcp_shift_g", "dctcp_alpha_on_init")},
    "vegas": {word: _Meaning("tcp_vegas", word) for word in ("alpha", "beta", "gamma")},
    "cdg": {
        word: _Meaning("tcp_cdg", word)
        for word in ("backoff_beta", "backoff_factor", "hystart_detect", "use_ineff", "use_shadow", "use_tolerance")
    },
    "nv": {word: _Meaning("tcp_nv", word) for word in ("nv_pad", "nv_reset_period", "nv_min_cwnd")},
    "bic": {
        word: _Meaning("tcp_bic", word)
        for word in ("fast_convergence", "max_increment", "low_window", "beta", "initial_ssthresh", "smooth_part")
    },
    "htcp": {word: _Meaning("tcp_htcp", word) for word in ("use_rtt_scaling", "use_bandwidth_switch")},
    "hybla": {"rtt0": _Meaning("tcp_hybla", "rtt0")},
    "prague": _PRAGUE,
    **dict.fromkeys(("prague@2020-04", "prague@2020-08", "prague@2021-06"), _PRAGUE_2020),
    "reno-sce": _SCE,
    "reno-sce@2019": _SCE,
    "dctcp-sce": _SCE,
    "dctcp-sce@2019": _SCE,
    "cubic-sce": _SCE
    | {"origin": _Meaning("tcp_sce", "cubic_origin", {"continuous": "0", "literal": "1"}.__getitem__)},
}
OFFERED: Final = frozenset((meaning.module, meaning.name) for words in _KNOWN.values() for meaning in words.values())
"""(module, parameter) of every word that some kernel may have."""


def _known(text: str) -> Mapping[str, _Meaning]:
    """The words that the congestion control has which this kernel runs; its own, where it lacks the version."""
    asked = cc_words.parse(text)
    return _KNOWN.get(asked.versioned if asked.versioned in versions.OFFERED else asked.name, {})


def _asked(text: str) -> dict[str, str]:
    """Word -> value; without that of SCE's pacing, which a sysctl speaks of as well (`sce.pacing`).

    A word that no kernel has is the last one, with no value: it may be a slow start, which needs none.
    """
    words, known = iter(cc_words.parse(text).parameters), _known(text)
    asked: dict[str, str] = {}
    for word in words:
        if word not in known and word != "pacing":
            return asked | {word: ""}
        asked[word] = next(words, "")
    asked.pop("pacing", None)
    return asked


def _check(run: Run) -> None:
    """Linux takes what it cannot read for a 0 or ignores it; the simulator knows each word's range."""
    from bakeoff import _sim

    try:
        _sim.check(run.to_json())
    except ValueError as error:
        if re.match(r"flows\[\d+\]\.cc: ", str(error)):
            raise RefusedError(str(error)) from None


def given(run: Run, offered: frozenset[tuple[str, str]]) -> list[Parameter]:
    """What the flows of the run ask of modules that are `offered`.

    RefusedError if a flow asks for what no parameter of the kernel is, or if two flows that one parameter concerns do
    not both ask for the same value: a kernel has one for all.
    """
    flows = [(index, flow.cc) for index, flow in enumerate(run.flows) if flow.transport == "tcp"]
    if any(cc_words.parse(text).parameters for _, text in flows):
        _check(run)
    values: dict[Parameter, tuple[int, str]] = {}
    for index, text in flows:
        versioned = cc_words.parse(text).versioned
        known = _known(text)
        for word, value in _asked(text).items():
            meaning = known.get(word)
            if meaning is None or (meaning.module, meaning.name) not in offered:
                raise RefusedError(
                    f"flows[{index}].cc: '{text}': unknown parameter '{word}' of this kernel's '{versioned}'; expected "
                    f"'{versioned}', or --engine sim"
                )
            values.setdefault(Parameter(meaning.module, meaning.name, meaning.value(value)), (index, word))
    for parameter, (first, _) in values.items():
        for index, text in flows:
            asked = _asked(text)
            for word, meaning in _known(text).items():
                if (meaning.module, meaning.name) != (parameter.module, parameter.name):
                    continue
                if word not in asked or meaning.value(asked[word]) != parameter.value:
                    raise RefusedError(
                        f"flows[{index}].cc: '{text}': flows[{first}] is '{run.flows[first].cc}', but "
                        f"{parameter.module}.{parameter.name} applies to all connections of a kernel; expected the "
                        f"same '{word}'"
                    )
    return list(values)
