"""The matrix of a scenario: axes, labels, exclusion, repetitions with their seeds."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.scenario import Run, expand, load
from bakeoff.scenario.matrix import points
from bakeoff.scenario.resolve import jitter
from scenario_texts import FLOW, HEAD, interface, refused, runs, write

USES = "hosts: {sysctl: {x: '%s'}}\n"

# The matrix


def names(tmp_path, vary, uses, run="", extra=""):
    """The runs of a matrix whose axes `uses` stand in a sysctl."""
    text = f"{HEAD}{FLOW}{USES % uses}{extra}\nvary: {vary}\n" + (f"run: '{run}'\n" if run else "")
    return [run.run for run in runs(tmp_path, text)]


def test_the_last_axis_moves_fastest_and_names_are_labels(tmp_path):
    vary = "{q: {one: fq_codel flows 1, pie: pie}, r: [1mbit, 2mbit]}"
    assert names(tmp_path, vary, "{q} {r}") == ["one-1mbit", "one-2mbit", "pie-1mbit", "pie-2mbit"]
    assert names(tmp_path, vary, "{q} {r}", "a-{r}-{q}-{{x}}")[0] == "a-1mbit-one-{x}"


def test_linked_axes_move_together(tmp_path):
    vary = "{rtts: [{a: 10ms, b: 20ms}, {a: 80ms, b: 10ms}], c: [x, y]}"
    assert names(tmp_path, vary, "{a} {b} {c}") == ["10ms-20ms-x", "10ms-20ms-y", "80ms-10ms-x", "80ms-10ms-y"]


def test_labels_may_depend_on_other_axes(tmp_path):
    text = (
        HEAD.replace("rate: 50mbit, qdisc: fq_codel", "rate: '{rate.label}', qdisc: '{q}'")
        + FLOW
        + "vary: {rate: {10mbit: {limit: 200}, 50mbit: {limit: 1000}},"
        + " q: {'pfifo({rate.limit})': 'pfifo limit {rate.limit}'}}"
    )
    found = {run.run: interface(run, "mid", "srv").egress.classes[0] for run in runs(tmp_path, text)}
    assert {name: (c.class_, c.child.qdisc) for name, c in found.items()} == {
        "10mbit-pfifo(200)": ("rate 10mbit ceil 10mbit", "pfifo limit 200"),
        "50mbit-pfifo(1000)": ("rate 50mbit ceil 50mbit", "pfifo limit 1000"),
    }


def test_exclude(tmp_path):
    vary = "{a: [1, 2], b: [x, y]}"
    assert names(tmp_path, vary, "{a} {b}", extra="exclude: [{a: 1, b: [x]}]") == ["1-y", "2-x", "2-y"]
    assert names(tmp_path, vary, "{a} {b}", extra="exclude: [{a: 1}, {b: x}]") == ["2-y"]


def test_a_whole_placeholder_becomes_the_value_itself(tmp_path):
    text = """
    duration: 10s
    network: {path: [cli, mid, srv], bottleneck: "{b}"}
    hosts: {hz: "{hz}"}
    flows: [{name: a}]
    vary: {b: {plain: {qdisc: pfifo}, shaped: {rate: 5mbit, qdisc: pie}}, hz: [100, 1000]}
    """
    found = runs(tmp_path, text)
    assert [run.nodes[0].hz for run in found] == [100, 1000, 100, 1000]
    assert [interface(run, "mid", "srv").egress.qdisc for run in found[1:3]] == ["pfifo", "htb default 1"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("vary: {a: []}", "vary.a: the matrix is empty; expected at least one value"),
        ("vary: {a: {}}", "vary.a: the matrix is empty"),
        ("vary: {a: [1]}\nexclude: [{a: 1}]", "exclude: excludes every point of the matrix; expected at least one run"),
        ("vary: {a: [1]}\nexclude: [{b: 1}]", "exclude[0].b: no such axis; expected 'a'"),
        ("vary: {a: [one]}\nexclude: [{a: on}]", "exclude[0].a: no label 'on'; did you mean 'one'?"),
        ("vary: {a: [1, 1]}", "vary.a: duplicate value '1'"),
        ("vary: {a: 5}", "vary.a: 5; expected a list or a mapping label -> value"),
        ("vary: {a: [{x: 1}, {y: 2}]}", "vary.a[1]: has the keys [y]; expected those of the first entry, [x]"),
        ("vary: {a: [1], b: [{a: 2}]}", "vary: duplicate axis 'a'"),
        (
            "vary: {n: [1]}",
            "vary.n: 'n': reserved name; {n} numbers the copies of a flow",
        ),
        (
            "vary: {a b: [1]}",
            "vary.a b: 'a b': invalid name of an axis; expected",
        ),
        ("vary: {qdisc: [1]}\ntitle: '{qdsic}'", "title: unknown placeholder '{qdsic}'; did you mean 'qdisc'?"),
        ("vary: {a: {x: {f: 1}}}\ntitle: '{a.g}'", "title: unknown placeholder '{a.g}'; expected one of label, f"),
        ("vary: {a: {x: '{b}'}, b: {y: '{a}'}}\nsource: '{a}'", "source: the placeholder '{a}' refers to itself"),
        (
            "hosts: {hz: '{a}'}\nvary: {a: [100, 250]}\nrun: same",
            "run: duplicate name 'same' of two points; expected a template with {a}",
        ),
    ],
)
def test_matrices_that_are_none(tmp_path, lines, message):
    assert refused(tmp_path, HEAD + FLOW + lines).startswith(message)


@given(
    st.dictionaries(
        st.from_regex(r"\A[a-m][a-z]{0,3}\Z"), st.lists(st.integers(), min_size=1, max_size=4, unique=True), max_size=4
    )
)
def test_the_matrix_is_the_product_of_its_axes(vary):
    spanned = points(vary)
    assert len(spanned) == math.prod(map(len, vary.values()))
    assert len({tuple(choice.label for choice in point.values()) for point in spanned}) == len(spanned)


# Repetitions


def test_repetitions_have_the_same_seeds_for_every_variant(tmp_path):
    text = HEAD.replace("start_jitter: 0s\n", "") + FLOW + USES % "{a}" + "vary: {a: [x, y]}"
    found = runs(tmp_path, text, seeds=3)
    assert [run.key for run in found] == [
        "local/x/x", "local/x/x~seed2", "local/x/x~seed3",
        "local/x/y", "local/x/y~seed2", "local/x/y~seed3",
    ]  # fmt: skip
    starts = [run.flows[0].start_s for run in found]
    assert starts[:3] == starts[3:]
    assert len(set(starts)) == 3
    assert all(0 <= start < 0.01 for start in starts)


@given(st.integers(min_value=1, max_value=2**63), st.text(max_size=8), st.sampled_from([0.0, 1e-6, 0.01, 2.0]))
def test_jitter_is_a_function_of_seed_and_name_below_its_bound(seed, name, below):
    drawn = jitter(seed, name, below)
    assert drawn == jitter(seed, name, below)
    assert drawn == 0 if below == 0 else 0 <= drawn < below


def test_jitter_is_uniform():
    drawn = [jitter(seed, "a", 1.0) for seed in range(4000)]
    # mean 1/2 with standard error sqrt(1/12/4000) = 0.0046; four of them
    assert abs(sum(drawn) / 4000 - 0.5) < 0.0183
    assert abs(sum(x < 0.25 for x in drawn) / 4000 - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 4000)


@given(
    st.lists(st.sampled_from(["cubic", "reno", "prague"]), min_size=1, max_size=3, unique=True),
    st.integers(min_value=1, max_value=3),
    st.integers(min_value=0, max_value=200),
)
def test_expansion_is_deterministic_and_survives_json(tmp_path_factory, ccs, seeds, rtt):
    text = f"""
    duration: 10s
    network: {{path: [cli, mid, srv], rtt: {rtt}ms, bottleneck: {{rate: 5mbit, qdisc: pie ecn}}}}
    flows: [{{name: "{{cc}}", cc: "{{cc}}", dscp: 4, ecn: bleached}}, {{name: other, rtt: 7ms, dscp: 9}}]
    vary: {{cc: {json.dumps(ccs)}}}
    """
    path = write(tmp_path_factory.mktemp("expansion"), text)
    first, second = expand(load(path), seeds=seeds), expand(load(path), seeds=seeds)
    assert [run.to_json() for run in first] == [run.to_json() for run in second]
    assert [Run.from_json(run.to_json()) for run in first] == first
    assert len({run.key for run in first}) == len(ccs) * seeds
