"""Runs as CSV and as Parquet: every sample and measure, with its unit."""

import io
import json
import re
from pathlib import Path

import duckdb
import nanoarrow
import polars as pl
import pytest

import bakeoff
from bakeoff.exports import csv, parquet, sheets
from bakeoff.results import read
from bakeoff.results.series_units import UNITS

DOCS = Path(__file__).parents[2] / "docs"
SCENARIO = """
duration: 3s
network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: fq_codel flows 1}}
flows: [{name: prague, cc: prague}, {name: bulk, transport: udp, source: {rate: 2mbit}}]
probes: [{name: ping, type: icmp, every: 50ms}]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    (folder / "mine.yaml").write_text(SCENARIO)
    bakeoff.run(str(folder / "mine.yaml"), out=folder / "results", seeds=2, trace=["cc"])
    return [read(path) for path in sorted(folder.glob("results/local/mine/*"))]


def test_every_metric_of_the_documentation_has_its_unit():
    page = (DOCS / "results-folder.md").read_text()
    told = {}
    for kind, metrics, unit in re.findall(r"^\| (flow|probe|queue) \| ([\w., ]+) \| ([\w/]+) \|", page, re.MULTILINE):
        for metric in metrics.split(", "):
            told.setdefault(kind, {})[metric] = unit
    assert told == UNITS


def test_csv_has_a_row_per_time_and_a_column_per_metric(results):
    result = results[0]
    made = dict(csv.files(result))
    assert set(made) <= set(csv.suffixes(result))
    flows = pl.read_csv(io.BytesIO(made[".series-flow.csv"]))
    assert flows.columns[:4] == ["time_s", "name", "goodput_bps", "received_bytes"]
    for metric, column in (("srtt", "srtt_s"), ("cwnd", "cwnd_packets"), ("delay", "delay_s")):
        samples = result.series.filter(kind="flow", metric=metric)
        found = flows.filter(pl.col(column).is_not_null()).sort("name", "time_s", maintain_order=True)
        wanted = samples.sort("name", "time", maintain_order=True)
        assert found.select("name", "time_s", column).rows() == wanted.select("name", "time", "value").rows()
    [row] = pl.read_csv(io.BytesIO(made[".summary-probe.csv"])).rows(named=True)
    assert row["rtt_mean_s"] == result.summary.probes["ping"].rtt_s.mean
    internals = pl.read_csv(io.BytesIO(made[".series-cc.csv"]))
    assert {"cc.cwnd_packets", "cc.srtt_s", "cc.alpha"} <= set(internals.columns)


def test_two_samples_of_one_time_are_two_rows():
    samples = pl.DataFrame(
        [(1.0, "flow", "a", "delay", 0.1), (1.0, "flow", "a", "delay", 0.2), (1.0, "flow", "a", "goodput", 5.0)],
        schema=["time", "kind", "name", "metric", "value"],
        orient="row",
    )
    sheet = sheets._side_by_side("flow", samples, UNITS["flow"])
    assert sheet.frame.columns == ["time_s", "name", "goodput_bps", "delay_s"]
    assert sheet.frame.rows() == [(1.0, "a", 5.0, 0.1), (1.0, "a", None, 0.2)]
    assert sheet.units == {"time_s": "s", "goodput_bps": "bit/s", "delay_s": "s"}


def test_parquet_says_units_in_its_schema(results):
    made = dict(parquet.files(results[0]))
    assert set(made) <= set(parquet.suffixes(results[0]))
    content = made[".series-flow.parquet"]
    fields = arrow_schema(content)
    assert fields["srtt_s"] == {b"unit": b"s"}
    assert fields["goodput_bps"] == {b"unit": b"bit/s"}
    assert fields["name"] == {}
    about = json.loads(pl.read_parquet_metadata(io.BytesIO(content))["bakeoff"])
    assert about["key"] == results[0].key
    assert about["units"]["cwnd_packets"] == "packet"
    frame = pl.read_parquet(io.BytesIO(content))
    assert frame.row(0)[:4] == ("local", "mine", results[0].run.run, 1)


def arrow_schema(content):
    """The metadata of columns, from the schema of Arrow that a Parquet file keeps."""
    import base64

    text = pl.read_parquet_metadata(io.BytesIO(content))["ARROW:schema"]
    stream = nanoarrow.ArrayStream.from_readable(io.BytesIO(base64.b64decode(text)))
    return {field.name: dict(field.metadata.items()) if field.metadata else {} for field in stream.schema.fields}


def test_the_line_for_duckdb_in_the_documentation_works(results, tmp_path, monkeypatch):
    page = (DOCS / "export.md").read_text()
    [line] = re.findall(r'^duckdb -c "(.*)"$', page, re.MULTILINE)
    (tmp_path / "tables").mkdir()
    for number, result in enumerate(results):
        for suffix, content in parquet.files(result):
            (tmp_path / "tables" / f"{number}{suffix}").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    rows = duckdb.sql(line).fetchall()
    # A row per scenario, run and flow over both seeds: the mean of the smoothed round-trip time in ms.
    both = pl.concat(result.series.filter(kind="flow", name="prague", metric="srtt") for result in results)
    found = {row[1]: row[2] for row in rows}
    assert found["prague"] == pytest.approx(both["value"].mean() * 1e3)
