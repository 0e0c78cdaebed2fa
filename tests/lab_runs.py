"""Small resolved runs for the tests of the lab, their parts, and what is asked of a run that was done."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.scenario import Run

HTB = {"qdisc": "htb default 1", "classes": [{"id": "1", "class": "rate 20mbit", "child": {"qdisc": "fq_codel"}}]}
SHORT = {
    "qdisc": "htb default 1",
    "classes": [{"id": "1", "class": "rate 20mbit", "child": {"qdisc": "pfifo limit 50"}}],
}
NETEM = {"qdisc": "netem delay 1ms"}


# Runs


def network(**changes: object) -> Run:
    """cli - mid - srv, a bridge in the middle, one cubic flow, nothing else."""
    document = {
        "format": 1, "suite": "local", "scenario": "lab", "run": "x", "seed": 1, "duration_s": 2.0,
        "sample_interval_s": 0.05, "window_s": [0.5, 2.0], "nodes": nodes(),
        "links": [{"ends": ["cli", "mid"]}, {"ends": ["mid", "srv"]}], "flows": [flow()],
    }  # fmt: skip
    return Run.from_json(json.dumps(document | changes))


def run_with(*ccs: str) -> Run:
    """A flow for each congestion control."""
    return network(flows=[flow(name=f"f{n}", cc=cc) for n, cc in enumerate(ccs)])


def by_tools(flows: str, probes: str, duration_s: float = 4.0) -> Run:
    """Traffic of other people's programs: one flow, one UDP probe."""
    return network(
        interfaces=egress(SHORT), duration_s=duration_s, window_s=[1.0, duration_s],
        flows=[flow(cc="reno", stop_s=duration_s)],
        probes=[probe(name="u", proto="udp", every_s=0.1, stop_s=duration_s)], tools={"flows": flows, "probes": probes},
    )  # fmt: skip


def short(**changes: object) -> Run:
    """Tail drop at 20 Mbit/s, no ECN."""
    return network(**({"interfaces": egress(SHORT), "nodes": nodes(cli={"net.ipv4.tcp_ecn": "0"})} | changes))


def slowed(**changes: object) -> Run:
    """`short`, at 5 Mbit/s after the first of its two seconds, and a ping every 100 ms for a second."""
    slower = action(kind="class-change", side="egress", id="1", **{"class": "rate 5mbit"})
    return short(**({"changes": [slower], "probes": [probe(every_s=0.1)]} | changes))


# Parts of a run


def nodes(**sysctls: dict[str, str]) -> list[dict]:
    """Those of `network`, with the sysctls of each that is named."""
    kinds = {"cli": "host", "mid": "bridge", "srv": "host"}
    return [
        {"name": name, "kind": kind, "sysctls": sysctls.get(name, {}), "hz": 1000, "offloads": False}
        for name, kind in kinds.items()
    ]


def ecn_nodes() -> list[dict]:
    """Both hosts negotiate AccECN."""
    return nodes(cli={"net.ipv4.tcp_ecn": "3"}, srv={"net.ipv4.tcp_ecn": "3"})


def egress(tree: dict, **others: object) -> list[dict]:
    return [{"node": "mid", "peer": "srv", "egress": tree, **others}]


def flow(**words: object) -> dict:
    return {"name": "a", "from": "cli", "to": "srv", "cc": "cubic", "start_s": 0.0, "stop_s": 2.0, **words}


def probe(**words: object) -> dict:
    return {"name": "p", "proto": "icmp", "from": "cli", "to": "srv", "every_s": 1, "size": 84, "start_s": 0.0,
            "stop_s": 1.0, **words}  # fmt: skip


def action(**words: object) -> dict:
    return {"at_s": 1.0, "node": "mid", "peer": "srv", "action": words}


# Plans and results


def lines(commands, *words: str) -> list[str]:
    """The commands that have all of these words, as they stand in the logs."""
    return [command.line() for command in commands if all(word in command.argv for word in words)]


def in_virtual_time(kernel: str, run: Run, folder: Path) -> results.Result:
    [done] = campaign.run([run], folder, Execution(engine=kernel, jobs=1)).runs
    assert done.error is None, f"{done.error}\n{(done.path / 'console.log').read_text()}"
    return results.read(done.path)


@contextmanager
def meanwhile(do: Callable[[], object], *, once: Callable[[], bool]) -> Iterator[None]:
    """Do something in a thread as soon as `once` is true, which it is within two minutes."""

    def wait() -> None:
        for _ in range(2400):
            if once():
                do()
                return
            time.sleep(0.05)
        raise AssertionError("what was waited for never came")

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def check_slowed(result: results.Result) -> None:
    """What `slowed` comes to on a machine of its own time."""
    received = result.series.filter((pl.col("metric") == "received") & (pl.col("kind") == "flow"))
    bits = 8 * float(received["value"].max())
    # At most 20 Mbit/s until the last sample, 1448 of 1514 bytes payload, and the burst of the queue; slower later. A
    # busy machine makes the change late, and carries less.
    assert 0 < bits < 20e6 * float(received["time"].max()) * 1448 / 1514 + 8 * 50 * 1448
    assert "rate 5Mbit" in (result.path / "teardown.log").read_text()
    assert result.all_counters()["flows"]["a"]["ecn"] == "off"
    queue = result.all_counters()["queues"]["mid>srv"]
    # Of what left the queue 1448 of 1514 bytes are payload; some is sent again or under way at the end.
    assert 0.8 < bits / (8 * queue["sent_bytes"]) <= 1448 / 1514
    assert queue["qdisc"] == "pfifo limit 50p"
    assert result.all_counters()["probes"]["p"]["sent"] == 10
