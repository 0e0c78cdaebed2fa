"""Several recordings as one results folder, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bakeoff import imports, results
from bakeoff.campaign import campaign_record, locations
from bakeoff.errors import BakeoffError, RecordingError
from bakeoff.imports import recording
from bakeoff.imports.recording import Recording
from bakeoff.version import version


def write_all(
    paths: Sequence[Path],
    out: Path | None,
    tell: Callable[[int], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    read: Callable[[Path], Recording] = imports.read,
) -> Path:
    """Make the results folder `out`, or a new one below results/, of these files, and return its path.

    Recordings of one name with the same flows are repetitions of one run, with the seeds 1, 2, … in the order of the
    files. BakeoffError names the file and what is wrong with it; then there is no folder. `tell` is called with the
    number of files that are done, `warn` with what is wrong with a file that is read all the same; `read` reads one.
    """
    root = out if out is not None else locations.new_folder()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise RecordingError(f"--out: '{root}' already exists; expected a new folder")
    made = campaign_record.provenance()
    known: dict[str, Path] = {}
    flows: dict[str, list[str]] = {}
    with results.writing(root) as partial:
        asked = results.Request(kind="import", patterns=tuple(str(path) for path in paths))
        campaign = campaign_record.begin(partial, asked, "import", {"bakeoff": version()}, made, runs=len(paths))
        for number, path in enumerate(paths):
            found = _named(read(path), known, flows)
            for warning in found.warnings:
                warn(f"{path}: {warning}")
            key = found.record.run.key
            if key in known:
                raise RecordingError(f"{path}: duplicate run {key}, also in {known[key]}; expected one of them")
            try:
                recording.write(found, partial, campaign.id, number)
            except BakeoffError as error:
                raise RecordingError(f"{path}: {error}") from None
            known[key] = path
            tell(number + 1)
    return root


def _named(found: Recording, known: dict[str, Path], flows: dict[str, list[str]]) -> Recording:
    """The recording under a name of its own: another seed of what has the same flows, or another name."""
    if found.names_its_run:
        return found
    names = sorted(flow.name for flow in found.record.run.flows)
    run, seed = found.record.run.run, 1
    while (key := _as(found, run, seed).record.run.key) in known:
        if flows[key] == names:
            seed += 1
        else:
            seed, run = 1, f"{run}+"
    flows[key] = names
    return _as(found, run, seed)


def _as(found: Recording, run: str, seed: int) -> Recording:
    renamed = found.record.run.model_copy(update={"run": run, "seed": seed})
    record = found.record.model_copy(update={"run": renamed, "seed": seed})
    return replace(found, record=record)
