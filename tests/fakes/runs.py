"""Runs for the fake engine: they have no flows, so that little is measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bakeoff import campaign
from bakeoff.campaign import Execution, Report
from bakeoff.scenario.run import Run


def run_campaign(runs: Sequence[Run], root: Path, execution: Execution | None = None, **options: Any) -> Report:
    """`campaign.run` with the fake engine."""
    return campaign.run(runs, root, replace(execution or Execution(), engine="fake"), **options)


def words(command: str, *arguments: str) -> list[str]:
    """The arguments of a command line, with the fake engine for a command that needs one."""
    return [command, *(["--engine", "fake"] if command in ("run", "show") else []), *arguments]


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
