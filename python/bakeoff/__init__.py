"""A laboratory for congestion control that fits in a laptop.

```python
import bakeoff

r = bakeoff.duel("prague", "cubic", qdisc="fq_codel flows 1", rate="50mbit", rtt="20ms")
r.summary  # the measures
r.series  # the samples, a polars DataFrame
r.plot()  # a matplotlib Figure
r.measure("convergence()")  # any measure or expression of docs/claims.md

bakeoff.run("l4s-tests/s6*").table()  # a whole scenario, one row per flow
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bakeoff import extension
from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from bakeoff.api import (
        Compared,
        Result,
        Results,
        advise,
        compare,
        duel,
        evaluate,
        import_,
        load,
        measured,
        run,
        sweep,
        trace,
        verify,
        worst,
    )

    __version__: str

__all__ = [
    "BakeoffError", "Compared", "Result", "Results", "__version__", "advise", "compare", "duel", "evaluate", "import_",
    "load", "measured", "run", "sweep", "trace", "verify", "worst",
]  # fmt: skip


extension.choose()


def __getattr__(name: str) -> Any:  # noqa: ANN401 (what a module holds)
    """Import the interface when it is first used, so that `import bakeoff` and the command line's help stay light."""
    if name == "__version__":
        from bakeoff.version import version

        return version()
    if name in __all__:
        from bakeoff import api

        return getattr(api, name)
    raise AttributeError(f"module 'bakeoff' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
