"""Files of claims: what the language says, and that a broken file is told with its place and the expected form."""

import copy
import re
from math import inf
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import synthetic
from bakeoff.claims import claim
from bakeoff.claims.evaluate import measure
from bakeoff.claims.expression import Call, parse
from bakeoff.errors import BakeoffError
from bakeoff.expressions import quantity
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.expressions.nodes import TRUTH
from bakeoff.measure import MeasureError

ROOT = Path(__file__).parents[2]
ONE = {
    "id": "a-wins",
    "says": "A wins.",
    "where": {"section": "1", "figure": "left"},
    "runs": ["s/t/a*", "s/t/b"],
    "share": 0.5,
    "direction": 'goodput("a") > 2 * goodput("b") and 1 < ratio() < 10',
    "size": {"of": 'srtt_mean("a")', "published": ["10ms", "20ms"], "tolerance": "10%", "because": "It is rounded."},
    "cause": {"kind": "set-up", "says": "The RTT.", "set": {"network.rtt": "10ms"}},
}
TWO = {
    "id": "both",
    "says": "Both are fair.",
    "where": {"section": "2"},
    "runs": {"x": "s/t/a", "y": "s/t/b"},
    "direction": 'jain(of="x") >= jain(of="y")',
    "contradicts": ["doc/a-wins"],
    "cause": {"kind": "open", "says": "Nobody knows.", "tried": ["Another seed."]},
}
FILE = {
    "document": {"name": "doc", "title": "A document", "date": "2020-01-01"},
    "claims": [ONE, TWO, {"id": "real", "says": "It works.", "where": {"section": "3"}, "needs": "a real line"}],
}
A, B = Call("goodput", (("flow", "a"),), None), Call("goodput", (("flow", "b"),), None)


def written(folder: Path, content: object) -> Path:
    path = folder / "doc.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def changed(at: str, value: object) -> dict:
    """The file with another value at a place such as `claims.0.size.of`; None removes it."""
    content = copy.deepcopy(FILE)
    *steps, last = [int(step) if step.isdigit() else step for step in at.split(".")]
    here = content
    for step in steps:
        here = here[step]
    if value is None:
        del here[last]
    else:
        here[last] = value
    return content


def test_a_file_is_read(tmp_path):
    written(tmp_path, FILE)
    one, two, three = claim.load(tmp_path)
    assert (one.name, one.where, [each.pattern for each in one.statement.runs], one.statement.share) == (
        "doc/a-wins",
        "1, left",
        ["s/t/a*", "s/t/b"],
        0.5,
    )
    size = one.statement.size
    # 10 ms - 10 %, 20 ms + 10 %.
    assert (size.low, size.high) == pytest.approx((0.009, 0.022))
    assert [size.holds(value) for value in (0.009, 0.022, 0.0221, inf)] == [True, True, False, False]
    # What a cause does not say is the claim's own.
    assert [each.pattern for each in one.cause.statement.runs] == ["s/t/a*", "s/t/b"]
    assert one.cause.statement.direction == one.statement.direction
    assert one.cause.statement.runs[0].set == {"network.rtt": "10ms"}
    assert two.cause.statement is None
    assert (three.needs, three.statement) == ("a real line", None)
    assert (one.statement.holds, one.cause.statement.holds, one.cause.source, one.arithmetic) == (
        "typical",
        "typical",
        None,
        False,
    )


def test_a_claim_says_for_which_starts_it_holds(tmp_path):
    content = changed("claims.0.holds", "every")
    written(tmp_path, content)
    one = claim.load(tmp_path)[0]
    assert (one.statement.holds, one.cause.statement.holds) == ("every", "every")
    content["claims"][0]["cause"] |= {"holds": "any", "source": "section 3"}
    written(tmp_path, content)
    one = claim.load(tmp_path)[0]
    assert (one.statement.holds, one.cause.statement.holds, one.cause.source) == ("every", "any", "section 3")


def test_a_mutation_is_the_same_statement_with_another_set_up(tmp_path):
    content = changed("claims.0.mutation", {"set": {"network.rtt": "1s"}})
    content["claims"][1]["mutation"] = {"runs": {"x": "s/t/other"}}
    written(tmp_path, content)
    one, two, three = claim.load(tmp_path)
    assert [each.pattern for each in one.mutation.runs] == ["s/t/a*", "s/t/b"]
    assert [each.set for each in one.mutation.runs] == [{"network.rtt": "1s"}] * 2
    assert (one.mutation.direction, one.mutation.share) == (one.statement.direction, 0.5)
    # Runs that the mutation does not name are the claim's own.
    assert [(each.short, each.pattern) for each in two.mutation.runs] == [("x", "s/t/other"), ("y", "s/t/b")]
    assert three.mutation is None


