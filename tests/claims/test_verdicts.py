"""Verdicts by made-up results: what holds, does not, is undecided, and what cannot be told."""

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
from bakeoff.tables.claim_report import counted

RATIO, GOODPUT = Call("ratio", (), None), Call("goodput", (("flow", 1),), None)


def needed(values, *, direction="ratio() > 2", size=None, share=1.0, named=False, holds="typical"):
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
        holds=holds,
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
    ("values", "told"),
    [
        # Margins over 2 are 1 to 5: mean 3, s = 1.581, t(4) = 2.776, half width 2.776 x 1.581 / sqrt 5 = 1.963.
        ((3, 4, 5, 6, 7), "holds"),
        # Mean 4, s = 1, t(2) = 4.303: 4 +- 2.484 holds the limit 2 although every start is above it.
        ((3, 4, 5), "undecided: interval 1.52 to 6.48 contains the limit 2.00"),
        ((4, 5, 6), "holds"),
        # 1.2 +- 0.340; and 2.2 +- 0.942 with three of five starts above 2.
        ((1, 1, 1, 1.5, 1.5), "does not hold"),
        ((1, 2.5, 2.5, 2, 3), "undecided: interval 1.26 to 3.14 contains the limit 2.00"),
        # Nothing scatters: the one value decides, also at the limit.
        ((2.1, 2.1, 2.1), "holds"),
        ((2, 2, 2), "does not hold"),
        # What is infinite has no interval: all starts have to agree.
        ((inf, inf, inf), "holds"),
        ((3, inf, 90), "holds"),
        ((3, 1, inf), "undecided: true in 2 of 3 starts"),
        # So it is with a single start.
        ((3,), "holds"),
    ],
)
def test_a_typical_start_is_judged_by_the_interval_of_the_mean(values, told):
    found = outcome({"a": values})
    assert (str(found.direction), found.size, found.seeds, found.runs) == (told, None, len(values), 1)


@pytest.mark.parametrize(
    ("holds", "values", "told"),
    [
        ("every", (3, 4, 5), "holds"),
        ("every", (1, 3, 3), "does not hold: true in 2 of 3 starts"),
        ("any", (1, 3, 1), "holds: true in 1 of 3 starts"),
        ("any", (1, 1, 1), "does not hold: true in 0 of 3 starts"),
        ("any", (3, 3, 3), "holds"),
    ],
)
def test_starts_are_counted_where_every_or_any_is_asked_for(holds, values, told):
    assert str(outcome({"a": values}, holds=holds).direction) == told
    # 2 to 10 as a size, without the edge at 2 that no value here has.
    size = {"of": "ratio()", "published": ["2", "10"], "tolerance": 0, "because": "x"}
    assert str(outcome({"a": values}, size=size, direction=None, holds=holds).size) == told


@pytest.mark.parametrize(
    ("direction", "values", "told"),
    [
        # Of (3, 4, 5) `> 2` is undecided (1.52 to 6.48), `> 7` false and `> 1` true.
        ("ratio() > 2 and ratio() > 7", (3, 4, 5), "does not hold"),
        ("ratio() > 2 or ratio() > 1.5", (3, 4, 5), "holds"),
        ("ratio() > 1.5 and not ratio() > 7", (3, 4, 5), "holds"),
        ("1.5 < ratio() < 7", (3, 4, 5), "holds"),
        ("not ratio() > 2", (3, 4, 5), "undecided: interval 1.52 to 6.48 contains the limit 2.00"),
        ("ratio() > 1.5 and ratio() > 2", (3, 4, 5), "undecided: interval 1.52 to 6.48 contains the limit 2.00"),
        # Equality has no interval.
        ("ratio() == 3", (3, 3, 3), "holds"),
        ("ratio() == 3", (3, 3, 4), "undecided: true in 2 of 3 starts"),
        ("ratio() in (3, 4)", (3, 3, 4), "holds"),
        ("ratio() not in (3, 4)", (3, 3, 4), "does not hold"),
        # 1.17 +- 0.72, cut at 1, which is the least that the measure can give.
        ("ratio() >= 1", (1, 1, 1.5), "holds"),
    ],
)
def test_and_or_not_have_three_values(direction, values, told):
    assert str(outcome({"a": values}, direction=direction).direction) == told


