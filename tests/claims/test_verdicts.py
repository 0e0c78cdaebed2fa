"""Verdicts by made-up results: what is true for all seeds, for none, for some, and what cannot be told."""

import csv
import re
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest

from bakeoff.claims import expected, verdict
from bakeoff.claims.claim import Cause, Claim, Statement, Wanted, _size
from bakeoff.claims.claim import SizeText as Text
from bakeoff.claims.expression import Call, parse
from bakeoff.claims.required_runs import RequiredRuns
from bakeoff.claims.verdict import Decided, Outcome, Verdict, decide
from bakeoff.errors import BakeoffError
from bakeoff.measure import MeasureError
from bakeoff.tables import findings

RATIO, GOODPUT = Call("ratio", (), None), Call("goodput", (("flow", 1),), None)


def needed(values, *, direction="ratio() > 2", size=None, share=1.0, named=False):
    """A statement about runs, each with a value of `ratio` per seed."""
    names = list(values) if named else []
    runs = tuple(Wanted(name if named else None, f"s/t/{name}", {}) for name in values)
    found = Statement(
        place="x.yaml: claims[0]",
        runs=runs,
        share=share,
        direction=parse(direction, names) if direction else None,
        size=_size(Text(**size), names, "x") if size else None,
        engine=None,
    )
    repeated = {
        name: [SimpleNamespace(key=f"s/t/{name}~{seed}") for seed in range(len(seeds))]
        for name, seeds in values.items()
    }
    return RequiredRuns(found, repeated)


def outcome(values, *, refused=None, failed=None, **words):
    found = needed(values, **words)
    paths = {run.key: Path(run.key) for runs in found.runs.values() for run in runs}
    taken = {
        Path(run.key): {RATIO: value}
        for name, runs in found.runs.items()
        for run, value in zip(runs, values[name], strict=True)
    }
    return decide(found, paths, taken, refused or {}, failed or {})


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"a": (3, 4, 5)}, "holds"),
        ({"a": (1, 1, 2)}, "does not hold"),
        ({"a": (1, 3, 3)}, "differs by seed"),
        ({"a": (3, 3, 3), "b": (4, inf, 4)}, "holds"),
        # By seed: both hold; only b does; only a does. So a single seed holds for each run.
        ({"a": (3, 1, 3), "b": (3, 3, 1)}, "differs by seed"),
        ({"a": (3, 3, 3), "b": (1, 1, 1)}, "does not hold"),
    ],
)
def test_a_direction_holds_if_it_does_for_every_seed_and_run(values, word):
    found = outcome(values)
    assert (found.direction.word, found.size, found.seeds, found.runs) == (word, None, 3, len(values))


def test_a_share_of_the_runs_may_be_asked_for():
    values = {"a": (3, 3, 3), "b": (3, 3, 3), "c": (1, 1, 3)}
    # 2 of 3 in the first two seeds, 3 of 3 in the last.
    assert outcome(values, share=0.6).direction.word == "holds"
    found = outcome(values, share=0.7).direction
    assert str(found) == "differs by seed: true in 2 of 3 runs"


def test_a_size_lies_in_the_range_around_what_was_published():
    size = {"of": "ratio()", "published": 4, "tolerance": "25%", "because": "x"}
    # 3 to 5. Mean 4, standard deviation 1, t = 4.3027: 4.3027 x 1 / sqrt 3 = 2.484.
    found = outcome({"a": (3, 4, 5)}, size=size, direction=None)
    assert (found.size.word, found.direction) == ("holds", None)
    assert (found.ours.mean, found.ours.ci95) == (4, pytest.approx(2.484, abs=5e-4))
    assert outcome({"a": (3, 4, 5.1)}, size=size, direction=None).size.word == "differs by seed"
    # Of several runs the median of the means, and no interval.
    several = outcome({"a": (3, 4, 5), "b": (1, 1, 1), "c": (9, 9, inf)}, size=size, direction=None)
    assert (several.size.word, several.ours.mean, several.ours.ci95) == ("does not hold", 4, None)
    assert several.ours.range == (1, inf)


def test_runs_with_names_are_looked_at_together():
    values = {"x": (8, 8, 8), "y": (2, 2, 5)}
    direction = "ratio(of='x') > 3 * ratio(of='y')"
    found = outcome(values, direction=direction, named=True)
    # 8 > 6, 8 > 6, 8 < 15.
    assert found.direction.word == "differs by seed"
    # Mean of 2, 2, 5 is 3.
    assert [(text, ours.mean) for text, ours in found.sides] == [('ratio(of="x")', 8), ('3 * ratio(of="y")', 9)]


