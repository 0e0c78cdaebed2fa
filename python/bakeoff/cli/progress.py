"""How far a campaign is, on standard error: a bar with the time left on a terminal, else one line per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from bakeoff.campaign import Done
    from bakeoff.scenario import Run


@contextmanager
def progress(runs: Sequence[Run], console: Console) -> Iterator[Callable[[Done], None]]:
    """Give what is to be called as each run ends."""
    length_s = {run.key: run.duration_s for run in runs}
    if not console.is_terminal:
        yield _lines(len(length_s))
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs,"),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(length_s))

        def ended(done: Done) -> None:
            if done.status == "skipped":  # took no time, and says nothing of how long the others take
                bar.update(task, total=(bar.tasks[0].total or 0) - 1)
                return
            if done.status == "failed":
                bar.console.print(f"failed: {done.key}: {done.error}", markup=False, highlight=False, soft_wrap=True)
            bar.advance(task)

        yield ended


def _lines(total: int) -> Callable[[Done], None]:
    count = 0

    def ended(done: Done) -> None:
        nonlocal count
        count += 1
        what = {"ok": f"{done.wall_s:.2f} s", "skipped": "was there already", "failed": f"failed: {done.error}"}
        typer.echo(f"[{count:>{len(str(total))}}/{total}] {done.key}: {what[done.status]}", err=True)

    return ended
