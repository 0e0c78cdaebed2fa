"""Congestion controls written in Python: the classes that a run names, and what their errors look like to their author.

A file is compiled and run anew for every run, so that runs do not share its globals.
"""

from __future__ import annotations

import hashlib
import inspect
import signal
import sys
import threading
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files
from bakeoff.errors import BakeoffError, EngineError
from bakeoff.scenario import python_cc
from bakeoff.scenario.error import did_you_mean

if TYPE_CHECKING:
    from bakeoff.scenario import Run

HOOKS: Final = (
    "init", "ssthresh", "cong_avoid", "cong_control", "set_state", "cwnd_event", "in_ack_event", "pkts_acked",
    "undo_cwnd", "min_tso_segs", "tso_segs", "trace",
)  # fmt: skip
"""The methods that the simulator calls, crates/bindings/src/cc.rs."""
_FLAGS: Final = ("needs_ecn", "ect1")
_ALIKE: Final = 0.8
"""As difflib has it: `pkts_ackd` and `pkts_acked` are 0.95 alike."""
_PATIENCE_S: Final = 60.0
_LONGER: Final = 2
"""Characters that a misspelt name has more or less: a helper `cong_avoid_ai` is none."""

_given: Final[dict[str, type]] = {}


@contextmanager
def given(cls: type) -> Iterator[str]:
    """The name by which runs of this process can have the class object `cls`, while the block lasts."""
    name = f"{python_cc.PREFIX}{cls.__module__}.{cls.__name__}"
    before = _given.get(name)
    if before not in (None, cls):
        raise EngineError(f"cc: duplicate class name {cls.__module__}.{cls.__name__}; expected unique names")
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
            module = python_cc.split(flow.cc)
            try:
                if module is not None and not execute:
                    found[flow.cc] = type(module.name, (_StandIn,), {})
                    continue
                found[flow.cc] = _class(flow.cc, flow.cc_sha256, allowed=run.executable)
            except BakeoffError as error:
                raise EngineError(f"flows[{index}].cc: {error}") from None
    return found


@contextmanager
def limited() -> Iterator[None]:
    """Ends the user's code with a TimeoutError if it takes a minute to be loaded and made, where signals can be had."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL:
        yield
        return

    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"timeout: not loaded within {_PATIENCE_S:g} s")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def explain(error: BaseException, classes: Mapping[str, type]) -> str:
    """A traceback of the lines in the modules' files only, ending in the error itself."""
    files = set()
    bases = {base for cls in classes.values() for base in cls.__mro__ if base.__module__ != __name__}
    for cls in bases:
        files |= {code.co_filename for code in map(_code, vars(cls).values()) if code is not None}
    return _traceback(error, files)


def _class(cc: str, digest: str | None, *, allowed: bool) -> type:
    module = python_cc.split(cc)
    if module is None:
        if cc not in _given:
            raise EngineError(f"'{cc}': the class object of another process; expected a file: ./mycc.py:MyCC")
        return _checked(cc, _given[cc])
    if not allowed:
        raise EngineError(f"{module.path}: not allowed to execute; expected a run started by a campaign")
    loaded = _load(Path(module.path), digest)
    cls = vars(loaded).get(module.name)
    if not isinstance(cls, type):
        own = [key for key, value in vars(loaded).items() if getattr(value, "__module__", "") == loaded.__name__]
        classes = [key for key in own if isinstance(vars(loaded)[key], type)]
        near = next((f"; did you mean '{name}'?" for name in classes if name.lower() == module.name.lower()), "")
        raise EngineError(
            f"{module.path}: unknown class '{module.name}'{near}; expected one of: {', '.join(classes) or 'none'}"
        )
    return _with_parameters(_checked(cc, cls), module.parameters)


