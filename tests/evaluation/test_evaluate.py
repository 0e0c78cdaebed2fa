"""`bakeoff evaluate`: batteries, verdicts, findings and the report."""

import json

import pytest

import bakeoff
from bakeoff.api import do_evaluate
from bakeoff.campaign import Execution
from bakeoff.claims.verdict import FAILED, HOLDS, NOT, Ours, Verdict
from bakeoff.errors import EvaluationError
from bakeoff.evaluation import as_html, battery
from bakeoff.evaluation.as_text import record
from bakeoff.evaluation.assess import JUDGEMENT, NOT_APPLICABLE, Assessed, Evaluation, reason
from bakeoff.evaluation.seats import BASELINES, Asked, seats
from own_controls import CONTROLS

HEAD = "battery: {name: mine, title: t, source: RFC 1}\ncases:\n"
CASE = """\
  - id: a
    clause: "1"
    says: s
    scenario:
      duration: 2s
      network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: pfifo limit 20}}
      flows: [{name: one, cc: "{cc}"}]
    number: goodput("one")
    direction: goodput("one", of="cc") > 1mbit
"""

MINE = f"""{CONTROLS}

class Nan(Reno):
    def cong_avoid(self, sk, acked):
        sk.snd_cwnd = float("nan")


class Never(Reno):
    def ssthresh(self, sk):
        return sk.snd_cwnd


class Half(Reno):
    def ssthresh(self, sk):
        return 2.5


class Unmade(Reno):
    def __init__(self, beta=0.5):
        1 // 0


class Misspelt(Reno):
    def pkts_ackd(self, sk, acked, rtt_us):
        pass
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one(cc, case, **more):
    found = bakeoff.evaluate(cc, case=[case], seeds=2, store="none", jobs=1, **more)
    [assessed] = found.cases
    return found, assessed


@pytest.mark.parametrize("name", battery.names())
def test_every_battery_of_the_catalog_expands(name):
    cases = battery.read(battery.folder() / f"{name}.yaml")
    of = cases[0].of
    queue = Asked(qdisc="fq_pie", baseline=BASELINES["qdisc"], seeds=2)
    control = Asked(cc="bbr3" if name == "bbr" else "reno", against=("cubic",), seeds=2)
    made = seats(cases, control if of == "cc" else queue)
    assert len(made) == sum(case.test is not None for case in cases)
    for each in made:
        assert set(each.runs) == {of, "baseline"}
        assert [run.seed for run in each.runs[of]] == [1, 2]
        first, other = each.runs[of][0], each.runs["baseline"][0]
        compared = of == "cc" and not each.case.variables
        assert ({flow.cc for flow in first.flows} != {flow.cc for flow in other.flows}) == compared
        assert (first.interfaces != other.interfaces) == (of == "qdisc")


def test_the_buffer_of_the_baseline_is_a_bandwidth_delay_product():
    for case in battery.load(of="qdisc"):
        if case.test is not None:
            network = case.test.scenario["network"]
            rtts = [each["rtt"] for each in (network, *case.test.scenario["flows"]) if "rtt" in each]
            bottlenecks = network["bottleneck"]
            one = bottlenecks[0] if isinstance(bottlenecks, list) else bottlenecks
            rates = [rate for _, rate in one["rate"]] if isinstance(one["rate"], list) else [one["rate"]]
            rate = max(int(text.removesuffix("mbit")) for text in rates)
            rtt = max(int(text.removesuffix("ms")) for text in rtts)
            assert case.bdp == rate * 1000 * rtt // (8 * 1514), case.name


def test_the_baseline_itself_has_each_run_once():
    [case] = battery.select(battery.load(), ["rfc9743/wired"])
    [made] = seats([case], Asked(cc="cubic", seeds=1))
    assert made.runs["cc"] == made.runs["baseline"]


def test_a_competitor_is_in_the_same_seat_for_both():
    cases = battery.select(battery.load(), ["rfc9743/pair"])
    made = seats(cases, Asked(cc="reno", against=("bbr", "prague"), seeds=1))
    assert [each.other for each in made] == ["bbr", "prague"]
    assert [flow.cc for flow in made[0].runs["cc"][0].flows] == ["reno", "bbr"]
    assert [flow.cc for flow in made[0].runs["baseline"][0].flows] == ["cubic", "bbr"]


def test_the_report_of_reno_in_one_case(here, cli):
    code, out, err = cli("evaluate", "reno", "--case", "wired", "--seeds", "2", "--store", "none", "--json", "-q")
    assert code == 0, err
    report = json.loads(out)
    assert report["counts"] == {HOLDS: 1}
    [case] = report["cases"]
    # 20 Mbit/s less 66 of 1514 bytes of headers, and at most 10 % of losses and refilling.
    assert 0.9 * 20e6 * 1448 / 1514 < case["cc"]["mean"] < 20e6 * 1448 / 1514
    assert len(case["cc"]["values"]) == len(case["baseline"]["values"]) == 2
    assert case["command"] == "bakeoff evaluate reno --case rfc9743/wired --seeds 2"


@pytest.mark.parametrize(("name", "line", "words"), [("Raises", 14, "ZeroDivisionError"), ("Nan", 19, "TypeError")])
def test_a_hook_that_fails_is_a_finding(here, name, line, words):
    found, case = one(f"./mine.py:{name}", "wired")
    assert (case.verdict.word, case.crashed) == (NOT, True)
    assert case.verdict.why is not None
    assert case.verdict.why.startswith(f"mine.py:{line}: {words}")
    assert case.cc is None
    assert case.baseline is not None
    assert found.worst == [case]
    assert case.verdict.why in str(found)
    assert case.verdict.why in as_html.page(found).replace("&#39;", "'")


def test_a_control_that_never_reduces_is_caught_and_reno_is_not(here):
    # 17 packets of buffer; a window that is not reduced loses most of what it sends.
    _, never = one("./mine.py:Never", "loss-0.25")
    assert never.verdict.word == NOT
    assert not never.crashed
    _, reno = one("./mine.py:Reno", "loss-0.25")
    assert reno.verdict.word == HOLDS
    assert never.cc is not None
    assert reno.cc is not None
    assert never.cc.mean > 4 * reno.cc.mean


def test_the_requirements_of_l4s_apply_to_those_who_send_ect1(here):
    _, reno = one("reno", "rfc9331/utilisation")
    _, prague = one("prague", "rfc9331/utilisation")
    assert (reno.verdict.word, prague.verdict.word) == (NOT_APPLICABLE, HOLDS)


def test_a_queue_that_does_not_isolate_flows_leaves_a_flow_what_datagrams_leave(here):
    def evaluated(qdisc):
        found = bakeoff.evaluate(qdisc=qdisc, case=["unresponsive-share"], seeds=2, store="none", jobs=1)
        [case] = found.cases
        return found, case

    # Datagrams of 15 Mbit/s are 15.4 with headers, so that 4.6 of 20 Mbit/s are left, less than the limit of 6.75.
    for qdisc in ("pfifo limit BDP", "pie"):
        _, case = evaluated(qdisc)
        assert (case.verdict.word, case.crashed) == (NOT, False)
        assert 2.5e6 < case.cc.mean < 5e6
    found, case = evaluated("fq_codel limit BDP")
    assert case.verdict.word == HOLDS
    assert case.baseline.mean < 5e6
    report = record(found)
    assert (report["of"], report["qdisc"], report["baseline"]) == ("qdisc", "fq_codel limit BDP", "pfifo limit BDP")
    words = "bakeoff evaluate --qdisc 'fq_codel limit BDP' --case rfc7928/unresponsive-share --seeds 2"
    assert report["cases"][0]["command"] == words
    assert "Evaluation of fq_codel limit BDP" in as_html.page(found)


@pytest.mark.parametrize(
    ("qdisc", "word"),
    [("dualpi2", HOLDS), ("fq_codel ce_threshold 1ms", NOT), ("fq_codel", NOT_APPLICABLE), ("pie ecn", NOT_APPLICABLE)],
)
def test_the_cases_of_l4s_apply_to_queues_that_mark_at_once(here, qdisc, word):
    # A burst of 150 Mbit/s into 100 Mbit/s for 50 ms queues up to 17 ms of packets: nearly all of 600 wait for more
    # than the 1 ms above which DualPI2 marks ECT(1), and this fq_codel ECT(0) as well. CoDel waits for 100 ms, PIE for
    # 150 ms.
    found = bakeoff.evaluate(qdisc=qdisc, case=["classify-ect0"], seeds=1, store="none", jobs=1)
    assert found.cases[0].verdict.word == word


@pytest.mark.parametrize(("qdisc", "word"), [("fq_codel", HOLDS), ("pie", NOT_APPLICABLE)])
def test_the_cases_of_flow_queues_apply_to_queues_that_isolate(here, qdisc, word):
    found = bakeoff.evaluate(qdisc=qdisc, case=["rfc8290/sparse"], seeds=1, store="none", jobs=1)
    assert found.cases[0].verdict.word == word


def test_the_word_bdp_is_the_number_of_the_case():
    [case] = battery.select(battery.load(of="qdisc"), ["rfc7928/rtt-560"])
    [made] = seats([case], Asked(qdisc="fq_codel limit BDP", baseline=BASELINES["qdisc"], seeds=1))
    # 20 Mbit/s for 560 ms are 924 packets of 1514 bytes.
    assert "limit 924" in str(made.runs["qdisc"][0].interfaces)
    assert "pfifo limit 924" in str(made.runs["baseline"][0].interfaces)


def test_each_kind_has_its_batteries():
    assert {case.of for case in battery.load()} == {"cc"}
    assert {case.of for case in battery.load(of="qdisc")} == {"qdisc"}


@pytest.mark.parametrize(
    ("cc", "sends"),
    [("reno", False), ("dctcp", False), ("prague", True), ("./mine.py:Reno", False), ("./mine.py:Scalable", True)],
)
def test_cases_about_a_codepoint_have_runs_only_for_a_control_that_sends_it(here, cc, sends):
    (here / "mine.py").write_text(MINE + "\n\nclass Scalable(Reno):\n    ect1 = needs_ecn = True\n")
    for name, applies in (("rfc9331", sends), ("rfc8511", not sends), ("rfc5681", True)):
        asked = Asked(cc=cc, battery=(name,), against=("cubic",), seeds=1)
        plan = do_evaluate.plan(asked, Execution(store=None))
        tested = [case for case in plan.cases if case.test is not None]
        assert len(tested) > 1
        assert len(plan.seats) == (len(tested) if applies else 0)
        assert bool(plan.runs) is applies


def test_questions_without_a_run_are_listed(here):
    _, case = one("reno", "rfc9743/attackers")
    assert case.verdict == Verdict(JUDGEMENT, case.case.question)


def test_the_page_has_a_picture_of_a_finding(here, cli):
    words = ("--case", "loss-0.25", "--seeds", "1", "--store", "none", "--html", "a.html")
    code, _, err = cli("evaluate", "./mine.py:Never", *words)
    assert code == 0, err
    page = (here / "a.html").read_text()
    assert page.count("data:image/png;base64,") == 1
    assert "bakeoff evaluate ./mine.py:Never --case rfc9743/loss-0.25 --seeds 1" in page


def test_the_worst_are_crashes_and_then_the_farthest_from_the_baseline():
    def assessed(name, ours, theirs, *, crashed=False, other=None, word=NOT):
        case = battery.Case("", name, "cc", "", "", "", None, None, "ours", None, False)
        numbers = [None if value is None else Ours(((value,),), "s") for value in (ours, theirs)]
        return Assessed(case, other, Verdict(word), *numbers, crashed=crashed)

    # Distances: 1/3, 8/10 and 9/11 (of the same case), 0 for what holds; and one that crashed.
    cases = [
        assessed("b/x", 2.0, 1.0),
        assessed("b/y", 9.0, 1.0, other="reno"),
        assessed("b/y", 10.0, 1.0, other="bbr"),
        assessed("b/z", 9.0, 1.0, word=HOLDS),
        assessed("b/w", None, 1.0, crashed=True),
    ]
    found = Evaluation(Asked(cc="mine"), "sim", cases, None, 0, 0.0, {})
    assert [(each.case.name, each.other) for each in found.worst] == [("b/w", None), ("b/y", "bbr"), ("b/x", None)]
    assert found.counts == {HOLDS: 1, NOT: 4}


def test_a_reason_of_a_crash_is_one_finding_and_what_is_better_than_the_baseline_is_last(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(HEAD + "".join(CASE.replace("id: a", f"id: {name}") for name in "abcdef"))
    a, b, c, d, e, f = battery.read(path)  # goodput, the more the better
    cases = [
        Assessed(a, None, Verdict(NOT, "x"), crashed=True),
        Assessed(b, None, Verdict(NOT, "x"), crashed=True),
        Assessed(c, None, Verdict(NOT, "y"), crashed=True),
        *(
            Assessed(case, None, Verdict(NOT), Ours(((ours,),), "bit/s"), Ours(((3.0,),), "bit/s"))
            for case, ours in ((d, 90.0), (e, 2.0), (f, 4.0))  # 30 times as much, 2/3, 4/3
        ),
    ]
    found = Evaluation(Asked(cc="mine"), "sim", cases, None, 0, 0.0, {})
    assert [each.case for each in found.worst] == [a, c, e, f, d]


def test_a_folder_of_results_is_refused_without_an_option_that_evaluate_lacks(here, cli):
    words = ("evaluate", "reno", "--case", "wired", "--seeds", "1", "--out", "there", "-q")
    assert cli(*words)[0] == 0
    code, out, err = cli(*words)
    assert (code, out, err) == (2, "", "bakeoff: there: not empty; choose another --out\n")


def test_cases_after_a_stop_cannot_be_decided(here, cli):
    code, out, err = cli(
        "evaluate", "./mine.py:Raises", "--case", "rfc9743/loss-*", "--seeds", "1", "-j", "1", "-x",
        "--store", "none", "--json",
    )  # fmt: skip
    assert code == 0, err
    [crashed, *others] = json.loads(out)["cases"]
    assert (crashed["verdict"], crashed["crashed"]) == (NOT, True)
    assert {(each["verdict"], each["reason"]) for each in others} == {(FAILED, "not run, after a failure")}


def test_an_error_that_is_no_exception_of_a_hook_stays():
    assert reason("took longer than 60 s\nand was ended") == "took longer than 60 s and was ended"


def test_the_words_of_an_exception_are_whole_and_not_endless():
    frame = 'mine.yaml: run: Mine.init failed\n  File "/a/mine.py", line 7, in init\n    raise E(x)\n'
    assert reason(f"{frame}E2: the filter is\nempty: 3") == "mine.py:7: E2: the filter is empty: 3"
    assert reason(f"{frame}E2: {'x' * 5000}") == f"mine.py:7: E2: {'x' * (200 - len('mine.py:7: E2: '))}…"


def test_an_impossible_result_is_told_without_the_place_of_the_case(here):
    _, assessed = one("./mine.py:Half", "rfc9743/loss-0.25")
    assert assessed.verdict.why == "Half.ssthresh: returned 2.5; expected a whole number of packets, at least 2"


@pytest.mark.parametrize(
    ("cc", "message"),
    [
        ("Misspelt", "evaluate: './mine.py:Misspelt': Misspelt: unknown hook 'pkts_ackd'; did you mean 'pkts_acked'?"),
        ("Gone", "evaluate: ./mine.py: unknown class 'Gone'; expected one of: Reno, "),
        ("Mine beta", "evaluate: './mine.py:Mine beta': parameter 'beta' has no value"),
        ("Reno beta 1", "evaluate: Reno: unknown parameter 'beta'"),
        ("Unmade", 'evaluate: Unmade() failed\n  File "./mine.py", line '),
    ],
)
def test_a_class_that_cannot_be_made_is_an_error_before_the_runs(here, cc, message):
    with pytest.raises(bakeoff.BakeoffError) as error:
        bakeoff.evaluate(f"./mine.py:{cc}", quick=True, store="none", jobs=1)
    assert str(error.value).replace(str(here), ".").startswith(message)
    assert not (here / "results").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    says: s\n", "", "cases[0].says: is missing"),
        ('"{cc}"', "reno", "cases[0] (a).scenario: no flow has the evaluated control"),
        ("    number: goodput(\"one\")\n", "", "cases[0] (a): missing 'number'; expected"),
        ("    says: s\n", "    says: s\n    bdp: 3\n", "cases[0] (a): 'bdp' is given; expected for queues only"),
        (', of="cc"', "", "cases[0] (a).direction: 'goodput(\"one\")': missing 'of'"),
        ("> 1mbit", "+ 1mbit", "cases[0] (a).direction: 'goodput(\"one\", of=\"cc\") + 1mbit'; expected a comparison"),
        ("    says: s\n", "    says: s\n    kind: needs judgement\n", "cases[0] (a): missing 'question'; expected"),
        ("    says: s\n", "    says: s\n    question: q\n", "cases[0] (a).question: only valid of kind"),
    ],
)  # fmt: skip
def test_an_invalid_case_is_named(tmp_path, old, new, message):
    path = tmp_path / "mine.yaml"
    assert old in CASE
    path.write_text(HEAD + CASE.replace(old, new))
    with pytest.raises(EvaluationError) as error:
        battery.read(path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


def test_a_scenario_that_is_invalid_or_lacks_the_flow_is_named(tmp_path):
    path = tmp_path / "mine.yaml"
    for old, new, message in (
        ("rtt: 20ms", "rtt: fast", "network.rtt"),
        ('number: goodput("one")', 'number: goodput("two")', "'goodput(\"two\")'"),
    ):
        path.write_text(HEAD + CASE.replace(old, new))
        with pytest.raises(EvaluationError) as error:
            seats(battery.read(path), Asked(cc="reno"))
        assert "cases[0] (a): " in str(error.value)
        assert message in str(error.value)


def test_a_scenario_of_the_catalog_can_be_named(tmp_path):
    path = tmp_path / "mine.yaml"
    text = CASE[: CASE.index("    scenario:")] + CASE[CASE.index("    number:") :]
    text += """\
    scenario: future/reordering
    set:
      duration: 3s
      measure.steady_state.window: 1s
      vary: {share: ["1%"]}
      hosts.sysctl: {net.ipv4.tcp_ecn: 3}
      network.bottleneck.qdisc: dualpi2
      flows: [{name: one, cc: "{cc}"}]
