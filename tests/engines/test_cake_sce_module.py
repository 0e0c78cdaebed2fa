"""kernel/modules/sch_cake_sce in a kernel: what it refuses, changes with packets in the queue, large buffers, and the
arrivals that the simulator's queue had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bakeoff import replay
from bakeoff.engines.kernel.boot import read_console
from bakeoff.engines.kernel.console import trouble
from bakeoff.engines.kernel.registry import BuiltKernel
from kernel_boots import guest

# Numbers of <linux/pkt_sched.h> and of the module's attributes.h; keys are texts in the guest's answer.
RATE, DIFFSERV, FLOWS, OVERHEAD, RTT, TARGET, NAT, MPU, SPLIT, SCE = (
    "2",
    "3",
    "5",
    "6",
    "7",
    "8",
    "11",
    "14",
    "17",
    "20",
)
SENT, DROPPED, MARKED, MAX_LENGTH, SCE_MARKED = "2", "4", "8", "24", "64"
REFUSED = {
    (NAT, 1): "cake_sce has no nat: it tells hosts apart by the addresses of the packet",
    ("19", 1): "attribute 19 was an option of the SCE project's cake, which cake_sce does not have",
    ("21", 1): "Unknown attribute type",
    (FLOWS, 8): "integer out of range",
    (DIFFSERV, 5): "integer out of range",
    (OVERHEAD, 257): "integer out of range",
    (OVERHEAD, -65): "integer out of range",
    (MPU, 257): "integer out of range",
    (RTT, 0): "integer out of range",
}

# What cake_sce and mainline's cake get. DIFFSERV 1 is diffserv4 and 3 besteffort, FLOWS 0 flowblind and 4 flows.
WASH, FWMARK, AUTORATE, MEMORY = "13", "18", "9", "10"
BESIDE = {
    # EF with ECT(1), CS1 with CE, CS0 with ECT(0), and LE without ECN.
    "wash": {
        "options": {RATE: 1_250_000, DIFFSERV: 1, FLOWS: 0, WASH: 1},
        "frames": [{"count": 3, "tos": tos} for tos in (0xB9, 0x23, 0x02, 0x04)],
    },
    "nowash": {
        "options": {RATE: 1_250_000, DIFFSERV: 1, FLOWS: 0},
        "frames": [{"count": 3, "tos": tos} for tos in (0xB9, 0x23, 0x02, 0x04)],
    },
    # The mask's four bits are a number, and diffserv4 has four tins: 5 and 0 go by DSCP.
    "fwmark": {
        "options": {RATE: 1_250_000, DIFFSERV: 1, FLOWS: 0, FWMARK: 0xF0},
        "frames": [{"count": n + 1, "tos": 0x02, "mark": 0x0F0F + 0x10 * n} for n in range(6)],
    },
    # 60 packets at once, of which ten of the second flow come last.
    "memlimit": {
        "options": {RATE: 125_000, DIFFSERV: 3, FLOWS: 4, MEMORY: 40_000},
        "frames": [{"count": 50}, {"count": 10, "port": 1025}],
    },
    # Trains of 20 packets of 8000 bits, one each 0.4 ms and then a pause: 20 Mbit/s, and the queue is told 10.
    "autorate-ingress": {
        "options": {RATE: 1_250_000, DIFFSERV: 3, FLOWS: 0, AUTORATE: 1},
        "frames": [{"count": 20, "gap_s": 0.0004}, {"count": 1, "gap_s": 0.02}] * 30,
    },
}

# Memory that never runs out keeps BLUE silent, and nothing is drawn for one queue without marks of SCE, nor for packets
# that arrive as ECT(1).
REPLAYED = [
    ("cake@sce bandwidth 10mbit besteffort flowblind memlimit 64mb rtt 40ms pppoe-ptm", "ecn"),
    ("cake@sce bandwidth 10mbit precedence flowblind sce ingress", "step"),
]


def module(kernel: BuiltKernel) -> Path:
    found = [path for path in kernel.modules if path.stem == "sch_cake_sce"]
    if not found:
        pytest.skip(f"kernel {kernel.name} was built without sch_cake_sce: 'make kernel' builds it in")
    return found[0]


@pytest.fixture(scope="module")
def answer(real_kernel: BuiltKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = str(module(real_kernel))
    done = guest(
        real_kernel,
        tmp_path_factory.mktemp("cake"),
        do="cake",
        more=Path(__file__).parents[1] / "cake_sce_guest.py",
        module=path,
        refused=[{key: value} for key, value in REFUSED],
        beside=BESIDE,
        simulated_s=200.0,
    )
    assert trouble(read_console(done["outcome"].console)) is None
    return done["answer"]


def test_what_it_does_not_have_is_refused_and_changes_nothing(answer):
    said = answer["refused"]["said"]
    # When it is added, when it is changed, and two bytes where four are meant.
    assert said == [*REFUSED.values(), *REFUSED.values(), "invalid attribute length"]
    defaults = answer["refused"]["defaults"]
    # As tc shows them of cake: unlimited diffserv3 triple-isolate split-gso rtt 100ms.
    expected = {RATE: 0, DIFFSERV: 0, FLOWS: 7, RTT: 100_000, TARGET: 5000, SPLIT: 1, SCE: 0}
    assert {key: defaults[key] for key in expected} == expected


def test_a_change_keeps_what_fits_and_a_reset_keeps_nothing(answer):
    said = answer["worked"]
    # Of 60 packets one has left. Precedence 0, 2 and 7 have 20 each.
    assert said["before"]["queue"] == [59, 59_000, 0]
    assert [tin[SENT] for tin in said["before"]["tins"]] == [20, 0, 20, 0, 0, 0, 0, 20]
    # The second tin's and the last one's are dropped.
    assert said["after"]["queue"] == [19, 19_000, 40]
    assert [tin[SENT] for tin in said["after"]["tins"]] == [20]
    options = said["after"]["options"]
    assert [options[key] for key in (RATE, DIFFSERV, FLOWS, SCE)] == [125_000, 3, 0, 1]
    assert said["unlimited"]["queue"] == [0, 0, 40]
    assert said["reset"]["queue"] == [0, 0, 40]
    assert (said["deleted"], said["unload"]) == ("", ["Resource temporarily unavailable", ""])


def test_marks_of_sce_come_ahead_of_ce(answer):
    # Packet n waits 8 n ms. The target is one and a half full frames, 18.168 ms. On the ramp, from 9.084 ms up, is
    # n = 2 alone, and n = 3 and later are marked. The first that waited for four full frames (48.448 ms), n = 7,
    # arms COBALT, and the next one is the first with CE.
    before, after = (answer["worked"][when]["tins"][0] for when in ("reset", "marked"))
    grown = {key: after[key] - before[key] for key in (SCE_MARKED, MARKED, DROPPED)}
    assert grown[SCE_MARKED] + grown[MARKED] in (17, 18)
    assert 1 <= grown[MARKED] <= 12
    assert grown[DROPPED] == 0


def test_buffers_are_split_and_what_stands_above_counts_right(answer):
    split, whole = answer["carried"]
    assert split["tins"][0][MAX_LENGTH] == 1514 < whole["tins"][0][MAX_LENGTH]
    for one in (split, whole):
        assert one["got"] == 3_000_000
        drops = one["queue"][2]
        # Memory for 200,000 bytes only: some are dropped, and htb knows of each.
        assert drops > 0
        assert one["queue"] == one["htb"] == [0, 0, drops]


def test_options_do_what_they_do_in_mainlines_cake(answer):
    told = answer["beside"]
    for name, both in told.items():
        mainline, ours = both["cake"], both["cake_sce"]
        assert ours["options"].pop(SCE) == 0
        for key in ("passed", "queue", "options"):
            assert ours[key] == mainline[key], f"{name}, {key}"
        counts = [[[tin[what] for what in (SENT, DROPPED, MARKED)] for tin in one["tins"]] for one in (mainline, ours)]
        assert counts[0] == counts[1], name

    def sent(name):
        return [tin[SENT] for tin in told[name]["cake_sce"]["tins"]]

    # Bulk, best effort, video, voice: CS1 and LE, CS0, none, EF. Washing comes after choosing, and leaves ECN.
    seen = {name: dict(told[name]["cake_sce"]["passed"]) for name in ("wash", "nowash")}
    assert sent("wash") == sent("nowash") == [6, 3, 0, 3]
    assert seen["nowash"] == {n: (0xB9, 0x23, 0x02, 0x04)[n // 3] for n in range(12)}
    assert seen["wash"] == {n: tos & 3 for n, tos in seen["nowash"].items()}
    # Marks 1 to 4 have 2 to 5 packets; 0 and 5 have 1 and 6, which go by DSCP to best effort, as the 3 of mark 2 do.
    assert sent("fwmark") == [2, 1 + 3 + 6, 4, 5]
    # One had left before memory ran out. 17 × 2304 bytes fit into 40,000, and of the longer flow each drop is taken.
    passed = [number for number, _ in told["memlimit"]["cake_sce"]["passed"]]
    assert len(passed) == 1 + 40_000 // 2304
    assert abs(len([number for number in passed if number < 50]) - len(passed) // 2) <= 1
    # 15/16 of an estimate that follows 20 Mbit/s with breaks.
    rate = told["autorate-ingress"]["cake_sce"]["options"][RATE]
    assert 0.2 * 1_250_000 < rate < 1.875 * 1_250_000
    assert rate != 1_250_000


def test_packets_have_the_fates_that_they_have_in_the_simulator_and_statistics_say_the_same(real_kernel):
    module(real_kernel)
    jobs = [(replay.port(words), replay.pattern(name, rate_bps=10_000_000)) for words, name in REPLAYED]
    recorded = replay.record(jobs, kernel=real_kernel.name)
    for (port, arrivals), theirs in zip(jobs, recorded.replays, strict=True):
        assert not isinstance(theirs, str), theirs
        ours = replay.simulate(port, arrivals, hz=recorded.hz, like=theirs)
        assert replay.compare(arrivals, ours, theirs).first is None
        # As the agent shows it, but for the first lines; without marks of SCE the simulator does not count them.
        rows = [
            [line for line in side.show.splitlines() if "  " in line and "sce_marks" not in line]
            for side in (ours, theirs)
        ]
        assert len(rows[0]) == 25
        assert rows[0] == rows[1]
