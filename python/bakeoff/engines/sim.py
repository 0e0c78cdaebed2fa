"""The simulator as an engine: one call into Rust, then the results folder."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bakeoff import extension, tc
from bakeoff.engines import Outcome, controls, only_kernel_runs_programs, place
from bakeoff.errors import BakeoffError, EngineError, RefusedError, RunError, UserCodeError
from bakeoff.results import layout, packed_captures, write_json, write_parts
from bakeoff.results.counters import Counters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bakeoff._sim import Outcome as Simulated
    from bakeoff._sim import Samples
    from bakeoff.results.series import Array, Parts
    from bakeoff.scenario import Run

# For the estimate of --dry-run only. The simulator is held to 2 million data packets per core and second, and a run
# costs this much more for samples, files and measures.
_PACKETS_PER_S: Final = 2e6
_PACKET_BITS: Final = 8 * 1500
_OVERHEAD_S: Final = 0.1
_UNLIMITED_BPS: Final = 1e9


class Simulator:
    """The engine `sim`; see `bakeoff.engines.Engine`.

    The make `exact` simulates every packet step by step. Its results are the same, and its runs take several times as
    long.
    """

    one_at_a_time = False

    def __init__(self, *, exact: bool = False) -> None:
        self._exact = exact

    @property
    def repeatable(self) -> bool:
        """Exact runs are computed anew, because they check what other runs gave."""
        return not self._exact

    def check(self, run: Run) -> str:
        """Build what the run names and return the configuration in effect; BakeoffError names the place in the run.

        Congestion controls in files are executed only if the run may be done (`Run.executable`).
        """
        only_kernel_runs_programs(run, "sim")
        with _limited(run):
            return self._check(run, _modules(run, execute=run.executable))

    def _check(self, run: Run, modules: dict[str, type]) -> str:
        from bakeoff import _sim

        try:
            return _sim.check(run.to_json(), modules)
        except _sim.HookError as error:
            raise _failed(run, error, modules) from None
        except ValueError as error:
            raise RefusedError(f"{error}{_elsewhere(str(error))}", place=place(run)) from error

    def execute(self, run: Run, folder: Path) -> Outcome:
        """Simulate the run and write what came out into `folder`. RunError if an invariant broke."""
        outcome = self._simulate(run, folder)
        found = _outcome(outcome)
        write_parts(folder / layout.SERIES, found.parts)
        write_json(folder / layout.COUNTERS, msgspec.json.decode(outcome["counters"]))
        (folder / layout.SETUP_LOG).write_text(outcome["setup"], encoding="utf-8")
        (folder / layout.TEARDOWN_LOG).write_text(outcome["teardown"], encoding="utf-8")
        if outcome["trace"] is not None:
            write_parts(folder / layout.TRACE, _parts(outcome["trace"]))
        for name, packets in outcome["captures"].items():
            (folder / layout.capture(name)).write_bytes(packets)
        packed_captures.pack(folder, list(outcome["captures"]))
        return found

    def outcome(self, run: Run, folder: Path) -> Outcome:
        """Simulate the run, and write into `folder` only if it fails. RunError if an invariant broke."""
        return _outcome(self._simulate(run, folder))

    def _simulate(self, run: Run, folder: Path) -> Simulated:
        from bakeoff import _sim

        only_kernel_runs_programs(run, "sim")
        modules = _modules(run, execute=True)
        try:
            return _sim.simulate(run.to_json(), modules, exact=self._exact)
        except _sim.HookError as error:
            (folder / layout.SETUP_LOG).write_text(self.check(run), encoding="utf-8")
            raise _failed(run, error, modules) from None
        except ValueError as error:
            raise RefusedError(str(error), place=place(run)) from error
        except BaseException as error:
            (folder / layout.SETUP_LOG).write_text(self.check(run), encoding="utf-8")
            # A panic in Rust arrives as a BaseException, so that nobody swallows it; here it fails one run, not the
            # campaign.
            if type(error).__name__ == "PanicException":
                # Ctrl-C that arrives while Rust loads numpy is one, too.
                if "<class 'KeyboardInterrupt'>" in str(error):
                    raise KeyboardInterrupt from error
                raise RunError(f"the simulator panicked: {error}") from error
            raise

    def versions(self) -> dict[str, str]:
        """The simulator is part of the package and has its version; with a crate's controls also its own digest."""
        from bakeoff.version import version

        return {"bakeoff": version()} | extension.version()

    def estimate_s(self, run: Run) -> float:
        """About how many seconds of one core the run takes: its bottleneck's packets, 2 million a second."""
        bottleneck_bps = min(rates(run), default=_UNLIMITED_BPS)
        duration_s: float = run.duration_s
        return _OVERHEAD_S + duration_s * bottleneck_bps / _PACKET_BITS / _PACKETS_PER_S


