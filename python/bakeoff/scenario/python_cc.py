"""A congestion control written in Python, as a scenario names it: `./mycc.py:MyCC`. Nothing is loaded here."""

import hashlib
import re
from pathlib import Path

from bakeoff.scenario.error import ScenarioError
from bakeoff.scenario.run import Run

_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)")
PREFIX = "python:"
"""What begins the name of a class object that was given to `bakeoff.duel` in place of a file."""


def split(cc: str) -> tuple[str, str] | None:
    """(path, class) of `PATH.py:CLASS`; None for other names."""
    match = _FILE.fullmatch(cc)
    return (match["path"], match["name"]) if match else None


def is_python(cc: str) -> bool:
    """Whether only the simulator can run it, because it is written in Python."""
    return split(cc) is not None or cc.startswith(PREFIX)


def short(cc: str) -> str:
    """The class alone: a name that can stand in a flow's or a run's."""
    return re.split(r"[:.]", cc)[-1] if is_python(cc) else cc


def placed(run: Run, folder: Path) -> Run:
    """The run with absolute paths (relative ones are in `folder`) and SHA-256 sums of such files.

    ScenarioError names a file that cannot be read.
    """
    flows = []
    for index, flow in enumerate(run.flows):
        parts = split(flow.cc) if flow.transport == "tcp" else None
        if parts is None:
            flows.append(flow)
            continue
        path = (folder / Path(parts[0]).expanduser()).resolve()
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise ScenarioError(f"flows[{index}].cc", f"'{flow.cc}': {path}: {error.strerror}") from None
        flows.append(flow.model_copy(update={"cc": f"{path}:{parts[1]}", "cc_sha256": digest}))
    return run.model_copy(update={"flows": flows})