def test_arithmetic_needs_no_runs(tmp_path):
    sum_ = {
        "id": "sum",
        "says": "It is.",
        "where": {"section": "1"},
        "arithmetic": True,
        "direction": "2 * 1514 < 4000",
    }
    content = {**FILE, "claims": [sum_]}
    written(tmp_path, content)
    [one] = claim.load(tmp_path)
    assert (one.arithmetic, one.statement.runs, one.statement.each) == (True, (), False)
    content["claims"] = [{**sum_, "runs": "s/t/a", "direction": "ratio() > 1"}]
    written(tmp_path, content)
    assert claim.load(tmp_path)[0].statement.each
    content["claims"] = [{key: value for key, value in sum_.items() if key != "arithmetic"} | {"runs": "s/t/a"}]
    written(tmp_path, content)
    with pytest.raises(BakeoffError, match=r"contains no measure; .*'arithmetic: true' without 'runs'"):
        claim.load(tmp_path)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        ("document.name", "other", "document.name: 'other'; expected 'doc', the file's name"),
        ("document.title", None, "document.title: is missing; expected for example 'title: Tests of L4S'"),
        ("claims", "none", "claims: 'none'; expected a list"),
        ("claims.1.id", "a-wins", r"claims\[1\].id: duplicate name 'a-wins'"),
        ("claims.1.id", "A wins", r"claims\[1\].id: 'A wins'; expected"),
        ("claims.0.sais", "x", r"claims\[0\]: unknown key 'sais'; did you mean 'says'"),
        ("claims.0.share", 1.5, r"claims\[0\].share: 1.5; expected at most 1"),
        ("claims.0.runs", None, "missing 'runs'; expected the runs that test it, or 'needs'"),
        ("claims.0.runs", [], r"claims\[0\] \(a-wins\).runs: empty; expected the name of a run"),
        ("claims.0.needs", "a lab", r"needs' \(no runs\) and 'runs' are mutually exclusive"),
        ("claims.0.direction", "goodput('a')", r"\(a-wins\).direction: .* is a number; expected a comparison"),
        ("claims.0.direction", "1 < 2", "contains no measure; expected for example goodput"),
        ("claims.0.holds", "often", "holds: 'often'; expected one of every, typical, any"),
        ("claims.0.mutation", {}, r"\(a-wins\).mutation: empty; expected 'set' or 'runs'"),
        ("claims.1.mutation", {"runs": {"z": "s/t/a"}}, "mutation.runs: unknown run 'z'; expected one of x, y"),
        ("claims.2.mutation", {"set": {"duration": "1s"}}, "'needs' .* and 'mutation' are mutually exclusive"),
        ("claims.2.arithmetic", True, "'needs' .* and 'arithmetic' are mutually exclusive"),
        ("claims.0.cause.direction", "ratio() > 2", r"\(a-wins\).cause: missing 'size'; expected all predicates"),
        ("claims.1.cause.size", FILE["claims"][0]["size"], r"\(both\).cause: missing 'direction'; expected all"),
        ("claims.0.direction", "godput('a') > 1", "unknown measure 'godput'; did you mean 'goodput'\\?"),
        ("claims.0.direction", "goodput() > 1", r"missing 'flow'; expected goodput\(flow, begin=, end=\)"),
        ("claims.0.direction", "goodput('a', of='x') > 1", "refers to the run 'x'; expected no run, or 'runs' as a "
        "mapping"),
        ("claims.1.direction", "jain(of='z') > 1", "unknown run 'z'; expected one of x, y"),
        ("claims.1.direction", "jain() > 1", "missing 'of', the run; expected one of x, y"),
        ("claims.0.direction", "goodput('a') > '50ms'", "is a rate, and \"50ms\" is a time; expected a rate such as"),
        ("claims.0.direction", "jain() < 60", "is from 0 to 1; expected a number in this range, such as \"60%\""),
        ("claims.0.direction", "'150%' > share('a')", "is from 0 to 1; expected a number in this range$"),
        ("claims.0.direction", "-1 < drops()", r"drops\(\) is at least 0"),
        ("claims.0.direction", "jain() is 1", "syntax error at 'is', character 8; expected '==' for equal"),
        ("claims.0.direction", "jain() > [1]", "is not supported here"),
        ("claims.0.direction", "goodput('a') > '5 knots'", "'5 knots' has an unknown unit 'knots'; expected one of"),
        ("claims.0.direction", "goodput('a') >", "unexpected end; expected numbers"),
        ("claims.0.direction", "__import__('os').system('ls') > 0", "unknown measure '__import__'; expected numbers"),
        ("claims.0.size.of", "jain() > 1", r"size.of: .* is a boolean; expected a number"),
        ("claims.0.size.published", 20, "published: 20 has no unit; expected a text such as '10 s'"),
        ("claims.0.size.published", "3 packets", "published: '3 packets'; expected s, as 'of' has it"),
        ("claims.0.size.published", ["20ms", "10ms"], "expected the smaller number first"),
        ("claims.0.size.tolerance", "much", "tolerance: 'much': invalid quantity; expected a number with a unit"),
        ("claims.0.size.tolerance", "-1%", "tolerance: '-1%'; expected at least 0"),
        ("claims.0.size.tolerance", 3, "tolerance: 3 has no unit; expected '30%', or s"),
        ("claims.0.size.because", None, r"size.because: is missing"),
        ("claims.0.cause.kind", "magic", "cause.kind: 'magic'; expected one of set-up, version, measure, engine, open"),
        ("claims.0.cause.set", None, "no test; expected 'set', 'runs', 'engine', 'direction' or 'size'"),
        ("claims.1.cause.tried", None, "cause.tried: missing; expected a list of sentences, one per attempt"),
        ("claims.1.contradicts", ["doc/a-win"], "unknown claim 'doc/a-win'; did you mean 'doc/a-wins'\\?"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_what_was_expected(tmp_path, at, value, message):
    written(tmp_path, changed(at, value))
    with pytest.raises(BakeoffError, match=message) as told:
        claim.load(tmp_path)
    assert str(told.value).startswith(str(tmp_path / "doc.yaml"))


PLACES = [
    "document", "document.name", "document.title", "claims", "claims.0", "claims.0.id", "claims.0.says",
    "claims.0.where",
    "claims.0.where.section", "claims.0.runs", "claims.0.share", "claims.0.direction", "claims.0.size",
    "claims.0.size.of", "claims.0.size.published", "claims.0.size.tolerance", "claims.0.cause", "claims.0.cause.set",
    "claims.0.cause.kind", "claims.1.runs", "claims.1.runs.x", "claims.1.direction", "claims.1.contradicts",
    "claims.1.cause.tried", "claims.2.needs",
]  # fmt: skip
ODD = [
    None, True, -1, 0, 1e308, float("nan"), float("inf"), "", "\0", "x" * 5000, "(" * 3000, "-" * 1500 + "1",  [], {},
    {"a": {}}, [None], ["a", 1], "goodput(", "goodput(1).real", "[1, 2][0] > 1", "lambda: 1", "9" * 400 + " > ratio()",
    "goodput(1) > 'x'", "goodput(1, begin=goodput(2)) > 1", "ratio() > True", "1e999 < ratio()", "goodput(99) > 1",
    "goodput(1, 1s) > 2", "é", {"runs": "s/t/a"}, "x" + " and ratio() > 1" * 100, "not " * 200 + "ratio() > 1",
]  # fmt: skip
EXPRESSION = st.text(alphabet="goodput(\"a')<>=+-*/ 0.9,ms%notandrtype\\\n[]{}:@", max_size=60)


@settings(
    max_examples=100, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(places=st.lists(st.sampled_from(PLACES), min_size=1, max_size=2), value=st.sampled_from(ODD) | EXPRESSION)
def test_a_mutated_file_is_read_or_refused_with_its_place(tmp_path, places, value):
    content = copy.deepcopy(FILE)
    for at in places:
        *steps, last = [int(step) if step.isdigit() else step for step in at.split(".")]
        here = content
        for step in steps:
            known = range(len(here)) if isinstance(here, list) else here if isinstance(here, dict) else ()
            here = here[step] if step in known else None
        if isinstance(here, dict) or (isinstance(here, list) and last in range(len(here))):
            here[last] = value
    path = written(tmp_path, content)
    try:
        claim.load(tmp_path)
        told = None
    except BakeoffError as error:
        told = str(error)
    assert told is None or told.startswith(str(path))
    assert told is None or re.search("; expected |; did you mean '|; known: ", told)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("goodput('a') - goodput('b') * 2", 4.0),  # 10 - 3 x 2
        ("-(goodput('a') + goodput('b')) / 2", -6.5),
        ("min(goodput('a'), goodput('b'), 4)", 3.0),
        ("median(goodput('a'), goodput('b'), 4) + mean(goodput('a'), goodput('b'))", 10.5),
        ("abs(goodput('b') - goodput('a'))", 7.0),
        ("harm(goodput('b'), goodput('a'))", 0.7),  # (10 - 3) / 10
        ("harm_less(goodput('a'), goodput('b'))", 0.7),
        ("goodput('a') / (goodput('b') - 3)", inf),
    ],
)
def test_numbers_are_computed(text, value):
    assert parse(text, []).number({A: 10.0, B: 3.0}) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("goodput('a') > goodput('b')", True),
        ("2 < goodput('b') < goodput('a') < 10", False),
        ("not goodput('a') == 10 or goodput('b') <= 3", True),
        ("goodput('a') > '9 bit/s' and goodput('b') != 3", False),
        ("goodput('a') > 9bit/s and goodput('b') in [3, 10 bit/s]", True),
    ],
)
def test_predicates_are_true_or_false(text, truth):
    found = parse(text, [])
    assert (found.unit, found.truth({A: 10.0, B: 3.0})) == (TRUTH, truth)