def test_what_could_not_be_done_is_told():
    refused = outcome({"a": (3, 3, 3)}, refused={"s/t/a~1": "prague needs its module"}).direction
    assert str(refused) == "cannot be run here: prague needs its module"
    failed = outcome({"a": (3, 3, 3)}, failed={"s/t/a~2": "conservation"}).direction
    assert str(failed) == "cannot be decided: conservation"
    unmeasured = outcome({"a": (3, MeasureError("no samples"), 3)}).direction
    assert str(unmeasured) == "cannot be decided: no samples"


def claimed(name, direction, size=None, cause=None):
    parts = [Verdict(word) if word else None for word in (direction, size)]
    own = Claim(name, name.partition("/")[0], "It is.", "1", None, (), "a lab", cause)
    return Decided(own, Outcome(*parts, None, (), 1, 3), None)


def test_a_verdict_that_differs_from_the_recorded_one_is_named():
    known = {("d/a", "sim"): expected.Recorded("holds", ""), ("d/b", "sim"): expected.Recorded("holds", "holds")}
    several = [claimed("d/a", "holds"), claimed("d/b", "holds", "does not hold"), claimed("d/c", "holds")]
    assert expected.differences(several, known, "sim") == ["d/b: size: 'does not hold'; recorded is 'holds'"]
    assert expected.differences(several, known, "kernel:x") == []
    assert expected.unrecorded(several, known, "sim") == ["d/c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claim,engine\n", "line 1: expected the columns claim,engine,direction,size"),
        ("claim,engine,direction,size\na,sim,holds\n", "line 2: 3 values; expected 4"),
        ("claim,engine,direction,size\na,sim,perhaps,\n", "line 2: 'perhaps'; expected one of holds, does not hold"),
        ("claim,engine,direction,size\na,sim,,\na,sim,,\n", "line 3: duplicate 'a' for sim"),
    ],
)
def test_a_broken_record_is_told(tmp_path, monkeypatch, text, message):
    (tmp_path / "suites").mkdir()
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "expected.csv").write_text(text)
    monkeypatch.setenv("BAKEOFF_CATALOG", str(tmp_path))
    with pytest.raises(BakeoffError, match=message):
        expected.load()


def written(tmp_path, several, known, *named):
    """The page of findings after `write_docs`, and the CSV's lines."""
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs/findings.md"
    page.write_text("before\n<!-- claims: bakeoff verify writes this -->\nstale\n<!-- end -->\nafter\n")
    findings.write_docs(several, known, "sim", tmp_path, *named)
    with (tmp_path / "docs/findings.csv").open(newline="") as file:
        return page.read_text(), list(csv.DictReader(file))


def test_the_tables_are_written_between_their_markers(tmp_path):
    cause = Cause(
        "open", "Nobody knows <why>. At 1.5 s. It may be luck.", None, ("Another seed. And more.", "Another queue.")
    )
    several = [claimed("d/a", "holds", cause=cause), claimed("d/b", "does not hold", "holds", cause)]
    several.append(claimed("e/c", verdict.CANNOT))
    older = claimed("f/g", "does not hold", cause=Cause("version", "It was older.", None, ("Nothing.",)))
    several.append(replace(older, cause=claimed("f/g", "holds").outcome))
    known = {("d/a", "kernel"): expected.Recorded("differs by seed", "")}
    several.append(claimed("f/h", "differs by seed"))
    known |= {
        ("f/g", "kernel"): expected.Recorded("holds", ""),
        ("f/h", "kernel"): expected.Recorded("differs by seed", ""),
    }
    page, rows = written(tmp_path, several, known)
    assert "| d | 2 | 1 | 1 | 0 | 0 | 0 |\n| e | 1 | 0 | 0 | 0 | 0 | 1 |\n| f | 2 | 0 | 1 | 1 | 0 | 0 |\n" in page
    assert "| all | 5 | 1 | 2 | 1 | 0 | 1 |" in page
    assert "stale" not in page
    assert page.startswith("before\n")
    assert page.endswith("<!-- end -->\nafter\n")
    # Three of the five do not hold or differ. A shown cause needs no list of what was tried, equal verdicts no kernel.
    entries = [line for line in page.splitlines() if line.startswith("- ")]
    assert entries == [
        "- **b**: It is. *Direction does not hold, size holds*. *Cause* (open): Nobody knows &lt;why>. "
        "*Tried*: Another seed.",
        "- **g**: It is. *Does not hold*. Kernel: holds. *Cause* (version): It was older.",
        "- **h**: It is. *Differs by seed*.",
    ]
    # Both engines decide d/a, f/g and f/h, the last alike.
    assert re.findall(r"name them \| (\d+) \| (\d+) \|", page) == [("3", "1")]
    assert "today" not in page
    assert [(row["document"], row["claim"], row["direction"], row["kernel_direction"]) for row in rows] == [
        ("d", "a", "holds", "differs by seed"),
        ("d", "b", "does not hold", ""),
        ("e", "c", verdict.CANNOT, ""),
        ("f", "g", "does not hold", "holds"),
        ("f", "h", "differs by seed", "differs by seed"),
    ]
    assert [row["explanation"] for row in rows] == ["", cause.says, "", "It was older.", ""]
    assert [row["tried"] for row in rows] == ["", " ".join(cause.tried), "", "Nothing.", ""]


