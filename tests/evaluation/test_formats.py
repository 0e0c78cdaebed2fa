"""The report of `bakeoff evaluate` in its formats, also of a control that fails."""

import csv
import html
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

import bakeoff
from bakeoff.api import do_evaluate
from bakeoff.campaign.worker import Done
from bakeoff.claims.verdict import FAILED, NOT
from bakeoff.evaluation import as_text
from bakeoff.evaluation.overdue import Unhurried
from bakeoff.text.markup import tex
from own_controls import CONTROLS

MINE = f"""{CONTROLS}

class Loop(Reno):
    def cong_avoid(self, sk, acked):
        while True:
            pass
"""
COMMAND = "bakeoff evaluate ./mine.py:Raises --case rfc9743/fifo-slow --baseline ./mine.py:Reno --seeds 2"
DONE = Done("run", Path(), "failed")


class Named(NamedTuple):
    key: str


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    (folder / "mine.py").write_text(MINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        cases = ["wired", "attackers", "fifo-slow"]
        return bakeoff.evaluate(
            "./mine.py:Raises", baseline="./mine.py:Reno", case=cases, seeds=2, store="none", jobs=1
        )


@pytest.mark.parametrize("form", ["terminal", "markdown", "latex", "html", "json"])
def test_every_format_has_the_finding_and_its_command(found, form):
    text = found.text(form)
    assert COMMAND.replace("--", "-{}-" if form == "latex" else "--") in text
    assert "ZeroDivisionError" in text
    assert "fails now" in text
    assert "Traceback" not in text


def test_markdown_has_as_many_cells_in_each_line_of_a_table(found):
    lines = [line for line in found.text("markdown").splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in lines]
    # Two tables: heads, rules and two cases each.
    assert widths == [6] * 4 + [5] * 4


def test_latex_closes_what_it_opens_and_escapes(found):
    text = found.text("latex")
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+)\}", text))
    assert opened.count("longtable") == 2
    body = re.sub(r"\\[{}]", "", text)
    assert body.count("{") == body.count("}")
    assert not re.search(r"(?<!\\)[#&_]", re.sub(r"(?m)^.* \\\\$|^%.*$", "", text))


def test_csv_has_a_line_per_case(found):
    rows = list(csv.DictReader(io.StringIO(found.text("csv"))))
    assert [row["case"] for row in rows] == [each.case.name for each in found.cases]
    wired = next(row for row in rows if row["case"] == "rfc9743/wired")
    assert (wired["verdict"], wired["cc"]) == (NOT, "")
    assert float(wired["baseline_low"]) < float(wired["baseline"]) < float(wired["baseline_high"])


def test_json_is_what_the_command_prints(found):
    told = json.loads(found.text("json"))
    assert told["counts"] == found.counts
    assert [each["word"] for each in told["changes"]] == ["worse", "worse"]


def test_a_hook_that_never_returns_is_a_finding(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(do_evaluate, "patience_s", lambda runs, engine: 1.0)
    # Of the first case the runs of the class are begun, and of the second none.
    cases = ["slow-start/growth", "slow-start/early-exit"]
    found = bakeoff.evaluate("./mine.py:Loop", case=cases, seeds=3, store="none", jobs=1)
    first, second = found.cases
    assert (first.verdict.word, first.crashed) == (NOT, True)
    assert first.verdict.why.startswith("took longer than 1 s")
    assert (second.verdict.word, second.crashed) == (FAILED, False)
    assert re.match(r"not run, after \d others: took longer than 1 s and was ended", second.verdict.why)
    for form in ("terminal", "markdown", "html", "json"):
        assert "took longer than 1 s" in found.text(form)


def test_no_run_begins_after_three_that_took_too_long():
    runs = [Named(f"run{number}") for number in range(10)]
    queue = Unhurried(runs, jobs=1)
    assert queue.first == runs[:2]
    late, fine = (replace(DONE, error=error) for error in ("took longer than 9 s and was ended", None))
    assert queue.more(late, 1) == runs[2:3]
    assert queue.more(fine, 1) == runs[3:4]
    assert queue.more(late, 2) == []
    assert queue.more(late, 1) == []
    assert queue.more(fine, 0) == []
    assert list(queue.left) == [run.key for run in runs[4:]]
    assert set(queue.left.values()) == {"not run, after 3 others: took longer than 9 s and was ended"}


def test_a_command_is_one_line_in_a_narrow_terminal(found):
    assert len(COMMAND) > 80
    assert f"  {COMMAND}" in as_text.text(found, width=80, colour=False).splitlines()


@pytest.mark.parametrize("form", ["terminal", "markdown", "latex", "html"])
def test_a_finding_says_what_was_expected_and_one_seed_has_no_interval(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    text = MINE + "\n\nclass Never(Reno):\n    def ssthresh(self, sk):\n        return max(sk.snd_cwnd, 2)\n"
    (tmp_path / "mine.py").write_text(text)
    found = bakeoff.evaluate("./mine.py:Never", case=["wired", "loss-0.25"], seeds=1, store="none", jobs=1)
    [finding] = found.worst
    assert finding.case.name == "rfc9743/loss-0.25"
    text = html.unescape(found.text(form))
    wanted = as_text.expected(finding)
    assert (tex(wanted) if form == "latex" else wanted) in text
    assert "1 holds, 1 does not hold" in text
    assert "1 seed," in text
    assert "without an interval" in text
