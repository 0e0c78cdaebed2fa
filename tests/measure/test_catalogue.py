"""The catalogue of measures."""

from pathlib import Path

import pytest

from bakeoff.measure.catalogue import Catalogue, Measure
from bakeoff.measure.functions import CATALOGUE

ROOT = Path(__file__).parents[2]


def test_a_name_belongs_to_one_measure():
    catalogue = Catalogue()
    catalogue.add(Measure("delay", "flow", "s", "delay", "", float, aliases=("latency",)))
    for name, aliases in (("delay", ()), ("latency", ()), ("other", ("delay",)), ("other", ("latency",))):
        with pytest.raises(ValueError, match="is already registered"):
            catalogue.add(Measure(name, "flow", "s", "delay", "", float, aliases=aliases))


def test_an_alias_is_the_measure_and_says_its_name():
    with pytest.warns(FutureWarning, match="measure 'rtt_mean' was renamed to 'srtt_mean'"):
        assert CATALOGUE["rtt_mean"] is CATALOGUE["srtt_mean"]
    assert CATALOGUE.get("no_such") is None


def test_columns_of_one_name_have_one_unit():
    """`loss` is of a flow and of a probe, and both are shares."""
    for each in CATALOGUE.names.values():
        found = CATALOGUE.of_column(each.column if each.of == "run" else f"{each.of}1_{each.column}")
        if each.of_variable:  # cc, so that `flow1_cc` is the flow's control
            assert found is None
            continue
        assert found is not None
        assert (found.unit, found.bounds, found.percent) == (each.unit, each.bounds, each.percent), each.name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("flows.*.srtt_s.max", "srtt_max"),
        ("flows.*.srtt_s.min", "srtt_mean"),  # its unit and bounds
        ("flows.10.9.0.1:5001>10.9.0.2:80.steady_state.goodput_bps", "goodput"),
        ("queues.mid>srv.parts.L.mean", "l_delay_mean"),
        ("jain", "jain"),
        ("flows.*.srtt_s.n", None),
        ("seed", None),
    ],
)
def test_a_place_in_a_summary_has_its_measure(path, name):
    found = CATALOGUE.of_path(path)
    assert (found and found.name) == name
