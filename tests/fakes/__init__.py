"""An engine whose samples are known, runs for it, and a catalog of such runs (`fakes/catalog`).

The engine is registered by `tests/bakeoff_fakes-1.dist-info`, as that of another package is.
"""

from pathlib import Path

TESTS = Path(__file__).parents[1]
CATALOG = Path(__file__).parent / "catalog"
"""fake/s1-first has the runs a, b and c; fake/s2-second has one for each of three things that the engine does."""
