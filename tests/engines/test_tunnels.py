"""Tunnels: their words, their commands, and real ones in virtual time beside those of the simulator."""
# A command stands on one line, as it does in the logs.
# ruff: noqa: E501

import subprocess
from base64 import b64decode, b64encode

import polars as pl
import pytest

from bakeoff.engines.kernel import check, host_programs
from bakeoff.engines.lab import plan, tunnels, x25519
from bakeoff.errors import BakeoffError, RefusedError
from bakeoff.scenario import Run, expand, load
from lab_runs import ecn_nodes, flow, in_virtual_time, lines, network, probe

CBC = "aes-cbc-hmac-sha256"


def tunnel(kind: str, **words: object) -> dict:
    ipsec = {"cipher": CBC, "replay_window": 32} if kind == "ipsec" else {}
    return {"name": "vpn", "kind": kind, "ends": ["cli", "srv"], "inner_hash": True} | ipsec | words


def through(kind: str, *, options: dict | None = None, **changes: object) -> Run:
    usual = {"tunnels": [tunnel(kind, **(options or {}))], "flows": [flow(tunnel="vpn", stop_s=4.0)]}
    return network(**(usual | {"duration_s": 4.0, "window_s": [2.0, 4.0]} | changes))


# Words


def one_tunnel(tmp_path, words: str) -> dict:
    (tmp_path / "x.yaml").write_text(
        "duration: 5s\n"
        f"network: "
        f"{{path: [cli, mid, srv], bottleneck: {{rate: 10mbit, qdisc: pie}}, tunnels: [{{name: vpn, {words}}}]}}\n"
        "flows: [{name: f, tunnel: vpn}]\n"
        "probes: [{name: p, every: 1s, tunnel: vpn}]\n"
    )
    [run] = expand(load(tmp_path / "x.yaml"))
    assert (run.flows[0].tunnel, run.probes[0].tunnel, run.tunnels[0].ends) == ("vpn", "vpn", ("cli", "srv"))
    made = run.tunnels[0]
    return {"replay_window": made.replay_window, "cipher": made.cipher, "inner_hash": made.inner_hash}


@pytest.mark.parametrize(
    ("words", "window", "cipher", "inner_hash"),
    [
        ("kind: ipsec", 32, "aes-gcm", False),
        (f"kind: ipsec, replay_window: 0, cipher: {CBC}, inner_hash: true", 0, CBC, True),
        ("kind: wireguard", 8128, None, False),
        ("kind: wireguard, replay_window: 1984", 1984, None, False),
        ("kind: fou", None, None, True),
        ("kind: fou, inner_hash: false", None, None, False),
        ("kind: gre", None, None, True),
        ("kind: vxlan", None, None, True),
    ],
)
def test_what_is_not_said_is_as_in_linux(tmp_path, words, window, cipher, inner_hash):
    assert one_tunnel(tmp_path, words) == {"replay_window": window, "cipher": cipher, "inner_hash": inner_hash}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("kind: gre, replay_window: 32", "network.tunnels[0]: replay_window: not valid for 'gre'"),
        ("kind: fou, cipher: aes-gcm", "network.tunnels[0]: cipher: not valid for 'fou'; expected ipsec"),
        ("kind: l2tp", "network.tunnels[0].kind: 'l2tp'"),
        ("kind: ipsec, cipher: rot13", "network.tunnels[0].cipher: 'rot13'"),
        ("kind: ipsec, replay_window: -1", "network.tunnels[0].replay_window: -1"),
    ],
)
def test_words_that_make_no_tunnel(tmp_path, words, message):
    with pytest.raises(BakeoffError) as error:
        one_tunnel(tmp_path, words)
    assert message in str(error.value)


def test_a_probe_through_no_tunnel(tmp_path):
    (tmp_path / "x.yaml").write_text(
        "duration: 5s\nnetwork: {path: [a, b]}\nflows: [{name: f}]\nprobes: [{name: p, every: 1s, tunnel: vpn}]\n"
    )
    with pytest.raises(BakeoffError, match=r"probes\[0\].tunnel: 'vpn': unknown tunnel"):
        expand(load(tmp_path / "x.yaml"))


