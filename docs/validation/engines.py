"""Writes docs/validation/engines.md: claims with other verdicts on the kernel, and the simulator with its versions.

Run from a checkout that has a virtual-time kernel, after `bakeoff verify` on both engines has recorded its verdicts.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from pathlib import Path

from bakeoff import campaign, tc
from bakeoff.claims import claim, expected
from bakeoff.claims.evaluate import evaluate
from bakeoff.claims.required_runs import RequiredRuns, calls_by_folder, required_runs
from bakeoff.claims.verdict import CANNOT, UNDECIDED, decide
from bakeoff.cli.options import detail
from bakeoff.cli.run import execute
from bakeoff.engines.kernel import virtual
from bakeoff.engines.lab import versions
from bakeoff.results import Request
from bakeoff.scenario import Run
from bakeoff.scenario.cc_words import parse

PAGE = Path(__file__).with_suffix(".md")
ROOT = Path("results/verify-versions")
SEEDS = 3
TEXT = """# Two engines, one claim

This page lists the claims that the simulator and the real Linux kernel decide differently, and says what becomes of
them when the simulator has the kernel's versions of all algorithms.

The documents are of 2019 to 2021. The simulator has the congestion controls and queues of that time where a scenario
names them (`prague@2019-11`, `dualpi2@2020`, `cubic@5.4`); a kernel has those that it was built with. So a claim may
turn on the kernel because the algorithm is another one. To tell this from a fault of an engine,
`docs/validation/engines.py` simulates the runs of these claims once more with the versions that Linux {release} with
bakeoff's modules has, and decides them by the same predicates and seeds.

Both engines decide {both} claims, {same} of them with the same verdicts. Of the {differ} others the simulator with
the kernel's versions has the kernel's verdicts in {alike}: there the version is the cause. In {by_chance} more one of
the two *differs by seed* where the other has one verdict for its three seeds, so that chance may be what tells them
apart. Neither explains {others}: {left}.

| claim | simulator | kernel | simulator with the kernel's versions | versions that the kernel does not have |
|---|---|---|---|---|
{rows}

A verdict is that of the direction and, behind a stroke, of the size. The claims on tunnels differ because the kernel
engine's nodes are namespaces of one kernel ([tunnels](../tunnels.md)). What the modules of SCE cannot do as SCE's own
kernels do, and how far their runs are from the simulator's, is on the page of the [kernel
modules](../kernel-modules.md).

## Validation

The verdicts of both engines are those of `catalog/claims/expected.csv`; `bakeoff verify` and `bakeoff verify --engine
kernel` end with an error if a verdict is another one. This page is written by `docs/validation/engines.py` in a
checkout that has a kernel.
"""


def todays(run: Run, offered: set[str]) -> Run:
    """The run with the versions that the kernel has; `cake@sce` and those `offered` are modules of it."""

    def cc(text: str) -> str:
        asked = parse(text)
        return text if asked.versioned in offered else " ".join((asked.name, *asked.parameters))

    def line(words: str) -> str:
        kind = "cake@sce" if tc.kind(words) == "cake@sce" else tc.kernel_kind(words)
        return " ".join((kind, *words.split()[1:]))

    return versions.renamed(run, cc, line)


def older(found: RequiredRuns, offered: dict[str, versions.Parameter]) -> list[str]:
    """The versions that these runs name and the kernel does not have."""
    notes = [
        note
        for repetitions in found.runs.values()
        for note in versions.notes(repetitions[0], versions.given(repetitions[0], offered))
    ]
    names = {match[1] for note in notes if (match := re.search(r"'(\S+)[^']*' asked for: the kernel's own", note))}
    return sorted(names - {"cake@sce"})


def recorded() -> tuple[dict[str, dict[str, tuple[str, str]]], list[str]]:
    """Claim -> engine -> direction and size; and the claims that both engines decide."""
    verdicts: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for (name, engine), verdict in expected.load().items():
        verdicts[name][engine] = (verdict.direction, verdict.size)
    both = [
        name
        for name, by in verdicts.items()
        if by.keys() >= {"sim", "kernel"} and not {CANNOT, UNDECIDED} & {*by["sim"], *by["kernel"]}
    ]
    return verdicts, both


def main() -> None:
    """Simulate the runs of the claims that differ, decide, and write the page."""
    offered = virtual.choose(None)._versions_offered
    verdicts, both = recorded()
    differ = [name for name in both if verdicts[name]["sim"] != verdicts[name]["kernel"]]
    chosen = [each for each in claim.load() if each.name in differ]
    wanted = required_runs(chosen, SEEDS)
    by_claim = {each.name: wanted[each.statement] for each in chosen if each.statement}
    now = {
        name: RequiredRuns(
            found.statement,
            {key: [todays(run, set(offered)) for run in repetitions] for key, repetitions in found.runs.items()},
        )
        for name, found in by_claim.items()
    }
    runs = {run.key: run for found in now.values() for repetitions in found.runs.values() for run in repetitions}
    shutil.rmtree(ROOT, ignore_errors=True)
    execute(
        list(runs.values()),
        ROOT,
        Request(kind="verify"),
        campaign.Execution(note="with the kernel's versions"),
        resume=False,
        show=detail(quiet=False, verbose=False),
        again="docs/validation/engines.py",
    )
    paths = {run.key: ROOT / run.key for run in runs.values()}
    values = evaluate(calls_by_folder(now.values(), paths), campaign.cores())
    rows, alike, by_chance, left = [], 0, 0, []
    for name, found in now.items():
        outcome = decide(found, paths, values, {}, {})
        got = tuple(part.word if part else "" for part in (outcome.direction, outcome.size))
        sim, kernel = verdicts[name]["sim"], verdicts[name]["kernel"]
        alike += got == kernel
        chance = all(a == b or "differs by seed" in (a, b) for a, b in zip(got, kernel, strict=True))
        if got != kernel and chance:
            by_chance += 1
        elif got != kernel:
            left.append(f"`{name}`")
        names = ", ".join(f"`{each}`" for each in older(by_claim[name], offered)) or "none"
        told = " | ".join(" / ".join(filter(None, verdict)) for verdict in (sim, kernel, got))
        rows.append(f"| {name} | {told} | {names} |")
    PAGE.write_text(
        TEXT.format(
            both=len(both), same=len(both) - len(differ), rows="\n".join(rows), differ=len(rows), alike=alike,
            by_chance=by_chance, others=len(left), left=", ".join(left), release=virtual.choose(None).kernel.release,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
