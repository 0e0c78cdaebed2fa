"""What is measured of a congestion control's own state."""

import re

import numpy as np
import pytest
import yaml

import bakeoff
from bakeoff import _sim
from bakeoff.claims import claim
from bakeoff.claims.evaluate import measure
from bakeoff.claims.expression import parse
from bakeoff.claims.required_runs import required_runs
from bakeoff.errors import BakeoffError, MeasureError
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.measure.functions import CATALOGUE, check_names
from bakeoff.measure.of_control import over_window, variables

ALL = """\
scenario: all
suite: local
duration: 3s
network: {path: [cli, mid, srv], rtt: 10ms, bottleneck: {rate: 50mbit, qdisc: dualpi2}}
flows:
"""


def test_a_value_holds_until_the_next_sample():
    time, value = np.array([1.0, 2.0, 4.0, 9.0]), np.array([3.0, 5.0, 1.0, 8.0])
    # From 1.5 s to 5 s: 3 for 0.5 s, 5 for 2 s, 1 for 1 s.
    assert over_window(time, value, (1.5, 5), "mean") == pytest.approx((3 * 0.5 + 5 * 2 + 1 * 1) / 3.5)
    assert over_window(time, value, (1.5, 5), "share_above", 2.5) == pytest.approx(2.5 / 3.5)
    assert over_window(time, value, (1.5, 5), "share_above", 5) == 0
    assert [over_window(time, value, (1.5, 5), of) for of in ("max", "min", "last")] == [5, 1, 1]
    # Nothing before the first sample, and the last holds.
    assert over_window(time, value, (0, 2), "mean") == 3
    assert over_window(time, value, (10, 12), "mean") == 8
    with pytest.raises(MeasureError, match="between 0 s and 1 s"):
        over_window(time, value, (0, 1), "mean")


@pytest.fixture(scope="module")
def every_control(tmp_path_factory):
    folder = tmp_path_factory.mktemp("all")
    named = {re.sub(r"\W", "_", cc): cc for cc in _sim.congestion_controls() if cc != "none"}
    flows = "".join(f"  - {{name: f_{name}, cc: {cc}}}\n" for name, cc in named.items())
    (folder / "all.yaml").write_text(ALL + flows)
    [found] = bakeoff.run(str(folder / "all.yaml"), out=folder / "out", jobs=1, trace=["cc"])
    return found


def test_every_traced_variable_is_known_before_a_run(every_control):
    seen = {}
    for _, flow, metric in every_control.trace_parts():
        cc = every_control.run.named(flow).cc
        seen.setdefault(cc.partition(" ")[0].partition("@")[0], set()).add(metric.removeprefix("cc."))
    assert len(seen) > 8
    bounds = {"inflight_hi", "inflight_lo", "bw_lo", "ssthresh"}  # only while there is such a bound
    for name, found in seen.items():
        assert found - bounds == set(variables(name)) - bounds, name


def test_state_of_a_run(every_control):
    run = every_control
    time, alpha = run.trace_parts(["cc.alpha"])["flow", "f_dctcp", "cc.alpha"]
    inside = alpha[(time > 1) & (time < 2)]
    assert measure(run, 'cc("f_dctcp", "alpha", stat="min", begin="1s", end="2s")') <= inside.min()
    assert inside.min() < measure(run, 'cc("f_dctcp", "alpha", begin="1s", end="2s")') < inside.max()
    assert measure(run, 'cc("f_reno", "srtt", stat="share_above", above="5ms", begin="1s") == 1')
    assert measure(run, 'cc("f_reno", "cwnd", stat="last") > 1')
    with pytest.raises(BakeoffError, match=r"'reno' has no variable 'alpha'; expected one of cwnd, ssthresh"):
        measure(run, 'cc("f_reno", "alpha")')
    call = parse('cc("f_prague", "clasic_ecn")', ()).calls[0]
    with pytest.raises(MeasureError, match="did you mean 'classic_ecn'"):
        check_names(CATALOGUE["cc"], dict(call.arguments), run.run)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('cc("a", "alpha", stat="median") > 1', "stat: 'median'; expected one of mean, max"),
        ('cc("a", "alpha", stat="share_above") > 1', "expected 'above'"),
        ('cc("a", "alpha", above=1) > 1', "expected 'above'"),
        ('cc("a", "srtt") > "1mbit"', "is a time"),
        ('cc("a", "pacing_rate") > "20ms"', "rate"),
        ('cc("a", "alpha", stat="share_above", above=1) > 2', "from 0 to 1"),
        ('cc("a") > 2', "missing 'variable'"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(text, wrong):
    with pytest.raises(ExpressionError, match=re.escape(wrong)):
        parse(text, ())


def claims(folder):
    traced = "bidirectional/l4s/prague-dualpi2-10-200Mbit-80ms"
    other = "bidirectional/l4s/prague-dualpi2-1-10Mbit-20ms"
    directions = {
        "state": (traced, 'cc("down1", "classic_ecn", stat="max") > 1'),
        "window": (traced, 'cc("down1", "cwnd", stat="max") > 10'),
        "rate": (traced, 'goodput("down1") > "1mbit"'),
        "other": (other, 'goodput("down1") > "1mbit"'),
    }
    several = [
        {"id": name, "says": "It does.", "where": {"section": "1"}, "runs": runs, "direction": direction}
        for name, (runs, direction) in directions.items()
    ]
    content = {"document": {"name": "doc", "title": "A document", "date": "2020-01-01"}, "claims": several}
    (folder / "doc.yaml").write_text(yaml.safe_dump(content))
    return {each.name: each for each in claim.load(folder)}


def traces(required):
    return {tuple(run.trace) for runs in required.runs.values() for run in runs}


def test_runs_are_traced_where_a_claim_needs_it(tmp_path):
    by_name = claims(tmp_path)
    found = {each.statement.place: each for each in required_runs(by_name.values(), 2).values()}
    state, window, rate, other = found.values()
    # The third claim needs none, and has the results of the first.
    assert [traces(each) for each in found.values()] == [{("cc",)}, {("cc",)}, {("cc",)}, {()}]
    [alone] = required_runs([by_name["doc/rate"]], 2).values()
    assert traces(alone) == {()}
    # A kernel traces nothing. It samples the window.
    reason = '\'cc("down1", "classic_ecn", stat="max")\' needs a trace'
    assert [each.unobservable("sim") for each in found.values()] == [{}] * 4
    assert set(state.unobservable("kernel")) == state.keys()
    assert all(why.startswith(reason) for why in state.unobservable("kernel").values())
    assert (window.unobservable("kernel"), rate.unobservable("kernel"), other.unobservable("kernel")) == ({}, {}, {})
    assert traces(state.untraced()) == {()}


def test_a_claim_about_what_the_control_lacks_is_refused_before_any_run(tmp_path):
    claims(tmp_path)
    path = tmp_path / "doc.yaml"
    path.write_text(path.read_text().replace("classic_ecn", "recent_sce"))
    with pytest.raises(BakeoffError, match=r"has no variable 'recent_sce'; expected one of cwnd"):
        required_runs(claim.load(tmp_path), 1)
