"""Drawn expressions and options: each text of a small language is read, or refused with one message."""

import pytest
from fuzzing import drawn, refused, texts
from hypothesis import example, given
from hypothesis import strategies as st

from bakeoff import results, tc
from bakeoff.campaign.sweep_schedule import Budget
from bakeoff.claims import evaluate, expression
from bakeoff.claims.goal import goal_of
from bakeoff.expressions import quantity
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.measure.functions import CATALOGUE
from bakeoff.scenario import bounds, parse_settings, units
from bakeoff.scenario import sweep_points as sweep
from bakeoff.tables import filters
from bakeoff.tables.records import records
from bakeoff.tables.rows import rows

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

NUMBERS = [
    "0", "1", "-1", "0.5", "1e999", "1e400", "-1e308", "1e-400", "nan", "inf", "1_0", "0x1F", "1j", "1e", "1.", ".5",
    "00", "9" * 400, "9" * 5000, "\u0663",
]  # fmt: skip
UNITS = ["ms", "s", "us", "ns", "min", "h", "bit", "mbit", "gbit", "Mibit", "tbps", "B", "kB", "kb", "%", "e9"]
SIGNS = [
    *"'\",:()[]{}\\=<>+-*/%~@.#;± \n\t\0\u202e\ud800", "..", "==", "!=", ">=", "**", "//", ":=", "\x1b[2J", "(" * 60,
    "-" * 3000, "not " * 60, "a" * 3000,
]  # fmt: skip
WORDS = [*NUMBERS, *UNITS, *SIGNS]
PYTHON = [
    *WORDS, " and ", " or ", " not ", " in ", " is ", " if ", " else ", "lambda: ", "None", "True", "for x in y",
    "await ", "yield ", "f'{x}'", "b'x'", "__import__('os')", ".real", "[0]", "*a", "**a", "...", "of=",
]  # fmt: skip

EXPRESSIONS = texts(
    [
        "jain > 0.9 and ping_p99() < '50ms'",
        "goodput('reno') > 2 * goodput('cubic')",
        "share('cubic', of='a') / 3",
        "max(jain, 0.5, mean(jain, 1)) * median(1, 2)",
        "harm(goodput('reno'), '5mbit') <= abs(-1)",
        "1 < jain <= 2",
        "goodput('reno') - '5mbit'",
        "jain",
    ],
    [
        *PYTHON,
        *(f"{name}()" for name in CATALOGUE.names),
        *CATALOGUE.names,
        "'reno'",
        "min",
        "max",
        "harm",
        "under_utilisation",
    ],
)
CONDITIONS = texts(
    [
        "utilisation > '90%'",
        "jain < 0.9 and not (n == 1 or drops > 0)",
        "'codel' in qdisc",
        "qdisc in ['pie', 'red']",
        "queue_delay_p99_s > '20ms'",
        "jain != None",
        "rate == '10mbit'",
    ],
    [*PYTHON, "jain", "utilisation", "goodput_bps", "queue_delay_p99_s", "qdisc", "flows", ".reno", "drops"],
)
OVER = texts(
    [
        "network.rtt=log:1ms..200ms:12",
        "flows.0.count=lin:1..50",
        "qdisc=pie,red,fq_codel",
        "x=[{a: 1}, {b: 2}]",
        "network.bottleneck.rate=5mbit,20mbit",
        "x=lin:-1..1:3",
    ],
    [*WORDS, "lin:", "log:", "..", ":2", ":300", "null", "&a", "*a", "!!python/object:x", "?"],
)
SAMPLES = texts(["lhs:20", "sobol:32"], [*WORDS, "lhs:", "sobol:", "8"])
UNTIL = texts(
    ["jain ±2%", "goodput('reno') ±0.5mbit", "ping_p99() +- 3ms", "jain+/-0.01"], [*WORDS, "+-", "jain", "goodput"]
)
BUDGETS = texts(["500", "10min", "1.5h", "3e2"], WORDS)
QUANTITIES = texts(["50mbit", "10ms", "1.5s", "1600b", "10Kb", "3Mibit", "1gbps", "50%", "0x13", "CS1"], WORDS)


