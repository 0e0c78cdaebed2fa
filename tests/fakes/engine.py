"""The engine `fake`: sample i of series s has the time i / 10 and the value 100 s + i + seed.

`point.does` of a run: `violates` breaks conservation, `refused` is refused by the check, `unmeasurable` and
`measure-bug` have samples that cannot be read, `interrupts` gets a Ctrl-C while it is under way, `blocks` writes
`started` into the named pipe `point.started` and ends when there is something to read in `point.go`, `dies` kills its
process, `dies-once` does so unless the file `point.died` exists, which it makes, `hangs` never ends, and `takes-all`
asks for more memory than it may have.
"""

import os
import resource
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np

from bakeoff.engines import Outcome, only_make, place
from bakeoff.errors import MeasureError, RefusedError
from bakeoff.results import layout, write_json, write_parts
from bakeoff.results.counters import Counters
from bakeoff.version import version

SERIES = [("flow", "prague", "goodput"), ("flow", "cubic", "goodput"), ("queue", "mid>srv", "qlen")]
SAMPLES = 5
WHOLE = {"sent": 10, "delivered": 10, "dropped": 0, "queued": 0}


class Unreadable(Mapping):
    """Samples whose reader fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getitem__(self, key: tuple[str, str, str]) -> None:
        raise self.error

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        raise self.error

    def __len__(self) -> int:
        return 1


class Fake:
    """See `bakeoff.engines.Engine`."""

    one_at_a_time = False
    repeatable = True

    def check(self, run) -> str:
        if run.point.get("does") == "refused":
            why = "flows[0].cc: unknown congestion control 'pragu'; did you mean 'prague'?"
            raise RefusedError(why, place=place(run))
        return f"mid>srv: pie limit 1000p ({run.run})"

    def execute(self, run, folder: Path) -> Outcome:
        (folder / layout.SETUP_LOG).write_text(self.check(run) + "\n")
        found = self.outcome(run, folder)
        (folder / layout.TEARDOWN_LOG).write_text("qdisc pie 8001: sent 10 pkt\n")
        if not isinstance(found.parts, Unreadable):
            write_parts(folder / layout.SERIES, found.parts)
            write_json(folder / layout.COUNTERS, counters(run))
        return found

    def outcome(self, run, folder: Path) -> Outcome:
        act(run.point)
        return Outcome(samples(run), msgspec.convert(counters(run), Counters))

    def versions(self) -> dict[str, str]:
        return {"bakeoff": version()}

    def estimate_s(self, run) -> float:
        return run.duration_s / 400


def choose(make: str | None) -> Fake:
    only_make("fake", make)
    return Fake()


def act(point: Mapping[str, str]) -> None:
    """Do what the run says."""
    match point.get("does"):
        case "violates":
            raise RuntimeError("conservation: sent 10, delivered 8, dropped 1, queued 0: 1 packet is missing")
        case "interrupts":
            signal.raise_signal(signal.SIGINT)
        case "blocks":
            with Path(point["started"]).open("w", encoding="utf-8") as pipe:
                pipe.write("started")
            Path(point["go"]).read_text(encoding="utf-8")
        case "dies-once" if Path(point["died"]).exists():
            pass
        case "dies-once":
            Path(point["died"]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hangs":
            threading.Event().wait()
        case "takes-all":
            take_all()


def samples(run) -> Mapping:
    match run.point.get("does"):
        case "unmeasurable":
            return Unreadable(MeasureError("the run has no series"))
        case "measure-bug":
            return Unreadable(KeyError("cubic"))
    step = np.arange(SAMPLES, dtype=np.float64)
    return {key: (step / 10, 100.0 * number + step + run.seed) for number, key in enumerate(SERIES)}


def counters(run) -> dict:
    flows = {flow.name: {} for flow in run.flows}
    return {"flows": flows, "queues": {}, "probes": {}, "conservation": WHOLE, "events": 100}


def take_all() -> None:
    """Ask for a terabyte where 8 GiB of addresses are allowed."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, before[1]))
    try:
        bytearray(1 << 40)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
