"""Scenarios of the fakes, whose runs have no flows."""

from typing import Any

from bakeoff.scenario.run import Run


def make(run: str, seed: int = 1, scenario: str = "s1-first", **point: str) -> Run:
    """A run without flows, and with every field that a document has."""
    rated = {"qdisc": "htb default 1", "classes": [{"id": "1", "class": "rate 12mbit ceil 12mbit"}]}
    interfaces = [{"node": "mid", "peer": "srv", "egress": rated, "ingress": None, "mangle": [], "tx_queue_len": 1000}]
    nodes = [
        {"name": name, "kind": kind, "sysctls": {}, "hz": 1000, "offloads": False}
        for name, kind in (("mid", "router"), ("srv", "host"))
    ]
    fields: dict[str, Any] = {
        "format": 1,
        "suite": "fake",
        "scenario": scenario,
        "run": run,
        "title": "",
        "seed": seed,
        "duration_s": 60.0,
        "sample_interval_s": 0.1,
        "window_s": [18.0, 58.0],
        "nodes": nodes,
        "links": [],
        "interfaces": interfaces,
        "tunnels": [],
        "flows": [],
        "probes": [],
        "changes": [],
        "captures": [],
        "point": point,
        "present": {},
    }
    return Run(**fields).as_executable()


def duel(asked, *, seed=1) -> Run:
    from bakeoff.errors import BakeoffError

    if not asked.rate.endswith("bit"):
        raise BakeoffError(f"duel: rate: '{asked.rate}' has no unit; expected a rate such as '50mbit'")
    point = {key: str(getattr(asked, key)) for key in ("qdisc", "rate", "rtt", "rtt2", "duration")}
    if "violates" in (asked.cc1, asked.cc2):
        point["does"] = "violates"
    return make(f"{asked.cc1}-vs-{asked.cc2}", seed, "duel", **point)


def json_schema() -> dict:
    return {"title": "fake scenario"}


def parse_settings(words) -> dict:
    return dict(word.split("=", 1) for word in words)
