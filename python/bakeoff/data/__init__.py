"""The files that come with bakeoff and are no Python: the catalog, and what makes a virtual-time kernel of a tree.

They lie at the top of the repository, as `catalog` and `kernel`; the links of these names beside this file lead there.
A wheel holds the files themselves in the links' place, so that a checkout and an installation are read alike.
"""

from importlib.resources import files
from pathlib import Path
from typing import Literal

from bakeoff.errors import FileError


def folder(name: Literal["catalog", "kernel"]) -> Path:
    """The folder of that name, without links in its path; BakeoffError if the installation lost it."""
    here = Path(str(files(__name__)))
    path = (here / name).resolve()
    if not path.is_dir():
        raise FileError(f"{here / name}: missing folder '{name}'; install bakeoff again")
    return path


def checkout() -> Path | None:
    """The top of the repository where bakeoff is used from a checkout; None where it is installed."""
    catalog = Path(str(files(__name__))) / "catalog"
    return catalog.resolve().parent if catalog.is_symlink() else None
