"""A congestion control in Python, as a scenario names it: `./mycc.py:MyCC beta 0.85`. Nothing is loaded here."""

import ast
import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bakeoff import files
from bakeoff.errors import BakeoffError, ScenarioError
from bakeoff.scenario.error import DocumentError
from bakeoff.scenario.run import Run
from bakeoff.scenario.shipped import root

_FILE: Final = re.compile(r"(?P<path>.+\.py):(?P<name>[^\W\d]\w*)(?P<words>(?:\s+\S+)*)\s*")
PREFIX: Final = "python:"
"""What begins the name of a class object that was given to `bakeoff.duel` in place of a file."""
_LISTED: Final = 8
"""Classes that a message names."""
LARGEST: Final = 4 << 20
"""Bytes of such a file."""


class Code(NamedTuple):
    """A file that a run executes."""

    path: str
    sha256: str | None
    own: bool
    """Whether it needs no permission: the user typed its path, or it lies where the scenario does, or below."""


class Module(NamedTuple):
    """`PATH.py:CLASS PARAMETER VALUE…`, taken apart."""

    path: str
    name: str
    """Of the class."""
    words: tuple[str, ...] = ()
    """Parameters and values, in turn."""

    @property
    def parameters(self) -> dict[str, str]:
        """What the class is made with, by name. BakeoffError for one without a value, or that is given twice."""
        if len(self.words) % 2:
            raise ScenarioError(f"parameter '{self.words[-1]}' has no value; expected for example 'beta 0.85'")
        names = self.words[::2]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ScenarioError(f"parameter '{twice}': duplicate")
        return dict(zip(names, self.words[1::2], strict=True))


def split(cc: str) -> Module | None:
    """The parts of such a name; None for other names."""
    match = _FILE.fullmatch(cc)
    return Module(match["path"], match["name"], tuple(match["words"].split())) if match else None


def is_python(cc: str) -> bool:
    """Whether only the simulator can run it, because it is written in Python."""
    return split(cc) is not None or cc.startswith(PREFIX)


def names_file(cc: str) -> bool:
    """Whether a path to a file of Python is meant, be it without the class."""
    first = next(iter(cc.split()), "")
    return not first.startswith(PREFIX) and ("/" in first or ".py" in first or split(cc) is not None)


def short(cc: str) -> str:
    """The class alone, or the file's name where the class is missing: what can be part of a flow's or a run's name."""
    module = split(cc)
    if module is not None:
        return module.name
    if cc.startswith(PREFIX):
        return re.split(r"[:.]", cc)[-1]
    return Path(cc.split(maxsplit=1)[0].partition(":")[0]).stem if names_file(cc) else cc


def label(cc: str) -> str:
    """The class with its parameters, `MyCC beta 0.85`, of a class in a file; other names as they are."""
    module = split(cc)
    return cc if module is None else " ".join((module.name, *module.words))


def placed(run: Run, folder: Path, typed: Collection[str] = ()) -> Run:
    """The run with absolute paths and SHA-256 sums of such files.

    A relative path is one in `folder`, or in the working directory if the user typed it: if it is one of `typed`. Files
    whose name is one of these, or that lie in `folder`, below it or in the catalog, are the run's own. DocumentError
    names a file that cannot be read, or that is named without its class.
    """
    if not any(names_file(flow.cc) for flow in run.flows):
        return run
    flows = []
    own = set()
    for index, flow in enumerate(run.flows):
        if flow.transport != "tcp" or not names_file(flow.cc):
            flows.append(flow)
            continue
        is_typed = _is_typed(flow.cc, typed)
        base = Path.cwd() if is_typed else folder
        module = split(flow.cc)
        if module is None:
            raise DocumentError(f"flows[{index}].cc", _without_class(flow.cc, base))
        path = Path(os.path.realpath(base / Path(module.path).expanduser()))
        try:
            _ = module.parameters
            digest = hashlib.sha256(files.read(path, LARGEST)).hexdigest()
        except OSError as error:
            raise DocumentError(f"flows[{index}].cc", f"'{flow.cc}': {path}: {error.strerror}") from None
        except BakeoffError as error:
            raise DocumentError(f"flows[{index}].cc", f"'{flow.cc}': {error}") from None
        cc = " ".join((f"{path}:{module.name}", *module.words))
        if is_typed or any(files.is_below(path, each) for each in (folder, root())):
            own.add(cc)
        flows.append(flow.model_copy(update={"cc": cc, "cc_sha256": digest}))
    return run.model_copy(update={"flows": flows}).with_own_code(own)


def _is_typed(cc: str, typed: Collection[str]) -> bool:
    """Whether the user typed the name, or one with placeholders of the same file."""
    if cc in typed:
        return True
    module = split(cc)
    return module is not None and any("{" in word and word.startswith(f"{module.path}:") for word in typed)


def _without_class(cc: str, base: Path) -> str:
    """What is wrong with the name of a file without a class: which classes there are."""
    word = cc.split(maxsplit=1)[0]
    named, _, name = word.partition(":")
    if not named.endswith(".py"):
        hint = f"'{named}.py:CLASS'" if (base / f"{named}.py").is_file() else "a file and its class: './mycc.py:MyCC'"
        return f"'{cc}': unknown congestion control or Python file; expected {hint}"
    what = f"'{name}': invalid class name" if name else "the class is missing"
    try:
        tree = ast.parse(files.read(base / Path(named).expanduser(), LARGEST))
    except OSError as error:
        return f"'{cc}': {base / named}: {error.strerror}"
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return f"'{cc}': {what}; expected '{named}:CLASS'"
    classes = [each.name for each in tree.body if isinstance(each, ast.ClassDef)]
    if not classes:
        return f"'{cc}': {what}, and the file has none; expected '{named}:CLASS'"
    others = ", ".join(classes[1:_LISTED]) + (f" and {len(classes) - _LISTED} more" if len(classes) > _LISTED else "")
    return f"'{cc}': {what}; expected '{named}:{classes[0]}'" + (f"; further classes: {others}" if others else "")


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
            folder = f"in {Path(run.source).parent.resolve()} or below" if run.source else "that this command names"
            raise ScenarioError(
                f"{at}flows[{index}].cc"
                f": not allowed to execute {path}; expected a file {folder}, or --allow-code (in "
                "Python: allow_code=True) after a review"
            )
    return run.as_executable()


def _codes(run: Run) -> Iterator[tuple[int, str, Code]]:
    """Where each file is named, its path, and what it is."""
    # A campaign may have ten thousand runs of many flows.
    for index, flow in enumerate(run.flows):
        module = split(flow.cc) if ":" in flow.cc and flow.transport == "tcp" else None
        if module is not None:
            yield index, module.path, Code(module.path, flow.cc_sha256, flow.cc in run.own_code)
