"""What a campaign is: the record that is written as it begins, and the check of what a resumed one holds."""

from __future__ import annotations

import socket
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bakeoff import results
from bakeoff.errors import CampaignError, ResultsError
from bakeoff.results import CampaignRecord, Provenance, Request, layout
from bakeoff.version import MODEL_EPOCH, commit, version

_PRIVATE: Final = "--notify"
"""The option whose value no result keeps."""


def provenance(note: str | None = None) -> Provenance:
    """From which bakeoff, command, machine and day the results are that are made now.

    BakeoffError for a note that a terminal would not show as it is written.
    """
    if note is not None and not note.isprintable():
        raise CampaignError(f"note: {note!r} contains an unprintable character; expected one line of text")
    at = commit()
    return Provenance(
        version=version(),
        commit=at.id if at else None,
        dirty=at.dirty if at else None,
        model_epoch=MODEL_EPOCH,
        date=datetime.now(UTC).replace(microsecond=0),
        command=_command(),
        host=socket.gethostname(),
        note=note,
    )


def begin(
    root: Path, request: Request, engine: str, versions: dict[str, str], made: Provenance, *, runs: int | None
) -> CampaignRecord:
    """Write campaign.json of a new campaign of so many runs into the folder `root`."""
    record = CampaignRecord(
        id=uuid.uuid4().hex,
        kind=request.kind,
        request=request,
        engine=engine,
        versions=versions,
        provenance=made,
        runs=runs,
    )
    results.write_campaign(root, record)
    return record


def check_same(root: Path, record: CampaignRecord, request: Request, engine: str, versions: dict[str, str]) -> None:
    """BakeoffError if what is asked for is no part of the campaign in `root`, or would not be made as that was."""
    elsewhere = "choose another --out"
    if record.kind != request.kind:
        raise CampaignError(f"{root}: contains a {record.kind}, not a {request.kind}; {elsewhere}")
    if others := request.outside(_begun(root, record)):
        raise CampaignError(
            f"{root}: contains the campaign of {_quoted(record.lines())}, without {_quoted(others)}; resume it with "
            f"its own patterns, or {elsewhere}"
        )
    if record.engine != engine:
        raise CampaignError(
            f"{root}: its runs are of the engine {record.engine}, not {engine}; resume with --engine {record.engine}, "
            f"or {elsewhere}"
        )
    theirs = record.provenance.model_epoch
    if theirs != MODEL_EPOCH:
        raise CampaignError(
            f"{root}: was started in model epoch {theirs} (bakeoff {record.provenance.version}); this bakeoff has "
            f"epoch {MODEL_EPOCH}, whose numbers may differ; {elsewhere}"
        )
    changed = [
        f"{name} {record.versions.get(name, 'unknown')} then and {versions.get(name, 'unknown')} now"
        for name in sorted({*record.versions, *versions})
        if record.versions.get(name) != versions.get(name)
    ]
    if changed:
        raise CampaignError(f"{root}: was started with other versions ({'; '.join(changed)}); {elsewhere}")


def continued(root: Path, request: Request, *, patterns: bool) -> tuple[Request, Request, str]:
    """The request to continue the campaign in `root` with, the part of it that comes from there, and the engine.

    Without its options the same patterns would name other runs. With `patterns` those are taken, too; CampaignError if
    there is no campaign of `bakeoff run` then.
    """
    record = results.read_campaign(root) if root.is_dir() else None
    if record is None or record.kind != "run":
        if patterns:
            raise CampaignError(f"{root}: no campaign of 'bakeoff run'; expected patterns")
        return request, Request(), "sim"
    return *request.continued(_begun(root, record), patterns=patterns), record.engine


def _begun(root: Path, record: CampaignRecord) -> Request:
    try:
        return record.begun
    except ResultsError as error:
        raise error.at(f"{root}: {layout.CAMPAIGN}") from None


def _quoted(patterns: list[str]) -> str:
    return ", ".join(f"'{pattern}'" for pattern in patterns)


def _command() -> tuple[str, ...]:
    """The words that this process was started with; a byte that is no text as an escape."""
    first, *rest = sys.argv or [""]
    name = Path(first).name
    words = ["bakeoff" if name == "__main__.py" else name, *rest] if first else []
    for number, word in enumerate(words):
        # Where a message goes to may hold a password, and results are given to others.
        if word.startswith(f"{_PRIVATE}="):
            words[number] = f"{_PRIVATE}=…"
        elif number > 0 and words[number - 1] == _PRIVATE:
            words[number] = "…"
    return tuple(word.encode(errors="backslashreplace").decode() for word in words)
