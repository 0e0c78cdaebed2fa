"""The report of `bakeoff evaluate` in its formats, also of a control that fails."""

import csv
import io
import json
import re

import pytest

import bakeoff
from bakeoff.api import do_evaluate
from bakeoff.claims.verdict import NOT

MINE = """\
class Reno:
    def ssthresh(self, sk):
        return max(sk.snd_cwnd // 2, 2)

    def cong_avoid(self, sk, acked):
        if sk.tcp_in_slow_start():
            acked = sk.tcp_slow_start(acked)
        if acked:
            sk.tcp_cong_avoid_ai(sk.snd_cwnd, acked)


class Raises(Reno):
    def cong_avoid(self, sk, acked):
        return 1 // 0


class Loop(Reno):
    def cong_avoid(self, sk, acked):
        while True:
            pass
"""
COMMAND = "bakeoff evaluate ./mine.py:Raises --case rfc9743/wired --baseline ./mine.py:Reno --seeds 2"


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
    # Without losses the baseline in Rust takes a fraction of a second.
    found = bakeoff.evaluate("./mine.py:Loop", case=["slow-start/growth"], seeds=1, store="none", jobs=1)
    [case] = found.cases
    assert (case.verdict.word, case.crashed) == (NOT, True)
    assert case.verdict.why.startswith("took longer than 1 s")
    for form in ("terminal", "markdown", "html", "json"):
        assert "took longer than 1 s" in found.text(form)
