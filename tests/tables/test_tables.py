"""Tables of any network: all queues, probes and flows, groups, phases; sorted, filtered, in every format."""

import csv
import io
import json
from html.parser import HTMLParser

import pytest

from bakeoff.errors import BakeoffError
from bakeoff.tables import filters, results_table
from bakeoff.tables.records import KINDS, records
from bakeoff.tables.rows import rows
from bakeoff.text.columns import clean
from synthetic import honest, made, with_call


def many(n=20):
    """So many equal flows, of 1, 2, … n / 10 Mbit/s."""
    return honest(made(tuple(1e5 * (i + 1) for i in range(n)), flows=tuple((f"flow{i}", "cubic") for i in range(n))))


def stepped():
    result = honest(made())
    action = {"kind": "class-change", "side": "egress", "id": "1", "class": "rate 10mbit ceil 10mbit"}
    result.resolved["changes"] = [{"at_s": 38.0, "node": "mid", "peer": "srv", "action": action}]
    return result


def shown(*results, **words):
    return results_table.render(list(results), width=400, **words)


def without_flows():
    return honest(made((), flows=()))


def test_a_table_of_runs_without_flows_has_their_queues_and_probes():
    text = shown(without_flows(), kind="runs")
    # Both queues have a rate, and nothing says which of them is the bottleneck. Only the first was sampled.
    assert "mid>srv ms" in text
    assert "ping ms" in text
    assert "marks, drops: of mid>srv/mid>cli, over the whole run" in text
    assert "Mbit/s" not in text
    [(_, record)] = records(rows([without_flows()]), "runs")
    assert (record["queue1_name"], record["queue2_name"], record["probe1_name"]) == ("mid>srv", "mid>cli", "ping")
    assert record["queue1_marks"] == without_flows().counted["queues"]["mid>srv"]["marks"]


class TestRecords:
    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "phases"])
    def test_every_kind_has_a_record_per_thing(self, kind):
        found = records(rows([with_call(honest(made()))]), kind)
        assert len(found) == {"runs": 1, "flows": 3, "queues": 2, "probes": 1}[kind]

    def test_a_call(self):
        [record] = [one for _, one in records(rows([with_call(honest(made()))]), "flows") if one["flow"] == "call"]
        assert (record["delay_p99_s"], record["jitter_s"], record["loss"]) == (0.03, 0, 0.05)
        assert record["goodput_bps"] == pytest.approx(64e3)
        assert record["base_rtt_s"] == pytest.approx(0.02)
        # Of 45.7 + 1.9 + 0.064 Mbit/s through the same bottleneck.
        assert record["share"] == pytest.approx(0.064 / 47.664)

    def test_numbers_of_several_seeds_have_intervals(self):
        seeds = [honest(made((40e6 + 1e6 * seed, 2e6), seed=seed)) for seed in (1, 2, 3)]
        [first, _] = [one for _, one in records(rows(seeds), "flows")]
        assert first["goodput_bps"] == pytest.approx(42e6)
        assert first["goodput_ci95_bps"] == pytest.approx(4.3027 * 1e6 / 3**0.5)  # s = 1 Mbit/s, t(2) = 4.3027
        assert first["srtt_p99_ci95_s"] == pytest.approx(0, abs=1e-9)

    def test_phases_have_numbers_of_their_own(self):
        before, after = (one for _, one in records(rows([stepped()]), "phases"))
        assert (before["from_s"], before["to_s"], after["from_s"], after["to_s"]) == (18, 38, 38, 58)
        assert (before["queue1_rate_bps"], after["queue1_rate_bps"]) == (50e6, 10e6)
        assert after["changes"] == "mid>srv: class 1: rate 10mbit ceil 10mbit"
        assert (before["queue1_marks"], after["queue1_marks"]) == (200, 200)  # 10 a second for 20 s each


