"""Two campaigns side by side: distances, distributions, what is outside, and how it is shown."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest

import bakeoff
from bakeoff import references
from bakeoff.api import Results
from bakeoff.claims import comparison
from bakeoff.claims.comparison import Key, compare, distributions, outside, side_of, side_of_reference
from bakeoff.errors import BakeoffError
from bakeoff.measure.delays import base_rtt
from bakeoff.references import record
from bakeoff.tables.distances import render
from synthetic import as_run, made, resolved

RUN = ("l4s-tests", "s6-rfc3168", "ns-prague-vs-cubic-ecn-pie-50Mbit-20ms")


def found(ours, theirs):
    return compare(side_of("a", ours), side_of("b", theirs))


def by_key(result):
    return {one.key[3:]: one for one in result.differences}


def changed(result, **counters):
    result.counted["queues"]["mid>srv"].update(counters)
    return result


# The base RTT


def rtt(document, flow=0):
    run = as_run(document)
    return base_rtt(run, run.flows[flow])


def test_the_base_rtt_is_every_delay_there_and_back():
    run = resolved()
    # netem of 10 ms at both ingresses of mid
    assert rtt(run) == pytest.approx(0.020)
    run["interfaces"][0]["egress"] = {"qdisc": "netem loss 1%"}
    assert rtt(run) == pytest.approx(0.020)
    run["links"][0]["delay_s"] = 0.003
    assert rtt(run) == pytest.approx(0.026)


def test_the_base_rtt_of_a_flow_is_that_of_its_class():
    run = resolved()
    classes = [
        {"id": str(n), "class": "rate 2gbps", "filters": [{"dscp": dscp}], "child": {"qdisc": f"netem delay {delay}"}}
        for n, dscp, delay in ((1, 19, "5ms"), (2, 35, "40ms"))
    ]
    for interface in run["interfaces"]:
        interface["ingress"] = {"qdisc": "htb default 1", "classes": classes}
    assert [rtt(run, flow) for flow in (0, 1)] == pytest.approx([0.010, 0.080])


def test_a_bare_delay_of_netem_is_in_nanoseconds_as_tc_has_it():
    run = resolved()
    for interface in run["interfaces"]:
        interface["ingress"] = {"qdisc": "netem delay 5000000"}
    assert rtt(run) == pytest.approx(0.010)


# Distances


def test_a_campaign_is_no_distance_from_itself():
    same = found([made()], [made()])
    assert {one.ln for one in same.differences} == {0.0}
    assert same.notes == []
    # two flows with three measures each, and two counts
    assert len(same.differences) == 8


def test_the_distance_of_a_rate_is_the_logarithm_of_the_ratio():
    differences = by_key(found([made((40e6, 4e6))], [made((40e6, 2e6))]))
    assert differences["cubic", "goodput"].ln == pytest.approx(math.log(2))
    assert differences["prague", "goodput"].ln == pytest.approx(0, abs=1e-9)


def test_the_queue_delay_is_what_srtt_has_above_the_base_rtt():
    differences = by_key(found([made()], [made()]))
    # srtt is 25 ms, and 26 ms of the second flow, over 20 ms
    assert differences["prague", "tcp_delay_mean"].ours == pytest.approx(0.005, rel=1e-4)
    assert differences["cubic", "tcp_delay_mean"].ours == pytest.approx(0.006, rel=1e-4)


def test_counts_are_compared_with_one_added():
    drops = {"overlimit": 0, "aqm": 0, "overload": 0, "loss": 0}
    differences = by_key(found([changed(made(), marks=600, drops=drops)], [changed(made(), marks=300)]))
    assert differences["", "marks"].ln == pytest.approx(math.log(601 / 301))
    assert differences["", "drops"].ln == pytest.approx(math.log(1 / 3))


def test_a_flow_that_got_nothing_on_one_side_is_infinitely_far():
    [one] = outside(found([made((40e6, 0.0))], [made((40e6, 2e6))]).differences, comparison.BOUNDS)
    assert (one.key.flow, one.key.measure, one.ln) == ("cubic", "goodput", -math.inf)


def unpaired(ours, theirs):
    return compare(side_of("a", ours), side_of("b", theirs), paired=False)


def test_repetitions_are_compared_by_their_mean_and_their_ranges():
    ours = [made((40e6, 1e6), seed=1), made((40e6, 3e6), seed=2)]
    apart = by_key(unpaired(ours, [made((40e6, 4e6), seed=1), made((40e6, 6e6), seed=2)]))["cubic", "goodput"]
    # means 2 and 5; 1 to 3 and 4 to 6 do not meet
    assert (apart.n_ours, apart.n_theirs, apart.overlap, apart.pairs) == (2, 2, False, 0)
    assert apart.ln == pytest.approx(math.log(2 / 5))
    meeting = by_key(unpaired(ours, [made((40e6, 2e6), seed=1), made((40e6, 6e6), seed=2)]))["cubic", "goodput"]
    assert meeting.overlap is True


def test_equal_seeds_are_pairs():
    # Rates differ by a factor of four between the seeds, and by 10 % within each pair: the ranges overlap, and yet
    # every pair says the same: ln(1 / 1.1) = -0.0953, with no spread.
    rates = (1e6, 2e6, 4e6)
    ours = [made((40e6, rate), seed=n) for n, rate in enumerate(rates, 1)]
    theirs = [made((40e6, 1.1 * rate), seed=n) for n, rate in enumerate(rates, 1)]
    one = by_key(found(ours, theirs))["cubic", "goodput"]
    assert (one.pairs, one.overlap) == (3, False)
    assert one.ln_mean == pytest.approx(-math.log(1.1))
    assert one.ln_ci95 == pytest.approx(0, abs=1e-12)
    assert by_key(unpaired(ours, theirs))["cubic", "goodput"].overlap is True
    # ln of the pairs is -0.1, 0, 0.1: mean 0, s = 0.1, and half of the interval 4.3027 * 0.1 / sqrt(3) = 0.2484.
    spread = [made((40e6, 2e6 * math.exp(0.1 * (n - 2))), seed=n) for n in (1, 2, 3)]
    one = by_key(found([made((40e6, 2e6), seed=n) for n in (1, 2, 3)], spread))["cubic", "goodput"]
    assert (one.overlap, one.ln_ci95) == (True, pytest.approx(0.2484, abs=1e-4))


def test_only_seeds_that_both_sides_have_are_pairs():
    ours = [made((40e6, rate), seed=n) for n, rate in enumerate((2e6, 2e6, 9e6), 1)]
    theirs = [made((40e6, 2e6), seed=1), made((40e6, 2e6), seed=2)]
    one = by_key(found(ours, theirs))["cubic", "goodput"]
    assert (one.pairs, one.n_ours, one.ln) == (2, 2, 0.0)
    lone = by_key(found(ours, theirs[:1]))["cubic", "goodput"]
    assert (lone.pairs, lone.n_ours, lone.n_theirs) == (0, 3, 1)


def test_the_method_is_said():
    ours = [made((40e6, 1e6), seed=1), made((40e6, 3e6), seed=2)]
    [note] = found(ours, ours).notes
    assert note.startswith("seeds are compared in pairs of equal seeds: 'apart' where the 95 % interval")
    assert "Student's t" in render(found(ours, ours), comparison.BOUNDS, [], "terminal")
    [note] = unpaired(ours, ours).notes
    assert note == "seeds are compared by their means: 'apart' where the ranges of the two sides do not overlap"
    assert found(ours[:1], ours[:1]).notes == []


def test_only_what_is_the_same_experiment_is_compared():
    other = made()
    other.resolved["nodes"][0]["hz"] = 1000
    with pytest.raises(BakeoffError, match=r"no runs in common\n  not the same experiment: .*-20ms: 'nodes' differs"):
        found([made()], [other])


def test_programs_are_part_of_the_experiment():
    one, other = made(), made()
    one.resolved["programs"] = [{"name": "p", "node": "cli", "argv": ["iperf3", "-c", "{srv}"]}]
    other.resolved["programs"] = [{"name": "p", "node": "cli", "argv": ["iperf3", "-c", "{srv}", "-R"]}]
    for theirs in (other, made()):
        with pytest.raises(BakeoffError, match="'programs' differs"):
            found([one], [theirs])
    assert found([one], [one]).differences


def without_flows(rtt_s, drops):
    result = made((), flows=())
    result.counted["probes"]["ping"]["rtt"]["mean_s"] = rtt_s
    result.counted["queues"]["mid>srv"]["drops"] = {"overlimit": drops, "aqm": 0, "overload": 0, "loss": 0}
    return result


def test_of_runs_without_flows_queues_and_probes_are_compared():
    differences = by_key(found([without_flows(0.03, 1)], [without_flows(0.02, 0)]))
    assert [*differences] == [("ping", "ping_mean"), ("ping", "ping_p99"), ("", "marks"), ("", "drops")]
    # ln(30 / 20), and of counts ln((1 + 1) / (0 + 1))
    assert differences["ping", "ping_mean"].ln == pytest.approx(math.log(1.5))
    assert differences["", "drops"].ln == pytest.approx(math.log(2))


def test_where_nothing_was_measured_the_message_says_so():
    result = without_flows(0.03, 1)
    result.resolved["probes"].clear()
    result.counted["queues"].clear()
    with pytest.raises(BakeoffError, match=r"^a: nothing to compare"):
        side_of("a", [result])
    with pytest.raises(BakeoffError, match=r"^a: no finished run to compare$"):
        side_of("a", [])


def test_start_times_and_titles_may_differ():
    other = made()
    other.resolved["flows"][0]["start_s"] = 0.007
    other.resolved["title"] = "another"
    assert found([made()], [other]).notes == []


def test_runs_of_one_side_are_named():
    result = found([made(), made(run="mine")], [made(), made(run="theirs")])
    assert result.notes == ["only in a: l4s-tests/s6-rfc3168/mine", "only in b: l4s-tests/s6-rfc3168/theirs"]


def test_a_seed_that_stands_twice_is_refused():
    with pytest.raises(BakeoffError, match=r"a: duplicate .*-20ms, seed 1"):
        side_of("a", [made(), made()])


# Distributions


def differences_of(*lns, measure="goodput", qdisc="pie"):
    key = Key(*RUN, "f", measure)
    return [comparison.Difference(key, {"qdisc": qdisc}, 1.0, 1.0, 1, 1, ln, None) for ln in lns]


def test_a_distribution_is_of_absolute_distances():
    [one] = distributions(differences_of(-0.1, 0.2, 0.3), {"goodput": 0.15})
    # sorted 0.1, 0.2, 0.3: the ninth decile lies eight tenths of the way from the second to the third
    assert (one.n, one.median, one.p90, one.max, one.outside) == (3, 0.2, pytest.approx(0.28), 0.3, 2)


def test_distributions_by_an_axis():
    differences = [*differences_of(0.1, qdisc="pie"), *differences_of(0.3, qdisc="red")]
    assert [(one.group, one.median) for one in distributions(differences, {}, ["qdisc"])] == [
        (("pie",), 0.1),
        (("red",), 0.3),
    ]
    with pytest.raises(BakeoffError, match="by: unknown axis 'aqm'; expected one of qdisc"):
        distributions(differences, {}, ["aqm"])


def test_an_unknown_measure_is_refused():
    with pytest.raises(BakeoffError, match="bound: unknown measure 'srtt'; expected one of goodput, tcp_delay_mean"):
        distributions([], {"srtt": 0.1})


def test_what_is_outside_is_listed_by_measure_the_farthest_first():
    differences = [*differences_of(0.5, measure="tcp_delay_mean"), *differences_of(0.04, -0.2, 0.1)]
    assert [one.ln for one in outside(differences, comparison.BOUNDS)] == [-0.2, 0.1, 0.5]


# References


def test_a_recorded_campaign_is_no_distance_from_its_reference(tmp_path):
    file = tmp_path / "mine.csv"
    with file.open("w") as stream:
        record.write([made()], "a test", stream)
    ours = side_of("a", [made()])
    theirs = side_of_reference("mine", references.load(tmp_path), ours)
    differences = compare(ours, theirs).differences
    # six digits are kept
    assert max(abs(one.ln) for one in differences) < 1e-4
    assert len(differences) == 8


def test_a_reference_may_hold_counts_of_zero_but_no_rates_of_zero(tmp_path):
    head = "suite,scenario,run,flow,measure,value,unit,source\n"
    (tmp_path / "r.csv").write_text(head + "s,c,r,,drops,0,packet,x\n")
    assert references.load(tmp_path)[0].value == 0
    (tmp_path / "r.csv").write_text(head + "s,c,r,f,steady_state.goodput,0,bit/s,x\n")
    with pytest.raises(BakeoffError, match="expected a number above zero"):
        references.load(tmp_path)


# What a reader sees


def test_the_terminal_shows_distributions_and_what_is_outside(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = render(found([made((40e6, 4e6))], [made((40e6, 2e6))]), comparison.BOUNDS, [], "terminal")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "|ln(a / b)|"
    # of the two flows' distances, 0 and ln 2
    assert "goodput 2 0.347 0.624 0.693 0.05 1" in lines
    assert "marks 1 0.000 0.000 0.000" in lines
    assert f"goodput {RUN[2]} cubic 4.00 2.00 Mbit/s +0.69" in lines


def test_csv_holds_every_difference_in_si_units():
    text = render(found([made((40e6, 4e6))], [made((40e6, 2e6))]), comparison.BOUNDS, [], "csv")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == 8
    [line] = [line for line in lines if (line["flow"], line["measure"]) == ("cubic", "goodput")]
    assert [float(line[side]) for side in ("ours", "theirs")] == pytest.approx([4e6, 2e6])
    assert line["unit"] == "bit/s"
    assert (line["outside"], line["axis_qdisc"]) == ("True", "pie")


def test_json_holds_no_infinity():
    text = render(found([made((40e6, 0.0))], [made((40e6, 2e6))]), comparison.BOUNDS, ["qdisc"], "json")
    document = json.loads(text)
    assert document["outside"][0]["ln"] is None
    assert document["distributions"][0]["group"] == {"qdisc": "pie"}


def test_markdown_escapes_the_bars_of_the_caption():
    text = render(found([made()], [made()]), comparison.BOUNDS, ["qdisc"], "markdown")
    assert text.startswith("### \\|ln(a / b)\\|\n\n| qdisc | measure | n |")


# As a test of a patch


def test_each_ends_with_1_at_a_number_that_the_median_hides(monkeypatch, cli, tmp_path):
    # Of eight numbers in two runs one, a flow's rate of 4 Mbit/s in place of 3.6, is ln(1/0.9) = 0.105 away in all
    # seeds; the median of four rates is 0.
    def campaign(slow):
        return [made((40e6, slow if run == "a" else 4e6), run=run, seed=seed) for run in ("a", "b") for seed in (1, 2)]

    sides = {"patched": campaign(3.6e6), "base": campaign(4e6)}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bakeoff.cli.compare.chosen_results", lambda name, _: (None, sides[name]))
    for name in sides:
        (tmp_path / name).mkdir()
    assert cli("compare", "patched", "base")[0] == 0
    code, out, _ = cli("compare", "patched", "base", "--each")
    assert code == 1
    assert "0.105" in out
    assert cli("compare", "patched", "base", "--each", "--bound", "goodput=0.11")[0] == 0
    assert "--own: not valid with --each" in cli("compare", "patched", "base", "--own", "--each")[2]


def test_the_function_takes_runs_and_gives_what_the_command_prints(monkeypatch):
    # One of two rates is ln(3.6 / 4) = -0.105 away, the other 0: the median of both is 0.053, above the bound 0.05.
    ours, theirs = Results([made((40e6, 3.6e6))]), Results([made((40e6, 4e6))])
    compared = bakeoff.compare(ours, theirs)
    assert not compared.agrees
    assert [(one.key.flow, round(one.ln, 3)) for one in compared.outside] == [("cubic", -0.105)]
    [goodput] = [one for one in compared.distributions if one.measure == "goodput"]
    assert (goodput.n, goodput.median) == (2, pytest.approx(-math.log(0.9) / 2))
    assert compared.frame().filter(measure="goodput")["ln"].to_list() == pytest.approx([0, math.log(0.9)])
    assert ours.compare(theirs).equals(compared.frame())
    assert "-0.11" in repr(compared)
    assert bakeoff.compare(ours, theirs, bounds={"goodput": 0.06}).agrees
    # One seed on each side cannot tell them apart.
    assert compared.each_agrees
    with pytest.raises(BakeoffError, match=r"bound: unknown measure 'goodputs'"):
        bakeoff.compare(ours, theirs, bounds={"goodputs": 0.06})
    with pytest.raises(BakeoffError, match=r"nowhere: no such results folder or reference"):
        bakeoff.compare(ours, "nowhere")
    with pytest.raises(BakeoffError, match=r"compare: ours: int; expected"):
        bakeoff.compare(1, theirs)


def test_beside_a_mean_of_trials_their_scatter_decides(tmp_path):
    ours = side_of("ours", [made((40e6, 5e6))])
    of = "l4s-tests,s6-rfc3168,ns-prague-vs-cubic-ecn-pie-50Mbit-20ms"
    # 2 sd sqrt(1/1 + 1/4) = 2.236 sd: 40 is within it of 42 with sd 1e6, and 5 is not of 8
    lines = [f"{of},prague,goodput,42e6,bit/s,x,1e6,4", f"{of},cubic,goodput,8e6,bit/s,x,1e6,4"]
    (tmp_path / "r.csv").write_text("\n".join(["suite,scenario,run,flow,measure,value,unit,source,sd,n", *lines]))
    found = compare(ours, side_of_reference("r", references.load(tmp_path), ours))
    assert [(one.overlap, one.n_theirs, one.noise) for one in found.differences] == [
        (True, 4, pytest.approx(1 / 42)),
        (False, 4, pytest.approx(1 / 8)),
    ]
    assert [one.noise for one in distributions(found.differences, {})] == [references.noise_of([1 / 42, 1 / 8])]
    assert comparison.TRIALS in found.notes


def test_the_sum_of_flows_is_taken_for_a_pattern(tmp_path):
    ours = side_of("ours", [made((40e6, 5e6), seed=1), made((42e6, 5e6), seed=2)])
    of = "l4s-tests,s6-rfc3168,ns-prague-vs-cubic-ecn-pie-50Mbit-20ms"
    (tmp_path / "r.csv").write_text(f"suite,scenario,run,flow,measure,value,unit,source\n{of},*,goodput,23e6,bit/s,x\n")
    theirs = side_of_reference("r", references.load(tmp_path), ours)
    [one] = compare(comparison.with_sums(ours, theirs), theirs).differences
    assert (one.key.flow, one.ours, one.ln) == ("*", 46e6, pytest.approx(math.log(2)))  # (45 + 47) / 2
