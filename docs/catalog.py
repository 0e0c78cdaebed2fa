"""Write docs/catalog.md from the catalog and the simulator's tables: `python docs/catalog.py`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby, takewhile
from pathlib import Path
from typing import Final

from bakeoff import _sim, tc
from bakeoff.engines import controls
from bakeoff.scenario import catalog
from bakeoff.text.markdown import Markdown, code, escaped, joined

PAGE: Final = Path(__file__).parent / "catalog.md"
_CC: Final = Path(__file__).parents[1] / "crates" / "sim" / "src" / "cc"
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
    "slow-start": "Eight slow starts over 20 paths, with buffers of 1 and 4 BDP.",
    "today": "Set-ups of the documents with Linux 7.3 and TCP Prague 0.7, for [SCE or L4S?](verdict.md).",
}
UNTITLED: Final = ("future", "linux", "sce-l4s-bakeoff", "sce-l4s-ect1", "today")
"""Suites of many scenarios whose names say what they vary."""
_HEAD: Final = """# Catalog

Every scenario, congestion control and qdisc that bakeoff ships. `bakeoff list` prints the scenarios,
`bakeoff list 'l4s-tests/s6*'` the runs of one, `bakeoff show NAME` its YAML. The number of runs is in
parentheses; `{name}` in a title is a variable of the scenario's matrix. `python docs/catalog.py` writes this page.
"""
_CONTROLS_HEAD: Final = """## Congestion controls

A name without a version means the present one. `@` selects a version: a Linux release, a year, or a month of Prague's
history ([Prague's versions](models/prague.md), [SCE](models/sce.md)). In parentheses: what gives it to
the engines kernel, netns and ssh (mainline: `net/ipv4/tcp_NAME.c` of Linux 7.3, the source of the simulator's too).
The simulator has all but those that are mainline's only.
"""
_PARTS_HEAD: Final = """### Parts

After a window-based control's words, in the simulator: one slow start and one `validation` at most
(`cubic search threshold 30 validation maxfs`).
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
    parts += [_CONTROLS_HEAD, *_controls(), "", _PARTS_HEAD, *_parts(), "", _QDISCS]
    parts += [_line(name, versions, _on_a_kernel(name)) for name, versions in _versions(_sim.qdiscs()).items()]
    parts.append("")
    return "\n".join(parts)


def _line(name: str, versions: list[str], kernel: str = "") -> str:
    return f"- {joined(map(code, (name, *versions)), ', ')}" + (f" ({kernel})" if kernel else "")


def _controls() -> Iterable[str]:
    """A line for each control: its versions, where a kernel has it from, what it is, its parameters, its source."""
    heads = _heads([*_CC.glob("*.rs"), *_CC.glob("*/mod.rs")])
    for name, control in controls.table().items():
        if control.module is not None:
            kernel = joined([Markdown("module"), code(control.module)], " ")
        else:
            kernel = (
                Markdown("mainline" if control.simulated else "mainline only") if control.on_linux else Markdown("")
            )
        says, source = heads.get(name, ("", ""))
        words = _parameters(name) if control.simulated else []
        known = f" Parameters: {joined(map(code, words), ', ')}." if words else ""
        shown = source not in ("", "none", f"Linux 7.3 `net/ipv4/tcp_{name}.c`")
        origin = f" Source: {source}." if shown else ""
        what = f": {says}.{known}{origin}" if says else ""
        yield f"{_line(name, list(control.versions), kernel)}{what}"


def _parts() -> Iterable[str]:
    """A line for each slow start and rule of validation that the simulator registers, with its source."""
    heads = _heads(_CC.glob("slow_start/*.rs"))
    for part in _sim.congestion_control_parts():
        forms = {words: source for words, (_, source) in heads.items() if words.split()[0] == part}
        assert forms, part
        yield from (f"- {code(words)}: {source}" for words, source in forms.items())


def _heads(paths: Iterable[Path]) -> dict[str, tuple[str, str]]:
    """Name of a control -> what it is, and its source: from the heads of the simulator's files."""
    found = {}
    for path in sorted(paths):
        lines = takewhile(lambda line: line.startswith("//!"), path.read_text(encoding="utf-8").splitlines())
        paragraphs = " ".join(line.removeprefix("//!").strip() or "\n" for line in lines).split("\n")
        names, colon, says = paragraphs[0].strip().partition(": ")
        source = next((each.strip() for each in paragraphs if each.strip().startswith("Source: ")), "")
        if colon and re.fullmatch(r"(`[\w@.+ -]+`(, | and )?)+", names):
            for name in re.findall(r"`([^`]+)`", names):
                found[name] = _what(says), re.split(r"[;,.]? \(|[;,.] ", source.removeprefix("Source: "))[0].rstrip(".")
    return found


def _what(says: str) -> str:
    """The first sentence, and the second if the first is no more than a name."""
    sentences = re.split(r"\.(?: |$)", says.strip())
    return ". ".join(sentences[: 1 if len(sentences[0].split()) > 3 else 2]).rstrip(".")


def _parameters(name: str) -> list[str]:
    """What the simulator names where it refuses one."""
    run = catalog.select("linux/single/reno-pfifo-10ms")[0]
    flow = run.flows[0].model_copy(update={"cc": f"{name} no-such-word 1"})
    try:
        _sim.check(run.model_copy(update={"flows": [flow]}).to_json(), {})
    except ValueError as error:
        return re.findall(r"[\w-]+", str(error).partition("known parameters: ")[2])
    raise AssertionError(name)


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