# Keys


def test_x25519_vectors_of_rfc_7748():
    # section 5.2; then a Diffie-Hellman, whose two sides agree
    for scalar, point, product in (
        ("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
         "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
         "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"),
        ("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
         "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
         "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"),
    ):  # fmt: skip
        assert x25519.multiply(bytes.fromhex(scalar), bytes.fromhex(point)).hex() == product
    alice = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f92ebc0992ac177fba51db92c2a")
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    assert x25519.multiply(alice, x25519.public(bob)) == x25519.multiply(bob, x25519.public(alice))


def configuration(run: Run, node: str) -> dict[str, str]:
    text = dict(plan(run).files)[f"tun0-{node}.conf"]
    return dict(line.split(" = ") for line in text.splitlines() if " = " in line)


def test_keys_follow_from_the_seed_and_belong_together():
    run = through("wireguard")
    cli, srv = (configuration(run, node) for node in ("cli", "srv"))
    assert srv["PublicKey"] == x25519_text(cli["PrivateKey"])
    assert cli["PublicKey"] == x25519_text(srv["PrivateKey"])
    assert (cli["Endpoint"], cli["AllowedIPs"], cli["ListenPort"]) == ("10.9.0.2:51820", "10.8.0.2/32", "51820")
    assert configuration(run, "cli") == cli
    assert configuration(run.model_copy(update={"seed": 2}), "cli")["PrivateKey"] != cli["PrivateKey"]
    wg = host_programs.find("wg")
    if wg is not None:
        told = subprocess.run([str(wg), "pubkey"], input=cli["PrivateKey"], capture_output=True, text=True, check=True)
        assert told.stdout.strip() == srv["PublicKey"]


def x25519_text(private: str) -> str:
    return b64encode(x25519.public(b64decode(private))).decode()


# Plans


def of_cli(run: Run) -> list[str]:
    """The commands at the first end."""
    made = [line for line in lines(plan(run, captures="/out").setup) if line.startswith("cli: ")]
    first = next(i for i, line in enumerate(made) if "sleep 3" in line) + 1
    last = next(i for i, line in enumerate(made) if "tcp_metrics" in line)
    cut = [" ".join("KEY" if w.startswith("0x") and len(w) > 10 else w for w in line.split()) for line in made]
    return cut[first:last]


def test_the_commands_of_each_kind():
    assert of_cli(through("wireguard")) == [
        "cli: ip link add name tun0 mtu 1420 type wireguard",
        "cli: wg setconf tun0 /out/tun0-cli.conf",
        "cli: ip addr add 10.8.0.1/24 dev tun0",
        "cli: ip link set dev tun0 up",
        "cli: ip -d link show dev tun0",
    ]
    assert of_cli(through("ipsec")) == [
        "cli: ip xfrm state add src 10.9.0.1 dst 10.9.0.2 proto esp spi 0x1000 reqid 1 mode tunnel "
        "replay-window 32 auth-trunc 'hmac(sha256)' KEY 128 enc 'cbc(aes)' KEY",
        "cli: ip xfrm policy add src 10.8.0.1/32 dst 10.8.0.2/32 dir out tmpl src 10.9.0.1 dst 10.9.0.2 "
        "proto esp reqid 1 mode tunnel",
        "cli: ip xfrm state add src 10.9.0.2 dst 10.9.0.1 proto esp spi 0x1001 reqid 1 mode tunnel "
        "replay-window 32 auth-trunc 'hmac(sha256)' KEY 128 enc 'cbc(aes)' KEY",
        "cli: ip xfrm policy add src 10.8.0.2/32 dst 10.8.0.1/32 dir in tmpl src 10.9.0.2 dst 10.9.0.1 proto "
        "esp reqid 1 mode tunnel",
        "cli: ip addr add 10.8.0.1/24 dev cli.mid",
        "cli: ip xfrm policy show",
    ]
    gcm = of_cli(through("ipsec", options={"cipher": "aes-gcm", "replay_window": 4096}))[0]
    assert gcm.split("replay-window ")[1] == "4096 aead 'rfc4106(gcm(aes))' KEY 128"
    assert of_cli(through("fou"))[:2] == [
        "cli: ip fou add port 5556 ipproto 4",
        "cli: ip link add name tun0 mtu 1472 type ipip remote 10.9.0.2 local 10.9.0.1 encap fou encap-sport "
        "auto encap-dport 5556",
    ]
    assert "encap-sport 5556 encap-dport 5556" in of_cli(through("fou", options={"inner_hash": False}))[1]
    assert of_cli(through("gre"))[0] == "cli: ip link add name tun0 mtu 1476 type gre remote 10.9.0.2 local 10.9.0.1"
    assert of_cli(through("vxlan", options={"inner_hash": False})) == [
        "cli: ip link add name tun0 mtu 1450 address 02:00:0a:08:00:01 type vxlan id 1 remote 10.9.0.2 local "
        "10.9.0.1 dstport 4789 srcport 4789 4790 nolearning",
        "cli: ip addr add 10.8.0.1/24 dev tun0",
        "cli: ip link set dev tun0 up",
        "cli: ip neigh replace 10.8.0.2 lladdr 02:00:0a:08:00:02 dev tun0 nud permanent",
        "cli: ip -d link show dev tun0",
    ]


