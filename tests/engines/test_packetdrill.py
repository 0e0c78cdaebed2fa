"""`bakeoff packetdrill`: small scripts of our own for the driver, and the kernel's where a source tree is at hand."""

import json
from collections import Counter
from pathlib import Path

import pytest

from bakeoff import _sim
from bakeoff.engines.kernel import cache

SERVER = """\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 8>
+.1 < . 1:1(0) ack 1 win 257
+0 accept(3, ..., ...) = 4
"""

# Kernel scripts that do not pass, each explained in docs/packetdrill.md; and those that do.
EXPLAINED = Path(__file__).parents[2] / "docs" / "packetdrill.md"
PASSED = (Path(__file__).parents[1] / "data" / "packetdrill.passed").read_text().split()


def report(body: str, head: str = SERVER) -> dict:
    return json.loads(_sim.packetdrill(head + body))


def test_a_write_leaves_as_one_run_of_segments():
    assert report("+0 write(4, ..., 10000) = 10000\n+0 > P. 1:10001(10000) ack 1\n")["verdict"] == "passed"


def test_the_first_difference_names_line_expected_and_got():
    got = report("+0 write(4, ..., 3000) = 3000\n+0 > P. 1:2001(2000) ack 1\n+0 > P. 2001:4001(2000) ack 1\n")
    assert (got["verdict"], got["line"]) == ("failed", 10)
    assert got["expected"] == "P. 2001:4001(2000) ack 1"
    assert got["got"] == "[noecn] . 2001:3001(1000) ack 1 win 254"


@pytest.mark.parametrize(("late_s", "verdict"), [(0.303, "passed"), (0.305, "failed"), (0.295, "failed")])
def test_a_time_has_a_tolerance_of_4_ms(late_s, verdict):
    # The RTO is the RTT of 100 ms and a variance at its floor of 200 ms; the tail loss probe comes earlier: at
    # 2 RTT and, for a lone segment, the 200 ms for which its ACK may be delayed, but not after the RTO.
    got = report(f"+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n+{late_s} > P. 1:1001(1000) ack 1\n")
    assert got["verdict"] == verdict


def test_three_sacked_segments_lead_to_a_fast_retransmit_and_the_window_of_cubic():
    # CUBIC keeps 0.7 of 10.
    got = report(
        "+0 write(4, ..., 10000) = 10000\n+0 > P. 1:10001(10000) ack 1\n"
        "+.1 < . 1:1(0) ack 1 win 257 <sack 1001:4001,nop,nop>\n+0 > . 1:1001(1000) ack 1\n"
        "+0 %{ assert tcpi_snd_ssthresh == 7 and tcpi_ca_state == TCP_CA_Recovery }%\n"
    )
    assert got["verdict"] == "passed", got


def test_an_assertion_that_does_not_hold_tells_the_value():
    got = report("+0 %{ assert tcpi_snd_cwnd == 11, tcpi_snd_cwnd }%\n")
    assert (got["expected"], got["got"]) == ("assert tcpi_snd_cwnd == 11", "tcpi_snd_cwnd is 10")


def test_timestamps_are_the_scripts_own_numbers():
    head = SERVER.replace("sackOK,nop,nop", "sackOK,TS val 900 ecr 0").replace(
        "nop,nop,sackOK", "sackOK,TS val 5 ecr 900"
    )
    head = head.replace("win 257", "win 257 <nop,nop,TS val 1000 ecr 5>")
    good = "+0 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 1 <nop,nop,TS val 105 ecr 1000>\n"
    assert report(good, "--tcp_ts_tick_usecs=1000\n" + head)["verdict"] == "passed"
    assert report(good.replace("105", "150"), "--tcp_ts_tick_usecs=1000\n" + head)["verdict"] == "failed"
    assert report(good.replace("ecr 1000", "ecr 900"), head)["verdict"] == "failed"


ACCECN = """\
0 `sysctl -q net.ipv4.tcp_ecn=3`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < SEWA 0:0(0) win 32792 <mss 1050,nop,nop,sackOK,nop,wscale 8>
+0 > SW. 0:0(0) ack 1 <mss 1460,ECN e1b 1 ceb 0 e0b 1,nop,nop,nop,sackOK,nop,wscale 8>
+.1 < [ect0] W. 1:1(0) ack 1 win 257 <ECN e0b 1 ceb 0 e1b 1,nop>
+0 accept(3, ..., ...) = 4
"""


