"""The engine `sim` around the simulator: what it writes, and what becomes of an error of the simulator."""

import gzip
import json
import signal

import numpy as np
import pytest

from bakeoff import _sim
from bakeoff.engines import sim
from bakeoff.errors import RefusedError, RunError
from bakeoff.results.series import read_series
from bakeoff.scenario import catalog
from scenario_texts import duel

RUN = duel("cubic", "reno").as_executable()


class PanicException(BaseException):
    """Has the name of a panic in Rust."""


@pytest.mark.parametrize(
    ("raised", "expected", "message"),
    [
        (ValueError("flows[0].cc: unknown"), RefusedError, "flows[0].cc: unknown"),
        (RuntimeError("conservation: 1 packet is missing"), RuntimeError, "conservation: 1 packet is missing"),
        (PanicException("subtract with overflow"), RunError, "the simulator panicked: subtract with overflow"),
        (PanicException("<class 'KeyboardInterrupt'>"), KeyboardInterrupt, ""),
    ],
)
def test_an_error_of_the_simulator(tmp_path, monkeypatch, raised, expected, message):
    def simulate(*_, **__):
        raise raised

    monkeypatch.setattr(_sim, "simulate", simulate)
    with pytest.raises(expected) as told:
        sim.Simulator().execute(RUN, tmp_path)
    assert str(told.value).endswith(message)
    # A run that was refused has not begun.
    assert (tmp_path / "setup.log").exists() == (expected is not RefusedError)


def test_samples_in_order_of_time_become_one_series_after_the_other(tmp_path, monkeypatch):
    names = [("flow", "prague", "goodput"), ("flow", "cubic", "goodput"), ("queue", "mid>srv", "qlen")]

    def simulate(*_, **__):
        # Sample i of series s has the time i / 10 and the value 100 s + i.
        numbers, step = np.tile(np.arange(3, dtype=np.uint32), 5), np.repeat(np.arange(5.0), 3)
        whole = {"sent": 10, "delivered": 10, "dropped": 0, "queued": 0}
        counters = {"flows": {}, "queues": {}, "probes": {}, "conservation": whole, "events": 100}
        samples = {"time": step / 10, "series": numbers, "value": 100.0 * numbers + step, "names": names}
        logs = {"setup": "set up\n", "teardown": "torn down\n", "captures": {"cli>mid": b"packets"}}
        return samples | logs | {"counters": json.dumps(counters), "trace": None}

    monkeypatch.setattr(_sim, "simulate", simulate)
    found = sim.Simulator().execute(RUN, tmp_path)
    series = read_series(tmp_path / "series.parquet")
    assert series["name"].to_list() == ["prague"] * 5 + ["cubic"] * 5 + ["mid>srv"] * 5
    assert series.filter(name="cubic")["value"].to_list() == [100.0, 101.0, 102.0, 103.0, 104.0]
    assert series.filter(name="cubic")["time"].to_list() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert found.parts["queue", "mid>srv", "qlen"][1].tolist() == [200.0, 201.0, 202.0, 203.0, 204.0]
    assert (tmp_path / "setup.log").read_text() == "set up\n"
    assert (tmp_path / "teardown.log").read_text() == "torn down\n"
    assert gzip.decompress((tmp_path / "cli-to-mid.pcapng.gz").read_bytes()) == b"packets"


def test_a_signal_ends_a_run_while_it_is_simulated(tmp_path, monkeypatch):
    """A path that takes no time keeps the simulator at one instant; the budget ends it if the signal does not."""
    network = "network: {path: [cli, mid, srv], rtt: 0ms}\n"
    text = f"scenario: s\nsuite: s\nduration: 1s\n{network}flows: [{{name: f, cc: cubic}}]\n"
    (tmp_path / "s.yaml").write_text(text)
    [endless] = catalog.select([str(tmp_path / "s.yaml")])
    monkeypatch.setenv("BAKEOFF_SIM_EVENTS", str(10**9))

    def ended(*_):
        raise SystemExit(143)

    before = signal.signal(signal.SIGALRM, ended)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(SystemExit):
            sim.Simulator().execute(endless, tmp_path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
