"""Python runs this at the start of every process that has this folder on PYTHONPATH, as the children of tests do.

It puts the fakes in the place of the rooms that the tests of results, campaign and cli do not test, whether those
exist or not.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

HERE = Path(__file__).parent
FAKES = {
    "bakeoff._sim": HERE / "fake_sim.py",
    "bakeoff.measure": HERE / "fake_measure.py",
    "bakeoff.present": HERE / "fake_present" / "__init__.py",
    "bakeoff.present.tables": HERE / "fake_present" / "tables.py",
    "bakeoff.present.columns": HERE.parents[1] / "python" / "bakeoff" / "present" / "columns.py",
    "bakeoff.present.kinds": HERE / "fake_present" / "kinds.py",
    "bakeoff.present.plots": HERE / "fake_present" / "plots.py",
    "bakeoff.present.style": HERE / "fake_present" / "style.py",
    "bakeoff.present.terminal": HERE / "fake_present" / "terminal.py",
    "bakeoff.scenario": HERE / "fake_scenario" / "__init__.py",
    "bakeoff.scenario.catalog": HERE / "fake_scenario" / "catalog.py",
    "bakeoff.scenario.python_cc": HERE / "fake_scenario" / "python_cc.py",
    "bakeoff.scenario.error": HERE.parents[1] / "python" / "bakeoff" / "scenario" / "error.py",
    "bakeoff.scenario.units": HERE.parents[1] / "python" / "bakeoff" / "scenario" / "units.py",
    "bakeoff.scenario.run": HERE.parents[1] / "python" / "bakeoff" / "scenario" / "run.py",
}


class Finder(MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None) -> ModuleSpec | None:
        place = FAKES.get(fullname)
        if place is None:
            return None
        package = [str(place.parent)] if place.name == "__init__.py" else None
        return spec_from_file_location(fullname, place, submodule_search_locations=package)


FINDER = Finder()

if __name__ == "sitecustomize":  # as Python's own start-up imports it, and not as a test does
    sys.meta_path.insert(0, FINDER)