def test_accecns_option_counts_bytes_by_field_and_is_compared():
    # 5 + one CE packet is ACE 6; 1000 bytes of CE from 0, 400 of ECT(0) from 1.
    body = "+0 < [ce] P5. 1:1001(1000) ack 1 win 257\n+0 > [ect0] .6 1:1(0) ack 1001 <ECN e1b 1 ceb 1000 e0b 1,nop>\n"
    body += "+0 < [ect0] P5. 1001:1401(400) ack 1 win 257\n"
    body += "+0 > [ect0] .6 1:1(0) ack 1401 <ECN e1b 1 ceb 1000 e0b 401,nop>\n"
    body += (
        "+0 %{ assert tcpi_received_ce == 1 and tcpi_received_ce_bytes == 1000 and tcpi_received_e0_bytes == 400 }%\n"
    )
    assert report(body, ACCECN)["verdict"] == "passed", report(body, ACCECN)
    for wrong in (body.replace("e0b 401", "e0b 402"), body.replace("ceb 1000 e0b 1,", "ceb 999 e0b 1,")):
        assert report(wrong, ACCECN)["verdict"] == "failed"
    assert report(body.replace(".6 1:1(0) ack 1001", ".5 1:1(0) ack 1001"), ACCECN)["line"] == 10
    silent = "0 `sysctl -q net.ipv4.tcp_ecn_option=0`\n" + ACCECN.replace("ECN e1b 1 ceb 0 e0b 1,", "")
    assert report(body, silent)["got"].endswith("ack 1001 win 261"), "no option if the sysctl says so"


def test_a_third_ack_without_ace_ends_the_use_of_ecn():
    # ACE 0 cannot come from an AccECN peer: TCP_ACCECN_ACE_FAIL_RECV is 2, TCP_ACCECN_OPT_FAIL_RECV 8.
    head = ACCECN.replace("[ect0] W. 1:1(0)", "[ect0] . 1:1(0)")
    body = "+0 write(4, ..., 1000) = 1000\n+0 > [noecn] P5. 1:1001(1000) ack 1 <ECN e1b 1 ceb 0 e0b 1,nop>\n"
    body += "+0 %{ assert tcpi_accecn_fail_mode == 10 }%\n"
    assert report(body, head)["verdict"] == "passed", report(body, head)
    assert report(body, ACCECN)["got"].startswith("[ect0]")


def test_acknowledgements_and_resets_outside_the_window_are_challenged_once_per_half_second():
    body = "+0 < . 1:1(0) ack 2 win 257\n+0 > . 1:1(0) ack 1\n+.4 < R 2:2(0) win 257\n+.2 < R 2:2(0) win 257\n"
    assert report(body + "+0 > . 1:1(0) ack 1\n")["verdict"] == "passed"
    assert report(body + "+0 > . 1:1(0) ack 1\n+0 > . 1:1(0) ack 1\n")["got"] == "nothing"


def test_a_segment_without_the_ack_flag_is_dropped():
    body = "+0 < - 1:1001(1000) win 257\n+0 ioctl(4, SIOCINQ, [0]) = 0\n+0 < . 1:1001(1000) ack 1 win 257\n"
    assert report(body + "+0 ioctl(4, SIOCINQ, [1000]) = 0\n")["verdict"] == "passed"
    assert report(body + "+0 ioctl(4, SIOCINQ, [2000]) = 0\n")["got"] == "[1000]"


def test_what_the_simulator_does_not_have_is_not_applicable():
    got = report("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0\n")
    assert (got["verdict"], got["line"]) == ("not_applicable", 8)
    assert got["reason"] == "write boundaries: MSG_MORE, MSG_EOR, TCP_CORK"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("+0 shutdown(4, SHUT_RD) = 0\n", "shutdown SHUT_RD"),
        ("+0 `ip route replace 192.0.2.1 dev tun0 mtu lock 1400`\n", "mtu lock"),
        ("+0 %{ print(tcpi_snd_cwnd) }%\n", "Python other than assertions: 'print(tcpi_snd_cwnd)' is no assertion"),
        ("+0 `sysctl -q net.ipv4.tcp_recovery=0`\n", "sysctl tcp_recovery=0"),
        ("+0 > . 1:1(0) ack 1 <dss dack4=1>\n", "MPTCP"),
        ("+0 setsockopt(4, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0\n", "setsockopt SO_LINGER"),
        ("+0 < [tos 0x10] . 1:1001(1000) ack 1 win 257\n", "packets other than TCP over IPv4"),
    ],
)
def test_what_the_driver_does_not_know_is_not_applicable(body, reason):
    got = report(body)
    assert (got["verdict"], got["line"], got["reason"]) == ("not_applicable", 8, reason)