def test_what_could_not_be_measured_is_told():
    with pytest.raises(MeasureError, match="no samples"):
        parse("goodput('a') > 1", []).truth({A: MeasureError("no samples")})
    with pytest.raises(MeasureError, match="has no value: 0, 0"):
        parse("(goodput('a') - goodput('a')) / goodput('b')", []).number({A: 1.0, B: 0.0})


def test_backoff_is_of_two_runs():
    found = parse("under_utilisation('bulk*', of='with', baseline='without')", ["with", "without"])
    joined, alone = found.calls
    assert (joined.of, alone.of, joined.arguments) == ("with", "without", (("flows", "bulk*"),))
    assert (found.unit, found.number({joined: 2.0, alone: 18.0})) == ("bit/s", 16.0)
    with pytest.raises(ExpressionError, match="expected under_utilisation"):
        parse("under_utilisation(of='with')", ["with"])


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("50ms", 0.05, "s"),
        ("44.25 Mbit/s", 44.25e6, "bit/s"),
        ("20%", 0.2, "1"),
        ("7", 7, None),
        ("3 packets", 3, "packet"),
    ],
)
def test_quantities(text, value, unit):
    assert quantity.parse(text) == (pytest.approx(value), unit)


def test_numbers_are_shown_with_one_prefix():
    assert quantity.several([44.8e6, 0.75e6], "bit/s", " ± ") == "44.8 ± 0.8 Mbit/s"
    assert quantity.several([0.9, inf], "s", " to ") == "900 ms to never"
    assert (quantity.formatted(inf, "s"), quantity.formatted(0.0213, "s"), quantity.formatted(1234, "packet")) == (
        "never",
        "21.3 ms",
        "1,234 packets",
    )


