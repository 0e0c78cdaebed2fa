"""What changed between two versions: the test, its correction, and the words."""

from math import inf, sqrt
from random import Random

import pytest

from bakeoff.claims.changes import change, corrected, counts


def one(ours, theirs, better="higher", unit="bit/s"):
    return corrected([change(ours, theirs, unit, better)])[0]


def test_the_interval_and_the_probability_are_those_of_the_pairs():
    found = one([90.0, 92.0, 94.0], [100.0, 100.0, 100.0])
    # Differences -10, -8, -6: mean -8, s = 2; half = 4.3027 * 2 / sqrt(3) = 4.968.
    assert (found.difference, found.pairs) == (-8.0, 3)
    assert found.interval == pytest.approx((-12.968, -3.032), abs=1e-3)
    # Of 2 degrees of freedom P(|T| > t) = 1 - t / sqrt(t^2 + 2), here t = 8 / (2 / sqrt(3)).
    t = 8 / (2 / sqrt(3))
    assert found.p == pytest.approx(1 - t / sqrt(t * t + 2))
    assert (found.word, found.words) == ("worse", "8 % less, interval 3 to 13 %")


def test_pairs_count_and_not_the_scatter_between_seeds():
    theirs = [10.0, 50.0, 90.0, 130.0]
    assert (
        one([value + step for value, step in zip(theirs, (1.0, 1.1, 0.9, 1.0), strict=True)], theirs).word == "better"
    )
    assert one([51.0, 11.0, 131.0, 91.0], theirs).word == "undecided"


@pytest.mark.parametrize(("better", "word"), [("higher", "better"), ("lower", "worse"), ("neither", "differs")])
def test_more_is_what_the_case_says(better, word):
    assert one([11.0, 12.0, 11.5], [1.0, 2.0, 1.6], better).word == word


def test_holm_multiplies_the_smallest_by_all_that_are_left():
    # Chosen by their t: differences mean ± s with n = 3.
    several = [
        change([100 + mean - 1, 100.0 + mean, 100 + mean + 1], [100.0] * 3, None, "higher") for mean in (2, 9, 3.5)
    ]
    same = change([5.0, 6.0], [5.0, 6.0], None, "higher")
    p = [each.p for each in several]
    assert p[1] < p[2] < p[0]
    found = corrected([several[0], same, several[1], several[2]])
    expected = [max(p[0], 2 * p[2]), 1.0, 3 * p[1], 2 * p[2]]
    assert [each.corrected for each in found] == pytest.approx(expected)
    assert [each.word for each in found] == ["undecided", "same", "better", "undecided"]
    assert counts([each.word for each in found]) == {"better": 1, "undecided": 2, "same": 1}


def test_unchanged_versions_rarely_have_any_false_alarm():
    random = Random(1)

    def alarms(correct):
        several = [
            change([random.gauss() for _ in range(5)], [random.gauss() for _ in range(5)], None, "higher")
            for _ in range(20)
        ]
        found = correct(several)
        return any(each.word in ("better", "worse") for each in found)

    reports = 300
    # At most 5 % of 300 are 15; 30 is beyond the chance of 1 in 1000. Uncorrected it is 1 - 0.95^20 = 64 %.
    assert sum(alarms(corrected) for _ in range(reports)) < 30
    alone = lambda several: [corrected([each])[0] for each in several]  # noqa: E731
    assert sum(alarms(alone) for _ in range(reports)) > 150


@pytest.mark.parametrize(
    ("ours", "theirs", "unit", "word", "words"),
    [
        ([1.0, 1.0], [1.0005, 1.0], "s", "same", "the same"),
        ([2.0, 2.0], [1.0, 1.0], "s", "worse", "100 % more, interval 100 to 100 %"),
        ([9.0, 12.0], [10.0, 10.0], "s", "undecided", "5 % more, interval 100 % less to 196 % more"),
        ([3.0, 5.0, 4.0], [0.0, 0.0, 0.0], "packet", "worse", "4.00 packets more, interval 1.52 to 6.48 packets"),
        ([40.0, 41.0, 39.0], [10.0, 10.0, 10.0], "s", "worse", "4.0 times as much, interval 3.8 to 4.2"),
        ([inf, inf], [1.0, 2.0], "s", "worse", "1.50 s before, never now"),
        ([inf, 2.0], [1.0, 2.0], "s", "undecided", "1.50 s before, never now"),
        ([2.0], [1.0], "s", "undecided", "100 % more"),
        ([inf, inf], [inf, inf], "s", "same", "the same"),
    ],
)
def test_words(ours, theirs, unit, word, words):
    # 9, 12 against 10, 10: mean 0.5, s = 2.121, half = 12.7062 * 2.121 / sqrt(2) = 19.06; cut at 100 % less.
    # 3, 5, 4 against 0: half = 4.3027 / sqrt(3) = 2.484. 40, 41, 39 against 10: 30 ± 2.484, with the old 40 ± 2.484.
    found = one(ours, theirs, "lower", unit)
    assert (found.word, found.words) == (word, words)


def test_holm_never_falls():
    # Twice p = 0.0202 as above: the smallest times 2, and the second, times 1, is no better than the first.
    several = [change([103.0, 104.0, 105.0], [100.0] * 3, None, "higher") for _ in range(2)]
    assert [each.corrected for each in corrected(several)] == [pytest.approx(2 * several[0].p)] * 2
