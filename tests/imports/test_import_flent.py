"""Data files of Flent as results folders: round trips, every version of the format, and files of strangers."""

import bz2
import gzip
import json
import math

import pytest
from typer.testing import CliRunner

import bakeoff
from bakeoff import imports
from bakeoff.cli.app import app
from bakeoff.errors import BakeoffError
from bakeoff.exports import flent
from bakeoff.imports import document
from bakeoff.imports.folder import write_all
from bakeoff.results import read, scan
from bakeoff.tables import results_table

T0 = 1_700_000_000
BEGIN = "2023-11-14T22:13:20.000000Z"


def recorded(**changes):
    """A file of tcp_nup as Flent 2.1.1 writes it: two uploads from 5 s to 15 s, one at 8 Mbit/s, one at 2 Mbit/s."""
    times = [T0 + 5 + 0.2 * n for n in range(1, 51)]
    rates = {"1": 8.0, "2": 2.0}
    raw = {
        f"TCP upload::{n}": [
            *({"t": t, "dur": 0.2, "val": rate} for t in times),
            *({"t": t, "tcp_cwnd": 10.0 * rate, "tcp_rtt": 30.0, "tcp_delivery_rate": rate} for t in times),
        ]
        for n, rate in rates.items()
    }
    # Of 76 requests every tenth has no answer: 8 of them. An answer comes 20 ms after its request.
    raw["Ping (ms) ICMP"] = [{"t": T0 + 0.2 * n + 0.02, "seq": n, "val": 20.0} for n in range(1, 77) if n % 10 != 5]
    document = {
        "version": 4,
        "x_values": [0.2 * n for n in range(76)],
        "results": {},
        "raw_values": raw,
        "metadata": {
            "NAME": "tcp_nup",
            "TITLE": "at home, cubic",
            "NOTE": "rainy",
            "HOST": "server.example",
            "HOSTS": ["server.example"],
            "LOCAL_HOST": "laptop",
            "T0": BEGIN,
            "TIME": BEGIN,
            "LENGTH": 10,
            "TOTAL_LENGTH": 20,
            "STEP_SIZE": 0.2,
            "FLENT_VERSION": "2.1.1",
            "KERNEL_NAME": "Linux",
            "KERNEL_RELEASE": "6.1.0",
            "SYSCTLS": {"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_ecn": 2},
            "EGRESS_INFO": {
                "iface": "eth0",
                "qdiscs": [
                    {"name": "tbf", "id": "8001:", "parent": "root", "params": {"refcnt": "2", "rate": "10Mbit"}}
                ],
            },
            "SERIES_META": {"TCP upload::1": {"UNITS": "Mbits/s", "TCP_RETRANSMIT": "3", "TCP_MSS": 1448}},
        },
    }
    document.update(changes)
    return document


def put(tmp_path, content, name="home.flent.gz", pack=gzip.compress):
    path = tmp_path / name
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(pack(text))
    return path


