"""Runs as data files of Flent: what is in them, by their own format, and what Flent draws of them."""

import gzip
import json
import shutil
import subprocess

import pytest

import bakeoff
from bakeoff.exports import flent
from bakeoff.results import read

NETWORK = "{path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: fq_codel flows 1}}"
PROBES = "[{name: ping, type: icmp, every: 50ms}]"
DURATION_S = 4


def ran(folder, flows, network=NETWORK, probes=PROBES):
    """A short run of the simulator with these flows."""
    scenario = folder / "mine.yaml"
    scenario.write_text(f"duration: {DURATION_S}s\nnetwork: {network}\nflows: {flows}\nprobes: {probes}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # where the link to the latest results goes
        [result] = bakeoff.run(str(scenario), out=folder / "results")
    return read(result.path)


@pytest.fixture(scope="module")
def unlike(tmp_path_factory):
    """Two flows that differ, with a probe and a queue that marks."""
    flows = "[{name: prague, cc: prague}, {name: cubic, cc: cubic}]"
    return ran(tmp_path_factory.mktemp("unlike"), flows)


def opened(result):
    [(suffix, content)] = flent.files(result)
    assert suffix == ".flent.gz"
    return json.loads(gzip.decompress(content))


def series_of(result, kind, name, metric):
    frame = result.series.filter(kind=kind, name=name, metric=metric)
    return frame["time"].to_list(), frame["value"].to_list()


def test_every_sample_is_there_at_its_time_and_in_flents_unit(unlike):
    file = opened(unlike)
    assert file["version"] == 4
    assert (file["metadata"]["NAME"], file["metadata"]["HOSTS"]) == ("rtt_fair_var_up", ["prague", "cubic"])
    # The flows begin at once, so the run begins 5 s after T0, which is 5 s before the epoch of all files.
    begin = 1_700_000_000
    for key, metric, factor in (
        ("val", "goodput", 1e-6),
        ("tcp_rtt", "srtt", 1e3),
        ("tcp_cwnd", "cwnd", 1),
        ("tcp_delivery_rate", "delivery_rate", 1e-6),
    ):
        time, value = series_of(unlike, "flow", "prague", metric)
        entries = [entry for entry in file["raw_values"]["TCP upload BE prague"] if key in entry]
        assert [entry["t"] - begin for entry in entries] == pytest.approx(time, abs=1e-6)
        assert [entry[key] for entry in entries] == pytest.approx([factor * one for one in value])
    drops = [entry["ecn_mark"] for entry in file["raw_values"]["qdisc_stats_mid>srv"]]
    assert sum(drops) == unlike.all_counters()["queues"]["mid>srv"]["marks"] > 0


@pytest.mark.parametrize(
    ("flows", "test", "series"),
    [
        ("[{cc: cubic}, {cc: cubic}]", "tcp_nup", ["TCP upload::1", "TCP upload::2"]),
        (
            "[{name: a, cc: cubic}, {name: b, cc: prague, direction: down}]",
            "rrul_be_nflows",
            ["TCP upload BE::1", "TCP download BE::1"],
        ),
        (
            "[{name: a, cc: cubic}, {name: b, cc: prague, direction: down}, {name: c, cc: cubic, direction: down}]",
            "rtt_fair_var",
            ["TCP upload BE a", "TCP download BE b", "TCP download BE c"],
        ),
        (
            "[{name: a, cc: cubic}, {name: tv, cc: cubic, source: {video: {rates: [1mbit], segment: 1s, buffer: 4s}}}]",
            "rtt_fair_var_up",
            ["TCP upload BE a", "TCP upload BE tv"],
        ),
    ],
)
def test_the_test_is_the_one_whose_plots_show_the_run(tmp_path, flows, test, series):
    file = opened(
        ran(tmp_path, flows, probes="[{name: ping, type: icmp, every: 50ms}, {name: l4s, type: udp, every: 50ms}]")
    )
    assert file["metadata"]["NAME"] == test
    assert [name for name in file["raw_values"] if name.startswith("TCP")] == series
    # Every sample on the grid has a place of its own, and Flent knows of the probes that the test has not.
    assert {len(values) for values in file["results"].values()} == {len(file["x_values"])}
    extra = file["metadata"]["TEST_PARAMETERS"].get("ping_hosts", "").split(",")
    assert "l4s" in extra or "Ping (ms) UDP BE" in file["raw_values"]


def test_equal_runs_give_equal_bytes(unlike):
    assert list(flent.files(unlike)) == list(flent.files(unlike))


@pytest.mark.skipif(shutil.which("flent") is None, reason="flent is not installed")
def test_flent_draws_it(unlike, tmp_path):
    [(suffix, content)] = flent.files(unlike)
    file = tmp_path / f"run{suffix}"
    file.write_bytes(content)
    # Flent ends with 0 and leaves an empty picture behind where it has nothing to show.
    picture = tmp_path / "all_scaled.png"
    subprocess.run(["flent", "-p", "all_scaled", "-o", picture, file], check=True, capture_output=True)
    assert picture.stat().st_size > 10_000
