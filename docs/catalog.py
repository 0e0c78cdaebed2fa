"""Write docs/catalog.md from the catalog and the simulator's tables: `python docs/catalog.py`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Final

from bakeoff import _sim, tc
from bakeoff.scenario import catalog
from bakeoff.text.markdown import Markdown, code, escaped, joined

PAGE: Final = Path(__file__).parent / "catalog.md"
SUITES: Final = {
    "advice": "The runs of `bakeoff advise`: a busy household behind five queues ([advise](advise.md)).",
    "bidirectional": "Mail to the tsvwg list, May 2020: traffic in both directions of an asymmetric line.",
    "bless-2025": "2025: the largest queue of BBR and BBRv3 in a deep FIFO.",
    "ccafct": "March 2021: completion times of short flows beside a long one.",
    "future": "What the documents proposed and did not run, with SCE, L4S and CUBIC ([study](studies/future.md)).",
    "issue-16-17": "2019: the L4S team's answer to two issues about Prague behind a FIFO and `fq_codel`.",
    "l4s-pam2025": "PAM 2025: Prague beside CUBIC and BBR in nine queues, on virtual machines.",
    "l4s-tests": "November 2020: 13 scenarios that test L4S on the public Internet's terms.",
    "l4steam": "Experiments of the L4S team: RTT independence, overload, single flows, coexistence.",
    "linux": "Simulator against a real Linux 7.3: each run has the kernel's result as its reference.",
    "prague-fallback": "2025: Prague with its detector of classic queues, before and after a fix, on one machine.",
    "real-world": "2021: models of the l4s-tests experiments on real lines (Wi-Fi, wireless, video).",
    "sce-l4s-bakeoff": "November 2019: the first comparison of SCE with L4S.",
    "sce-l4s-ect1": "April 2020: ECT(1) as a mark (SCE) against ECT(1) as a classifier (L4S).",
    "today": "Set-ups of the documents with Linux 7.3 and TCP Prague 0.7, for [SCE or L4S?](verdict.md).",
}
UNTITLED: Final = ("future", "linux", "today")
"""Suites of many scenarios whose names say what they vary."""
_HEAD: Final = """# Catalog

Every scenario, congestion control and qdisc that bakeoff ships. `bakeoff list` prints the scenarios,
`bakeoff list 'l4s-tests/s6*'` the runs of one, `bakeoff show NAME` its YAML. The number of runs is in
parentheses; `{name}` in a title is a variable of the scenario's matrix. `python docs/catalog.py` writes this page.
"""
_CONTROLS: Final = """## Congestion controls

A name without a version means the present one. `@` selects a version: a Linux release, a year, or a month of Prague's
history ([Prague's versions](models/prague.md), [SCE](models/sce.md)). `none` keeps a fixed window.
"""
_QDISCS: Final = """## Qdiscs

Qdiscs use tc syntax. A kernel module of bakeoff's own provides the queue on the kernel engine where mainline has none
([kernel modules](kernel-modules.md)).
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, "## Scenarios\n"]
    for suite, entries in groupby(catalog.examples().items(), lambda item: item[0].suite):
        parts.append(f"### {suite}\n\n{SUITES[suite]}\n")
        counted = [(entry, sum(alike for _, alike in several)) for entry, several in entries]
        if suite in UNTITLED:
            parts.append(", ".join(f"{code(entry.scenario)} ({runs})" for entry, runs in counted) + ".\n")
            continue
        parts += [f"- {code(entry.scenario)} ({runs}): {escaped(entry.title)}" for entry, runs in counted]
        parts.append("")
    controls = _versions(_sim.congestion_controls())
    parts += [_CONTROLS, *(_line(name, versions) for name, versions in controls.items()), "", _QDISCS]
    parts += [_line(name, versions, _on_a_kernel(name)) for name, versions in _versions(_sim.qdiscs()).items()]
    parts.append("")
    return "\n".join(parts)


def _line(name: str, versions: list[str], kernel: str = "") -> str:
    return f"- {joined(map(code, (name, *versions)), ', ')}" + (f" ({kernel})" if kernel else "")


def _on_a_kernel(name: str) -> Markdown:
    """Where the kernel engine has the present version from; nothing if neither mainline nor a module has it."""
    kind = tc.kinds().get(name)
    if kind is None or not (kind.tried or kind.module):
        return Markdown("")
    return Markdown("mainline") if kind.module is None else joined([Markdown("module"), code(kind.module)], " ")


def _versions(names: Iterable[str]) -> dict[str, list[str]]:
    """The versions of each name, `@` in front; a name without versions has none."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        base, at, version = name.partition("@")
        found[base] += [at + version] * bool(version)
    return dict(sorted(found.items()))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
