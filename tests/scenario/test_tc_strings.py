"""Every qdisc line of `tc_strings` and of the catalog means the same to the simulator and to the real tc.

The real one is asked in the kernel engine: it installs each line on a device and shows it, and we compare that with
our effective configuration word by word. Skipped without a virtual-time kernel or without the built simulator.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tc_strings
from bakeoff.scenario import Run
from bakeoff.scenario.run import Qdisc
from kernel_boots import guest

_sim = pytest.importorskip("bakeoff._sim", reason="the simulator is not built")

# UML's timer frequency, so that jiffies round alike.
HZ = 1000
REFUSED = "refused"
# Where Debian has them, and most others: in the library's own folder, or in that of the machine's kind.
TABLES = [path for folder in ("tc", "*/tc") for path in sorted(Path("/usr/lib").glob(f"{folder}/normal.dist"))]


def ours(line: str, classes: list[str]) -> list[str]:
    """What we show: the qdisc and its classes; or that we refuse it."""
    tree: dict[str, object] = {"qdisc": line, "classes": []}
    for words in classes:
        parent, minor, rest = words.split(maxsplit=2)
        above = parent.split(":")[1]
        tree["classes"].append({"id": minor, "class": rest} | ({"parent": above} if above else {}))  # type: ignore[attr-defined]
    try:
        shown = _sim.show_qdisc(json.dumps(tree), HZ)
    except ValueError:
        return [REFUSED]
    # Bands of prio are classes that nobody asked for.
    words = [" ".join(text.split()) for text in (shown if classes else shown[:1])]
    return words[:1] + sorted(words[1:])


def theirs(shown: list[str], line: str) -> list[str]:
    """The same from what tc printed, without what it adds: handles, statistics, a seed it drew itself."""
    if shown[0] == REFUSED:
        return [REFUSED]
    found = []
    for text in shown:
        words = " ".join(text.split())
        if words.startswith("qdisc "):
            words = re.sub(r"^qdisc (\S+) 1: root refcnt \d+ ?", r"\1 ", words).strip()
            found.append(words if " seed " in f" {line} " else re.sub(r" seed \d+", "", words))
        elif words.startswith("class "):
            found.append(words)
    # tc shows classes in the order of the kernel's hash table.
    return found[:1] + sorted(found[1:])


def catalog_lines(runs: list[Run]) -> list[tuple[str, list[str]]]:
    """Every qdisc of the catalog that Linux itself has, with its classes; a version after `@` is the simulator's."""
    found: dict[tuple[str, tuple[str, ...]], None] = {}

    def walk(tree: Qdisc | None) -> None:
        if tree is not None:
            words = tuple(f"1:{cls.parent or ''} {cls.id} {cls.class_}" for cls in tree.classes)
            found[tree.qdisc, words] = None
            for below in (tree.child, *(cls.child for cls in tree.classes)):
                walk(below)

    for run in runs:
        for interface in run.interfaces:
            walk(interface.egress)
            walk(interface.ingress)
        for change in run.changes:
            if change.action.kind == "qdisc-replace":
                walk(change.action.qdisc)
            elif change.action.kind == "qdisc-change":
                walk(Qdisc(qdisc=change.action.qdisc))
    of_linux = {line.split()[0] for line in tc_strings.LINES} | {"htb"}
    return [(line, list(classes)) for line, classes in sorted(found) if line.split()[0] in of_linux]


@pytest.fixture(scope="module")
def asked(real_kernel, every_run, tmp_path_factory):
    """(line, its classes, what the real tc showed)."""
    lines = [(line, []) for line in tc_strings.LINES] + list(tc_strings.CLASSES.items()) + catalog_lines(every_run)
    tables = next((str(path.parent) for path in TABLES if path.is_file()), "")
    # Hundreds of calls of tc need more than the least time of a boot where others work, too.
    place = tmp_path_factory.mktemp("tc")
    answer = guest(real_kernel, place, do="show", lines=lines, distributions=tables, simulated_s=120.0)
    assert answer["outcome"].status == "ok"
    return [(line, classes, said) for (line, classes), said in zip(lines, answer["answer"], strict=True)]


def test_the_real_tc_shows_what_we_show(asked):
    wrong = []
    for line, classes, said in asked:
        if "No distribution data" in " ".join(said) and line not in tc_strings.WITHOUT_TABLE:
            continue
        shown, expected = ours(line, classes), theirs(said, line)
        if line in tc_strings.DIFFERENT:
            assert shown != expected, f"{line}: no longer different"
        elif shown != expected:
            wrong.append(f"{line}\n  ours {shown}\n  tc   {expected}")
    assert not wrong, "\n".join(wrong)


def test_the_list_has_every_kind_and_a_hundred_lines(asked):
    assert len(asked) > 100
    kinds = {line.split()[0] for line, _, _ in asked}
    assert {
        "pfifo",
        "prio",
        "sfq",
        "tbf",
        "htb",
        "netem",
        "red",
        "pie",
        "fq_pie",
        "codel",
        "fq_codel",
        "fq",
        "cake",
    } <= kinds


@pytest.mark.parametrize("name", ["normal", "pareto", "paretonormal"])
def test_a_table_file_has_as_many_entries_as_ours(name):
    path = next((path.with_name(f"{name}.dist") for path in TABLES if path.is_file()), None)
    if path is None:
        pytest.skip("iproute2's tables are not installed here")
    entries = [int(word) for text in path.read_text().splitlines() if "#" not in text for word in text.split()]
    assert len(entries) == 4096
    # the same numbers as in the simulator's own test (netem/distribution.rs)
    assert sum(entries) == {"normal": -26_163, "pareto": -1_123_786, "paretonormal": -848_968}[name]
