"""What a reader sees: tables, plots, bars, the terminal, from results that are known."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from bakeoff.errors import BakeoffError
from bakeoff.measure import summarise
from bakeoff.references import Reference
from bakeoff.results.summary import Summary
from bakeoff.tables import groups, results_table, run_report
from bakeoff.tables.chart import chart
from bakeoff.tables.records import records
from bakeoff.tables.rows import notes, rows
from bakeoff.tables.run_report import duel
from synthetic import honest, made


def s6(qdisc="pie", other="cubic", rates=(45.0e6, 2.0e6), **words):
    run = f"ns-prague-vs-{other}-ecn-{qdisc}-50Mbit-20ms"
    flows = (("prague", "prague@2020-08"), (other, other))
    return honest(made(rates, run=run, point={"qdisc": qdisc, "other": other, "ecn": "on"}, flows=flows, **words))


def s1(rate, qdisc, rtts, pair=("prague", "cubic"), rates=(4e6, 4e6), **words):
    run = f"ns-{'-vs-'.join(pair)}-{qdisc}-{rate}-{'-'.join(rtts)}"
    point = {"rate": rate, "rtt1": rtts[0], "rtt2": rtts[1], "cc": "-".join(pair), "qdisc": qdisc}
    flows = tuple((f"{cc}-{i}", cc) for i, cc in enumerate(pair, start=1))
    return honest(made(rates, scenario="s1-rttfair", run=run, point=point, flows=flows, rate=rate, **words))


def published(result, *rates, name="l4s-tests", measure="delivery_rate"):
    at = result.resolved
    flows = [flow["name"] for flow in at["flows"]]
    return [
        Reference(name, at["suite"], at["scenario"], at["run"], flow, measure, rate, "bit/s", "a test")
        for flow, rate in zip(flows, rates, strict=True)
    ]


def failed(result, error="htb: no such class"):
    return result.__class__(result.path, {**result.meta, "status": "failed", "error": error}, result.resolved, None, {})


class TestTables:
    def test_a_flow_without_a_delivery_rate_shows_its_goodput(self):
        result = s6()
        kept = result.series.filter((pl.col("name") != "cubic") | (pl.col("metric") != "delivery_rate"))
        result = replace(result, series=kept)
        [row] = rows([result])
        assert row.flows[1].rates_bps["delivery_rate"] is None
        assert row.flows[1].rate_bps("delivery_rate")["mean"] == pytest.approx(2.0e6)
        shown = results_table.render([result])
        assert "  2.00 " in shown
        assert "(goodput of cubic)" in shown

    def test_what_a_reader_sees(self):
        runs = [s6("red(150000b)"), s6("pie"), s6("fq_codel(1q)", "reno", rates=(46e6, 1e6))]
        text = results_table.render(runs, reference=published(runs[1], 45e6, 4e6), width=100)
        assert text == (
            "l4s-tests/s6-rfc3168, steady state 18 s to 58 s\n"
            "                          prague                     flow 2\n"
            "                        delivery                   delivery                             queue ms\n"
            "qdisc         other  rate Mbit/s    ref     ln  rate Mbit/s   ref     ln  ratio   Jain   p50/p99\n"
            "────────────────────────────────────────────────────────────────────────────────────────────────\n"
            "fq_codel(1q)  reno         46.00                       1.00                46.0  0.522  5.0/12.5\n"
            "pie           cubic        45.00  45.00  +0.00         2.00  4.00  -0.69   22.5  0.544  5.0/12.5\n"
            "red(150000b)  cubic        45.00                       2.00                22.5  0.544  5.0/12.5\n"
            "no room for: util, marks, drops, ping ms p50/p99, RTT ms; a wider terminal, --columns or --format\n"
            "csv shows them\n"
            "always ecn on\n"
            "Mbit/s: mean tcp_delivery_rate in the steady state; ratio, Jain: of goodputs; ref: l4s-tests; ln:\n"
            "ln(ours / ref)\n"
            "marks, drops: of the bottleneck, over the whole run\n"
            "\n"
            "|ln(ours / l4s-tests)| over all flows\n"
            "scenario    qdisc  measure        flows  median   p90   max\n"
            "───────────────────────────────────────────────────────────\n"
            "s6-rfc3168  pie    delivery_rate      2    0.35  0.62  0.69\n"
        )

    @pytest.mark.parametrize("width", [60, 80, 100, 140])
    def test_columns_are_dropped_until_the_table_fits(self, width):
        result = s6("fq_codel(1q,1ms/20ms)")
        lines = results_table.render(
            [result, s6("pie", "reno")], reference=published(result, 45e6, 4e6), width=width
        ).splitlines()
        assert max(len(line) for line in lines) <= width
        assert "prague" in lines[1]  # shares always stay
        assert ("marks" in lines[3]) == (width == 140)

    def test_rows_stand_by_rate_and_in_the_suites_order(self):
        points = [
            ("10Mbit", "fq_codel", ("10ms", "10ms")),
            ("50Mbit", "pfifo(1000)", ("160ms", "10ms")),
            ("50Mbit", "dualpi2", ("160ms", "10ms")),
            ("50Mbit", "pfifo(1000)", ("20ms", "20ms")),
            ("50Mbit", "cnq_codel_af", ("10ms", "10ms")),
            ("10Mbit", "dualpi2", ("80ms", "20ms")),
        ]
        found = [
            tuple(row.axes[a] for a in ("rate", "qdisc", "rtt1")) for row in rows([s1(*point) for point in points])
        ]
        assert found == [
            ("10Mbit", "dualpi2", "80ms"),
            ("10Mbit", "fq_codel", "10ms"),
            ("50Mbit", "dualpi2", "160ms"),
            ("50Mbit", "pfifo(1000)", "20ms"),
            ("50Mbit", "pfifo(1000)", "160ms"),
            ("50Mbit", "cnq_codel_af", "10ms"),
        ]

    def test_repetitions_are_one_row_with_an_interval(self):
        seeds = [s6(rates=(40e6 + 1e6 * seed, 2e6), seed=seed) for seed in (1, 2, 3)]
        (row,) = rows(seeds)
        share = row.flows[0].rates_bps["delivery_rate"]
        assert (row.n, share["n"], share["mean"]) == (3, 3, pytest.approx(42e6))
        assert share["ci95"] == pytest.approx(4.3027 * 1e6 / math.sqrt(3))  # s = 1 Mbit/s, t(2) = 4.3027
        text = results_table.render(seeds, width=200)
        assert "42.00±2.48" in text
        assert "mean ± 95 % interval over n seeds" in text

    def test_engines_are_never_mixed(self):
        kernel = s6(rates=(44e6, 3e6))
        kernel.meta["engine"] = "kernel"
        assert [(row.engine, row.n) for row in rows([s6(), kernel])] == [("kernel", 1), ("sim", 1)]
        assert "engine" in results_table.render([s6(), kernel])

    def test_the_same_seed_twice_is_refused(self):
        with pytest.raises(BakeoffError, match=r"pie-50Mbit-20ms: seed 1: results/x, results/x; expected one"):
            rows([s6(), s6()])

    def test_a_reference_of_goodputs_compares_goodputs(self):
        result = s6()
        lines = published(result, 45e6, 1e6, name="linux-7.3", measure="goodput")
        (row,) = rows([result], lines)
        assert row.metric == "goodput"
        assert row.flows[1].log_ratio == pytest.approx(math.log(2))

    def test_a_starved_flow_says_so(self):
        result = s6(rates=(45e6, 0.0))
        text = results_table.render([result], reference=published(result, 45e6, 4e6))
        assert "0.00  4.00  -inf" in text
        assert text.count(" inf ") + text.count(" inf\n") == 3  # in the distribution: median, 90th percentile, maximum
        assert (
            "flows.cubic.steady_state.delivery_rate_bps: no sample other than zero between 18 s and 58 s"
            in " ".join(text.split())
        )

    def test_a_failed_self_check_is_told(self):
        result = s6()
        result.counted["flows"]["cubic"]["cc"] = "reno"
        assert "check 'cc' of cubic failed: asked for cubic, got reno" in results_table.render([result], width=200)

    def test_failed_runs_are_named_and_left_out(self):
        text = results_table.render([s6(), failed(s6("red(150000b)"))], width=200)
        assert (
            "skipped: l4s-tests/s6-rfc3168/ns-prague-vs-cubic-ecn-red(150000b)-50Mbit-20ms: failed: htb: no such"
            in text
        )

    def test_nothing_to_show(self):
        with pytest.raises(BakeoffError, match=r"no finished runs\n  l4s-tests/.*htb: no such class"):
            results_table.render([failed(s6())])

    def test_mistakes(self):
        with pytest.raises(BakeoffError, match="reference: unknown 'linux-99'; expected one of: "):
            results_table.render([s6()], reference="linux-99")
        with pytest.raises(BakeoffError, match="metric: unknown 'speed'; expected goodput or delivery_rate"):
            results_table.render([s6()], metric="speed")
        with pytest.raises(BakeoffError, match="format: unknown 'pdf'"):
            results_table.render([s6()], format="pdf")

    def test_markdown(self):
        result = s6("pie|odd")
        lines = results_table.render(
            [result, s6()], format="markdown", reference=published(result, 45e6, 4e6)
        ).splitlines()
        assert lines[0] == "### l4s-tests/s6-rfc3168, steady state 18 s to 58 s"
        assert lines[2].startswith("| qdisc | prague delivery rate Mbit/s | ref | ln | cubic delivery rate Mbit/s |")
        assert lines[3].startswith("| --- | ---: |")
        assert lines[5].startswith("| pie\\|odd | 45.00 | 45.00 | +0.00 | 2.00 | 4.00 | -0.69 | 22.5 |")

    def test_csv_has_a_column_per_value_with_its_unit(self):
        result = s6()
        (line,) = csv.DictReader(
            io.StringIO(results_table.render([result], format="csv", reference=published(result, 45e6, 4e6)))
        )
        assert (line["axis_qdisc"], line["flow2_name"], line["flow2_cc"], line["flow2_ecn"]) == (
            "pie",
            "cubic",
            "cubic",
            "accecn",
        )
        assert float(line["flow2_delivery_rate_bps"]) == pytest.approx(2e6)
        assert float(line["flow2_reference_bps"]) == 4e6
        assert float(line["flow2_log_ratio"]) == pytest.approx(-math.log(2))
        assert float(line["queue_delay_p99_s"]) == 0.0125
        assert line["flow1_delivery_rate_ci95_bps"] == ""

    def test_json_is_strict_even_when_a_flow_got_nothing(self):
        result = s6(rates=(45e6, 0.0))
        lines = published(result, 45e6, 4e6, measure="goodput")
        document = json.loads(
            results_table.render([result], format="json", reference=lines), parse_constant=pytest.fail
        )
        assert document["rows"][0]["flow2_goodput_bps"] == 0
        assert document["rows"][0]["flow2_log_ratio"] is None
        assert document["deviations"][0]["max"] is None
        assert document["deviations"][0]["n"] == 2


class TestPeople:
    """What a reader of a table sees of seeds, names and recordings."""

    def test_columns_that_were_asked_for_keep_their_intervals(self):
        runs = [s6(rates=(rate, 2e6), seed=seed) for seed, rate in enumerate((44e6, 45e6, 46e6), 1)]
        text = results_table.render(runs, columns=["prague_goodput_bps", "jain"], width=200)
        assert "45.00±2.48" in text  # 4.3027 * 1 / sqrt(3)

    def test_a_time_that_never_comes_with_some_seeds(self):
        def paired(seed, convergence):
            result = s6(seed=seed)
            pair = {"flows": ["prague", "cubic"], "convergence_s": convergence, "meet_s": 1.0}
            return replace(
                result, summary=Summary.from_json(json.dumps(summarise(result).to_json() | {"pair": pair}), "")
            )

        [some] = records(rows([paired(1, 4.14), paired(2, None), paired(3, None)]), "runs")
        assert (some[1]["convergence_s"], some[1]["converged"], some[1]["meet_s"], some[1]["met"]) == (None, 1, 1.0, 3)
        shown = [results_table.render([paired(1, times[0]), paired(2, times[1])], columns=["convergence_s"], width=200)
                 for times in ((4.0, 5.0), (4.0, None), (None, None))]  # fmt: skip
        assert [text.splitlines()[4].strip() for text in shown] == ["4.5", "never in 1 of 2", "never"]

    def test_a_mean_over_some_seeds_says_so(self):
        def silent(result):
            return replace(result, series=result.series.filter(pl.col("metric") != "srtt"))

        table = rows([s6(seed=1), silent(s6(seed=2)), s6(seed=3)])
        [(_, record)] = records(table, "runs")
        assert (record["flow1_srtt_mean_s"], record["flow1_srtt_mean_n"]) == (pytest.approx(0.025), 2)
        assert "flow1_retransmissions_n" not in record
        assert "25.0/26.0 (2 of 3)" in results_table.render([s6(seed=1), silent(s6(seed=2)), s6(seed=3)], width=200)

    def test_latex_has_labels_that_differ(self):
        text = results_table.render([s6(), s1("50Mbit", "pie", ("10ms", "10ms"))], format="latex")
        labels = re.findall(r"\\label\{(.*)\}", text)
        assert labels[0] == "tab:l4s-tests-s1-rttfair"
        assert len(set(labels)) == len(labels) == text.count(r"\begin{table}")

    def test_a_class_of_the_users_own_has_a_name_that_can_be_read(self):
        def own(cc, run):
            return honest(made(flows=(("own", cc), ("cubic", "cubic")), point={"cc": cc}, run=run))

        runs = [own("./aimd.py:Aimd85", "a"), own("./aimd.py:Aimd70", "b")]
        text = results_table.render(runs, width=200)
        assert "Aimd85" in text
        assert "aimd.py" not in text
        # What looks like a path is none.
        assert "pie(100p/5ms)" in results_table.render([own("pie(100p/5ms)", "a"), own("a.py/b", "b")], width=200)
        # Two classes of one name are told apart by their files.
        assert "one.py" in results_table.render([own("./one.py:Aimd", "a"), own("./two.py:Aimd", "b")], width=200)

    def test_what_a_recording_never_tells_is_no_note(self):
        told = (
            "flows.10.0.0.1:1>10.0.0.2:2.bottleneck: no rate on its path",
            "jain: a flow has no delivery rate",
        )
        summary = replace_missing(summarise(s6()), [*told, "flows.a.srtt_s: no samples"])
        assert notes(summary, "capture") == ["flows.a.srtt_s: no samples"]
        assert notes(summary, "sim") == [*told, "flows.a.srtt_s: no samples"]

    def test_groups_have_shares_of_the_queue_that_they_share(self):
        """Ten uploads of 1 Mbit/s and ten downloads of 3: half of nothing is theirs together."""
        names = [f"{way}{i}" for way in ("up", "down") for i in range(10)]
        result = made((1e6,) * 10 + (3e6,) * 10, flows=tuple((name, "cubic") for name in names))
        for flow in result.resolved["flows"][10:]:
            flow |= {"from": "srv", "to": "cli"}
        [row] = rows([result])
        assert [(group.label, group.share) for group in groups.groups(row)] == [
            ("10 up cubic", "100%"),
            ("10 down cubic", "100%"),
        ]


def replace_missing(summary, missing):
    return Summary.from_json(json.dumps(summary.to_json() | {"missing": missing}), "")


class TestTerminal:
    @pytest.mark.parametrize("width", [30, 45, 60, 80, 100])
    def test_the_report_is_as_wide_as_the_terminal(self, width):
        text = run_report.text(s6("fq_codel flows 1"), width=width)
        drawn = [line for line in text.splitlines() if not line.startswith("results:")]
        assert max(map(len, drawn)) <= width

    def shown(self, result, encoding, **words):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        duel(result, Console(file=out, width=80, **words))
        out.flush()
        return out.buffer.getvalue().decode(encoding)

    def test_what_a_newcomer_sees(self):
        text = self.shown(s6(), "utf-8")
        assert "prague   45.00    96%  ███████████████████▏  25.0/25.0   5.00%        3" in text
        assert "cubic     2.00     4%  ▉                     26.0/26.0   5.00%        3" in text
        assert "prague: prague@2020-08, AccECN; cubic: cubic, AccECN" in text
        assert "ratio 22.50:1, Jain's index 0.544, utilisation 98.3%" in text
        assert "mid>srv: queue delay 5.0 ms (p99 12.5 ms), 600 marks, 2 drops" in text
        assert "results: results/x" in text
        assert "mid>srv: 50 Mbit/s, pie limit 1000p" in text

    def test_plain_ascii_where_the_terminal_is_not_utf_8(self):
        text = self.shown(s6(), "ascii")
        assert "###################" in text
        chart_lines = [line for line in text.splitlines() if "|" in line]
        assert chart_lines[-8].startswith("50 |")
        assert "2" * 30 in chart_lines[-1]
        assert "60 s" in text

    def test_braille_where_there_is_colour(self):
        text = self.shown(s6(), "utf-8", force_terminal=True, color_system="truecolor")
        assert any(0x2800 < ord(letter) < 0x2900 for letter in text)

    def test_of_what_is_wrong_twenty_lines_are_shown_and_the_rest_counted(self):
        result = made((1e6,) * 25, flows=[(f"f{n}", "cubic") for n in range(25)])
        text = self.shown(result, "utf-8")  # the feedback of none of the 25 is the one that was negotiated
        assert sum(line.startswith("check 'ecn' of f") for line in text.splitlines()) == 20
        assert "\nand 5 more; summary.json has all\n" in text


class TestChart:
    def test_a_steady_line_stands_on_its_level(self):
        time = np.arange(0.5, 60.5)
        drawn = chart(
            [(time, np.full(60, 30.0)), (time, np.full(60, 10.0))],
            span=(0, 60),
            top=40,
            width=60,
            height=4,
            braille=False,
        )
        # four rows of 10 each, the topmost first: 30 lies in [30, 40), 10 in [10, 20)
        assert ["".join(cell.text for cell in row) for row in drawn] == ["1" * 60, " " * 60, "2" * 60, " " * 60]

    def test_braille_dots(self):
        # one cell of 2 x 4 dots: left column at the bottom (dot 7), right column at the top (dots 4 to 6, filled
        # down to join)
        drawn = chart([(np.array([0.5, 1.5]), np.array([0.0, 4.0]))], span=(0, 2), top=4, width=1, height=1)
        assert drawn[0][0].text == chr(0x2800 + 0x40 + 0x08 + 0x10 + 0x20)

    def test_lines_that_meet(self):
        line = (np.array([0.5]), np.array([1.0]))
        assert chart([line, line], span=(0, 1), top=2, width=1, height=1, braille=False)[0][0].text == "#"


def test_importing_costs_nothing():
    modules = (
        "plots.against_axis", "plots.bars", "plots.draw", "plots.kinds", "plots.style", "tables.chart",
        "tables.results_table", "tables.rows", "tables.run_labels", "tables.run_report",
    )  # fmt: skip
    heavy = "{'matplotlib', 'polars', 'numpy', 'rich'}"
    imports = ", ".join(f"bakeoff.{module}" for module in modules)
    code = f"import sys; import {imports}; print(*{heavy} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