def test_two_sides_are_compared_start_by_start():
    # Differences are 1, 2, 3, 4, 5: 3 +- 1.963. The sides themselves scatter by 40 and overlap.
    values = {"x": (11, 22, 33, 44, 55), "y": (10, 20, 30, 40, 50)}
    assert str(outcome(values, direction="ratio(of='x') > ratio(of='y')", named=True).direction) == "holds"
    # The same numbers in another order: differences are -39, -18, 3, 24, 45, 3 +- 41.2.
    values["y"] = (50, 40, 30, 20, 10)
    found = outcome(values, direction="ratio(of='x') > ratio(of='y')", named=True).direction
    assert str(found) == "undecided: interval of the difference -38.2 to 44.2 contains 0"


@pytest.mark.parametrize(
    ("values", "share", "told"),
    [
        ({"a": (4, 5, 6), "b": (4, inf, 4)}, 1, "holds"),
        ({"a": (4, 5, 6), "b": (3, 4, 5)}, 1, "undecided: holds in 1 of 2 runs, undecided in 1"),
        ({"a": (3, 3, 3), "b": (1, 1, 1)}, 1, "does not hold: holds in 1 of 2 runs"),
        # Two of three hold, and it may be all three: 0.6 x 3 = 1.8 and 0.7 x 3 = 2.1.
        ({"a": (3, 3, 3), "b": (3, 3, 3), "c": (3, 4, 5)}, 0.6, "holds: holds in 2 of 3 runs, undecided in 1"),
        ({"a": (3, 3, 3), "b": (3, 3, 3), "c": (3, 4, 5)}, 0.7, "undecided: holds in 2 of 3 runs, undecided in 1"),
        ({"a": (3, 3, 3), "b": (3, 3, 3), "c": (1, 1, 1)}, 0.7, "does not hold: holds in 2 of 3 runs"),
    ],
)
def test_of_several_runs_each_has_a_word(values, share, told):
    found = outcome(values, share=share)
    assert (str(found.direction), found.runs) == (told, len(values))


def test_a_size_lies_in_the_range_around_what_was_published():
    size = {"of": "ratio()", "published": 4, "tolerance": "75%", "because": "x"}
    # 1 to 7. Mean 4, standard deviation 1, t = 4.3027: 4.3027 x 1 / sqrt 3 = 2.484.
    found = outcome({"a": (3, 4, 5)}, size=size, direction=None)
    assert (found.size.word, found.direction) == ("holds", None)
    assert (found.ours.mean, found.ours.ci95) == (4, pytest.approx(2.484, abs=5e-4))
    # 2 to 6 and 1.516 to 6.484; 7.516 to 12.484 is outside of 1 to 7.
    near = outcome({"a": (3, 4, 5)}, size=size | {"tolerance": "50%"}, direction=None).size
    assert str(near) == "undecided: interval 1.52 to 6.48 contains the limit 2.00 and 6.00"
    assert outcome({"a": (9, 10, 11)}, size=size, direction=None).size.word == "does not hold"
    assert str(outcome({"a": (3, 4, inf)}, size=size, direction=None).size) == "undecided: true in 2 of 3 starts"
    # Of several runs the median of the means, and no interval.
    several = outcome({"a": (3, 4, 5), "b": (1, 1, 1), "c": (9, 9, inf)}, size=size, direction=None)
    assert (several.size.word, several.ours.mean, several.ours.ci95) == ("does not hold", 4, None)
    assert several.ours.range == (1, inf)


def test_runs_with_names_are_looked_at_together():
    values = {"x": (8, 8, 8), "y": (2, 2, 5)}
    direction = "ratio(of='x') > 3 * ratio(of='y')"
    found = outcome(values, direction=direction, named=True)
    # 8 - 6, 8 - 6, 8 - 15: mean -1, s = 5.196, half width 12.9.
    assert found.direction.word == "undecided"
    # Mean of 2, 2, 5 is 3.
    assert [(text, ours.mean) for text, ours in found.sides] == [('ratio(of="x")', 8), ('3 * ratio(of="y")', 9)]


