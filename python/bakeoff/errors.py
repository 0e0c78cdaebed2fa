"""The exceptions of the package, as one tree.

```
BakeoffError
├── UsageError          an invalid option or function argument
├── FileError           a file that cannot be read, written or locked
├── ScenarioError       a scenario, a pattern, a setting, tc syntax
├── EngineError         an engine that is missing, or that does not support a run
│   ├── RefusedError        an unsupported feature of one run
│   ├── KernelError         a Linux kernel: its source, build or features
│   │   └── NoKernelError       no kernel is built
│   ├── TestbedError        the machines of --engine ssh
│   └── UnreachableError    a machine that does not respond
├── RunError            a run that started and failed; also a RuntimeError
│   └── UserCodeError       an exception in a congestion control in Python
├── CampaignError       a results folder or worker of a campaign
│   └── StoreError          the cache of finished runs
├── ResultsError        an unreadable results folder
│   └── HalfWrittenError    an incomplete run
├── RemoteError         push and pull
├── RecordingError      a recording of another program
├── MeasureError        a measure that a run does not provide
├── ClaimError          claims, their expressions, references and comparisons
├── CrateError          a crate with congestion controls that cannot be built
├── EvaluationError     a battery of cases, or an evaluation
├── TraceError          a packet capture
├── ReplayError         a qdisc replay or a packetdrill script
├── TableError, PlotError, SiteError, RenderError, ExportError
```
"""

import re
from typing import Final, Self

_LONGEST: Final = 2000
_LONG: Final = re.compile(rf"\S{{{_LONGEST + 1},}}")


class BakeoffError(Exception):
    """Invalid input, or something missing on this machine; the base class of all exceptions of the package.

    The message has the form `place: problem; expected form`. The command line prints it without a traceback and exits
    with 2. Words of more than 2000 characters are abbreviated.
    """

    place: str
    """The prefix of the message: a file, a folder or a run; may be empty."""
    problem: str
    """The message without `place`."""

    def __init__(self, problem: str = "", *, place: str = "") -> None:
        self.place = _LONG.sub(_in_part, place)
        self.problem = _LONG.sub(_in_part, problem)
        super().__init__(f"{self.place}: {self.problem}" if place else self.problem)

    def at(self, place: str) -> Self:
        """The same exception with `place` in front of its message."""
        return type(self)(str(self), place=place)


class UsageError(BakeoffError):
    """An invalid option of the command line or argument of a function."""


class FileError(BakeoffError):
    """A file that cannot be read, written or locked, or that has an unexpected format."""


class ScenarioError(BakeoffError):
    """An invalid scenario, pattern, setting or tc syntax."""


class EngineError(BakeoffError):
    """An engine that is missing, or that does not support a run."""


class RefusedError(EngineError):
    """A run that the engine does not support; the message names the key in the resolved run."""


class KernelError(EngineError):
    """A Linux kernel: its source, its build, or a missing feature."""


class NoKernelError(KernelError):
    """No virtual-time kernel is built. Runs cannot be checked then, but their cost can be estimated."""


class TestbedError(EngineError):
    """The inventory or a machine of a testbed (--engine ssh)."""

    __test__ = False  # pytest collects classes that are named Test…


class UnreachableError(EngineError):
    """A machine does not respond. No other run is tried, since each would wait for the same timeout."""


class RunError(BakeoffError, RuntimeError):
    """A run that started and failed: a broken invariant, or an error of its set-up or of a program."""


class UserCodeError(RunError):
    """An exception in a congestion control in Python; the message ends with its traceback."""


class CampaignError(BakeoffError):
    """The folder, the record or the workers of a campaign."""


class StoreError(CampaignError):
    """The cache of finished runs."""


class ResultsError(BakeoffError):
    """An unreadable results folder, or a file in one."""


class HalfWrittenError(ResultsError):
    """An incomplete folder of a run, left by an interrupted writer; `bakeoff run --resume` does the run again."""


class RemoteError(BakeoffError):
    """The remote side of push or pull."""


class RecordingError(BakeoffError):
    """A recording of another program that cannot be imported."""


class MeasureError(BakeoffError):
    """A measure that a run does not provide; the message names the missing samples or counters."""


class ClaimError(BakeoffError):
    """A claim, an expression of measures, a reference, or a comparison with one."""


class CrateError(BakeoffError):
    """A crate with congestion controls that cannot be built."""


class EvaluationError(BakeoffError):
    """A battery of cases, or an evaluation of a congestion control."""


class TraceError(BakeoffError):
    """A packet capture that cannot be read."""


class ReplayError(BakeoffError):
    """A qdisc replay or a packetdrill script."""


class TableError(BakeoffError):
    """A table: its rows, columns, filters or order."""


class PlotError(BakeoffError):
    """A picture: its kind, its axes or its file."""


class SiteError(BakeoffError):
    """A site of results: its folder or its server."""


class RenderError(BakeoffError):
    """A template, or a page that was rendered from one."""


class ExportError(BakeoffError):
    """An export to the format of another program."""


def _in_part(word: re.Match[str]) -> str:
    return f"{word[0][:100]}… ({len(word[0]):,} characters) …{word[0][-100:]}"


def printable(text: str) -> str:
    """The text with control characters, except newlines, as escapes.

    Names may come from untrusted files; an escape sequence in one could control the terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" or "\udc80" <= c <= "\udcff" else ascii(c)[1:-1] for c in text)