def taken_in(tmp_path, *documents):
    files = [put(tmp_path, document, f"{n}.flent.gz") for n, document in enumerate(documents)]
    root = write_all(files, tmp_path / "results")
    return [read(path) for path in scan(root)]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A short run with two flows that differ, a probe, and a queue that marks and drops."""
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "mine.yaml").write_text(
        "duration: 6s\n"
        "network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: fq_codel flows 1}}\n"
        "flows: [{name: prague, cc: prague}, {name: cubic, cc: cubic}]\n"
        "probes: [{name: ping, type: icmp, every: 50ms}]\nmeasure: {steady_state: {window: 3s, ends: at end}}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # where the link to the latest results goes
        [result] = bakeoff.run(str(folder / "mine.yaml"), out=folder / "results")
    return read(result.path)


def test_a_run_that_was_exported_comes_back_with_the_same_table(simulated, tmp_path):
    [(_, content)] = flent.files(simulated)
    [back] = taken_in(tmp_path, gzip.decompress(content))
    assert back.key == simulated.key
    for kind in ("runs", "flows", "queues", "probes"):
        told = [json.loads(results_table.render([one], format="json", kind=kind))["rows"] for one in (simulated, back)]
        for one, other in zip(*told, strict=True):
            assert one.keys() == other.keys()
            for name, value in one.items():
                # Times are rounded to a microsecond, and values to nine decimals of Flent's units.
                close = pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
                assert other[name] == close, name


def test_what_flent_recorded_has_its_rates_round_trips_and_losses(tmp_path):
    [result] = taken_in(tmp_path, recorded())
    assert result.key == "flent/tcp_nup/at_home,_cubic"
    told = result.summary
    # 8 and 2 Mbit/s for 10 s: 10 MB and 2.5 MB.
    assert told.flows["upload::1"].steady_state.goodput_bps == pytest.approx(8e6)
    assert told.flows["upload::2"].steady_state.delivery_rate_bps == pytest.approx(2e6)
    assert result.series.filter(name="upload::1", metric="received")["value"][-1] == pytest.approx(10e6)
    assert told.flows["upload::1"].cc == "cubic"
    assert (told.flows["upload::1"].retransmissions, told.flows["upload::2"].retransmissions) == (3, None)
    # Jain's index of 8 and 2: (8 + 2)^2 / (2 (64 + 4)).
    assert told.jain == pytest.approx(100 / 136)
    # While flows last, from 5 s to 15 s, 50 requests were sent, of which those numbered 25, 35, …, 75 were lost.
    assert told.probes["ICMP"].rtt_s.p50 == pytest.approx(0.02)
    assert told.probes["ICMP"].loss == pytest.approx(5 / 50, abs=0.01)
    assert told.bottleneck.rate_bps == 10e6
    # 20 ms of round trip, half of it each way.
    assert result.run.links[0].delay_s == pytest.approx(0.01)
    assert (result.record.versions["kernel"], result.record.provenance.host) == ("Linux 6.1.0", "laptop")
    assert result.record.provenance.note == "rainy"


def of_rates(points, **metadata):
    """A file with one upload."""
    document = recorded(raw_values={"TCP upload": points, "Ping (ms) ICMP": [{"t": T0 + 5.0, "seq": 1, "val": 20.0}]})
    document["metadata"] |= metadata
    return document


@pytest.mark.parametrize(
    ("points", "mbps"),
    [
        # 40 Mbit in the first second, and 8 in each of the two after it.
        ([{"t": T0 + 6, "dur": 1.0, "val": 40.0}, *({"t": T0 + n, "dur": 1.0, "val": 8.0} for n in (7, 8))], 56 / 3),
        # Without `dur` the first interval is as long as the second.
        ([{"t": T0 + 6, "val": 40.0}, *({"t": T0 + n, "val": 8.0} for n in (7, 8))], 56 / 3),
        ([{"t": T0 + 6, "dur": 1.0, "val": 40.0}], 40.0),
        # One interval of which the file does not tell how long it is: as long as a step.
        ([{"t": T0 + 6, "val": 40.0}], 40.0),
        # Intervals of 0.5 and 1.5 s.
        ([{"t": T0 + 5.5, "dur": 0.5, "val": 40.0}, {"t": T0 + 7, "dur": 1.5, "val": 8.0}], (20 + 12) / 2),
    ],
)
def test_the_first_interval_counts(tmp_path, points, mbps):
    [result] = taken_in(tmp_path, of_rates(points, STEP_SIZE=0.5))
    assert result.summary.flows["upload"].steady_state.goodput_bps == pytest.approx(mbps * 1e6)


def test_the_first_interval_counts_from_where_the_window_begins(tmp_path):
    """The second flow begins at 5.5 s: of the first one's 40 Mbit in the first second 20 are in the window."""
    document = of_rates([{"t": T0 + n, "dur": 1.0, "val": 40.0 if n == 6 else 8.0} for n in (6, 7, 8)])
    document["raw_values"]["TCP upload::2"] = [{"t": T0 + n, "dur": 1.0, "val": 8.0} for n in (6.5, 7.5)]
    [result] = taken_in(tmp_path, document)
    assert result.run.window_s == pytest.approx([5.5, 7.5], abs=1e-5)
    assert result.summary.flows["upload"].steady_state.goodput_bps == pytest.approx((20 + 8 + 4) / 2 * 1e6, rel=1e-5)
    assert result.summary.flows["upload::2"].steady_state.goodput_bps == pytest.approx(8e6)