def _elsewhere(error: str) -> str:
    """The engines that have the congestion control which the simulator says that it does not know."""
    unknown = re.match(r"flows\[\d+\]\.cc: .*?unknown congestion control '([^']*)'", error)
    return controls.elsewhere(unknown[1], "sim") if unknown else ""


def choose(make: str | None) -> Simulator:
    """The simulator, or its make `exact`."""
    if make not in (None, "exact"):
        raise EngineError(f"unknown variant {make!r} of the engine 'sim'; expected exact")
    return Simulator(exact=make == "exact")


def _limited(run: Run) -> AbstractContextManager[None]:
    """No longer than a minute for code of the user's that is loaded."""
    if not any(":" in flow.cc for flow in run.flows):
        return nullcontext()
    from bakeoff.engines.python_cc import limited

    return limited()


def _modules(run: Run, *, execute: bool) -> dict[str, type]:
    """The congestion controls in Python that the run names."""
    # No other name has a colon: what loads such files is imported for them only.
    if not any(":" in flow.cc for flow in run.flows):
        return {}
    from bakeoff.engines.python_cc import modules

    try:
        return modules(run, execute=execute)
    except BakeoffError as error:
        raise error.at(place(run)) from None


def _failed(run: Run, error: Exception, modules: dict[str, type]) -> UserCodeError:
    """What a congestion control in Python raised, for its author: the lines of its file, none of ours."""
    from bakeoff.engines.python_cc import explain

    return UserCodeError(f"{error} failed\n{explain(error.__cause__ or error, modules)}", place=place(run))


def _outcome(simulated: Simulated) -> Outcome:
    return Outcome(_parts(simulated), msgspec.json.decode(simulated["counters"], type=Counters))


def rates(run: Run) -> Iterator[float]:
    """The rates in bit/s that cables and queues limit to."""
    yield from (link.rate_bps for link in run.links if link.rate_bps is not None)
    trees = [tree for end in run.interfaces for tree in (end.egress, end.ingress) if tree is not None]
    while trees:
        tree = trees.pop()
        limits = [(tree.qdisc, tc.limiting_word(tree.qdisc)), *((each.class_, "rate") for each in tree.classes)]
        for words, key in limits:
            written = tc.value(words, key) if key is not None else None
            # Words that are no rate (`unlimited`, a mistake) limit nothing.
            with suppress(BakeoffError):
                if written is not None:
                    yield tc.rate(written)
        children = [tree.child, *(each.child for each in tree.classes)]
        trees += [child for child in children if child is not None]


def _parts(outcome: Samples) -> Parts:
    """The samples by kind, name and metric, which are taken out of the outcome: of a long run they are a gigabyte."""
    import numpy as np

    # Of numbers of 16 bits numpy sorts the digits, which takes a tenth of the time.
    numbers, names = outcome["series"], outcome["names"]
    order = np.argsort(numbers.astype(np.uint16) if len(names) < 1 << 16 else numbers, kind="stable")
    lengths = np.bincount(numbers, minlength=len(names)).tolist()
    none: Array = np.empty(0)
    time, outcome["time"] = outcome["time"][order], none
    value, outcome["value"] = outcome["value"][order], none
    if len(lengths) > len(names):
        raise RunError(f"the simulator returned {len(lengths) - 1} series and {len(names)} names")
    if len(set(names)) < len(names):
        raise RunError("the simulator returned a duplicate series name")
    found: dict[tuple[str, str, str], tuple[Array, Array]] = {}
    end = 0
    for name, length in zip(names, lengths, strict=True):
        start, end = end, end + length
        if length:
            found[name] = time[start:end], value[start:end]
    return found