class TestPeople:
    def test_one_run_shows_its_flows_queues_and_probes(self):
        text = shown(with_call(honest(made())))
        assert "steady state 18 s to 58 s" in text
        assert "call       cli > srv  " not in text  # the columns are as wide as what they hold
        [call] = [line for line in text.splitlines() if line.startswith("call ")]
        assert call.split()[-4:] == ["0.13%", "30.0/30.0/30.0", "0.0", "5.00%"]  # share, one way, jitter, loss
        assert [line for line in text.splitlines() if line.startswith("mid>cli")]

    def test_what_there_is_no_room_for_is_named(self):
        text = results_table.render([honest(made())], width=60)
        assert "no room for: " in text
        assert "--columns" in text
        assert max(map(len, text.splitlines())) <= 60

    def test_what_is_piped_is_wide_and_columns_are_honoured(self, monkeypatch):
        monkeypatch.delenv("COLUMNS", raising=False)
        assert "no room for" not in results_table.render([honest(made())])
        monkeypatch.setenv("COLUMNS", "60")
        assert "no room for" in results_table.render([honest(made())])

    def test_twenty_equal_flows_are_one_group(self):
        text = shown(many())
        [_, line] = [line for line in text.splitlines() if line.startswith("20 flow cubic")]
        # 0.1 + 0.2 + … + 2.0 = 21 Mbit/s
        assert line.split()[3:6] == ["21.00", "100%", "0.10-2.00"]
        assert "flow7" not in text
        assert "  20 flows  " in text  # whose data passes the queue
        assert shown(many(), kind="flows").count("flow") > 20

    def test_flows_that_differ_are_groups_of_their_own(self):
        flows = tuple((f"{cc}{i}", cc) for cc in ("cubic", "reno") for i in range(3))
        text = shown(honest(made((1e6,) * 3 + (2e6,) * 3, flows=flows)))
        assert "3 cubic" in text
        assert "3 reno" in text

    def test_a_number_over_a_rate_step_says_so(self):
        text = shown(stepped())
        assert "45.70*" in text
        caption = "* averaged over timed changes in the window (at 38 s mid>srv: class 1: rate 10mbit ceil 10mbit)"
        assert caption in text
        assert "between changes" in text
        assert "*" not in shown(honest(made()))

    def test_sce_marks_have_a_column_where_there_are_some(self):
        result = honest(made())
        assert "SCE" not in shown(result)
        result.counted["queues"]["mid>srv"]["sce_marks"] = 4711
        assert "4711" in shown(result)

    def test_hostile_names_are_shown_and_not_obeyed(self):
        name = "a\x1b[31m<b>|\n&"
        result = honest(made(flows=((name, "cubic"), ("reno", "reno"))))
        texts = {form: shown(result, format=form) for form in ("terminal", "markdown", "latex", "html")}
        for text in texts.values():
            assert "\x1b" not in text
        assert "\\x1b[31m<b>|\\n&" in texts["terminal"]
        assert "<b>" not in texts["html"]
        assert "&lt;b&gt;|\\n&amp;" in texts["html"]
        assert r"\textless{}b\textgreater{}\textbar{}" in texts["latex"]
        assert "&lt;b>\\|" in texts["markdown"]
        assert clean("\u202e ä µ>") == "\\u202e ä µ>"  # letters stay, what turns the line round does not


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.text = [], None

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.text = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.text = None

    def handle_data(self, data):
        if self.text:
            self.rows[-1][-1] += data


class TestFormats:
    names = ("run", "flow1_goodput_bps", "jain")

    def test_all_say_the_same(self):
        result = honest(made((40e6, 10e6)))
        of = {"columns": self.names, "reference": ()}
        cell = ["ns-prague-vs-cubic-ecn-pie-50Mbit-20ms", "40.00", f"{50**2 / (2 * (40**2 + 10**2)):.4g}"]
        assert cell in [line.split() for line in shown(result, **of).splitlines()]
        assert shown(result, format="markdown", **of).splitlines()[4] == f"| {' | '.join(cell)} |"
        assert " & ".join(cell) + r" \\" in shown(result, format="latex", **of)
        page = Cells()
        page.feed(shown(result, format="html", **of))
        assert page.rows == [["run", "flow1_goodputMbit/s", "jain"], cell]
        [line] = csv.DictReader(io.StringIO(shown(result, format="csv", **of)))
        [row] = json.loads(shown(result, format="json", **of))["rows"]
        assert tuple(line) == tuple(row) == self.names
        assert float(line["flow1_goodput_bps"]) == row["flow1_goodput_bps"] == pytest.approx(40e6)

    def test_the_names_of_all_columns(self):
        assert shown(honest(made()), columns=["?"], kind="probes").splitlines()[-13:-5] == [
            "rtt_mean_s",
            "rtt_p50_s",
            "rtt_p99_s",
            "jitter_s",
            "loss",
            "induced_mean_s",
            "induced_p50_s",
            "induced_p99_s",
        ]

    def test_nothing_of_a_kind(self):
        with pytest.raises(BakeoffError, match="no phases: nothing changes in a window"):
            shown(made(), kind="phases")