def test_what_a_file_lacks_is_absent_and_not_zero(tmp_path):
    document = recorded()
    document["metadata"] = {"NAME": "rrul", "T0": BEGIN, "TITLE": None}
    document["raw_values"] = {
        "TCP download BE": [{"t": T0 + n, "val": 5.0} for n in range(1, 9)],
        # Netperf's round trips are means over an interval: nobody counts requests.
        "Ping (ms) UDP BE": [{"t": T0 + n, "dur": 1.0, "val": 30.0} for n in range(1, 9)],
        "qdisc_stats_router": [{"t": T0 + n, "backlog_bytes": 3000.0, "dropped": 1.0} for n in range(1, 9)],
        "cpu_stats_laptop": [{"t": T0 + 1, "load": 0.5}],
    }
    [result] = taken_in(tmp_path, document)
    flow, probe = result.summary.flows["download BE"], result.summary.probes["UDP BE"]
    assert (flow.cc, flow.ecn, flow.retransmissions, flow.srtt_s, flow.mark_fraction) == (None,) * 5
    assert flow.steady_state.delivery_rate_bps is None
    assert probe.loss is None
    assert probe.rtt_s.mean == pytest.approx(0.03)
    assert (result.summary.queues, result.summary.bottleneck, result.summary.checks) == ({}, None, [])
    metrics = set(result.series.filter(kind="queue")["metric"])
    assert metrics == {"backlog", "drops"}
    assert any("cpu_stats_laptop" in told for told in result.record.effective)


def test_repetitions_are_seeds_of_one_run(tmp_path):
    other = recorded()
    del other["raw_values"]["TCP upload::2"]
    found = taken_in(tmp_path, recorded(), recorded(), other)
    assert sorted((one.run.run[-1], one.run.seed) for one in found) == [("+", 1), ("c", 1), ("c", 2)]


def test_older_versions_say_the_same_otherwise(tmp_path):
    old = recorded(version=3)
    raw = old["raw_values"]
    # Transactions per second, of which 40 are 25 ms each; drops and marks counted up.
    raw["Ping (ms) UDP BE"] = [{"t": T0 + n, "dur": 1.0, "val": 40.0} for n in range(1, 9)]
    raw["qdisc_stats_localhost"] = [{"t": T0 + n, "dropped": 7.0 + n, "ecn_mark": 2.0 * n} for n in range(1, 9)]
    old["metadata"]["T0"] = "2023-11-15T00:13:20.000000"  # two hours east, and no zone
    [result] = taken_in(tmp_path, old)
    assert result.summary.probes["UDP BE"].rtt_s.mean == pytest.approx(0.025)
    # From 8 to 15, and from 2 to 16.
    queue = result.summary.queues["laptop>server.example"]
    assert (queue.drops, queue.marks) == (7, 14)
    assert result.run.flows[0].start_s == pytest.approx(5.0, abs=1e-3)


def test_the_first_version_has_its_values_on_the_grid(tmp_path):
    document = {
        "x_values": [0.0, 1.0, 2.0, 3.0],
        "results": {"TCP upload": [None, 8.0, 8.0, 8.0], "TCP upload sum": [8.0] * 4, "Ping (ms) ICMP": [20.0] * 4},
        "metadata": {"NAME": "tcp_upload", "TIME": "2012-11-24T12:00:00", "NETPERF_WRAPPER_VERSION": "0.5"},
    }
    [result] = taken_in(tmp_path, document)
    assert list(result.summary.flows) == ["upload"]
    assert result.summary.flows["upload"].steady_state.goodput_bps == pytest.approx(8e6)
    assert result.record.versions == {"flent": "0.5"}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, bytes])
