"""Where the catalog lies, and the profiles in it that lie under a scenario."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bakeoff import data
from bakeoff.errors import ScenarioError
from bakeoff.scenario.error import DocumentError, did_you_mean
from bakeoff.scenario.yaml_file import read_yaml


def root() -> Path:
    """The catalog's folder: BAKEOFF_CATALOG, else the one that comes with bakeoff."""
    named = os.environ.get("BAKEOFF_CATALOG")
    if named:
        if not (Path(named) / "suites").is_dir():
            raise ScenarioError(f"BAKEOFF_CATALOG: '{named}': no folder 'suites'; expected a catalog folder")
        return Path(named)
    return data.folder("catalog")


def with_profile(document: Mapping[str, Any]) -> dict[str, Any]:
    """`document` over the profile that it names, if it names one; DocumentError if there is no such profile."""
    name = document.get("profile")
    if name is None:
        return dict(document)
    folder = root() / "profiles"
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if name not in known:
        raise DocumentError("profile", f"'{name}': unknown profile{did_you_mean(str(name), known)}")
    return _merged(read_yaml(folder / f"{name}.yaml"), document)


def profile_of(document: Mapping[str, Any]) -> Path | None:
    """The file of the profile that the document names; None if it names none that is there."""
    name = document.get("profile")
    known = (root() / "profiles").glob("*.yaml") if name is not None else ()
    return next((file for file in known if file.stem == name), None)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**under, **over}
    for key in under.keys() & over.keys():
        if isinstance(under[key], dict) and isinstance(over[key], dict):
            merged[key] = _merged(under[key], over[key])
    return merged