def test_flows_and_probes_go_to_the_other_end_of_their_tunnel():
    back = flow(name="back", **{"from": "srv", "to": "cli"}, tunnel="vpn")
    made = plan(through("gre", flows=[flow(tunnel="vpn"), back, flow(name="beside")], probes=[probe(tunnel="vpn")]))
    to = {role["name"]: role["to"] for role in made.roles if "to" in role}
    assert to == {"a": "10.8.0.2:5201", "back": "10.8.0.1:5202", "beside": "10.9.0.2:5203", "p": "10.8.0.2"}


def test_both_ends_tell_what_they_counted():
    assert [line for line in lines(plan(through("ipsec")).statistics) if "xfrm" in line] == [
        "cli: ip -s xfrm state",
        "cli: cat /proc/net/xfrm_stat",
        "srv: ip -s xfrm state",
        "srv: cat /proc/net/xfrm_stat",
    ]
    assert lines(plan(through("wireguard")).statistics, "wg") == ["cli: wg show tun0", "srv: wg show tun0"]


def test_one_outer_flow_cannot_be_had_in_one_kernel():
    [note] = plan(through("wireguard", options={"inner_hash": False})).notes
    assert note == "tunnels[0].inner_hash: false asked for: nodes that share a kernel share the inner flow's hash"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("ipsec", {"replay_window": 4097}, "tunnels[0].replay_window: 4097; expected packets, at most Linux's 4096"),
        ("ipsec", {"replay_window": None}, "tunnels[0].replay_window: None; expected packets"),
        ("ipsec", {"cipher": None}, "tunnels[0].cipher: missing"),
        ("gre", {"cipher": CBC}, "tunnels[0].cipher: only valid for ipsec"),
        (
            "wireguard",
            {"replay_window": 1984},
            "tunnels[0].replay_window: 1984: not supported by Linux for wireguard",
        ),
        ("gre", {"ends": ["cli", "mid"]}, "tunnels[0].ends: 'mid' is not a host"),
        ("gre", {"ends": ["cli", "cli"]}, "tunnels[0].ends: no path from 'cli' to 'cli'"),
        ("gre", {"name": "other"}, "flows[0].tunnel: unknown tunnel 'vpn'; expected one of: other"),
    ],
)
def test_what_cannot_be_is_named_by_its_place(kind, options, message):
    with pytest.raises(RefusedError) as refused:
        plan(through(kind, options=options))
    assert str(refused.value).startswith(message)


def test_what_is_in_a_tunnel_cannot_be_told_on_the_way():
    rule = {"match": {"flow": "a"}, "set_dscp": 1}
    with pytest.raises(RefusedError, match=r"mangle\[0\].match.flow: 'a': not a flow or probe outside tunnels"):
        plan(through("gre", interfaces=[{"node": "mid", "peer": "cli", "mangle": [rule]}]))


