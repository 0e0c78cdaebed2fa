"""What shapers charge for a frame: the arithmetic of the simulator's qdiscs (qdisc/framing.rs, ratecfg.rs)."""

import pytest

from bakeoff.errors import BakeoffError
from bakeoff.measure.bottleneck import rates
from bakeoff.measure.framing import charged, payload_share
from bakeoff.scenario.effective import after_change
from synthetic import as_run, resolved


@pytest.mark.parametrize(
    ("line", "frame", "bytes_"),
    [
        ("cake bandwidth 10mbit", 1514, 1514),
        # An overhead takes the place of the 14 bytes of Ethernet, even one of 0, unless it is raw.
        ("cake bandwidth 10mbit overhead 0", 1514, 1500),
        ("cake bandwidth 10mbit overhead 38", 1514, 1538),
        ("cake bandwidth 10mbit raw overhead 10", 1514, 1524),
        ("cake bandwidth 10mbit overhead -20", 54, 20),
        ("cake bandwidth 10mbit ethernet", 54, 84),
        # 1500 + 44 = 1544 bytes are 32.2 cells of 48; 1514 alone 31.5.
        ("cake bandwidth 10mbit atm overhead 44", 1514, 33 * 53),
        ("cake bandwidth 10mbit atm", 1514, 32 * 53),
        ("cake@sce bandwidth 10mbit pppoe-ptm", 1514, 1530 + 24),
        ("cobalt bandwidth 10mbit docsis", 1514, 1518),
        ("tbf rate 1mbit burst 10kb limit 100k overhead 20 mpu 200", 100, 200),
        ("tbf rate 1mbit burst 10kb limit 100k overhead 20 linklayer atm", 100, 3 * 53),
        ("rate 1mbit overhead 20 linklayer adsl", 100, 3 * 53),
        ("netem rate 1mbit", 1514, 1514),
        ("netem rate 12mbit -14", 1514, 1500),
        # 1514 + 20 = 1534 bytes are 31.96 cells of 48 bytes, each with 5 more.
        ("netem delay 5ms rate 12mbit 20 48 5", 1514, 32 * 53),
        ("fq_codel", 1514, 1514),
    ],
)
def test_a_frame_costs_its_overhead_and_cells(line, frame, bytes_):
    assert charged(line, frame) == bytes_
    assert payload_share(line, frame) == frame / bytes_


def test_an_overhead_that_is_no_number_is_named():
    with pytest.raises(BakeoffError, match="overhead: 'many' is not an integer"):
        charged("tbf rate 1mbit overhead many", 1514)


@pytest.mark.parametrize(
    ("before", "new", "frame"),
    [
        ("cake bandwidth 10mbit atm overhead 44", "cake bandwidth 5mbit", 33 * 53),
        ("cake bandwidth 10mbit docsis", "cake bandwidth 5mbit docsis", 1518),
        ("cake bandwidth 10mbit docsis", "cake bandwidth 5mbit raw", 1514),
        ("cake bandwidth 10mbit docsis", "cake bandwidth 5mbit overhead 8", 1508),
    ],
)
def test_a_change_of_cake_keeps_the_framing_that_it_does_not_name(before, new, frame):
    assert charged(after_change(before, new), 1514) == frame


def test_a_change_of_overhead_keeps_the_rate():
    tree = {"node": "mid", "peer": "srv", "egress": {"qdisc": "cake bandwidth 10mbit"}}
    change = {"kind": "qdisc-change", "side": "egress", "handle": "", "qdisc": "cake overhead 250"}
    changes = [{"at_s": 1.0, "node": "mid", "peer": "srv", "action": change}]
    run = as_run(resolved() | {"interfaces": [tree], "changes": changes})
    assert rates(run, "mid>srv", (0.0, 2.0)) == [(0.0, 2.0, 10e6)]
    # 1500 + 250 bytes are charged for 1514 then.
    assert rates(run, "mid>srv", (0.0, 2.0), frame=1514) == [
        (0.0, 1.0, 10e6),
        (1.0, 2.0, pytest.approx(10e6 * 1514 / 1750)),
    ]


def test_the_rate_of_frames_is_the_least_along_a_way_of_classes():
    """The root lets 20 Mbit/s through, of which frames have 1514/1749; the class 18 Mbit/s without overhead."""
    tree = {
        "qdisc": "htb default 1",
        "classes": [
            {"id": "f", "class": "rate 20mbit overhead 30 linklayer atm"},
            {"id": "1", "parent": "f", "class": "rate 18mbit"},
        ],
    }
    document = resolved() | {"interfaces": [{"node": "mid", "peer": "srv", "egress": tree}]}
    run = as_run(document)
    # 1514 + 30 = 1544: 33 cells, 1749 bytes; htb never gives a class less than its own rate.
    assert rates(run, "mid>srv", (0.0, 1.0), class_id="f", frame=1514) == [
        (0.0, 1.0, pytest.approx(20e6 * 1514 / 1749))
    ]
    assert rates(run, "mid>srv", (0.0, 1.0), class_id="1", frame=1514) == [(0.0, 1.0, 18e6)]
    document["links"][1]["rate_bps"] = 15_000_000
    assert rates(as_run(document), "mid>srv", (0.0, 1.0), frame=1514) == [(0.0, 1.0, 15e6)]
