"""Scenarios: experiments written as YAML, checked and expanded into resolved runs.

Knows nothing of engines. `docs/scenario-language.md` is the language by example, `docs/resolved-run.md` what comes out.
"""

from bakeoff.scenario import catalog
from bakeoff.scenario.duels import duel, duels
from bakeoff.scenario.run import Run
from bakeoff.scenario.scenario import Scenario, expand, load
from bakeoff.scenario.schema import json_schema
from bakeoff.scenario.settings import parse_settings

__all__ = ["Run", "Scenario", "catalog", "duel", "duels", "expand", "json_schema", "load", "parse_settings"]