def test_a_kernel_without_a_tunnel_is_named():
    findings = (check.Finding("tunnel", f"ipsec {CBC}", False, "CONFIG_INET_ESP is not set"),)
    report = check.Report("k", "7.3", "f", findings, {})
    run = through("ipsec", tunnels=[tunnel("ipsec"), tunnel("gre", name="other")], flows=[], interfaces=[])
    assert check.missing(run, report) == [
        f"tunnels[0]: 'ipsec {CBC}': CONFIG_INET_ESP is not set",
        "tunnels[1]: 'gre' is not in kernel k",
    ]


XFRM_STATE = """\
src 10.9.0.2 dst 10.9.0.1
    proto esp spi 0x00001001(4097) reqid 1(0x00000001) mode tunnel
    lifetime current:
    100(bytes), 2(packets)
    stats:
    replay-window 0 replay 0 failed 0
src 10.9.0.1 dst 10.9.0.2
    proto esp spi 0x00001000(4096) reqid 1(0x00000001) mode tunnel
    lifetime current:
    500(bytes), {}(packets)
    stats:
    replay-window {} replay 1 failed 3
"""


def test_what_xfrm_counted():
    sent, arrived = XFRM_STATE.format(9, 0), XFRM_STATE.format(5, 4)
    printed = {"cli: ip -s xfrm state": sent, "srv: ip -s xfrm state": arrived}
    assert tunnels.counters(through("ipsec"), printed) == {"vpn": {
        "cli>srv": {"sent": 9, "received": 5, "replay_window": 4, "replay": 1, "failed": 3},
        "srv>cli": {"sent": 2, "received": 2, "replay_window": 0, "replay": 0, "failed": 0},
    }}  # fmt: skip
    assert tunnels.counters(through("gre"), {}) == {}
    with pytest.raises(RuntimeError, match="cli: missing security association 0x1000 after the run"):
        tunnels.counters(through("ipsec"), {})


# Real tunnels in virtual time, and the simulator's


def shaped(child: str, delay: str = "5ms") -> list[dict]:
    words = {"id": "1", "class": "rate 20mbit ceil 20mbit", "child": {"qdisc": child}}
    ends = {
        "ingress": {"qdisc": f"netem delay {delay} limit 100000"},
        "egress": {"qdisc": "htb default 1", "classes": [words]},
    }
    return [{"node": "mid", "peer": peer, **ends} for peer in ("cli", "srv")]


@pytest.mark.parametrize(
    ("kind", "options", "sizes"),
    [
        # MTU inside - 52, and the outer frame of such a packet (crates/sim/src/network/tunnel/frame.rs)
        ("wireguard", {}, (1368, 1494)),
        ("ipsec", {"cipher": "aes-gcm"}, (1394, 1514)),
        ("ipsec", {"cipher": CBC}, (1386, 1514)),
        ("fou", {}, (1420, 1514)),
        ("gre", {}, (1424, 1514)),
        ("vxlan", {}, (1398, 1514)),
    ],
)
def test_goodput_is_the_rate_times_payload_over_outer_frame(request, tmp_path, kind, options, sizes):
    mss, frame = sizes
    run = through(kind, options=options, interfaces=shaped("pfifo limit 100"))
    expected = 20e6 * mss / frame
    for name in ("sim", request.getfixturevalue("kernel")):
        result = in_virtual_time(name, run, tmp_path / name.replace("/", "_"))
        assert result.all_counters()["flows"]["a"]["mss"] == mss
        got = result.series.filter(pl.col("metric") == "received").filter(pl.col("time").is_between(1.99, 4.01))
        rate = (got["value"][-1] - got["value"][0]) * 8 / (got["time"][-1] - got["time"][0])
        queue = result.all_counters()["queues"]["mid>srv"]
        # one packet in some thousands is of the handshake or the end
        assert frame - 1 < queue["sent_bytes"] / queue["sent"] <= frame
        # in order: a hole at either end holds back at most the 160 packets of a round trip; without one a packet or two
        assert rate == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("kind", ["wireguard", "ipsec", "fou", "gre", "vxlan"])