def test_the_catalogs_claims_are_sound():
    found = claim.load()
    assert {each.document for each in found} >= {"sce-l4s-bakeoff"}
    assert claim.json_schema()["properties"].keys() == {"document", "claims"}


def test_python_takes_measures_of_any_results():
    one, other = synthetic.made((45.7e6, 1.9e6)), synthetic.made((20e6, 7.6e6))
    assert measure(one, "goodput('prague')") == pytest.approx(45.7e6)
    assert measure(one, "goodput('cubic') < '2 Mbit/s'") is True
    # (7.6 - 1.9) / 7.6
    text = "harm(goodput('cubic', of='a'), goodput('cubic', of='b'))"
    assert measure({"a": one, "b": other}, text) == pytest.approx(0.75)
    with pytest.raises(BakeoffError, match="no flow 'bbr'"):
        measure(one, "goodput('bbr')")
    with pytest.raises(BakeoffError, match="unexpected end; expected"):
        measure(one, "goodput(")
    with pytest.raises(BakeoffError, match="no run; expected the name of a run"):
        measure({}, "goodput(1)")


def test_what_a_claim_compares_is_shown_as_it_was_written():
    flows = ", ".join(f'goodput("down{n}", begin="10s")' for n in range(1, 5))
    found = parse(f'spike_duration("ping", begin="0s", over="5ms") < "1s" and min({flows}) > 0.25 * max({flows})', [])
    assert [text for text, _ in found.sides] == [
        'spike_duration("ping", begin="0s", over="5ms")',
        f"min({flows})",
        f"0.25 * max({flows})",
    ]
    assert [text for text, _ in parse("jain(of='x') > 0.9", ["x"]).sides] == ['jain(of="x")']
    assert [str(call) for call in parse("jain > 0.9", []).calls] == ["jain()"]
