"""Captures and files of irtt that were told wrongly: handshakes, ports used again, cut options, clocks, damage.

`tests/data/captures` has them. All but the last two tests read a conversation of 10.0.0.1:40000 and 10.0.0.2:443.
"""

import gzip
import json
from pathlib import Path

import pytest

import bakeoff
import capture_files as write
from bakeoff import campaign, captures
from bakeoff.campaign import Execution
from bakeoff.captures.result_folder import write_all
from bakeoff.errors import BakeoffError
from bakeoff.scenario import expand, load

DATA = Path(__file__).parents[1] / "data" / "captures"
CLIENT, SERVER = (write.CLIENT, 40_000), (write.SERVER, 443)


def flows(name, **options):
    return captures.capture(DATA / f"{name}.pcap.gz", **options)["flows"]


@pytest.mark.parametrize(
    ("name", "mode", "by"),
    [
        ("syn-fallback-rfc3168-late-synack", "rfc3168", "handshake"),
        ("synack-repeated-without-bits", "accecn", "handshake"),
        ("synack-101-accecn", "accecn", "handshake"),
        ("ece-acks-alone", "rfc3168", "handshake"),
        ("ece-acks-alone-no-synack", "rfc3168", "packets"),
    ],
)
def test_the_ecn_mode_is_what_the_connection_negotiated(name, mode, by):
    [flow] = flows(name)
    assert (flow["ecn"]["mode"], flow["ecn"]["chosen_by"]) == (mode, by)
    if name.startswith("ece"):
        assert flow["up"]["marks"]["ece_acks"] == 3
    if mode == "accecn":
        assert flow["up"]["marks"]["echoed_ce_packets"] == flow["up"]["marks"]["ce"] == 1


@pytest.mark.parametrize("name", ["reuse-client-fin", "reuse-server-fin", "reuse-server-silent"])
def test_a_port_that_is_used_again_is_two_flows_in_one_direction(name):
    """Ten segments of 1000 bytes in half a second, twice; the ACK of the client's FIN, unseen, counts as a byte."""
    found = flows(name, interval_s=0.1)
    assert len(found) == 2
    for flow in found:
        data = flow["up"]["data"]
        if name == "reuse-client-fin":
            assert (data["payload_bytes"], data["acked_bytes"]) == (10_000, 0)
        else:
            assert data["acked_bytes"] in (10_000, 10_001)
            assert data["goodput"]["mean_bps"] < 0.2e6


def test_a_window_scale_counts_if_both_ends_offer_it():
    [flow] = flows("wscale-client-only")
    assert flow["up"]["options"]["window_scale"] == 7
    assert [flow[way]["acks"]["window_max_bytes"] for way in ("up", "down")] == [500, 600]


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("snap54-ts", {"mss", "window_scale", "sack_permitted", "timestamps"}),
        ("snap68-ts", {"window_scale", "timestamps"}),
    ],
)
def test_what_the_snap_length_cut_off_is_unknown(name, unknown):
    found = captures.capture(DATA / f"{name}.pcap.gz")
    [flow] = found["flows"]
    options, acks = flow["up"]["options"], flow["up"]["acks"]
    assert set(options["unknown"]) == unknown
    assert all(options[key] is None for key in unknown)
    assert (options["cut"], acks["window_max_bytes"], acks["window_min_bytes"]) == (1, None, None)
    assert "2 packets were truncated inside their TCP options" in found["capture"]["notes"][0]


def test_big_tcp_in_a_tunnel_is_opened():
    """Five buffers of 100,000 bytes, whose headers say 0."""
    [flow] = flows("bigtcp-vxlan")
    payload = [flow[way]["data"]["payload_bytes"] for way in ("up", "down")]
    assert (flow["tunnels"], sum(payload)) == (["vxlan"], 500_000)


def test_one_ack_is_no_goodput():
    [flow] = flows("one-ack")
    assert flow["up"]["data"]["goodput"]["mean_bps"] is None