def test_marks_outside_come_out_inside(request, tmp_path, kind):
    run = through(kind, nodes=ecn_nodes(), interfaces=shaped("codel ecn"))
    for name in ("sim", request.getfixturevalue("kernel")):
        counters = in_virtual_time(name, run, tmp_path / name.replace("/", "_")).all_counters()
        sender, queue = counters["flows"]["a"], counters["queues"]["mid>srv"]
        assert sender["ecn"] == "accecn"
        # nothing was dropped, so every mark is counted, but for what was on its way at the end
        assert queue["marks"] > 5
        assert 0 <= queue["marks"] - sender["delivered_ce"] <= 2


@pytest.mark.parametrize(("kind", "dropped"), [("wireguard", False), ("ipsec", False), ("fou", True), ("gre", True), ("vxlan", True)])  # fmt: skip
def test_ce_over_what_is_not_ecn_capable(request, tmp_path, kind, dropped):
    """RFC 6040 drops it; XFRM and WireGuard do not."""
    # of the outer packets, those of the handshake of WireGuard too; and of the flow beside, which does not mind
    rule = {"match": {"ecn": "not-ect"}, "set_ecn": "ce"}
    beside = flow(transport="udp", source={"kind": "periodic", "size": 1000, "count": 1, "every_s": 0.01}, cc="none")
    run = through(
        kind,
        interfaces=[{"node": "mid", "peer": "cli", "mangle": [rule]}],
        flows=[beside],
        probes=[probe(every_s=0.1, tunnel="vpn")],
    )
    for name in ("sim", request.getfixturevalue("kernel")):
        counters = in_virtual_time(name, run, tmp_path / name.replace("/", "_")).all_counters()
        assert counters["flows"]["a"]["received_bytes"] == 200_000
        assert counters["probes"]["p"]["sent"] == 10
        assert counters["probes"]["p"]["received"] == (0 if dropped else 10)


def replay_losses(every_s: float, jitter_s: float, window: int) -> float:
    """The fraction that a window drops of packets sent every `every_s`, each delayed by a time uniform in an interval of
    2 x `jitter_s`: packet 0, delayed by u, is dropped if a packet k >= window arrived before it, k every_s + u_k < u.
    """
    steps = 4000
    dropped = 0.0
    for step in range(steps):
        u = 2 * jitter_s * (step + 0.5) / steps
        kept, k = 1.0, window
        while k * every_s < u:
            kept *= 1 - (u - k * every_s) / (2 * jitter_s)
            k += 1
        dropped += 1 - kept
    return dropped / steps


@pytest.mark.parametrize(("jitter_ms", "window"), [(5, 8), (20, 32), (40, 32), (40, 128)])
def test_replay_losses_by_window_and_depth_of_reordering(request, tmp_path, jitter_ms, window):
    every_s = 0.0005
    datagrams = {"kind": "periodic", "size": 500, "count": 1, "every_s": every_s}
    run = through(
        "ipsec",
        options={"replay_window": window},
        interfaces=[
            {"node": "mid", "peer": "cli", "ingress": {"qdisc": f"netem delay 50ms {jitter_ms}ms limit 100000"}}
        ],
        flows=[flow(transport="udp", source=datagrams, tunnel="vpn", cc="none", stop_s=9.9)],
        duration_s=10.0,
    )
    expected = replay_losses(every_s, jitter_ms / 1000, window)
    for name in ("sim", request.getfixturevalue("kernel")):
        way = in_virtual_time(name, run, tmp_path / name.replace("/", "_")).all_counters()["tunnels"]["vpn"]["cli>srv"]
        assert way["sent"] == 19_800
        assert way["replay"] == 0
        assert way["received"] + way["replay_window"] == way["sent"]
        # One late packet drops its neighbours too: runs of up to 2 x jitter / every packets (160) are not independent,
        # so there are at least 19800 / 160 independent ones, and 4 standard deviations of their mean are below 0.03 as
        # neighbours share the maximum, not their own delay.
        assert way["replay_window"] / way["sent"] == pytest.approx(expected, abs=0.03)
