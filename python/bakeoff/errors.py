"""The exceptions of the package, as one tree.

```
BakeoffError
├── UsageError          an option of the command line, or an argument of a function
├── FileError           a file that cannot be read, written or locked
├── ScenarioError       a scenario, a pattern, a setting, words of tc
├── EngineError         an engine that is missing, or that cannot do a run
│   ├── RefusedError        what one run asks for
│   ├── KernelError         a Linux kernel: its source, build or features
│   │   └── NoKernelError       none is built
│   ├── TestbedError        the machines of --engine ssh
│   └── UnreachableError    a machine that does not answer
├── RunError            a run that began and failed; also a RuntimeError
│   └── UserCodeError       by a congestion control in Python
├── CampaignError       a results folder or worker of a campaign
│   └── StoreError          the store of finished runs
├── ResultsError        a results folder that cannot be read
│   └── HalfWrittenError    by an interrupted writer
├── RemoteError         push and pull
├── RecordingError      a file that another program recorded
├── MeasureError        a measure that a run does not give
├── ClaimError          claims, their expressions, references and comparisons
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
    """A mistake in the input, or something missing on this machine; the root of all exceptions of the package.

    The message names the place, the value and the expected form. The command line prints it without a traceback and
    exits with 2. A word of more than 2000 characters, which no name or number is, is shown in part.
    """

    place: str
    """The outermost place that the message begins with: a file, a folder or a run; empty without one."""
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
    """An option of the command line, or an argument of a function."""


class FileError(BakeoffError):
    """A file that cannot be read, written or locked, or does not have the form that its reader expects."""


class ScenarioError(BakeoffError):
    """A scenario, a pattern of the catalog, a setting or words of tc."""


class EngineError(BakeoffError):
    """An engine that is missing here, or that cannot do a run."""


class RefusedError(EngineError):
    """A run that the engine cannot do; the message names the place in the resolved run."""


class KernelError(EngineError):
    """A Linux kernel: its source, its build, or a feature that it lacks."""


class NoKernelError(KernelError):
    """No virtual-time kernel is built: the check of a run has to wait for one, the estimate of its cost does not."""


class TestbedError(EngineError):
    """The inventory or a machine of a testbed (--engine ssh)."""

    __test__ = False  # pytest collects classes that are named Test…


class UnreachableError(EngineError):
    """A machine does not answer: no other run is tried, because each would wait as long for it."""


class RunError(BakeoffError, RuntimeError):
    """A run that began and failed: a broken invariant, or a set-up or a program that went wrong."""


class UserCodeError(RunError):
    """A congestion control in Python raised: the message ends in the traceback of its own lines."""


class CampaignError(BakeoffError):
    """The folder of a campaign, its record, or the workers that do its runs."""


class StoreError(CampaignError):
    """The store of finished runs."""


class ResultsError(BakeoffError):
    """A results folder, or a file in one, that cannot be read."""


class HalfWrittenError(ResultsError):
    """A run's folder that an interrupted writer left, or that lacks a file: `bakeoff run --resume` makes it anew."""


class RemoteError(BakeoffError):
    """A place elsewhere that results are pushed to or pulled from."""


class RecordingError(BakeoffError):
    """A file that another program recorded, and that cannot be imported."""


class MeasureError(BakeoffError):
    """A measure that a run does not give; the message names the samples or counters that are missing."""


class ClaimError(BakeoffError):
    """A claim, an expression of measures, a reference, or a comparison with one."""


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
    """Results in the form of another program."""


def _in_part(word: re.Match[str]) -> str:
    return f"{word[0][:100]}… ({len(word[0]):,} characters) …{word[0][-100:]}"


def printable(text: str) -> str:
    """The text with every character that a terminal would act on, and not show, as an escape; lines stay.

    Names come from files, and files from anybody: an escape code in one could repaint the terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" or "\udc80" <= c <= "\udcff" else ascii(c)[1:-1] for c in text)
