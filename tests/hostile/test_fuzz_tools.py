"""Drawn lines of qdiscs, and drawn outputs of tc, netperf and the kernel's counters: each is taken or refused."""

import re

import pytest
from fuzzing import drawn, refused, texts
from hypothesis import example, given
from hypothesis import strategies as st

import tc_strings
from bakeoff import engines, replay
from bakeoff.engines.lab import convert, plan, tc_show, tool_output, unwanted
from lab_runs import egress, network

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

LINES = tc_strings.LINES
ODD = [
    "0", "1", "-1", "2", "1e9", "4294967295", "4294967296", "18446744073709551615", "9" * 20, "1e999", "0x7fffffff",
    "nan", "0s", "1ns", "1us", "5ms", "1000s", "4294967295us", "0%", "50%", "100%", "101%", "1e-9%", "1b", "1600b",
    "10kb", "4gb", "1bit", "8bit", "1mbit", "400gbit", "inf", "\n", "\0", "'", '"', "\u0663", "@5.4", "@",
]  # fmt: skip
WORDS = [*ODD, *sorted({word for line in LINES for word in line.split()})]
QDISCS = st.one_of(
    texts(LINES, [f" {word} " for word in WORDS]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join),
    st.tuples(st.sampled_from(LINES), st.lists(st.tuples(st.integers(0, 20), st.sampled_from(WORDS)), max_size=3)).map(
        lambda drawn: replaced(*drawn)
    ),
)
ARRIVALS = replay.Arrivals(
    "drawn",
    tuple(replay.Arrival(n // 3 * 200_000, 60 + n * 97 % 1455, n % 3, n % 4) for n in range(150)),
)
"""150 packets of three flows with all ECN fields, three at a time, at about three times 10 Mbit/s."""


def replaced(line: str, changes: list[tuple[int, str]]) -> str:
    """The line with other words in the place of some."""
    words = line.split()
    for at, word in changes:
        words[at % len(words)] = word
    return " ".join(words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tools")


@drawn
@given(line=QDISCS, seed=st.integers(1, 2**31))
@example(line="pie target 18446744073709551615", seed=1)
def test_a_qdisc_takes_packets_or_is_refused(folder, line, seed):
    done = refused(lambda: replay.simulate(replay.port(line, "10mbit"), ARRIVALS, seed=seed))
    if done is not None:
        assert {number for number, _, _ in done.departures} <= set(range(len(ARRIVALS.packets)))
        # What is shown is what tc shows, and it is read back.
        assert tc_show.configured(done.show, "root")
    # With a rate and a delay: without either, a flow sends for ever within one instant.
    tree = {"qdisc": "htb default 1", "classes": [{"id": "1", "class": "rate 20mbit", "child": {"qdisc": line}}]}
    links = [{"ends": ["cli", "mid"], "delay_s": 0.002}, {"ends": ["mid", "srv"], "delay_s": 0.002}]
    words = {"duration_s": 0.3, "window_s": [0.1, 0.3], "seed": seed, "links": links, "interfaces": egress(tree)}
    run = refused(lambda: network(**words), ValueError)
    simulator = engines.get("sim")
    if run is not None and refused(lambda: simulator.check(run)) is not None:
        # RuntimeError if packets got lost in the books, or the simulator panicked.
        assert simulator.outcome(run, folder).counters.flows


SHOWN = [
    replay.simulate(replay.port(line), ARRIVALS).show
    for line in ("fq_codel", "pie ecn", "cake bandwidth 10mbit", "red limit 60000 avpkt 1000 ecn")
]
CLASSES = "class htb 1:1 root prio 0 rate 20Mbit ceil 20Mbit linklayer ethernet burst 1600b/1 mpu 0b cburst 1600b/1\n"
NETPERF = "".join(
    f"NETPERF_INTERIM_RESULT[{n}]=9.41\nNETPERF_UNITS[{n}]=10^6bits/s\nNETPERF_INTERVAL[{n}]=0.2\n"
    f"NETPERF_ENDING[{n}]=170000000{n}.2\n"
    for n in (1, 2)
)
NETPERF += "LOCAL_TRANSPORT_RETRANS=3\nREMOTE_BYTES_RECVD=470000\n"
LINKS = "2: srv.mid@if7: <UP> mtu 1500\n    RX:  bytes packets errors dropped  missed   mcast\n    271 17 0 0 0 0\n"
COUNTERS = {
    unwanted.NETSTAT: "TcpExt: TCPTimeouts PruneCalled\nTcpExt: 3 2\nIp: InDiscards OutNoRoutes\nIp: 0 0\n",
    unwanted.SOFTNET: "00004629 00000000 00000000 00000000 00000000\n",
    unwanted.LINKS: LINKS,
}
SIGNS = [
    *ODD, "9" * 400, "9" * 5000, "ffffffff", " ", ":", "qdisc ", "class htb ", "rate ", "burst ", "root ", "parent 1: ",
    "pkt", "dropped ", "(", "/",
]  # fmt: skip


@drawn
@given(text=texts([*SHOWN, CLASSES], SIGNS))
def test_what_tc_shows_is_read_or_refused(text):
    refused(lambda: tc_show.configured(text, "root"), ValueError)
    refused(lambda: tc_show.coarse_bursts({"1:1": "htb rate 20mbit"}, text), ValueError)


@drawn
@given(text=texts([NETPERF], [*SIGNS, "=", "NETPERF_INTERVAL[0]", "REMOTE_BYTES_RECVD="]))
def test_what_netperf_writes_is_read_or_refused(text):
    told = tool_output.ToolOutput()

    def read() -> None:
        tool_output.netperf(text, "a", "reno", 1_700_000_000.0, told)
        tool_output.need_finite(told.rows)

    refused(read, *tool_output.NOT_ITS)


@drawn
@given(command=st.sampled_from(list(COUNTERS)), data=st.data())
def test_what_the_kernel_counts_is_read_or_refused(command, data):
    text = data.draw(texts([COUNTERS[command]], SIGNS))
    run = network(interfaces=egress({"qdisc": "fq_codel"}))
    log = "".join(f"+ {node}: {' '.join(command)}\n{text}" for node in ("cli", "srv"))
    planned = plan(run, tcp_pages=9)
    refused(lambda: unwanted.check(run, planned, log, log), RuntimeError, ValueError)
    refused(lambda: convert.check_bursts(planned, log), RuntimeError, ValueError)
    assert all(re.fullmatch(r"\S+: .*", line) for line in tc_show.sections(log))
