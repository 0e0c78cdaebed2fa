"""Notifications at the end of a campaign (mail, chat, web hook), through apprise."""

from __future__ import annotations

import io
import logging
import multiprocessing
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from bakeoff.errors import BakeoffError, UsageError, printable

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from bakeoff.campaign import Report

_PATIENCE_S = 60.0
"""For so long a message may be on its way."""
_SHOWN = 5
"""Failed runs that a message names."""


class Notify(Protocol):
    """What is called with the report of the campaign that has ended."""

    def __call__(self, report: Report) -> None:
        """Send it."""


def service(urls: Sequence[str]) -> tuple[str, ...]:
    """The URLs, as places for messages. BakeoffError for one that apprise does not know."""
    if not urls:
        return ()
    try:
        import apprise
    except ImportError:
        raise UsageError(
            "--notify: needs the Python package apprise, which is not installed; install it: "
            "pip install 'bakeoff[notify]'"
        ) from None
    places = apprise.Apprise()
    for url in urls:
        with _quiet():  # it says no more than we do
            known = places.add(url)
        if not known:
            raise UsageError(
                f"--notify: '{_safe(url)}' is not an apprise URL; expected for example "
                "mailto://USER:PASSWORD@HOST, slack://TOKENS or json://HOST/PATH"
            )
    return tuple(urls)


@contextmanager
def notifying(places: Sequence[str], root: Path) -> Iterator[Notify]:
    """Send a message when the campaign in `root` has ended, which the block does and tells of.

    One that ends in an exception is told as a failure, and so is one that is interrupted (Ctrl-C, SIGTERM). A message
    that cannot be sent is a warning on standard error.
    """
    if not places:
        yield lambda _: None
        return

    def notify(report: Report) -> None:
        _send(places, *message(report), failed=bool(report.failed))

    try:
        yield notify
    except BaseException as problem:
        # SystemExit and typer.Exit hold a status, not words.
        why = str(problem) if isinstance(problem, BakeoffError | OSError) else "interrupted"
        _send(places, "bakeoff: a campaign ended early", f"{why}\nresults: {root.absolute()}", failed=True)
        raise


def message(report: Report) -> tuple[str, str]:
    """Title and body: how many runs were done and failed, how long that took, and where the results lie."""
    failed, total = report.failed, len(report.runs) + report.not_begun
    done = len(report.runs) - len(failed) - len(report.skipped) - len(report.taken)
    title = f"bakeoff: {len(failed)} of {total} runs failed" if failed else f"bakeoff: all {total} runs done"
    counts = {"done": done, "cached": len(report.taken), "skipped": len(report.skipped)}
    counts |= {"failed": len(failed), "not started": report.not_begun}
    lines = [
        ", ".join(f"{count} {word}" for word, count in counts.items() if count) + f" in {_duration(report.wall_s)}",
        f"results: {report.root.absolute()}",
    ]
    lines += [f"failed: {run.key}: {(run.error or '').partition(chr(10))[0]}" for run in failed[:_SHOWN]]
    lines += [f"and {len(failed) - _SHOWN} more"] * (len(failed) > _SHOWN)
    return title, printable("\n".join(lines))


def _send(places: Sequence[str], title: str, body: str, *, failed: bool) -> None:
    """Send the message from a process of its own, which ends in time whatever the other side does."""
    from bakeoff.campaign import signals

    process = None
    try:
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe(duplex=False)
        process = spawn.Process(target=_deliver, args=(theirs, tuple(places), title, body, failed), daemon=True)
        with signals.starting_workers():
            process.start()
        theirs.close()
        why = ours.recv() if ours.poll(_PATIENCE_S) else f"timeout after {_PATIENCE_S:g} s"
    except EOFError:
        why = "its process exited"
    except Exception as problem:  # the campaign is over, and its results are whole
        why = f"{type(problem).__name__}: {problem}"
    finally:
        if process is not None and process.pid is not None:
            process.kill()
            process.join()
    if why is not None:
        listed = ", ".join(map(_safe, places))
        text = f"warning: the notification to {listed} was not sent" + (f": {why}" if why else "")
        typer.echo(f"bakeoff: {printable(text)}", err=True)


def _deliver(answer: Connection, urls: Sequence[str], title: str, body: str, failed: bool) -> None:
    """In that process: send the message, and answer why it was not sent, or None."""
    import apprise

    from bakeoff.campaign import signals

    signals.prepare_worker()
    kind = apprise.NotifyType.FAILURE if failed else apprise.NotifyType.SUCCESS
    try:
        service = apprise.Apprise(list(urls))
        with _quiet() as warnings:
            sent = bool(service.notify(title=title, body=body, notify_type=kind))
            why = warnings.getvalue().strip().partition("\n")[0]
    except Exception as problem:  # whatever a service's plug-in raises
        sent, why = False, f"{type(problem).__name__}: {problem}"
    answer.send(None if sent else why)


def _quiet() -> AbstractContextManager[io.StringIO]:
    """What apprise logs in the block, and would print."""
    import apprise

    captured: AbstractContextManager[io.StringIO] = apprise.LogCapture(  # type: ignore[no-untyped-call]
        level=logging.WARNING, fmt="%(message)s"
    )
    return captured


def _safe(url: str) -> str:
    """The URL without what may be a secret: its first word."""
    scheme = re.match(r"[A-Za-z][\w+.-]*://", url)
    return f"{scheme[0]}…" if scheme else f"{printable(url[:8])}…"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"