ROWS = [
    {"run": "a", "axis_qdisc": "pie", "axis_rtt": "20ms", "jain": 0.9, "flow1_name": "cubic", "flow1_goodput_bps": 4e6,
     "axis_network.rtt": "5000us", "axis_loss": "1%", "axis_size": "2", "axis_hosts.sysctl": "sys"},
    {"run": "b", "axis_qdisc": "fq_codel", "axis_rtt": "160ms", "jain": 1.0, "flow1_name": "reno",
     "flow1_goodput_bps": 5e6, "axis_network.rtt": "20ms", "axis_loss": "0%", "axis_size": "4"},
    {"run": "c", "axis_qdisc": "pie", "axis_rtt": "10ms", "jain": None, "queue_delay_p99_s": 0.025,
     "axis_network.rtt": "1min", "axis_loss": "2%", "axis_size": "128", "flow1_name": "cubic-1", "flow1_cc": "cubic",
     "queue1_backlog_packets": 3, "n": 3},
]  # fmt: skip


class TestWhere:
    @pytest.mark.parametrize(
        ("condition", "found"),
        [
            ('qdisc == "pie"', "ac"),
            ('qdisc == "pie" and jain < 0.95', "a"),  # a row without the number is out
            ('qdisc != "pie" or run == "c"', "bc"),
            ('"codel" in qdisc', "b"),
            ('run in ["a", "c"]', "ac"),
            ('run not in ("a", "c")', "b"),
            ('rtt > "20ms"', "b"),  # in natural order, not that of letters
            ('queue_delay_p99_s > "20ms"', "c"),
            ('flow1_goodput_bps >= "5mbit"', "b"),
            ('reno_goodput_bps > "1 Mbit/s"', "b"),
            ("flow1_goodput_bps > 0", "ab"),  # 0 needs no unit
            ("jain == None", "c"),
            ("not (jain == None)", "ab"),
            ("0.8 < jain < 1", "a"),
            ("jain >= 0", "ab"),
            ('jain < "95%"', "a"),
            ('network.rtt < "20ms"', "a"),  # 5000us are 5 ms
            ('network.rtt in ["0.005s", "1min"]', "ac"),
            ('loss == "1%" or loss == 0', "ab"),
            ("size < 10", "ab"),
            ('size == "128"', "c"),
            ('cubic-1_cc == "x"', ""),
            ('"sys" in hosts.sysctl', "a"),
            ('run == "1"', ""),  # texts are compared as texts
            ("rtt < 20ms or jain >= 95%", "bc"),  # a quantity needs no quotes
            ("flow1_goodput_bps / 2 > 2.2mbit", "b"),  # 5 Mbit/s / 2, but not 4 Mbit/s / 2
            ("max(network.rtt, rtt) - rtt >= 50s", "c"),  # 60 s - 10 ms
            ("abs(jain - 1) < 0.2 or run == 'c'", "ab"),  # a row without the number is out
            ("jain", "ab"),
            ('"None" in hosts.sysctl', ""),  # what is missing has no text
            ("queue1_backlog_packets <= n", "c"),  # a plain number may be one of packets
        ],
    )
    def test_rows_for_which_it_holds(self, condition, found):
        assert "".join(ROWS[i]["run"] for i in filters.select(ROWS, condition)) == found

    @pytest.mark.parametrize(
        ("condition", "message"),
        [
            ("qdisk == 'pie'", "--where: no column 'qdisk'; did you mean 'qdisc'"),
            ("qdisc = 'pie'", "syntax error at '=', character 7; expected '==' for equal"),
            ("qdisc ==", "unexpected end; expected comparisons"),
            ("__import__('os').system('x')", "unknown measure '__import__'; expected comparisons"),
            ("run.__class__ == 1", "no column 'run.__class__'"),
            ("[run for x in run] == 1", "syntax error at 'for', character 6"),
            ("(lambda: 1) == 1", "no column 'lambda'"),
            ("9 ** 9 == jain", r"syntax error at '\*\*', character 3; expected \+ - \* /"),
            ("1", "is not a comparison"),
            ("", "unexpected end"),
            ("not " * 60 + "jain", "nested too deeply"),
            ("(" * 5000, "has 5,000 characters"),
            ("(" * 1900, "nested too deeply"),
            ("rtt < 20", "rtt is a time, and '20' has no unit; expected for example \"20ms\""),
            ('rtt < "20"', "rtt is a time, and '20' has no unit"),
            ("20 > rtt", "rtt is a time, and '20' has no unit"),
            ("rtt in [20, 40]", "rtt is a time, and '20' has no unit"),
            ("network.rtt < 20", "network.rtt is a time, and '20' has no unit"),
            ("queue_delay_p99_s < 20", "queue_delay_p99_s is a time, and '20' has no unit"),
            ("flow1_goodput_bps > 5e6", "flow1_goodput_bps is a rate, and '5e\\+06' has no unit; .* \"5mbit\""),
            ("cubic_goodput_bps > 5", "cubic_goodput_bps is a rate, and '5' has no unit; .* \"5mbit\""),
            ("loss < 1", "loss is a share, and '1' has no unit; expected for example \"1%\""),
            ('rtt < "5mbit"', 'rtt is a time, and "5mbit" is a rate; expected a time such as "20ms"'),
            ('rtt < "fast"', "'fast': invalid quantity; expected a number with a unit"),
            ("rtt < jain", "rtt is a time, and jain is a share; expected one unit"),
            ("jain < 60", 'jain is from 0 to 1; expected a number in this range, such as "60%"'),
            ('jain < "150%"', "jain is from 0 to 1"),
            ("jain > -1", "jain is from 0 to 1"),
            ('queue_delay_p99_s > "-1ms"', "queue_delay_p99_s is at least 0"),
            ('jain > "1e999bit"', "'1e999bit': invalid quantity"),
            ("jain is 1", "syntax error at 'is', character 6; expected '==' for equal"),
            (f"jain > {'9' * 400}", "is too large"),
            ("jain > 1e999", "is too large"),
            ("jain > [1]", r"'\[1\]' is not supported here"),
            ("jain > True", "no column 'True'"),
            ("jain < None", "expected == None or != None"),
            ("1 < 2", "contains no column"),
            ("size in 5", "expected a string in a column, such as"),
            ("qdisc < 5", "qdisc is a string"),
            ("qdisc == pie", "no column 'pie'; .*, or a text in quotes, \"pie\"$"),
            ("rtt in []", "is empty; expected"),
            ("qdisc + 1 > 2", "'qdisc' is a string; expected a number"),
            ("rtt < 20knots", "'20knots' has an unknown unit 'knots'"),
            ("jain < 1 && rtt < 1", "syntax error at '&&', character 10; expected 'and'"),
        ],
    )
    def test_what_is_no_condition(self, condition, message):
        with pytest.raises(BakeoffError, match=message):
            filters.select(ROWS, condition)

    @pytest.mark.parametrize(
        ("columns", "found"),
        [("rtt", "cab"), ("-jain", "bac"), ("qdisc,-run", "bca"), ("network.rtt", "abc"), ("-size", "cba")],
    )
    def test_order(self, columns, found):
        assert "".join(ROWS[i]["run"] for i in filters.order(ROWS, columns)) == found

    def test_a_table_of_chosen_rows(self):
        runs = [honest(made(run=f"r{i}", point={"qdisc": qdisc})) for i, qdisc in enumerate(("pie", "red", "pie|2"))]
        text = results_table.render(runs, format="csv", condition='"pie" in qdisc', sort="-run", columns=["qdisc"])
        assert text.split() == ["qdisc", "pie|2", "pie"]
        with pytest.raises(BakeoffError, match='--where: none of 3 rows matches qdisc == "cake"'):
            results_table.render(runs, condition='qdisc == "cake"')
        with pytest.raises(
            BakeoffError, match=r"--columns: no column 'speed'; expected one of those that --columns '\?' lists$"
        ):
            results_table.render(runs, columns=["speed"])