@pytest.fixture(scope="module")
def result(done):
    [found] = results.survey(done).results
    return found


@pytest.fixture(scope="module")
def table(result):
    return [record for _, record in records(rows([result]), "runs")]


@drawn
@given(text=EXPRESSIONS)
@example(text="0share")
@example(text="10 ** 400")
@example(text="jain * 1e308 * 1e308")
def test_an_expression_of_claims_is_taken_or_refused(result, text):
    found = refused(lambda: expression.parse(text, ("a", "b")), ExpressionError)
    assert found is None or (found.calls, found.sides, found.limits) is not None
    refused(lambda: evaluate.measure(result, text))
    refused(lambda: evaluate.check_number(text, [], "--measure"))
    if refused(lambda: evaluate.number_of(text)) is not None:
        [value] = evaluate.numbers(result, [text]).values()
        assert value is None or abs(value) < float("inf")


@drawn
@given(text=CONDITIONS)
@example(text="jain is 1")
@example(text=f"jain > {'9' * 400}")
@example(text="jain > [1]")
@example(text="utilisation > '1e999bit'")
def test_a_condition_selects_rows_or_is_refused(table, text):
    refused(lambda: filters.select(table, text))
    refused(lambda: filters.order(table, text))


@drawn
@given(over=st.lists(OVER, min_size=1, max_size=3), how=SAMPLES)
def test_points_of_a_sweep_are_made_or_refused(over, how):
    found = refused(lambda: sweep.parse_over(over))
    if found is None:
        return
    for points in (refused(lambda: sweep.grid(found)), refused(lambda: sweep.sample(found, how))):
        assert points is None or 1 <= len(points) <= bounds.MOST_RUNS
    refused(lambda: sweep.free(found, "--adaptive"))
    for each in found:
        assert each.range is None or [each.range.at(share) for share in (0.0, 0.5, 1.0)]


@drawn
@given(text=UNTIL)
def test_a_goal_is_one_or_is_refused(text):
    goal = refused(lambda: goal_of(text))
    assert goal is None or 0 < goal.half_width < float("inf")


@drawn
@given(text=BUDGETS, runs=st.integers(1, 10), run_s=st.sampled_from([1e-9, 0.1, 1e9]))
@example(text="99999999999999h", runs=1, run_s=1e-9)
def test_a_budget_has_points_or_is_refused(text, runs, run_s):
    budget = refused(lambda: Budget.parse(text))
    if budget is not None:
        points = refused(lambda: budget.points(runs, run_s, 2))
        assert points is None or points >= 0


@drawn
@given(text=QUANTITIES)
@example(text="1e999bit")
def test_a_quantity_is_one_or_is_refused(text):
    for read in (tc.rate, tc.time, tc.size, lambda word: tc.time(word, bare="ns")):
        value = refused(lambda read=read: read(text))
        assert value is None or 0 <= value < float("inf")
    for read in (units.parse_rate, units.parse_time, units.parse_size, units.parse_percentage, units.parse_dscp):
        value = refused(lambda read=read: read(text), ValueError)
        assert value is None or 0 <= value < float("inf")
    value = refused(lambda: quantity.parse(text), ValueError)
    assert value is None or abs(value[0]) < float("inf")
    known = units.si(text)
    assert known is None or (abs(known[0]) < float("inf") and units.written(*known))


@drawn
@given(text=texts(["network.rtt=40ms", "flows.0.cc=bbr", "flows.a={cc: bbr}", "vary.x=[1, 2]"], WORDS))
def test_a_setting_is_one_or_is_refused(text):
    found = refused(lambda: parse_settings([text]))
    assert found is None or len(found) == 1