def _with_parameters(cls: type, words: Mapping[str, str]) -> type:
    """The class as one that takes no arguments. BakeoffError for a parameter that it does not have, or lacks."""
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):
        signature = inspect.Signature()
    known = [
        name
        for name, each in signature.parameters.items()
        if each.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    open_ended = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in signature.parameters.values())
    unknown = next((name for name in words if name not in known and not open_ended), None)
    if unknown is not None:
        hint = did_you_mean(unknown, known) or "; its __init__ takes none"
        raise EngineError(f"{cls.__name__}: unknown parameter '{unknown}'{hint}")
    lacking = [name for name in known if signature.parameters[name].default is inspect.Parameter.empty]
    lacking = [name for name in lacking if name not in words]
    if lacking:
        raise EngineError(f"{cls.__name__} needs '{lacking[0]}'; expected it after the class, such as 'beta 0.85'")
    if not words:
        return cls
    values = {name: _value(word) for name, word in words.items()}

    class WithParameters(cls):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(**values)

    WithParameters.__name__ = cls.__name__
    return WithParameters


def _value(word: str) -> bool | int | float | str:
    """`0.85` as a number, `true` and `false` as such, other words as texts."""
    if word in ("true", "false"):
        return word == "true"
    for read in (int, float):
        try:
            return read(word)
        except ValueError:
            continue
    return word


def _checked(cc: str, cls: type) -> type:
    """The class, whose hooks can be called. BakeoffError for one that is lacking, misspelt, or would never run."""
    names = [name for name in dir(cls) if not name.startswith("_")]
    for name in names:
        meant = _meant(name, names)
        if meant is not None:
            raise EngineError(f"'{cc}': {cls.__name__}: unknown hook '{name}'; did you mean '{meant}'?")
    for hooks in (("ssthresh",), ("cong_avoid", "cong_control")):
        if not any(callable(getattr(cls, hook, None)) for hook in hooks):
            raise EngineError(f"'{cc}': {cls.__name__}: missing method {' or '.join(hooks)}")
    for hook in HOOKS:
        method = inspect.unwrap(getattr(cls, hook, None) or _nothing)
        if not callable(method):
            raise EngineError(f"'{cc}': {cls.__name__}.{hook} is not a method")
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise EngineError(f"'{cc}': {cls.__name__}.{hook} is 'async def'; expected 'def'")
        if inspect.isgeneratorfunction(method):
            raise EngineError(f"'{cc}': {cls.__name__}.{hook} contains 'yield'; expected 'return'")
    return cls


def _nothing() -> None:
    """In the place of a hook that is not there."""


def _meant(name: str, names: Collection[str]) -> str | None:
    """The hook or flag that a public name of a class seems to be meant for: it is hardly different, and not there."""
    if name in (*HOOKS, *_FLAGS):
        return None
    plain = name.lower().replace("_", "")
    for known in (*HOOKS, *_FLAGS):
        alike = plain == known.replace("_", "") or (
            abs(len(name) - len(known)) <= _LONGER and SequenceMatcher(None, name, known).ratio() > _ALIKE
        )
        if alike and known not in names:
            return known
    return None


def _load(path: Path, digest: str | None) -> ModuleType:
    try:
        source = files.read(path, python_cc.LARGEST)
    except OSError as error:
        raise EngineError(f"{path}: {error.strerror}") from None
    if digest is not None and hashlib.sha256(source).hexdigest() != digest:
        raise EngineError(f"{path}: modified since this run was created; create the run again")
    module = ModuleType(f"bakeoff_cc_{path.stem}")
    module.__file__ = str(path)
    # Where dataclasses look for a class's module.
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, path, "exec"), vars(module))  # noqa: S102 (the user's own file)
    except (Exception, SystemExit) as error:
        raise EngineError(f"{path}: cannot load\n{_traceback(error, {str(path)})}") from None
    return module


def _code(attribute: Any) -> Any:  # noqa: ANN401 (whatever a class has)
    return getattr(getattr(attribute, "__func__", attribute), "__code__", None)


def _traceback(error: BaseException, files: set[str]) -> str:
    found = traceback.TracebackException.from_exception(error)
    stack = traceback.StackSummary.from_list([frame for frame in found.stack if frame.filename in files])
    return "".join([*stack.format(), *found.format_exception_only()]).rstrip()