def test_the_verdicts_of_today_stand_beside_the_others(tmp_path):
    several = [claimed("d/a", "holds"), claimed("d/b", "does not hold"), claimed("d/c", "does not hold")]
    several += [claimed("d/e", "does not hold"), claimed("e/f", "holds", "holds")]
    known = {
        ("d/a", "sim-today"): expected.Recorded("does not hold", ""),
        ("d/b", "sim-today"): expected.Recorded("holds", ""),
        ("d/c", "sim-today"): expected.Recorded(verdict.CANNOT, ""),
        ("d/a", "kernel"): expected.Recorded(verdict.CANNOT, ""),
        ("d/b", "kernel"): expected.Recorded(verdict.CANNOT, ""),
        ("d/e", "kernel"): expected.Recorded("does not hold", ""),
        ("d/a", "kernel-today"): expected.Recorded("does not hold", ""),
        ("d/b", "kernel-today"): expected.Recorded("does not hold", ""),
        # Of a time when the claim named a version.
        ("e/f", "sim-today"): expected.Recorded("does not hold", "holds"),
    }
    named = {"d/a": ["cubic@5.4", "pie@5.4"], "d/b": ["prague@2020-04"], "d/c": ["prague@5.15"], "d/e": []}
    page, rows = written(tmp_path, several, known, named)
    # d/e and e/f name no version and are what they are today. Of d only d/b holds then, of e its one claim.
    assert re.findall(r"^\| (d|e|all) .* (\d+) \|$", page, re.MULTILINE) == [("d", "1"), ("e", "1"), ("all", "2")]
    assert [line for line in page.splitlines() if line.startswith("- ")] == [
        "- **b**: It is. *Does not hold*. Today: holds.",
        "- **c**: It is. *Does not hold*.",
        "- **e**: It is. *Does not hold*.",
    ]
    # With the versions both decide d/e only, alike. Today d/a and d/e alike, and d/b not.
    assert re.findall(r"\| (as|today)\S* .*\| (\d+) \| (\d+) \|", page) == [("as", "1", "1"), ("today", "3", "2")]
    assert [row["versions"] for row in rows] == ["cubic@5.4 pie@5.4", "prague@2020-04", "prague@5.15", "", ""]
    assert [row["sim_today_direction"] for row in rows] == [
        "does not hold", "holds", verdict.CANNOT, "does not hold", "holds",
    ]  # fmt: skip
    assert [row["kernel_today_direction"] for row in rows] == [*["does not hold"] * 2, "", "does not hold", ""]


def test_numbers_stand_beside_what_was_published(tmp_path):
    size = {"of": "goodput(1)", "published": "4 Mbit/s", "tolerance": "25%", "because": "x"}
    statement = needed({"a": ()}, direction="goodput(1) > 1", size=size).statement
    each = claimed("d/a", "holds", "does not hold")
    ours = verdict.Ours(((8e6,),), "bit/s")
    sides = (("goodput(1)", ours), ("goodput(1) * " + " + ".join(["2"] * 30), ours))
    page, rows = written(
        tmp_path,
        [
            replace(
                each,
                claim=replace(each.claim, statement=statement),
                outcome=replace(each.outcome, ours=ours, sides=sides),
            ),
            replace(
                claimed("d/b", "does not hold"), outcome=Outcome(Verdict("does not hold"), None, None, sides, 1, 3)
            ),
        ],
        {},
    )
    # An expression of more than 60 letters is in the CSV only.
    assert "*Size does not hold*: published 4 Mbit/s (± 25%), ours 8.00 Mbit/s." in page
    assert "*Does not hold*: ours `goodput(1)` 8.00 Mbit/s; 8.00 Mbit/s." in page
    assert rows[0]["ours"] == "8.00 Mbit/s"
    assert rows[1]["ours"] == f"goodput(1) 8.00 Mbit/s; {sides[1][0]} 8.00 Mbit/s"


def test_a_page_of_findings_needs_its_markers(tmp_path):
    written(tmp_path, [claimed("d/a", "holds")], {})
    before = (tmp_path / "docs/findings.csv").read_text()
    (tmp_path / "docs/findings.md").write_text("nothing")
    with pytest.raises(BakeoffError, match=r"findings\.md: missing lines '"):
        findings.write_docs([claimed("d/a", "holds")], {}, "sim", tmp_path)
    assert (tmp_path / "docs/findings.csv").read_text() == before
