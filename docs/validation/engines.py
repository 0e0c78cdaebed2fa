"""Writes engines.csv and a block of docs/findings.md: claims that the kernel decides differently, and why.

Run from a checkout that has a virtual-time kernel, after `bakeoff verify` on both engines has recorded its verdicts.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections import defaultdict
from pathlib import Path

from bakeoff import campaign, tc
from bakeoff.claims import claim, expected
from bakeoff.claims.evaluate import evaluate
from bakeoff.claims.required_runs import RequiredRuns, calls_by_folder, required_runs
from bakeoff.claims.verdict import CANNOT, UNDECIDED, decide
from bakeoff.cli.execute import execute
from bakeoff.cli.options import detail
from bakeoff.engines.kernel import virtual
from bakeoff.engines.lab import versions
from bakeoff.results import Request
from bakeoff.scenario import Run
from bakeoff.scenario.cc_words import parse
from bakeoff.text.markdown import pipes

PAGE = Path(__file__).parents[1] / "findings.md"
TABLE = Path(__file__).with_suffix(".csv")
COLUMNS = ("claim", "sim", "kernel", "sim_with_kernel_versions", "versions_missing_in_kernel")
BLOCK = re.compile(r"(<!-- engines: docs/validation/engines.py writes this -->\n).*?(<!-- end -->)", re.DOTALL)
ROOT = Path("results/verify-versions")
SEEDS = 3
TEXT = """[engines.csv](validation/engines.csv) lists the {differ} claims that the two engines decide differently.

The simulator has the congestion controls and queues of the documents' time, such as `prague@2019-11` or `cubic@5.4`;
a kernel has those that it was built with. `docs/validation/engines.py` therefore simulates these claims again with
the versions of Linux {release} and bakeoff's modules. The verdicts then equal the kernel's for {alike} claims, so the
version is the cause. For {by_chance} more, one of these two verdicts is *differs by seed*, so chance may be the cause.
Neither explains {others}:

{rows}"""


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
    """Simulate the runs of the claims that differ, decide, and write table and page."""
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
    rows = []
    for name, found in now.items():
        outcome = decide(found, paths, values, {}, {})
        got = tuple(part.word if part else "" for part in (outcome.direction, outcome.size))
        told = [" / ".join(filter(None, each)) for each in (verdicts[name]["sim"], verdicts[name]["kernel"], got)]
        rows.append([name, *told, " ".join(older(by_claim[name], offered))])
    write(rows, virtual.choose(None).kernel.release)


def write(rows: list[list[str]], release: str) -> None:
    """The table of all claims that differ, and the page's block. `rows` are in the order of `COLUMNS`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    TABLE.write_text(text.getvalue(), encoding="utf-8")
    alike = sum(row[2] == row[3] for row in rows)
    chance = [row for row in rows if row[2] != row[3] and by_chance(row[2], row[3])]
    left = [row[:4] for row in rows if row[2] != row[3] and row not in chance]
    heads = ["claim", "simulator", "kernel", "simulator with the kernel's versions"]
    block = TEXT.format(
        differ=len(rows), release=release, alike=alike, by_chance=len(chance),
        others=len(left), rows=pipes(heads, [True] * 4, left),
    )  # fmt: skip
    page, found = BLOCK.subn(lambda match: match[1] + block + match[2], PAGE.read_text(encoding="utf-8"))
    if not found:
        raise SystemExit(f"{PAGE}: has no lines '<!-- engines: ... -->' and '<!-- end -->'")
    PAGE.write_text(page, encoding="utf-8")


def by_chance(one: str, other: str) -> bool:
    """Whether two pairs of verdicts differ only where one of them differs by seed."""
    pairs = zip(one.split(" / "), other.split(" / "), strict=True)
    return all(a == b or "differs by seed" in (a, b) for a, b in pairs)


if __name__ == "__main__":
    main()
