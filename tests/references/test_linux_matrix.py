"""The simulator against a real Linux 7.3: every congestion control alone through every queue (catalog/suites/linux)."""

import pytest

from bakeoff import campaign, references
from bakeoff.claims.comparison import BOUNDS, compare, distributions, side_of, side_of_reference
from bakeoff.results import survey
from bakeoff.scenario import catalog


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """28 runs of 60 s at 20 ms, beside the kernel's."""
    folder = tmp_path_factory.mktemp("linux")
    report = campaign.run(catalog.select("re:^linux/single/.*-20ms$"), folder)
    assert not report.failed
    ours = side_of("sim", survey(folder).results)
    return compare(ours, side_of_reference("linux", references.load(), ours))


def test_the_medians_are_within_their_bounds(compared):
    # 4 congestion controls through 7 queues, one flow each
    found = {one.measure: one for one in distributions(compared.differences, BOUNDS)}
    assert [found[measure].n for measure in BOUNDS] == [28, 28]
    assert found["goodput"].median < BOUNDS["goodput"]
    assert found["tcp_delay_mean"].median < BOUNDS["tcp_delay_mean"]


def test_one_flow_alone_gets_what_it_gets_in_the_kernel(compared):
    # No shares to settle: every flow is close, not half of them.
    for one in distributions(compared.differences, {}):
        if one.measure == "goodput":
            assert one.max < 0.01
        if one.measure == "tcp_delay_mean":
            assert one.p90 < 0.15
