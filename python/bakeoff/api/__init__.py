"""The interface for notebooks and scripts. Each name is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bakeoff.api.do_advise import advise
    from bakeoff.api.do_compare import Compared, compare
    from bakeoff.api.do_evaluate import evaluate
    from bakeoff.api.do_runs import duel, run
    from bakeoff.api.do_sweep import sweep
    from bakeoff.api.do_trace import trace
    from bakeoff.api.do_verify import verify
    from bakeoff.api.do_worst import worst
    from bakeoff.api.result import Result, Results, import_, load, measured

__all__ = [
    "Compared", "Result", "Results", "advise", "compare", "duel", "evaluate", "import_", "load", "measured", "run",
    "sweep", "trace", "verify", "worst",
]  # fmt: skip

_MODULE_OF: Final = {
    "Result": "result", "Results": "result", "load": "result", "measured": "result", "duel": "do_runs",
    "run": "do_runs", "sweep": "do_sweep", "verify": "do_verify", "advise": "do_advise",
    "import_": "result", "Compared": "do_compare", "compare": "do_compare",
    "trace": "do_trace", "evaluate": "do_evaluate", "worst": "do_worst",
}  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401 (each has its own type above)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
