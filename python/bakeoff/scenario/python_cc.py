"""A congestion control written in Python, as a scenario names it: `./mycc.py:MyCC`. Nothing is loaded here."""

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bakeoff import files
from bakeoff.errors import BakeoffError
from bakeoff.scenario.error import ScenarioError
from bakeoff.scenario.run import Run
from bakeoff.scenario.shipped import root

_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)")
PREFIX = "python:"
"""What begins the name of a class object that was given to `bakeoff.duel` in place of a file."""
LARGEST: Final = 4 << 20
"""Bytes of such a file."""


class Code(NamedTuple):
    """A file that a run executes."""

    path: str
    sha256: str | None
    own: bool
    """Whether it needs no permission: the user typed its path, or it lies where the scenario does, or below."""


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


def placed(run: Run, folder: Path, typed: Collection[str] = ()) -> Run:
    """The run with absolute paths (relative ones are in `folder`) and SHA-256 sums of such files.

    Those whose name is one of `typed`, or that lie in `folder`, below it or in the catalog, are the run's own.
    ScenarioError names a file that cannot be read.
    """
    # No other name has a colon.
    if not any(":" in flow.cc for flow in run.flows):
        return run
    flows = []
    own = set()
    for index, flow in enumerate(run.flows):
        parts = split(flow.cc) if flow.transport == "tcp" else None
        if parts is None:
            flows.append(flow)
            continue
        path = Path(os.path.realpath(folder / Path(parts[0]).expanduser()))
        try:
            digest = hashlib.sha256(files.read(path, LARGEST)).hexdigest()
        except OSError as error:
            raise ScenarioError(f"flows[{index}].cc", f"'{flow.cc}': {path}: {error.strerror}") from None
        cc = f"{path}:{parts[1]}"
        if flow.cc in typed or any(files.is_below(path, each) for each in (folder, root())):
            own.add(cc)
        flows.append(flow.model_copy(update={"cc": cc, "cc_sha256": digest}))
    return run.model_copy(update={"flows": flows}).with_own_code(own)


def executed(runs: Iterable[Run]) -> list[Code]:
    """The files that the runs execute, each once."""
    found: dict[str, Code] = {}
    for run in runs:
        for _, path, code in _codes(run):
            before = found.get(path)
            found[path] = code._replace(own=code.own and (before is None or before.own))
    return list(found.values())


def permitted(run: Run, *, allow_code: bool = False) -> Run:
    """The run as one that may be done: engines execute the files that it names.

    BakeoffError names a file that is not the run's own, unless `allow_code`.
    """
    for index, path, code in _codes(run):
        if not code.own and not allow_code:
            at = "".join(f"{each}: " for each in (run.source, run.key) if each)
            where = f"in {Path(run.source).parent.resolve()} or below" if run.source else "that this command names"
            raise BakeoffError(
                f"{at}flows[{index}].cc: the run would execute {path}; expected a file {where}, or --allow-code "
                "(in Python: allow_code=True) after a look into it"
            )
    return run.as_executable()


def _codes(run: Run) -> Iterator[tuple[int, str, Code]]:
    """Where each file is named, its path, and what it is."""
    # A campaign may have ten thousand runs of many flows.
    for index, flow in enumerate(run.flows):
        parts = split(flow.cc) if ":" in flow.cc and flow.transport == "tcp" else None
        if parts is not None:
            yield index, parts[0], Code(parts[0], flow.cc_sha256, flow.cc in run.own_code)
