"""Which colour, marker and dash stand for what: the same in every picture."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from bakeoff.errors import PlotError
from bakeoff.scenario.cc_words import parse

if TYPE_CHECKING:
    from bakeoff.scenario.run import Run

CONTROLS: Final[Mapping[str, tuple[str, str]]] = {
    "cubic": ("#0072B2", "o"),
    "prague": ("#D55E00", "s"),
    "reno": ("#009E73", "^"),
    "bbr": ("#E69F00", "D"),
    "dctcp": ("#CC79A7", "v"),
    "cubic-sce": ("#56B4E9", "P"),
    "reno-sce": ("#0B5D44", "<"),
    "dctcp-sce": ("#7A3B69", ">"),
    "bbr3": ("#8A5A00", "X"),
    "bbr2": ("#B8860B", "d"),
    "none": ("#7F7F7F", "p"),
    "udp": ("#4B3FA7", "*"),
}
"""Colour and marker by congestion control, without its version; `udp` is for flows without one.

The colours of Okabe and Ito's palette, which are distinct for every kind of colour vision, and for SCE's and BBR's
relatives a lighter or darker tone of it. Black is for probes. The palette's yellow is too pale for a line on white.
"""

_OTHERS: Final = ("#117733", "#882255", "#999933", "#332288", "#AA4499", "#661100", "#44AA99", "#CC6677")
"""For controls that users bring: Paul Tol's muted palette, as far as it is none of the above."""

DASHES: Final = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (7, 1.6, 1.4, 1.6)))
"""Several lines of one colour are told apart by these."""

SHADES: Final = (0.0, -0.35, 0.4, -0.65)
"""How far each of several flows of one control goes from its colour towards white, or (negative) towards black."""

SERIES: Final = ("#222222", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A3B69")
"""Where the lines of a picture stand for runs, queues or labels, and none of them for a flow."""

PROBE: Final = "#222222"


def control(cc: str | None, transport: str = "tcp") -> str:
    """The congestion control without version and parameters: `prague` of `prague@2020-08 rtt_target 25ms`.

    Of a class in a Python file, `./mycc.py:MyCC`, the class; of a UDP flow `udp`.
    """
    if transport != "tcp" or cc is None:
        return "udp"
    return parse(cc).name


def control_styles(controls: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each control in a picture.

    Of an unknown one the colour comes from its name, so that it is the same in other pictures too; of two that would
    have the same colour the second in order of name takes the next that is free.
    """
    found: dict[str, tuple[str, str]] = {}
    taken: set[int] = set()
    for name in sorted(set(controls)):
        if name in CONTROLS:
            found[name] = CONTROLS[name]
            continue
        at = zlib.crc32(name.encode()) % len(_OTHERS)
        while at in taken and len(taken) < len(_OTHERS):
            at = (at + 1) % len(_OTHERS)
        taken.add(at)
        found[name] = (_OTHERS[at], "hd8H"[at % 4])
    return found


def shade(colour: str, nth: int) -> str:
    """The colour of the nth of several flows with one control, counted from 0: a shade of the control's."""
    from bakeoff.plots.mpl import to_hex, to_rgb

    far = SHADES[nth % len(SHADES)]
    if not far:
        return colour
    to = 1.0 if far > 0 else 0.0
    red, green, blue = (part + abs(far) * (to - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))


def asked_colours(run: Run) -> dict[str, str]:
    """The colours that a scenario gives to its flows and probes by name.

    Raises BakeoffError for what matplotlib does not take as a colour.
    """
    from bakeoff.plots.mpl import is_color_like

    colours = run.hints.colours
    for name, colour in colours.items():
        if not is_color_like(colour):
            raise PlotError(
                f"present.colours.{name}: '{colour}': invalid colour; expected a name such as 'teal', or '#0072B2'"
            )
    return colours
