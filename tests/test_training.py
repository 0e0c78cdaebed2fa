"""What a wheel's profile is taken from and checked by: packaging/training.toml."""

import importlib.util
import json
from pathlib import Path

import pytest

from bakeoff import _sim

SCRIPT = Path(__file__).parents[1] / "packaging" / "training.py"


@pytest.fixture(scope="module")
def training():
    spec = importlib.util.spec_from_file_location("training", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_checks_a_profile_was_not_trained_on_and_both_reach_most_of_the_simulator(training, monkeypatch):
    monkeypatch.chdir(SCRIPT.parents[1])
    trained, checked = (dict(training.documents(part)) for part in ("training", "check"))
    assert not trained.keys() & checked.keys()
    # Of the qdiscs and controls that the suites use without a version, each is in the training.
    text = "\n".join(trained.values())
    for qdisc in (
        "pfifo",
        "fq_codel",
        "codel",
        "pie",
        "red",
        "dualpi2",
        "cake",
        "cnq_codel_af",
        "twin_codel_af",
        "netem",
    ):
        assert f'"{qdisc}' in text, qdisc
    for cc in ("reno", "cubic", "dctcp", "bbr", "bbr3", "prague", "cubic-sce"):
        assert f'"cc": "{cc}' in text or f'"cc":"{cc}' in text, cc
    assert max(len(json.loads(document)["flows"]) for document in trained.values()) >= 100


def test_a_digest_tells_runs_apart_and_not_repetitions(training):
    document = (SCRIPT.parents[1] / "tests/data/determinism.json").read_text()
    assert document.count('"seed": 1,') == 1
    first, again = (training.digest(_sim.simulate(document)) for _ in range(2))
    other = training.digest(_sim.simulate(document.replace('"seed": 1,', '"seed": 2,')))
    assert first == again != other