def test_a_file_may_be_packed_or_not(tmp_path, pack):
    assert imports.read(put(tmp_path, recorded(), pack=pack)).series.height


def without(document, *keys):
    inside = document
    for key in keys[:-1]:
        inside = inside[key]
    del inside[keys[-1]]
    return document


def with_value(value, *keys):
    document = recorded()
    inside = document
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    return document


DEEP = b'{"metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b', "results": {}, "x_values": []}'
UPLOAD = ("raw_values", "TCP upload::1")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"", "invalid JSON"),
        (b"[1, 2]", "Expected `object`"),
        (b'{"start": {}, "intervals"', "invalid JSON"),
        (DEEP, "nested too deeply"),
        (gzip.compress(b"{}", mtime=0), "invalid JSON"),  # packed twice
        ({"metadata": {}}, "unknown format; expected"),
        ({"round_trips": []}, "a file of irtt, without flows; read it with 'bakeoff trace "),
        (with_value(5, "version"), "version: 5; unknown version of Flent's format; expected 1 to 4"),
        (without(recorded(), "metadata", "NAME"), "missing required field `NAME`"),
        (with_value("yesterday", "metadata", "T0"), "metadata.T0: 'yesterday': invalid time"),
        (with_value("1999-01-01T00:00:00.0Z", "metadata", "T0"), "metadata.T0: "),
        (with_value({}, "raw_values"), "no samples"),
        (with_value([{"t": T0, "val": "fast"}], *UPLOAD), "raw_values"),
        (with_value({"TCP upload": [{"t": T0}], "Ping (ms) ICMP": []}, "raw_values"), "no samples"),
        (
            with_value([{"t": T0 + 6, "val": 1.01e15}, {"t": T0 + 7, "val": 1.0}], *UPLOAD),
            "Expected `float` <= 10000000",
        ),
        # A million times the largest double: bit/s from Mbit/s.
        (with_value([{"t": T0 + 6, "val": 1.0}, {"t": T0 + 7, "val": 1e308}], *UPLOAD), "Expected `float` <= 10000000"),
        (with_value(7, "metadata", "SERIES_META"), "metadata.SERIES_META"),
        (with_value({"export": 9}, "metadata", "BAKEOFF"), "metadata.BAKEOFF"),
        (with_value({"export": 1, "format": 1}, "metadata", "BAKEOFF"), "metadata.BAKEOFF"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(tmp_path, document, said):
    file = put(tmp_path, document)
    out = tmp_path / "results"
    ended = CliRunner().invoke(app, ["import", str(file), "--out", str(out)], standalone_mode=False)
    assert isinstance(ended.exception, BakeoffError), ended.exception
    assert said in str(ended.exception)
    assert "\n" not in str(ended.exception)
    assert sorted(tmp_path.iterdir()) == [file]


def test_more_series_than_are_read_are_counted_before_they_are_made(tmp_path):
    file = put(tmp_path, recorded(raw_values={f"TCP upload::{n}": [] for n in range(10_001)}))
    with pytest.raises(BakeoffError, match=r"raw_values: 10,001 series; expected at most 10,000$"):
        write_all([file], tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "MOST", 1 << 20)
    bomb = put(tmp_path, b'{"metadata": "' + bytes(2 << 20))
    with pytest.raises(BakeoffError, match="unpacks to more than 1,048,576 bytes"):
        imports.read(bomb)


def test_a_name_leads_to_no_other_folder(simulated, tmp_path):
    [(_, content)] = flent.files(simulated)
    document = json.loads(gzip.decompress(content))
    document["metadata"]["BAKEOFF"]["resolved"]["suite"] = ".."
    with pytest.raises(BakeoffError, match="is not a valid folder name"):
        taken_in(tmp_path, document)
    assert not (tmp_path / "results").exists()


def test_a_number_that_is_none_is_absent(tmp_path):
    file = with_value(math.nan, *UPLOAD, 0, "val")
    [result] = taken_in(tmp_path, file)
    assert result.series.filter(name="upload::1", metric="goodput").height == 49
