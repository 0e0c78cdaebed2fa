"""advise: the line put into the household, the numbers, the rule, and the page."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import bakeoff
from bakeoff import advice, campaign, results
from bakeoff.advice import Choice, Variant, advise, as_html, sentences
from bakeoff.advice import numbers as measured
from bakeoff.advice.choices import words
from bakeoff.advice.numbers import MEASURES, Number
from bakeoff.advice.quantities import figure
from bakeoff.advice.rule import decide, mean, missed, most, pick
from bakeoff.campaign import Execution
from bakeoff.errors import BakeoffError
from bakeoff.scenario import catalog
from bakeoff.scenario.access_line import Asked, own_choices, runs, scenario
from bakeoff.scenario.run import Flow, Short
from bakeoff.scenario.yaml_file import read_yaml

LINE = {"up": "1mbit", "down": "10mbit", "rtt": "30ms"}
SMALL = ("--up", "1mbit", "--down", "10mbit", "--rtt", "30ms", "--duration", "30s", "--jobs", "1", "-q")


# The line.


def filled(**asked):
    return scenario(Asked(**{**LINE, **asked})).document["vary"]["line"]


def test_a_line_fills_in_what_the_scenario_asks_for():
    # 250 ms of 1 Mbit/s are 31,250 bytes, less than the least of 128,000; of 10 Mbit/s they are 312,500.
    assert filled() == {
        "1mbit-10mbit-30ms": {
            "rtt": "30ms", "framing": "mpu 0", "cake_framing": "raw", "up": "1mbit", "shaped_up": "900kbit",
            "buffer_up": 128_000, "down": "10mbit", "shaped_down": "9mbit", "buffer_down": 312_500,
        }
    }  # fmt: skip
    # 250 ms of 1 Gbit/s are 31.25 MB, more than the most of 4 MB; 20 ms of it, as asked, are 2.5 MB.
    assert filled(down="1gbit")["1mbit-1gbit-30ms"]["buffer_down"] == 4_000_000
    assert filled(down="1gbit", buffer="20ms")["1mbit-1gbit-30ms"]["buffer_down"] == 2_500_000
    # PTM carries 64 bytes in 65: 65 Mbit/s of it are 64; cake counts the code words by itself.
    vdsl = filled(down="65mbit", link="vdsl")["1mbit-65mbit-30ms-vdsl"]
    assert (vdsl["down"], vdsl["shaped_down"], vdsl["framing"]) == ("64mbit", "58500kbit", "overhead 16")


def test_the_catalog_has_three_lines_filled_in_the_same_way():
    lines = read_yaml(catalog.root() / "suites" / "advice" / "household.yaml")["vary"]["line"]
    for up, down in (("1mbit", "10mbit"), ("20mbit", "100mbit"), ("1gbit", "1gbit")):
        [(label, values)] = filled(up=up, down=down).items()
        assert lines[label] == values


def test_every_choice_is_run_in_every_household_with_the_same_pages():
    found = runs(Asked(**LINE), seeds=2)
    assert len(found) == 5 * 2 * 2
    assert found[0].key == "local/household/fifo-with-BBR-1mbit-10mbit-30ms"
    web = {json.dumps(flow.source.objects) for run in found for flow in run.flows if flow.name == "web"}
    assert len(web) == 2  # one for each seed


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"up": "20"}, "--up: '20' has no unit; expected a rate"),
        ({"up": "64kbit"}, "--up: '64kbit'; expected at least 100kbit"),
        ({"down": "{line}"}, "--down: '{line}': invalid quantity"),
        ({"rtt": "0s"}, "--rtt: '0s'; expected more than 0s"),
        ({"rtt": "-3ms"}, "--rtt: '-3ms' is negative"),
        ({"buffer": "2min"}, "--buffer: '2min'; expected more than 0s and at most 60s"),
        ({"link": "docsiss"}, "--link: 'docsiss': unknown kind of line; did you mean 'docsis'?; for Wi-Fi"),
        (
            {"link": "wifi"},
            "--link: 'wifi': unknown kind of line; expected one of plain, ethernet, docsis, vdsl, adsl; for Wi-Fi",
        ),
        ({"duration": "10s"}, "--duration: '10s'; expected 30s to 600s"),
    ],
)
def test_lines_that_are_none(asked, message):
    with pytest.raises(BakeoffError) as error:
        runs(Asked(**{**LINE, **asked}))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flows: [{cc: cubic}]", "vary: missing axis 'queue'"),
        ("vary: {queue: [a]}", "vary: missing axis 'line'"),
        ("vary: 3", "vary: missing axis 'queue'"),
        (
            "vary: {queue: [a], line: [b]}\nnetwork: {path: [cli, mid, srv]}",
            "network.path: missing node 'line' (the access line) between its ends",
        ),
    ],
)
def test_a_household_that_is_none(tmp_path, text, message):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(BakeoffError) as error:
        runs(Asked(**LINE, mix=tmp_path / "mine.yaml"))
    assert str(error.value).startswith(f"{tmp_path / 'mine.yaml'}: {message}")


def test_a_queue_of_ones_own_has_not_the_words_of_the_catalogs(tmp_path):
    household = (catalog.root() / "suites" / "advice" / "household.yaml").read_text()
    mine = tmp_path / "mine.yaml"
    mine.write_text(household.replace("qdisc: fq_codel}", "qdisc: fq_codel flows 1}").replace("    pie:", "    mine:"))
    assert own_choices(Asked(**LINE, mix=mine)) == {"fq_codel", "mine"}
    assert own_choices(Asked(**LINE)) == set()


# The rule.


def good(**other):
    """A choice that meets every need."""
    best = {m.key: Number(1.0 if m.more else 0.0) for m in MEASURES}
    return {**best, **{key: Number(value) for key, value in other.items()}}


def test_a_need_is_met_at_its_bound():
    assert missed(good(call_delay_p99_s=0.1, used_up=0.4), {"used_up": 0.5}) == ()
    found = missed(good(call_delay_p99_s=0.101, used_up=0.39), {"used_up": 0.5})
    assert [need.key for need in found] == ["call_delay_p99_s", "used_up"]
    assert missed({}, {}) == ()  # a household without a call needs none
    assert most([good(used_up=0.3), good(used_up=0.5), {}]) == {"used_up": 0.5, "used_down": 1.0}


def test_needs_come_before_delay_and_delay_before_rate():
    # c misses a need; a and b are within 5 ms of each other, so the rate decides; d is 6 ms slower than the quickest.
    choices = {
        "a": good(call_delay_p99_s=0.020, uploads_bps=5e6, downloads_bps=50e6),
        "b": good(call_delay_p99_s=0.024, uploads_bps=6e6, downloads_bps=50e6),
        "c": good(call_delay_p99_s=0.015, downloads_bps=90e6, call_loss=0.02),
        "d": good(call_delay_p99_s=0.026, downloads_bps=90e6),
    }
    assert pick(choices) == "b"
    del choices["b"]
    assert pick(choices) == "a"
    del choices["a"]
    assert pick(choices) == "d"


def test_how_sure_a_verdict_is():
    # Delays of 20, 22 and 24 ms against 30, 30 and 36: 10, 8 and 12 ms apart, in the mean 10. The standard deviation is
    # 2 ms, so half of the interval is 4.3027 * 2 / sqrt(3) = 4.968 ms.
    one = [good(call_delay_p99_s=delay) for delay in (0.020, 0.022, 0.024)]
    other = [good(call_delay_p99_s=delay) for delay in (0.030, 0.030, 0.036)]
    verdict = decide({"other": other, "one": one})
    assert (verdict.choice, verdict.runner_up, verdict.reason) == ("one", "other", "delay")
    assert verdict.difference["mean"] == pytest.approx(0.010)
    assert verdict.difference["ci95"] == pytest.approx(0.004968, rel=1e-3)
    assert verdict.alone == ("one", "one", "one")
    # In the first repetition the other meets a need more, and on average it does not: 0, 1 and 1 % are lost.
    one[0] = good(call_delay_p99_s=0.020, call_loss=0.011)
    verdict = decide({"other": other, "one": one})
    assert (verdict.choice, verdict.agreeing, verdict.alone) == ("one", 2, ("other", "one", "one"))
    assert decide({"one": one}).reason == "only"


def test_what_is_not_allowed_still_says_what_could_be():
    # Beside a choice that fills the whole line, 75 % are too little, though nothing else that is allowed has more.
    one, other = good(used_up=0.75), good(call_loss=0.02, call_delay_p99_s=0.05, used_up=0.9)
    verdict = decide({"full": [good()], "one": [one], "other": [other]}, ["one", "other"])
    assert (verdict.choice, verdict.reason) == ("one", "delay")
    assert [need.key for need in verdict.missed] == ["used_up"]
    assert [need.key for need in verdict.runner_up_missed] == ["call_loss"]


# The numbers.


class Household:
    """What `pages` asks a run for: pages begin at 12, 15 and 19 s of a run whose window is 10 to 30 s, and at 21 s."""

    summary = type("Summary", (), {"window_s": (10.0, 30.0)})

    def __init__(self, ended):
        self.samples = self
        self._ended = ended

    def named(self, kind):
        return ["web"]

    def of(self, kind, name, metric, window=None):
        import numpy as np

        if metric == "size":
            assert window == (10.0, 20.0)
            return np.array([12.0, 15.0, 19.0]), np.array([1e5, 1e5, 1e5])
        return np.array(list(self._ended)), np.array(list(self._ended.values()))


def test_a_page_that_the_end_cuts_off_counts_with_the_time_that_it_had():
    assert measured.pages(Household({12.0: 1.0, 15.0: 2.0, 19.0: 4.0}), 0.5) == Number(2.0)
    # The one of 19 s had 11 s. Half lies between 1 s and 11 s at 2 s, which is known; the slowest is not.
    assert measured.pages(Household({12.0: 1.0, 15.0: 2.0}), 0.5) == Number(2.0)
    assert measured.pages(Household({12.0: 1.0, 15.0: 2.0}), 1.0) == Number(11.0, at_least=True)
    # Two of three in time; and one of three if another one ends, but only after 12 s.
    assert measured.in_time(Household({12.0: 1.0, 15.0: 2.0})) == Number(2 / 3)
    assert measured.in_time(Household({12.0: 1.0, 15.0: 12.0})) == Number(1 / 3)


def test_a_need_may_be_missed_by_chance():
    # 94 and 95.5 % of the pages are 94.75 % in the mean; half of the interval is 12.7 * 1.06 / sqrt(2) = 9.5 %.
    one = [good(), good()]
    for shares, said in (((0.94, 0.955), True), ((0.80, 0.805), False)):
        other = [good(page_in_time=share) for share in shares]
        verdict = decide({"one": one, "other": other})
        chosen, second = (
            Choice(label, words(label), (), tuple(each), mean(each), missed(mean(each), {}))
            for label, each in (("one", one), ("other", other))
        )
        assert (verdict.choice, verdict.reason) == ("one", "needs")
        text = sentences._sure(Variant("", (chosen, second), verdict, None), verdict)
        assert ("by no more than chance" in text) == said


def test_the_mean_gap_between_pages_is_that_of_all_repetitions():
    # Pages begin 1 s after the flow's start in one repetition, and 0.4 s after it in the other: 3 + 0.8 s over 5 pages.
    def result(*starts):
        source = Short(objects=[(start, 100_000) for start in starts])
        flow = Flow(name="web", from_="a", to="b", cc="cubic", start_s=1.0, stop_s=9.0, source=source)
        return SimpleNamespace(run=SimpleNamespace(flows=[flow], probes=[], links=[]))

    several = result(2.0, 3.0, 4.0), result(1.4, 1.8)
    household = SimpleNamespace(document=several[0].run, transfers=lambda way: {})
    advice = SimpleNamespace(main=SimpleNamespace(choices=[SimpleNamespace(results=several)]), variants=[None])
    [_, pages] = sentences._traffic(household, advice)
    assert pages.startswith("A web page every 0.8 s on average, of 100 kB in the median")  # 3.8 / 5 = 0.76


def test_figures_have_three_digits():
    assert [figure(value) for value in (0, 0.0123, 0.456, 1.234, 12.34, 99.96, 1234.5)] == [
        "0", "0.01", "0.46", "1.23", "12.3", "100", "1234",
    ]  # fmt: skip
    assert figure(0.4, like=123.0) == "0"


# The command.


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A household with two queues on a slow line, two repetitions of 30 s, in a folder of its own."""
    folder = tmp_path_factory.mktemp("advise")
    household = (catalog.root() / "suites" / "advice" / "household.yaml").read_text()
    names = "|".join(("pie", "dualpi2", "cake", "without-BBR"))
    cut = re.sub(rf"(?m)^    ({names}):(?:.*\n)(?:      .*\n)*", "", household)
    (folder / "two.yaml").write_text(cut.replace("fifo:", "'<b>&fifo':"))
    return folder


