"""Drawn captures, files of irtt and packetdrill scripts: each is read, or refused with a BakeoffError; nothing else.

What is read becomes tables, JSON and a results folder, as `trace --all`, `--json --series` and `--out` make them."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from fuzzing import CHANGES, changed, drawn, read_all
from hypothesis import example, given
from hypothesis import strategies as st

import capture_files as write
from bakeoff import _sim
from bakeoff.captures import read, result_folder, tables
from bakeoff.errors import BakeoffError

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

PAIRS = [
    ("10.0.0.1", "10.0.0.2"),
    ("10.0.0.1", "10.0.0.1"),
    ("127.0.0.1", "10.0.0.2"),
    ("fd00::1", "fd00::2"),
    ("::", "ff02::1"),
]
PORTS = [0, 80, 443, 1000, 2112, 4789, 6081, 40_000, 65_535]
GAPS = [
    0.0,
    1e-9,
    1e-5,
    1e-3,
    0.01,
    0.5,
    2.0,
    1e4,
    9.9e7,
    2e8,
    1e9,
    3e9,
    -1e-9,
    -1e-5,
    -0.09,
    -0.2,
    -1.0,
    -3600.0,
    -1e9,
    -4e9,
]
NUMBERS = st.one_of(st.integers(0, 20_000), st.integers(0, 2**32 - 1))
OPTIONS = [
    b"",
    b"\2\4\5\xb4",
    b"\2\4\0\0\4\2\1\3\3\7",
    b"\3\3\xff",
    b"\1\1\x08\x0a\0\0\0\1\0\0\0\0",
    b"\1\1\5\x0a\0\0\3\xe8\0\0\7\xd0",
    b"\xac\x0b\0\0\1\0\0\0\0\0\1",
    b"\xff\xff\xff\xff",
    b"\5\x02\0\0",
    b"\x1e\x0c\0\0\0\0\0\0\0\0\0\0",
]
IRTT = bytes.fromhex("14a75b02") + bytes(60)
QUIC = bytes.fromhex("c300000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11") + bytes(1200)
PAYLOADS = [b"", b"x", bytes(100), IRTT, b"\x14\xa7\x5b\x00" + bytes(60), QUIC, b"\x40" + bytes(30), bytes(60_000)]


@st.composite
def packets(draw):
    """An IP packet of one of a few flows."""
    source, target = draw(st.sampled_from(PAIRS))
    port, other = draw(st.sampled_from(PORTS)), draw(st.sampled_from(PORTS))
    if draw(st.booleans()):
        source, target, port, other = target, source, other, port
    ecn = draw(st.integers(0, 3))
    kind = draw(st.sampled_from(["tcp"] * 6 + ["udp", "udp", "echo", "tunnel"]))
    if kind == "udp":
        return write.udp((source, port), (target, other), draw(st.sampled_from(PAYLOADS)), ecn)
    if kind == "echo":
        return write.echo(source, target, reply=draw(st.booleans()), identifier=1, sequence=draw(st.integers(0, 9)))
    flags = draw(
        st.sampled_from([0, write.SYN, write.SYN | write.ACK, write.ACK, write.ACK, write.ACK | write.FIN, write.RST])
    )
    segment = write.tcp(
        (source, port),
        (target, other),
        flags=flags | draw(st.sampled_from([0, 0, write.ECE, write.ECE | write.CWR, write.AE | write.ECE, 0x1C0])),
        seq=draw(NUMBERS),
        ack=draw(NUMBERS),
        payload=draw(st.sampled_from([0, 0, 1, 1000, 1000, 60_000])),
        window=draw(st.sampled_from([0, 1, 500, 65_535])),
        options=draw(st.sampled_from(OPTIONS)),
        ecn=ecn,
    )
    if kind == "tunnel":
        return write.udp((source, port), (target, 4789), b"\x08" + bytes(7) + write.ethernet(segment), ecn)
    return segment


@st.composite
def captures(draw):
    """A file: packets at odd times, in one of several forms, and perhaps damaged."""
    begin = draw(st.sampled_from([0.0, 1e9, 1.79e9, 4.29e9]))
    times, parts = [begin], []
    for packet in draw(st.lists(packets(), min_size=1, max_size=30)):
        parts.append((times[-1], packet, draw(st.integers(0, 2))))
        times.append(max(times[-1] + draw(st.sampled_from(GAPS)), 0.0))
    if draw(st.booleans()):
        file = write.pcapng(parts, interfaces=3)
    else:
        file = write.pcap([part[:2] for part in parts], snap=draw(st.sampled_from([65_535, 262_144, 96, 68, 54, 40])))
    for at, byte in draw(st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=4)):
        file = bytearray(file)
        file[at % len(file)] = byte
    file = bytes(file)[: draw(st.sampled_from([None, None, None, len(file) // 2, 30]))]
    if not draw(st.integers(0, 5)):
        file = gzip.compress(file, mtime=0)
        cut = draw(st.sampled_from([None, None, len(file) // 2, 12]))
        file = file[:cut]
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("captures")


def use(path: Path, folder: Path, interval_s: float) -> None:
    """Everything that the command makes of a file."""
    try:
        found = read(path, interval_s=interval_s)
    except BakeoffError as error:
        assert len(str(error)) < 1000  # noqa: PT017 (either is right)
        return
    assert json.loads(found.encoded()).keys() >= {"file", "kind"}
    assert tables.text([found], every=True, width=80, colour=False)
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    try:
        result_folder.write_all([found], out, interval_s)
    except BakeoffError as error:
        assert len(str(error)) < 1000  # noqa: PT017 (either is right)
        assert not out.exists()
        return
    read_all(out)


@drawn
@given(file=captures(), interval_s=st.sampled_from([1e-3, 0.1, 1.0, 3600.0]))
@example(file=write.pcap([(0.0, write.udp(("10.0.0.1", 1), ("10.0.0.2", 2), b"x"))] * 2), interval_s=0.1)
def test_a_capture_is_read_or_refused(folder, file, interval_s):
    path = folder / "x.pcap"
    path.write_bytes(file)
    use(path, folder, interval_s)


TRIP = {
    "seqno": 0,
    "lost": "false",
    "timestamps": {
        "client": {"send": {"wall": 10**18, "monotonic": 10**9}, "receive": {"wall": 10**18 + 10**7}},
        "server": {"send": {"monotonic": 6}, "receive": {"monotonic": 5}},
    },
    "delay": {"rtt": 10**7, "send": 5 * 10**6, "receive": 5 * 10**6},
    "ipdv": {"rtt": 1000},
}
LATER = changed(TRIP, [])
LATER["seqno"], LATER["timestamps"]["client"]["send"]["monotonic"] = 1, 10**9 + 10**7
TEST = {
    "version": {"irtt": "0.9.1"},
    "system_info": {"hostname": "h"},
    "config": {
        "params": {"interval": 10**7, "duration": 10**10, "length": 60, "dscp": 1},
        "local_address": "10.0.0.1:1",
        "remote_address": "10.0.0.2:2112",
    },
    "stats": {"duplicates": 0, "late_packets": 0, "server_packets_received": 2},
    "round_trips": [TRIP, LATER],
}


@drawn
@given(changes=CHANGES)
@example(changes=[])
@example(changes=[(8, "value", "\x1b[2J")])
def test_a_file_of_irtt_is_read_or_refused(folder, changes):
    path = folder / "x.json"
    text = json.dumps(changed(TEST, changes))
    path.write_text('{"version":{"irtt":' + text.removeprefix('{"version": {"irtt":'), errors="surrogatepass")
    use(path, folder, 0.1)


SCRIPT = """\
`sysctl -q net.ipv4.tcp_ecn=3 net.ipv4.tcp_timestamps=1`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < SEWA 0:0(0) win 32792 <mss 1050,sackOK,TS val 1 ecr 0,nop,wscale 8>
+0 > SW. 0:0(0) ack 1 <...>
+.1 < [ect0] W. 1:1(0) ack 1 win 257 <ECN e0b 1 ceb 0 e1b 1,nop>
+0 accept(3, ..., ...) = 4
+0 write(4, ..., 10000) = 10000
+0 > [ect0] P.5 1:10001(10000) ack 1 <...>
+.1 < [ce] .5 1:1001(1000) ack 1001 win 257 <sack 2001:3001,nop,nop>
+.0...0.2 recv(4, ..., 1000, MSG_PEEK) = 1000
+0 close(4) = 0
+.1~+.3 %{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%
"""
WORDS = [
    "4294967295",
    "18446744073709551616",
    "-1",
    "0",
    "9" * 30,
    "1e999",
    "+",
    "~",
    "...",
    "*",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    '"',
    "`",
    "%{",
    "}%",
    "/*",
    "//",
    "--",
    "=",
    ",",
    ":",
    "mss 0",
    "mss 1",
    "wscale 14",
    "sack 1:4294967295",
    "TS val 4294967295 ecr 1",
    "ECN ceb",
    "\u00e9",
    "\0",
    "\n",
    " ",
    "win 0",
    "FIN",
    "RST",
    "S.",
    "R.",
    "MSG_PEEK",
    "0:1(1)",
    "4294967290:4(10)",
    "shutdown(4, SHUT_RD) = 0",
    "not ",
    "assert ",
]


@drawn
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 40), st.one_of(st.sampled_from(WORDS), st.text(max_size=5))),
        min_size=1,
        max_size=6,
    )
)
def test_a_packetdrill_script_is_run_or_refused(changes):
    text = SCRIPT
    for choice, gone, word in changes:
        at = choice % (len(text) + 1)
        text = text[:at] + word + text[at + gone % 7 * (gone > 20) :]
    try:
        found = json.loads(_sim.packetdrill(text.encode(errors="replace").decode()))
    except ValueError as error:
        assert "line" in str(error)  # noqa: PT017 (either is right)
        return
    assert found["verdict"] in {"passed", "failed", "not_applicable"}