@pytest.mark.parametrize(
    ("name", "lasts_s", "steps"), [("backwards-start", 0.125, 1), ("clock-set", 0.22, 1), ("ooo", 0.2, 0)]
)
def test_a_clock_that_was_set_becomes_a_run(name, lasts_s, steps, tmp_path):
    """1000 bytes per 10 ms are 0.8 Mbit/s; the step itself may have taken some of that."""
    found = captures.read(DATA / f"{name}.pcap.gz", interval_s=0.05)
    of = found.document["capture"]
    assert (of["duration_s"], of["clock_steps"]) == (pytest.approx(lasts_s, abs=1e-4), steps)
    assert all(flow["start_s"] >= 0 for flow in found.document["flows"])
    if steps:
        assert 0.79e6 < found.document["flows"][0]["up"]["data"]["goodput"]["mean_bps"] < 0.83e6
    [result] = bakeoff.load(write_all([found], tmp_path / "out", 0.05))
    assert result.ok


def test_pauses_and_times_that_no_run_has_are_one_message(tmp_path):
    packets = [(90_000_000.0 * i, write.tcp(CLIENT, SERVER, seq=100 * i, payload=100)) for i in range(13)]
    (tmp_path / "long.pcap").write_bytes(write.pcap(packets))
    for path in (tmp_path / "long.pcap", DATA / "irtt_stop.json"):
        found = captures.read(path, interval_s=1.0)
        with pytest.raises(BakeoffError, match=r"duration of 1\.\d+e\+09 s; expected at most 1e\+09 s"):
            write_all([found], tmp_path / "out", 1.0)
        assert not (tmp_path / "out").exists()


def test_a_hosts_name_in_a_file_of_irtt_may_be_anything(tmp_path):
    [result] = bakeoff.load(write_all([captures.read(DATA / "irtt_ctrl.json")], tmp_path / "out", 1.0))
    assert [node.name for node in result.run.nodes] == ["cli", "[2J", "network"]


def test_damaged_data_is_not_empty(tmp_path):
    with pytest.raises(BakeoffError, match="the gzip data is truncated or damaged"):
        captures.read(DATA / "badgz.gz")
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(BakeoffError, match="the gzip is empty"):
        captures.read(tmp_path / "empty.gz")


LATE = """
scenario: late
title: a SYN/ACK that comes after the SYN was repeated
duration: 6s
network:
  path: [cli, mid, srv]
  rtt: 1200ms
  bottleneck: {rate: 20mbit, qdisc: fq_codel flows 1}
hosts: {sysctl: {net.ipv4.tcp_ecn: "{ecn}"}}
flows: [{name: a, cc: cubic}]
captures: ["cli>mid", "mid>cli"]
vary: {ecn: [1, 3]}
measure: {steady_state: {window: 1s, ends: at end}}
"""


def test_a_repeated_syn_takes_nothing_back_in_a_run(tmp_path):
    """The server answers both SYNs by the first; the client, whose SYN timed out, owes a CWR (tcp_enter_loss)."""
    (tmp_path / "late.yaml").write_text(LATE)
    assert not campaign.run(expand(load(tmp_path / "late.yaml")), tmp_path / "runs", Execution(jobs=1)).failed
    for result in bakeoff.load(tmp_path / "runs"):
        mode = result.all_counters()["flows"]["a"]["ecn"]
        assert mode in ("rfc3168", "accecn")
        found = {path.name: captures.capture(path)["flows"][0] for path in result.path.glob("*.pcapng.gz")}
        assert [flow["ecn"]["mode"] for flow in found.values()] == [mode, mode]
        up, down = found["cli-to-mid.pcapng.gz"]["up"]["flags"], found["mid-to-cli.pcapng.gz"]["down"]["flags"]
        assert (up["syn"], down["syn"]) == (2, 2)
        if mode == "rfc3168":
            # The first SYN has ECE and CWR, both SYN/ACKs have ECE, and one packet of data has CWR.
            assert (up["ece"], up["cwr"], down["ece"]) == (1, 2, 2)
        else:
            assert (up["syn"], json.dumps(found["cli-to-mid.pcapng.gz"]["ecn"]["requested"])) == (2, '"accecn"')