@pytest.mark.parametrize("name", ["peek", "wscale-client-only", "ecn-syn-fallback-late-synack"])
def test_scripts_that_linux_passes(name):
    got = json.loads(_sim.packetdrill((Path(__file__).parents[1] / "data" / "pkt" / f"{name}.pkt").read_text()))
    assert got["verdict"] == "passed", got


def test_numbers_do_not_wrap():
    """A peer that takes 2 bytes gets 48, less the timestamps' 12; a byte below the connection's begin is old."""
    got = json.loads(_sim.packetdrill((Path(__file__).parents[1] / "data" / "pkt" / "c1.pkt").read_text()))
    assert got["verdict"] == "not_applicable", got
    head = SERVER.replace("<mss 1000,sackOK,nop,nop,nop", "<mss 2,sackOK,TS val 1 ecr 0,nop")
    head = head.replace("<mss 1460,nop,nop,sackOK,nop,wscale 8>", "<...>")
    head = head.replace("win 257", "win 257 <nop,nop,TS val 2 ecr 1>")
    assert report("+0 write(4, ..., 36) = 36\n+0 > P. 1:37(36) ack 1 <...>\n", head)["verdict"] == "passed"
    old = "+0 < . 0:1(1) ack 1 win 257\n+0 > . 1:1(0) ack 1 <nop,nop,sack 0:1>\n+0 ioctl(4, SIOCINQ, [0]) = 0\n"
    assert report(old)["verdict"] == "passed", report(old)


def test_the_command_counts_and_ends_with_1_if_one_failed(tmp_path, cli):
    (tmp_path / "good.pkt").write_text(SERVER)
    assert cli("packetdrill", str(tmp_path))[0] == 0
    (tmp_path / "bad.pkt").write_text(SERVER + "+0 > . 1:1(0) ack 1\n")
    (tmp_path / "other.pkt").write_text("--ip_version=ipv6\n")
    code, text, _ = cli("packetdrill", str(tmp_path))
    assert code == 1
    assert f"FAILED          {tmp_path}/bad.pkt:8\n  expected      . 1:1(0) ack 1\n  got           nothing\n" in text
    assert text.endswith("1 of 2 applicable scripts passed, 1 failed; 1 not applicable, 0 unreadable\n")
    code, text, _ = cli("packetdrill", str(tmp_path), "--json")
    document = json.loads(text)
    assert (code, document["passed"], document["failed"], document["not_applicable"]) == (1, 1, 1, 1)


def test_a_script_that_cannot_be_read_ends_with_2(tmp_path, cli):
    (tmp_path / "x.pkt").write_text("0 socket(\n")
    code, text, _ = cli("packetdrill", str(tmp_path / "x.pkt"))
    assert code == 2
    assert "line 1: socket: '(' without ')'" in text
    assert cli("packetdrill", str(tmp_path / "none.pkt"))[0] == 2


def kernel_scripts() -> list[Path]:
    return sorted(cache.sources().glob("*/tools/testing/selftests/net/packetdrill/*.pkt"))


def test_the_kernels_scripts_pass_or_are_explained():
    scripts = kernel_scripts()
    if not scripts:
        pytest.skip(f"no Linux source tree with packetdrill scripts under {cache.sources()}")
    got = {script.stem: json.loads(_sim.packetdrill(script.read_text())) for script in scripts}
    by_verdict = {v: sorted(n for n in got if got[n]["verdict"] == v) for v in ("passed", "failed", "not_applicable")}
    # The names of tests/data/packetdrill.passed, no less: a script that passed once must pass. And no more, so
    # that the list is current.
    regressions = {name: got[name] for name in PASSED if name in got and got[name]["verdict"] != "passed"}
    assert {name: (r["line"], r.get("expected"), r.get("got")) for name, r in regressions.items()} == {}
    assert by_verdict["passed"] == PASSED
    page = EXPLAINED.read_text()
    assert [name for name in by_verdict["failed"] if f"`{name}`" not in page] == []
    reasons = Counter(got[name]["reason"] for name in by_verdict["not_applicable"])
    assert [f"| {reason} | {n} |" for reason, n in reasons.items() if f"| {reason} | {n} |" not in page] == []
    passed, failed, outside = (len(names) for names in by_verdict.values())
    assert f"| all | {passed + failed} | {passed} | {100 * passed // (passed + failed)} % | {outside} |" in page