def test_the_page_recommends_the_queue_that_the_numbers_say(small, cli, monkeypatch):
    monkeypatch.chdir(small)
    monkeypatch.setenv("COLUMNS", "200")
    mine = ("--mix", "two.yaml")
    code, out, err = cli("advise", *SMALL, *mine, "--seeds", "2", "--out", "r", "--html", "p.html")
    assert (code, err) == (0, "")
    assert out.startswith("A line of 1 Mbit/s up and 10 Mbit/s down, 30 ms to servers and back, in a busy household\n")
    assert "Recommended: a queue for each flow (fq_codel)." in out
    assert "How sure: each of the 2 repetitions, taken alone, gives the same answer." in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 110
    # What is there is not run again.
    code, out, _ = cli("advise", *SMALL, *mine, "--seeds", "2", "--out", "r", "--resume", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["recommended"] == "fq_codel"
    [variant] = said["variants"]
    fifo, fq_codel = (choice["measures"] for choice in variant["choices"])
    # 128 kB at 1 Mbit/s are 1.024 s of waiting, and half of the round trip are 15 ms.
    assert 0.5 < fifo["call_delay_p99_s"]["mean"] < 1.024 + 0.015 + 0.02
    # A packet of 1514 bytes takes 12.1 ms at 1 Mbit/s; a call that never waits for more than two has 15 + 24 + 2 ms.
    assert fq_codel["call_delay_p99_s"]["mean"] < 0.06
    assert fq_codel["call_loss"]["mean"] == 0
    # fifo is the scenario's own here, so that nothing says that there is nothing to do
    ends = ("DOWN", "10mbit", "UP", "1mbit")
    assert said["commands"]["fq_codel"] == [
        line
        for end, rate in zip(ends[::2], ends[1::2], strict=True)
        for line in (
            f"tc qdisc replace dev {end} root handle 1: htb default 1",
            f"tc class replace dev {end} parent 1: classid 1:1 htb rate {rate} mpu 0 ceil {rate}",
            f"tc qdisc replace dev {end} parent 1:1 fq_codel",
        )
    ]
    page = (small / "p.html").read_text()
    assert "&lt;b&gt;&amp;fifo" in page
    assert "<b>" not in page
    assert not re.search(r"""(?:src|href)=|https?:|<script""", page)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed: apt install chromium")
def test_the_page_in_a_browser(small):
    sync = pytest.importorskip("playwright.sync_api")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    asked = Asked(**LINE, duration="30s", mix=small / "two.yaml")
    report = campaign.run(runs(asked, seeds=1), small / "b", Execution(jobs=1))
    advice = advise([results.read(done.path) for done in report.runs], own=own_choices(asked))
    (small / "b.html").write_text(as_html.page(asked, advice))
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for width, scheme in ((1280, "light"), (360, "dark")):
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            wrong = []
            page.on("console", lambda message, wrong=wrong: wrong.append(message.text))
            page.on("request", lambda request, wrong=wrong: wrong.append(request.url))
            page.goto((small / "b.html").as_uri())
            assert wrong == [(small / "b.html").as_uri()]  # the page itself, and nothing else
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert page.locator("polyline").count() == 2
            assert page.locator(".bars li").count() == 12  # six pictures of two choices
            assert page.locator("th .best").count() == 1
            found = axe.Axe().run(page).response["violations"]
            assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
        browser.close()


def test_python_gets_the_same_advice(small, cli, monkeypatch):
    monkeypatch.chdir(small)
    words = {**LINE, "duration": "30s", "mix": "two.yaml"}
    found = bakeoff.advise(**words, seeds=1, jobs=1, out="python")
    options = [word for key, value in words.items() for word in (f"--{key}", value)]
    said = json.loads(cli("advise", *options, "--seeds", "1", "-j", "1", "--out", "command", "--json")[1])
    asked = Asked(**{**words, "mix": Path("two.yaml")})
    assert advice.record(asked, found, Path("command")) == said
    with pytest.raises(BakeoffError, match="advise: up: 20; expected text with a unit"):
        bakeoff.advise(up=20)


def test_another_line_is_not_gone_on_with(small, cli, monkeypatch):
    monkeypatch.chdir(small)
    cli("advise", *SMALL, "--mix", "two.yaml", "--seeds", "1", "--out", "s")
    code, _, err = cli("advise", *SMALL, "--rtt", "40ms", "--mix", "two.yaml", "--seeds", "1", "--out", "s", "--resume")
    assert code == 2
    assert "resume it with its own patterns, or" in err


def test_what_cannot_be_done_is_said_before_anything_runs(tmp_path, cli, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("advise", "--html", "no/such/page.html")[::2] == (
        2,
        "bakeoff: --html: no/such/page.html: no such folder no/such\n",
    )
    code, _, err = cli("advise", "--resume")
    assert (code, err) == (
        2,
        "bakeoff: results/advise/latest: no advice to resume; expected --out\n",
    )
    assert list(tmp_path.iterdir()) == []
