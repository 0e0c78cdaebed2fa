"""The museum of defects: each is a control that runs, its healthy base behaves as Rust's, and cases tell them apart."""

import pytest

from bakeoff.cli.defects import Museum, row
from bakeoff.engines import get
from bakeoff.errors import EvaluationError
from bakeoff.evaluation import defects
from bakeoff.evaluation.seats import Asked, check_run
from bakeoff.scenario import python_cc
from bakeoff.scenario.scenario import OWN, from_document

ALL = defects.load()


def test_each_names_two_controls_that_the_simulator_takes():
    assert len(ALL) >= 20
    for each in ALL:
        assert each.control != each.healthy
        run = python_cc.permitted(check_run(Asked(cc=each.control, baseline=each.healthy, against=())))
        get("sim").check(run)


def test_a_file_of_defects_is_checked(tmp_path):
    path = tmp_path / "defects.yaml"
    entry = "{name: a, control: ./a.py:A, healthy: reno, wrong: w, source: s, clause: c}"
    path.write_text(f"defects: [{entry}]")
    [one] = defects.load(path=path)
    assert (one.control, one.healthy) == (f"{tmp_path}/a.py:A", "reno")
    for text, message in (
        (f"defects: [{entry}, {entry}]", "duplicate name 'a'"),
        ("defects: [{name: a}]", "control"),
    ):
        path.write_text(text)
        with pytest.raises(EvaluationError, match=message):
            defects.load(path=path)
    with pytest.raises(EvaluationError, match="did you mean 'reno-no-ecn'"):
        defects.load(["reno-no-ec"])


@pytest.mark.parametrize(
    ("python", "rust"),
    [("reno.py:Reno", "reno"), ("cubic.py:Cubic", "cubic"), ("prague.py:Prague", "prague@2019-11")],
)
def test_a_healthy_base_is_the_control_of_the_simulator(python, rust, tmp_path):
    # Slow start and its end, marks, losses and an outage: the same integers give the same packets.
    received = []
    for cc in (f"{defects.folder()}/{python}", rust):
        document = {
            "duration": "12s",
            "network": {
                "path": ["cli", "mid", "srv"],
                "rtt": "40ms",
                "links": [{"ends": ["mid", "srv"], "down": [["6s", "7s"]]}],
                "bottleneck": {"rate": "20mbit", "qdisc": "codel ecn limit 40"},
            },
            "flows": [{"name": "one", "cc": cc}, {"name": "other", "cc": "cubic"}],
        }
        run = from_document(document, path="t", suite=OWN, default_name="t", typed=frozenset({cc})).resolve({}, 1)
        flows = get("sim").outcome(python_cc.permitted(run), tmp_path).counters.flows
        received.append([(flow.received_bytes, flow.retransmits) for flow in flows.values()])
    assert received[0] == received[1]
    assert all(resent > 0 for _, resent in received[0])


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("reno-no-ecn", "rfc9743/ecn-response"),
        ("reno-two-per-packet", "slow-start/growth"),
        ("reno-zero-window", "rfc9743/collapse-loss"),
        ("reno-every-echo", "rfc8511/once"),
        ("reno-timeout-halves", "rfc5681/loss-window"),
    ],
)
def test_a_case_catches_it_and_holds_without_it(name, case):
    [defect] = defects.load([name])
    museum = Museum(("cubic",), seeds=3, jobs=1, cases=[case])
    found = museum.find(defect)
    assert [each.case.name for each in found.by] == [case]
    assert row(found)["caught"] == "yes"