"""
    path.write_text(HEAD + text)
    [made] = seats(battery.read(path), Asked(cc="reno", seeds=1))
    [run] = made.runs["cc"]
    assert [flow.cc for flow in run.flows] == ["reno"]
    path.write_text(HEAD + text.replace("future/reordering", "future/nothing"))
    with pytest.raises(EvaluationError, match="'future/nothing'; expected SUITE/NAME of the catalog"):
        seats(battery.read(path), Asked(cc="reno", seeds=1))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cubi"], "did you mean 'cubic'"),
        (["reno", "--battery", "rfc97"], "--battery: 'rfc97'"),
        (["reno", "--case", "nothing"], "--case: 'nothing'"),
        (["./gone.py:Mine"], "gone.py"),
        (["reno", "--against", ","], "--against: ','; expected"),
        (["reno", "--baseline", ""], "--baseline: ''; expected a congestion control"),
        (["--qdisc", "pie", "--baseline", " "], "--baseline: ' '; expected a queue"),
        ([], "neither CC nor --qdisc; expected one of them"),
        (["reno", "--qdisc", "pie"], "both CC and --qdisc; expected one of them"),
        (["--qdisc", "piee"], "did you mean 'pie'"),
        (["--qdisc", "pie", "--against", "reno"], "--against: only valid with CC"),
        (["--qdisc", "pie", "--battery", "rfc9743"], "--battery: 'rfc9743' is not about queues"),
        (["reno", "--battery", "rfc7928"], "--battery: 'rfc7928' is not about congestion controls"),
    ],
)
def test_bad_input_ends_with_2_and_one_message(here, cli, words, message):
    code, out, err = cli("evaluate", *words, "-q")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_no_competitor_is_an_error():
    with pytest.raises(bakeoff.BakeoffError, match="--against: no competitor; expected at least one"):
        bakeoff.evaluate("reno", against=[], case=["rfc9743/pair"], seeds=1)


def test_seeds_have_a_default_and_a_least_value():
    assert [do_evaluate.seeds_of(None, quick=quick) for quick in (False, True)] == [10, 5]
    with pytest.raises(bakeoff.BakeoffError, match="evaluate: seeds: 0; expected at least 1"):
        bakeoff.evaluate("reno", seeds=0)
