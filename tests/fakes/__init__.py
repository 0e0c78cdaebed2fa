"""The rooms around results, campaign and cli, as small fakes; see sitecustomize.py."""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bakeoff

# These modules stay imported when the fakes are gone. So they are imported before, together with the real rooms.
import bakeoff.campaign.schedule

HERE = Path(__file__).parent


@contextmanager
def in_place() -> Iterator[None]:
    """Put the fakes in place in this process and in those it starts; afterwards all is as before."""
    sitecustomize = importlib.import_module("fakes.sitecustomize")
    finder = sitecustomize.FINDER
    rooms = {name.split(".")[1] for name in sitecustomize.FAKES}
    modules = {name: module for name, module in sys.modules.items() if _room(name) in rooms}
    attributes = {room: vars(bakeoff)[room] for room in rooms if room in vars(bakeoff)}
    path = os.environ.get("PYTHONPATH")
    _forget(rooms)
    sys.meta_path.insert(0, finder)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *([path] if path else [])])
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _forget(rooms)
        sys.modules.update(modules)
        vars(bakeoff).update(attributes)
        if path is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = path


def _room(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "bakeoff" and len(parts) > 1 else None


def _forget(rooms: set[str]) -> None:
    # The form of a resolved run is no fake: results are read by it.
    for name in [name for name in sys.modules if _room(name) in rooms and name != "bakeoff.scenario.run"]:
        del sys.modules[name]
    for room in rooms:
        vars(bakeoff).pop(room, None)
