"""Congestion controls written in Python: the classes that a run names, and what their errors look like to their author.

A file is compiled and run anew for every run, so that runs do not share its globals.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files
from bakeoff.errors import BakeoffError
from bakeoff.scenario import python_cc

if TYPE_CHECKING:
    from bakeoff.scenario import Run

_given: Final[dict[str, type]] = {}


@contextmanager
def given(cls: type) -> Iterator[str]:
    """The name by which runs of this process can have the class object `cls`, while the block lasts."""
    name = f"{python_cc.PREFIX}{cls.__module__}.{cls.__name__}"
    before = _given.get(name)
    if before not in (None, cls):
        raise BakeoffError(f"cc: two unlike classes are called {cls.__module__}.{cls.__name__}; expected unlike names")
    _given[name] = cls
    try:
        yield name
    finally:
        if before is None:
            del _given[name]


def sha256(cls: type) -> str | None:
    """Of the class's source text; None where Python does not know it (an interactive session)."""
    try:
        return hashlib.sha256(inspect.getsource(cls).encode()).hexdigest()
    except (OSError, TypeError):
        return None


class _StandIn:
    """What the simulator is given where nothing is to be executed: enough to build a run, and nothing to do one."""

    def ssthresh(self, sk: object) -> int:
        raise AssertionError("a stand-in is built and never run")

    def cong_avoid(self, sk: object, acked: int) -> None:
        raise AssertionError("a stand-in is built and never run")


def modules(run: Run, *, execute: bool) -> dict[str, type]:
    """The classes that the flows name, by what stands in `cc`; without `execute` others stand in for those in files.

    Files are executed only for a run that `bakeoff.scenario.python_cc.permitted` gave: others are a BakeoffError.
    BakeoffError, with the place in the run: no such file, class or method, another file than the run was made with,
    or what Python said when it read the file.
    """
    found: dict[str, type] = {}
    for index, flow in enumerate(run.flows):
        if flow.transport != "tcp" or not python_cc.is_python(flow.cc):
            continue
        if flow.cc not in found:
            parts = python_cc.split(flow.cc)
            try:
                if parts is not None and not execute:
                    found[flow.cc] = type(parts[1], (_StandIn,), {})
                    continue
                found[flow.cc] = _class(flow.cc, flow.cc_sha256, allowed=run.executable)
            except BakeoffError as error:
                raise BakeoffError(f"flows[{index}].cc: {error}") from None
    return found


def explain(error: BaseException, classes: Mapping[str, type]) -> str:
    """A traceback of the lines in the modules' files only, ending in the error itself."""
    files = set()
    for cls in classes.values():
        files |= {code.co_filename for code in map(_code, vars(cls).values()) if code is not None}
    return _traceback(error, files)


def _class(cc: str, digest: str | None, *, allowed: bool) -> type:
    parts = python_cc.split(cc)
    if parts is None:
        if cc not in _given:
            raise BakeoffError(
                f"'{cc}' was a class object of the Python that made this run; expected a file: ./mycc.py:MyCC"
            )
        return _checked(cc, _given[cc])
    path, name = parts
    if not allowed:
        raise BakeoffError(f"nobody allowed to execute {path}; expected a run that a campaign does")
    module = _load(Path(path), digest)
    cls = vars(module).get(name)
    if not isinstance(cls, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise BakeoffError(f"{path}: has no class '{name}'; there is: {', '.join(classes) or 'none'}")
    return _checked(cc, cls)


def _checked(cc: str, cls: type) -> type:
    for hooks in (("ssthresh",), ("cong_avoid", "cong_control")):
        if not any(callable(getattr(cls, hook, None)) for hook in hooks):
            raise BakeoffError(f"'{cc}': {cls.__name__} has no method {' or '.join(hooks)}")
    return cls


def _load(path: Path, digest: str | None) -> ModuleType:
    try:
        source = files.read(path, python_cc.LARGEST)
    except OSError as error:
        raise BakeoffError(f"{path}: {error.strerror}") from None
    if digest is not None and hashlib.sha256(source).hexdigest() != digest:
        raise BakeoffError(f"{path}: has changed since this run was made from it; make the run anew")
    module = ModuleType(f"bakeoff_cc_{path.stem}")
    module.__file__ = str(path)
    # Where dataclasses look for a class's module.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, path, "exec"), vars(module))  # noqa: S102 (the user's own file)
    except Exception as error:
        raise BakeoffError(f"{path}: cannot be loaded\n{_traceback(error, {str(path)})}") from None
    return module


def _code(attribute: Any) -> Any:  # noqa: ANN401 (whatever a class has)
    return getattr(getattr(attribute, "__func__", attribute), "__code__", None)


def _traceback(error: BaseException, files: set[str]) -> str:
    found = traceback.TracebackException.from_exception(error)
    stack = traceback.StackSummary.from_list([frame for frame in found.stack if frame.filename in files])
    return "".join([*stack.format(), *found.format_exception_only()]).rstrip()
