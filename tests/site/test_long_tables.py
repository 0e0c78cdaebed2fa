"""The page of a run with many flows, probes and changes: tables are cut, and whole beside the page."""

import csv
import gzip
import json
import re

import numpy as np
import pytest

import synthetic
from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.measure import summarise
from bakeoff.plots.plotted_run import PlottedRun
from bakeoff.scenario import catalog
from bakeoff.site import charts, long_tables
from bakeoff.site.site_contents import gather
from bakeoff.site.site_folder import write

FLOWS = 700
SCENARIO = {
    "scenario": "s",
    "title": "many",
    "duration": "300ms",
    "start_jitter": "0s",
    "network": {"path": ["cli", "mid", "srv"], "rtt": "10ms", "bottleneck": {"rate": "100mbit", "qdisc": "fq_codel"}},
    "flows": [{"name": "f-{n}", "cc": "reno", "count": FLOWS}],
    "changes": [{"at": f"{i / 10}ms", "rate": f"{90 + i % 20}mbit"} for i in range(1, 601)],
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The folder of the page."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "mine.yaml").write_text(json.dumps(SCENARIO))
    campaign.run(catalog.select(str(folder / "mine.yaml")), folder / "c", Execution(jobs=1))
    write(gather(folder / "c", results.survey(folder / "c").results), folder / "site")
    return folder / "site" / "runs" / "local" / "s" / "s"


def table_of(text, caption):
    """The rows of the first table whose caption begins so, without the heading."""
    body = text.partition(f"<caption>{caption}")[2].partition("<tbody>")[2].partition("</tbody>")[0]
    return re.findall(r"<tr>(.*?)</tr>", body)


def test_a_page_shows_the_first_rows_and_has_them_all_beside_it(page):
    text = (page / "index.html").read_text()
    for caption, rows, name in [
        ("Flows,", FLOWS, "measures-flows"),
        ("Flows<", FLOWS, "configuration-flows"),
        ("Timed changes", 1200, "configuration-timed-changes"),  # of both directions
    ]:
        assert len(table_of(text, caption)) == long_tables.ROWS
        assert f'href="tables/{name}.csv.gz"' in text
        with gzip.open(page / "tables" / f"{name}.csv.gz", "rt", newline="") as file:
            whole = list(csv.reader(file))
        assert len(whole) == 1 + rows
        shown = re.findall(r"<th[^>]*>(.*?)</th>", table_of(text, caption)[-1])
        assert shown == [whole[long_tables.ROWS][0]]
    assert sorted(each.name for each in (page / "tables").iterdir()) == [
        "all.csv.gz",
        "configuration-flows.csv.gz",
        "configuration-timed-changes.csv.gz",
        "measures-flows.csv.gz",
    ]


def test_all_measures_are_beside_the_page_too(page):
    names = set()
    with gzip.open(page / "tables" / "all.csv.gz", "rt", newline="") as file:
        names = {row[0] for row in csv.reader(file)}
    assert {f"flows.f-{n}.steady_state.goodput_bps" for n in range(1, FLOWS + 1)} <= names


def test_what_a_comparison_loads_is_cut(page):
    text = (page / "measures.js").read_text().removeprefix("bakeoff.measures(").removesuffix(");\n")
    groups = json.loads(text)["groups"]
    assert [group["kind"] for group in groups].count("flow") == 500


def test_a_page_does_not_grow_with_the_flows(page):
    # 500 rows of at most 400 bytes in five tables, and 5,000 rows of 150
    assert (page / "index.html").stat().st_size < 5 * 500 * 400 + 5000 * 150 + 200_000


def test_a_table_without_long_rows_is_whole(tmp_path):
    assert long_tables.cut(["a"], [["1"], ["2"]], tmp_path, "x", most=2) == ([["1"], ["2"]], None)
    assert not (tmp_path / "tables").exists()


def test_a_cell_that_is_too_long_is_cut_as_well(tmp_path):
    rows, whole = long_tables.cut(["a"], [["x" * 3000], ["y"]], tmp_path, "x")
    assert ([len(row[0]) for row in rows], whole.rows) == ([2000, 1], 2)
    with gzip.open(tmp_path / whole.place, "rt") as file:
        assert file.read() == "a\n" + "x" * 3000 + "\ny\n"


def colourful(flows):
    """A run whose flows have a colour each, so that each is a line; flow i gets i Mbit/s."""
    names = tuple((f"f{i}", "cubic") for i in range(flows))
    run = synthetic.made(tuple(1e6 * i for i in range(flows)), flows=names)
    run.resolved["present"]["colours"] = {name: f"#{i:06x}" for i, (name, _) in enumerate(names)}
    return run


def test_a_chart_has_the_lines_of_the_busiest_flows():
    run = colourful(70)
    [goodput, *_] = charts.charts(PlottedRun(run), summarise(run))
    labels = [trace.label.partition(" ")[0] for trace in goodput.traces if trace.style == "samples"]
    assert labels == [f"f{i}" for i in range(6, 70)]


def test_a_line_for_many_flows_has_the_busiest_behind_it():
    names = tuple((f"f{i}", "cubic") for i in range(70))
    run = synthetic.made(tuple(1e6 * i for i in range(70)), flows=names)
    [goodput, *_] = charts.charts(PlottedRun(run), summarise(run))
    [line] = [trace for trace in goodput.traces if trace.members]
    last = sorted(round(float(member[1][-1])) for member in line.members)
    assert last == list(range(6, 70))


def test_many_lines_have_fewer_points_each():
    time = np.arange(300_000) / 1000
    traces = [charts.Trace("x", "x", "#000000", (), "line", (time, np.sin(time))) for _ in range(8)]
    thin = charts._thin(charts.Chart("c", "c", "1", traces))
    # 400,000 points for eight lines
    assert {len(trace.series[0]) for trace in thin.traces} == {50_000}
