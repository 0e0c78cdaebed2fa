"""Scenarios: experiments written as YAML, checked and expanded into resolved runs.

Knows nothing of engines. `docs/scenario-language.md` is the language by example, `docs/resolved-run.md` what comes out.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bakeoff.scenario import catalog
    from bakeoff.scenario.duel_runs import duel
    from bakeoff.scenario.run import Run
    from bakeoff.scenario.scenario import Scenario, expand, load
    from bakeoff.scenario.schema import json_schema
    from bakeoff.scenario.settings import parse_settings

__all__ = ["Run", "Scenario", "catalog", "duel", "expand", "json_schema", "load", "parse_settings"]

_MODULES: Final = {
    "Run": "run",
    "Scenario": "scenario",
    "duel": "duel_runs",
    "expand": "scenario",
    "json_schema": "schema",
    "load": "scenario",
    "parse_settings": "settings",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (what a module holds)
    """Import a part when it is first used: who reads results needs the resolved run, and no language of scenarios."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bakeoff.scenario' has no attribute {name!r}")
    return getattr(import_module(f"bakeoff.scenario.{_MODULES[name]}"), name)