def test_arithmetic_is_decided_without_a_run():
    assert str(outcome({}, direction="2 * 1514 < 4000").direction) == "holds"
    found = outcome({}, direction="2 * 1514 > 4000")
    assert (str(found.direction), found.runs, found.seeds) == ("does not hold", 0, 0)
    text = {"of": "20000000 / 8 / 1500 / 10", "published": 166, "tolerance": 1, "because": "x"}
    # 166.67 is within 165 to 167.
    assert str(outcome({}, direction=None, size=text).size) == "holds"
    each = claimed("d/a", "holds")
    assert (each.counted, replace(each, claim=replace(each.claim, arithmetic=True)).counted) == (
        "holds",
        "holds by arithmetic",
    )
    assert (
        replace(claimed("d/a", "does not hold"), claim=replace(each.claim, arithmetic=True)).counted == "does not hold"
    )
    counts = [("d", "holds"), ("d", "holds by arithmetic"), ("d", "holds by arithmetic")]
    assert counted(counts) == (
        ["document", "claims", "holds", "holds by arithmetic", "does not hold", "undecided", "cannot be decided",
         "cannot be run here"],
        [["d", "3", "1", "2", "0", "0", "0", "0"]],
    )  # fmt: skip


def test_a_cause_is_shown_only_with_a_source():
    holds, fails = outcome({"a": (3, 3, 3)}), outcome({"a": (1, 1, 1)})
    sourced = Cause("set-up", "It was longer.", None, (), "section 3")
    assert verdict.cause_state(sourced, holds) == "shown"
    assert verdict.cause_state(replace(sourced, source=None), holds) == "would explain"
    assert verdict.cause_state(sourced, fails) == "not shown (does not hold)"
    assert verdict.cause_state(replace(sourced, kind="open"), None) == "open"


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
    older = claimed("f/g", "does not hold", cause=Cause("version", "It was older.", None, ("Nothing.",), "its notes"))
    several.append(replace(older, cause=claimed("f/g", "holds").outcome))
    known = {("d/a", "kernel"): expected.Recorded("undecided", "")}
    several.append(claimed("f/h", "undecided"))
    known |= {
        ("f/g", "kernel"): expected.Recorded("holds", ""),
        ("f/h", "kernel"): expected.Recorded("undecided", ""),
    }
    page, rows = written(tmp_path, several, known)
    assert "| d | 2 | 1 | 1 | 0 | 0 | 0 |\n| e | 1 | 0 | 0 | 0 | 0 | 1 |\n| f | 2 | 0 | 1 | 1 | 0 | 0 |\n" in page
    assert "| all | 5 | 1 | 2 | 1 | 0 | 1 |" in page
    assert "stale" not in page
    assert page.startswith("before\n")
    assert page.endswith("<!-- end -->\nafter\n")
    # Three of the five do not hold or differ. Equal verdicts need no kernel.
    entries = [line for line in page.splitlines() if line.startswith("- ")]
    assert entries == [
        "- **b**: It is. *Direction does not hold, size holds*. *Cause* (open): Nobody knows &lt;why>.",
        "- **g**: It is. *Does not hold*. Kernel: holds. *Cause* (version): It was older.",
        "- **h**: It is. *Undecided*.",
    ]
    # Both engines decide d/a, f/g and f/h, the last alike.
    assert re.findall(r"name them \| (\d+) \| (\d+) \|", page) == [("3", "1")]
    assert "today" not in page
    assert [(row["document"], row["claim"], row["direction"], row["kernel_direction"]) for row in rows] == [
        ("d", "a", "holds", "undecided"),
        ("d", "b", "does not hold", ""),
        ("e", "c", verdict.CANNOT, ""),
        ("f", "g", "does not hold", "holds"),
        ("f", "h", "undecided", "undecided"),
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
