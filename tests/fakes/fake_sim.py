"""A simulator whose samples are known: sample i of series s has the time i / 10 and the value 100 s + i + seed.

`point.does` of the run: `violates` breaks conservation, `panics` panics, `refused` is refused by the check,
`interrupts` gets a Ctrl-C while it is under way, `blocks` says `started` on the named pipe in `point.started` and
goes on when there is something to read in `point.go`. `dies` kills the process that it is in, `dies-once` does so
unless the file `point.died` is there, which it makes; `hangs` never ends, and `takes-all` asks for more memory than it
may have.
"""

import json
import os
import resource
import signal
import threading
from pathlib import Path

import numpy as np

SAMPLES = 5
NAMES = [("flow", "prague", "goodput"), ("flow", "cubic", "goodput"), ("queue", "mid>srv", "qlen")]


class PanicException(BaseException):
    pass


class HookError(Exception):
    pass


def simulate(run: str, modules: dict[str, type], *, exact: bool = False) -> dict:
    document = json.loads(run)
    point = document["point"]
    does = point.get("does")
    if does == "violates":
        raise RuntimeError("conservation: sent 10, delivered 8, dropped 1, queued 0: 1 packet is missing")
    if does == "panics":
        raise PanicException("attempt to subtract with overflow")
    if does == "interrupts":
        signal.raise_signal(signal.SIGINT)
    if does == "blocks":
        with Path(point["started"]).open("w", encoding="utf-8") as pipe:
            pipe.write("started")
        Path(point["go"]).read_text(encoding="utf-8")
    if does == "dies" or (does == "dies-once" and not Path(point["died"]).exists()):
        if does == "dies-once":
            Path(point["died"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if does == "hangs":
        threading.Event().wait()
    if does == "takes-all":
        take_all()
    # In order of time, as a simulator gives them: the series take turns.
    count = len(NAMES)
    series = np.tile(np.arange(count, dtype=np.uint32), SAMPLES)
    step = np.repeat(np.arange(SAMPLES, dtype=np.float64), count)
    whole = {"sent": 10, "delivered": 10, "dropped": 0, "queued": 0}
    counters = {"flows": {}, "queues": {}, "probes": {}, "conservation": whole, "events": 100}
    return {
        "time": step / 10,
        "series": series,
        "value": 100.0 * series + step + document["seed"],
        "names": NAMES,
        "counters": json.dumps(counters),
        "setup": check(run, modules) + "\n",
        "captures": {},
        "trace": None,
        "teardown": "qdisc pie 8001: sent 10 pkt\n",
    }


def take_all() -> None:
    """Ask for a terabyte where 8 GiB of addresses are allowed."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, before[1]))
    try:
        bytearray(1 << 40)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def check(run: str, modules: dict[str, type]) -> str:
    document = json.loads(run)
    if document["point"].get("does") == "refused":
        raise ValueError("flows[0].cc: unknown congestion control 'pragu'; did you mean 'prague'?")
    return f"mid>srv: pie limit 1000p ({document['run']})"


def qdisc_kinds() -> list[dict]:
    """Of no kind: the fake runs name no qdisc."""
    return []
