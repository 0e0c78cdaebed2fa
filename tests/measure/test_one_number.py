"""Equal names are equal numbers: what each command, page and function shows of a dumbbell and of two directions."""

import csv
import io
import json
import re

import polars as pl
import pytest

import bakeoff
from bakeoff import results
from bakeoff.claims import comparison
from bakeoff.claims.evaluate import numbers
from bakeoff.measure import summary_of
from bakeoff.measure.functions import CATALOGUE
from bakeoff.plots import axes
from bakeoff.results import dataset
from bakeoff.site import compare_data
from bakeoff.site.site_contents import Page
from bakeoff.tables import results_table, rows, run_report
from bakeoff.tables.records import records

BOTH_WAYS = """\
scenario: ways
suite: local
duration: 12s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  bottleneck:
    up: {rate: 10mbit, qdisc: "fq_codel flows 1"}
    down: {rate: 30mbit, qdisc: "fq_codel flows 1"}
flows:
  - {name: up1, cc: cubic}
  - {name: up2, cc: reno}
  - {name: down1, cc: cubic, direction: down}
  - {name: down2, cc: reno, direction: down, start: 2s}
probes:
  - {name: ping, type: icmp, every: 50ms}
measure:
  steady_state: {window: 6s, ends: at end}
"""


@pytest.fixture(scope="module", params=["dumbbell", "two directions"])
def result(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    if request.param == "dumbbell":
        return bakeoff.duel("prague", "cubic", qdisc="fq_codel flows 1", rate="20mbit", rtt="20ms", duration="12s",
                            out=folder)  # fmt: skip
    (folder / "ways.yaml").write_text(BOTH_WAYS)
    [found] = bakeoff.run(str(folder / "ways.yaml"), out=folder / "out", jobs=1)
    return found


def of_table(result):
    """Every measure of every row, from the table as JSON, and in rows of runs by the object's number."""
    found = {}
    [(_, whole)] = records(rows.rows([result]), "runs")
    names = {key.removesuffix("_name"): value for key, value in whole.items() if re.fullmatch(r"\w+\d_name", key)}
    for key, value in whole.items():
        column = CATALOGUE.of_column(key)
        at = next((of for of in names if key.startswith(f"{of}_")), None)
        if column is not None and (at or column.of in ("run", "queue")):
            found[column.name, names.get(at, "")] = value
    for kind in ("flows", "queues", "probes"):
        for row in json.loads(results_table.render([result], format="json", kind=kind))["rows"]:
            for key, value in row.items():
                column = CATALOGUE.of_column(f"{kind[:-1]}1_{key}")
                if column is not None and column.of == kind[:-1]:
                    assert found.setdefault((column.name, row[kind[:-1]]), value) == value, key
    return found


def test_rows_of_runs_and_of_their_parts_have_equal_numbers(result):
    assert len(of_table(result)) > 40


def test_functions_are_what_tables_show(result):
    """Claims, `--until`, `--adaptive` and Python call the functions; tables read the summary."""
    checked = set()
    for (name, at), value in of_table(result).items():
        measure = CATALOGUE[name]
        arguments = {"flow": f'("{at}")', "probe": f'("{at}")', "queue": "()", "run": f'("{at}")' if at else "()"}[
            measure.of
        ]
        if measure.of == "queue":
            continue  # below
        text = f"{name}{arguments}"
        taken = numbers(result, [text])[text]
        if value is None:
            assert taken is None, text
        else:
            assert taken == pytest.approx(value, rel=1e-12), text
            assert result.measure(text) == pytest.approx(value, rel=1e-12), text
            checked.add(name)
    assert {"goodput", "delivery_rate", "share", "srtt_mean", "ping_p99", "starvation"} <= checked


def test_functions_of_queues_are_what_tables_show(result):
    of = of_table(result)
    for queue in summary_of(result).shared:
        for name in ("utilisation", "marks", "drops", "queue_delay_p50", "little_delay_mean", "rate"):
            word = f"queue='{queue}'" if name in ("marks", "drops") else f"'{queue}'"
            assert result.measure(f"{name}({word})") == pytest.approx(of[name, queue], rel=1e-12), name


def test_each_queue_that_is_shared_has_its_index_and_others_have_none(result):
    """Goodputs a and b: (a + b)² / (2 (a² + b²)), and the larger over the smaller."""
    summary = summary_of(result)
    of = of_table(result)
    several = len(summary.shared) > 1
    assert sorted(flow for each in summary.shared.values() for flow in each.flows) == sorted(summary.flows)
    for queue, each in summary.shared.items():
        a, b = (summary.flows[flow].steady_state.goodput_bps for flow in each.flows)
        jain, ratio = (a + b) ** 2 / (2 * (a * a + b * b)), max(a, b) / min(a, b)
        assert (each.jain, each.ratio) == pytest.approx((jain, ratio), rel=1e-12)
        assert result.measure(f"jain('{queue}')") == pytest.approx(jain, rel=1e-12)
        assert of["jain", queue if several else ""] == each.jain
        assert of["ratio", queue if several else ""] == each.ratio
        assert sum(of["share", flow] for flow in each.flows) == pytest.approx(1)
        text = run_report.text(result, width=200)
        assert f"Jain's index{f' at {queue}' if several else ''} {jain:.3f}" in text
    if several:
        assert (summary.jain, of["jain", ""], numbers(result, ["jain()"])["jain()"]) == (None, None, None)


def test_plots_draw_what_tables_show(result):
    of = of_table(result)
    summary = summary_of(result)
    for name in axes.names():
        axis = axes.axis_of(name)
        for at, value in axes.values(summary, axis).items():
            key = (name, at) if at else (name, summary.bottleneck.queue if CATALOGUE[name].of == "queue" else "")
            if of.get(key) is not None:
                assert value == pytest.approx(of[key] * axis.scale, rel=1e-12), key


def test_the_site_shows_what_tables_show(result):
    of = of_table(result)
    [row] = rows.rows([result])
    page = compare_data.document(Page(result, "runs/one", "", row))
    shown = {
        (label, group["name"]): (unit, value)
        for group in page["groups"]
        for label, unit, value, _ in group["rows"]
    }  # fmt: skip
    for (name, at), value in of.items():
        measure = CATALOGUE[name]
        label = (measure.stem or measure.name).replace("_", " ")
        if (label, at) in shown and value is not None:
            scale, unit = measure.display
            assert shown[label, at] == ("" if unit == "%" else unit, pytest.approx(value * scale)), (name, at)
    assert ("goodput", next(iter(summary_of(result).flows))) in shown


def test_the_forms_of_a_table_show_the_same(result):
    """CSV has all digits; Markdown and the terminal have those of the cell."""
    [row] = json.loads(results_table.render([result], format="json"))["rows"]
    [line] = csv.DictReader(io.StringIO(results_table.render([result], format="csv")))
    for key, value in row.items():
        assert (float(line[key]) if isinstance(value, int | float) else line[key] or None) == (
            None if value == "" else value
        ), key
    goodput = f"{summary_of(result).flows[row['flow1_name']].steady_state.goodput_bps / 1e6:.2f}"
    for form in ("terminal", "markdown", "latex", "html"):
        assert goodput in results_table.render([result], format=form), form


def test_the_data_set_of_a_sweep_and_comparisons_hold_the_same(result, tmp_path):
    summary = summary_of(result)
    folder, _ = dataset.write(tmp_path, [result.path])
    [row] = pl.read_parquet(f"{folder}/**/*.parquet", hive_partitioning=True).to_dicts()
    for name in ("jain", "ratio", "jain_delivery_rate", "utilisation"):
        assert row[name] == getattr(summary, name), name
    compared = comparison.side_of("a", [results.read(result.path)])
    for key, values in compared.values.items():
        [value] = values.values()
        word = f"('{key.flow}')" if key.flow else "()"
        assert value == pytest.approx(result.measure(f"{key.measure}{word}"), rel=1e-12), key
