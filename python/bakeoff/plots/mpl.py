"""matplotlib, without the settings of the folder that bakeoff is called in.

matplotlib takes a file `matplotlibrc` of the current folder for the user's own. In a folder of results or scenarios
that somebody sent it is that person's, and names what matplotlib loads and which files it reads.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def _away_from_settings() -> Iterator[None]:
    """In the root folder, which is the system's, if there is such a file here and it was not read already."""
    if "matplotlib" in sys.modules or not os.path.lexists("matplotlibrc"):
        yield
        return
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(Path("/"))
        yield
    finally:
        os.fchdir(here)
        os.close(here)


with _away_from_settings():
    import matplotlib as mpl
    from matplotlib.colors import is_color_like, to_hex, to_rgb
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, StepPatch

__all__ = [
    "ConstrainedLayoutEngine",
    "Figure",
    "Line2D",
    "Patch",
    "StepPatch",
    "is_color_like",
    "mpl",
    "to_hex",
    "to_rgb",
]
