"""Progress on standard error: for a campaign a bar on a terminal, else one line per run; for other work a bar only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal, Protocol

import typer

from bakeoff.errors import printable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from bakeoff.campaign import Done
    from bakeoff.scenario import Run

Detail = Literal["quiet", "normal", "verbose"]
Tell = Callable[[int], None]
"""Called with the number of runs that are done."""

_MANY = 1000
"""Runs from which on a line stands for a hundredth of them."""
_REFRESH_S = 0.1

_PATIENCE_S = 2.0
"""For so long nobody asks what a command is doing."""


class Watch(Protocol):
    """Receives the progress of a campaign."""

    def started(self, run: Run) -> None:
        """The run has started."""

    def ended(self, done: Done) -> None:
        """A run has ended or was skipped."""

    def expect(self, runs: int) -> None:
        """Change the total by `runs`, which may be negative."""


@contextmanager
def progress(runs: Sequence[Run], console: Console, detail: Detail = "normal") -> Iterator[Watch]:
    """Show how the runs go on, in the block: `quiet` shows nothing, `verbose` a line whenever a run begins or ends."""
    names = {run.key for run in runs}
    if detail == "quiet":
        yield _Nothing()
    elif detail == "verbose" or not console.is_terminal:
        yield _Lines(len(names), starts=detail == "verbose")
    else:
        with _bar(len(names), console) as bar:
            yield bar


def patience(what: str) -> AbstractContextManager[Tell]:
    """Say on a terminal what the block does, and with how many runs it is done, once it has taken two seconds."""
    return _line(what) if sys.stderr.isatty() else nullcontext(lambda _: None)


@contextmanager
def _line(what: str) -> Iterator[Tell]:
    from bakeoff.campaign.signals import unwinding

    done = 0
    shown: list[Live] = []

    def tell(count: int) -> None:
        nonlocal done
        done = count

    def line() -> Text:
        from rich.text import Text

        return Text(f"{what}: {done} runs so far" if done else f"{what} …", style="dim")

    def show() -> None:
        from rich.live import Live

        from bakeoff.cli import output

        # What the block prints itself goes where it always goes.
        live = Live(
            get_renderable=line,
            console=output.console(err=True),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        shown.append(live)
        live.start(refresh=True)

    timer = threading.Timer(_PATIENCE_S, show)
    timer.daemon = True
    with unwinding():
        timer.start()
        try:
            yield tell
        finally:
            timer.cancel()
            timer.join()
            for live in shown:
                live.stop()


class _Nothing:
    def started(self, run: Run) -> None:
        pass

    def ended(self, done: Done) -> None:
        pass

    def expect(self, runs: int) -> None:
        pass


class _Lines:
    def __init__(self, total: int, *, starts: bool) -> None:
        self._total = total
        self._starts = starts
        self._count = 0

    def started(self, run: Run) -> None:
        if self._starts:
            typer.echo(f"{' ' * (2 * len(str(self._total)) + 3)} {printable(run.key)}: started", err=True)

    def expect(self, runs: int) -> None:
        self._total += runs

    def ended(self, done: Done) -> None:
        self._count += 1
        # Of thousands of runs nobody reads each line.
        shown = self._total <= _MANY or self._starts or done.status == "failed"
        if not shown and self._count * 100 // self._total == (self._count - 1) * 100 // self._total:
            return
        what = {"ok": f"{done.wall_s:.2f} s", "skipped": "skipped, already done", "taken": "cached"}
        what["failed"] = f"failed: {done.error}"
        number = f"[{self._count:>{len(str(self._total))}}/{self._total}]"
        typer.echo(f"{number} {printable(f'{done.key}: {what[done.status]}')}", err=True)


@contextmanager
def _bar(total: int, console: Console) -> Iterator[Watch]:
    from rich.console import Group
    from rich.live import Live
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs,"),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
    )
    task = bar.add_task("", total=total)
    # In order of their beginning.
    under_way: dict[str, None] = {}

    def shown() -> Group:
        names = [Text(printable(key), style="dim", no_wrap=True, overflow="ellipsis") for key in under_way]
        return Group(bar, *names)

    live = Live(get_renderable=shown, console=console, transient=True, refresh_per_second=4)

    shown_at = 0.0

    class Bar:
        def started(self, run: Run) -> None:
            nonlocal shown_at
            under_way[run.key] = None
            now = time.monotonic()
            # A run that is over before the next refresh would never be named; of thousands it need not be.
            if total <= _MANY or now - shown_at > _REFRESH_S:
                live.refresh()
                shown_at = now

        def expect(self, runs: int) -> None:
            bar.update(task, total=(bar.tasks[0].total or 0) + runs)

        def ended(self, done: Done) -> None:
            under_way.pop(done.key, None)
            if done.status in ("skipped", "taken"):  # took no time, and says nothing of how long the others take
                bar.update(task, total=(bar.tasks[0].total or 0) - 1)
                return
            if done.status == "failed":
                text = printable(f"failed: {done.key}: {done.error}")
                console.print(text, markup=False, highlight=False, soft_wrap=True)
            bar.advance(task)

    with live:
        yield Bar()
