"""The language that claims and conditions share: what is read, in which order, and where it cannot be read."""

import pytest

from bakeoff.expressions.grammar import ExpressionError, Grammar
from bakeoff.expressions.nodes import TEXT, TRUTH, Constant, Leaf, limits, natural, value_of
from bakeoff.measure import MeasureError

INF = float("inf")
VALUES = {"a": 6.0, "b": 4.0, "zero": 0.0, "rtt": 0.02, "gone": None, "word": "x20", "odd-name": 5.0}
UNITS = {"rtt": "s", "word": TEXT}


class Names(Grammar):
    """Names are keys of VALUES."""

    def name(self, word):
        if word not in VALUES:
            raise ExpressionError(f"no name '{word}'")
        return Leaf(word, UNITS.get(word), (0.0, 10.0) if word == "a" else (-INF, INF), word, bare=word != "rtt")


def read(text):
    return Names(text, ["odd-name"]).read()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * 2", 14.0),  # 6 + 8
        ("(a + b) * 2", 20.0),
        ("a - b - 1", 1.0),  # from the left
        ("a / b / 2", 0.75),
        ("-a + b", -2.0),
        ("- -a", 6.0),
        ("odd-name-1", 4.0),
        ("1_000 + .5 + 1e2", 1100.5),
        ("a / zero", INF),
        ("-a / zero", -INF),
        ("max(a, b, 7) + abs(b - a)", 9.0),
        ("10ms + '5 ms' + 1e-3s", 0.016),
        ("50% * a", 3.0),
        ("a > 1 or a > 9 and b > 9", 1.0),  # 'and' binds more strongly
        ("(a > 1 or a > 9) and b > 9", 0.0),
        ("not a > 9 and not b > 9", 1.0),
        ("not (a > 9 or b > 1)", 0.0),
        ("1 < b < a < 7", 1.0),
        ("1 < b < a < 5", 0.0),
        ("a in [1, 6]", 1.0),
        ("a in (6)", None),
        ("a not  in (1, 2,)", 1.0),
        ("rtt == 20ms and rtt == '0.02s'", 1.0),
        ("word > 'x3'", 1.0),  # 20 after 3
        ("word == \"x20\" and word != 'it\\'s'", 1.0),
        ("gone < 1 or gone >= 1", 0.0),  # what is missing has no order
        ("gone != 1", 1.0),
        ("a >\n 1", 1.0),
    ],
)
def test_what_texts_come_to(text, value):
    if value is None:
        with pytest.raises(ExpressionError, match="expected a list after 'in'"):
            read(text)
    else:
        assert value_of(read(text), VALUES) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a > ", "'a >': unexpected end;"),
        ("a b", "'a b': syntax error at 'b', character 3"),
        ("a > = 1", "syntax error at '=', character 5; expected '==' for equal"),
        ("a | b", r"syntax error at '\|', character 3; expected 'or'"),
        ("a > 'x", "syntax error at ''', character 5"),
        ("(a", "unexpected end"),
        ("a > 1)", r"syntax error at '\)', character 6"),
        ("max(a=1) > 1", "expected 1 or more values for max, without names"),
        ("[b=1] == 1", "'b =' is not supported here; expected '=='"),
        ("maxx(a)", "unknown measure 'maxx'; did you mean 'max'"),
        ("a and b > 1", "'a' is a number; expected a comparison"),
        ("(a > 1) + 1", "'a > 1' is a boolean; expected a number"),
        ("word * 2", "'word' is a string; expected a number"),
        ("rtt + 5mbit", 'rtt is a time, and 5mbit is a rate; expected a time such as "20ms"'),
        ("rtt > 20", "rtt is a time, and '20' has no unit; expected for example \"20ms\""),
        ("a > 11", "a is from 0 to 10; expected a number in this range"),
        ("a" + " + 1" * 60, "nested too deeply"),
        ("-" * 1900 + "a", "nested too deeply"),
        ("a" * 2001, "has 2,001 characters; expected at most 2,000"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text, message):
    with pytest.raises(ExpressionError, match=message):
        read(text)


def test_a_node_knows_its_words_unit_and_limits():
    found = read("2 *  (rtt - '5 ms') < 1s")
    assert (found.unit, found.text) == (TRUTH, '2 * (rtt - "5 ms") < 1s')
    product, second = found.parts
    assert (product.text, product.unit) == ('2 * (rtt - "5 ms")', "s")
    assert second == Constant(1.0, "s", "1s")
    assert (limits(read("max(a, 3)")), limits(read("a * 2")), limits(read("a - 2"))) == (
        (0.0, 10.0),
        (0.0, INF),
        (-INF, INF),
    )


@pytest.mark.parametrize("text", ["zero / zero", "gone + 1", "min(gone, a)"])
def test_what_has_no_value_is_told(text):
    with pytest.raises(MeasureError, match="has no value: "):
        value_of(read(text), VALUES)


def test_texts_with_numbers_have_a_natural_order():
    assert sorted(["160ms", "20ms", "a10", "a9"], key=natural) == ["20ms", "160ms", "a9", "a10"]
