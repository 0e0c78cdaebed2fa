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
    "bakeoff.plots": HERE / "fake_plots" / "__init__.py",
    "bakeoff.plots.draw": HERE / "fake_plots" / "draw.py",
    "bakeoff.plots.kinds": HERE / "fake_plots" / "kinds.py",
    "bakeoff.plots.style": HERE / "fake_plots" / "style.py",
    "bakeoff.scenario": HERE / "fake_scenario" / "__init__.py",
    "bakeoff.scenario.catalog": HERE / "fake_scenario" / "catalog.py",
    "bakeoff.scenario.python_cc": HERE / "fake_scenario" / "python_cc.py",
    "bakeoff.scenario.error": HERE.parents[1] / "python" / "bakeoff" / "scenario" / "error.py",
    "bakeoff.scenario.units": HERE.parents[1] / "python" / "bakeoff" / "scenario" / "units.py",
    "bakeoff.scenario.run": HERE.parents[1] / "python" / "bakeoff" / "scenario" / "run.py",
    "bakeoff.tables": HERE / "fake_tables" / "__init__.py",
    "bakeoff.tables.results_table": HERE / "fake_tables" / "results_table.py",
    "bakeoff.tables.run_report": HERE / "fake_tables" / "run_report.py",
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
