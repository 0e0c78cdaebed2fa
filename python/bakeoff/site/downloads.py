"""What a reader may take from the page of a run: the run's own results folder, and its samples as CSV."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import files
from bakeoff.results import captures, layout
from bakeoff.site.site_contents import safe

if TYPE_CHECKING:
    from bakeoff.results import Result

FOLDER: Final = "files"
"""Beside the page: a whole results folder, which `bakeoff reproduce`, `plot` and `table` take."""
CSV: Final = "series.csv.gz"
_SAYS: Final = {
    layout.RUN: "the resolved run, the engine, versions, seed, digest and provenance",
    layout.SERIES: "all samples, as Parquet: time, kind, name, metric, value",
    CSV: "the same samples as compressed CSV",
    layout.TRACE: "internals of the congestion controls after every ACK, as Parquet",
    layout.COUNTERS: "what the engine counted over the whole run",
    layout.SUMMARY: "the measures",
    layout.MEASURED: "numbers that were asked for by expressions",
    layout.SETUP_LOG: "what the set-up printed",
    layout.TEARDOWN_LOG: "what the end printed",
    "console.log": "what the kernel printed",
    "plan.json": "the plan of a real engine: every command per node",
}
_LEVEL: Final = 1
"""Of gzip: a sixth of the time of the default, for a sixth more bytes."""


@dataclass(frozen=True)
class Download:
    """A file beside the page."""

    place: str
    """Relative to the page's folder."""
    name: str
    says: str
    bytes: int


def write(result: Result, folder: Path) -> list[Download]:
    """Copy the files of a run below `folder`, add its samples as CSV, and say what there is."""
    target = folder / FOLDER
    target.mkdir()
    made = []
    for source in _copied(result.path):
        name = safe(source.name)
        with files.opened(source) as read, (target / name).open("xb") as written:
            shutil.copyfileobj(read, written, 1 << 20)
        says = _SAYS.get(source.name, "the packets at an interface, with nanosecond stamps")
        made.append(Download(f"{FOLDER}/{name}", name, says, (target / name).stat().st_size))
    if result.ok and result.record.kept == "all":
        # The same samples give the same bytes: neither name nor time are in the file's head.
        with (
            (target / CSV).open("xb") as file,
            gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        ):
            for number, batch in enumerate(result.series_batches()):
                packed.write(batch.write_csv(include_header=number == 0).encode())
        made.append(Download(f"{FOLDER}/{CSV}", CSV, _SAYS[CSV], (target / CSV).stat().st_size))
    order = [*_SAYS]
    return sorted(made, key=lambda one: (order.index(one.name) if one.name in order else len(order), one.name))


def _copied(folder: Path) -> Iterator[Path]:
    """Our files of a results folder; no link is followed, and nothing else that lies there is taken along."""
    for path in sorted(folder.iterdir()):
        known = path.name in _SAYS or path.name.endswith(captures.SUFFIXES)
        if known and not path.is_symlink() and path.is_file():
            yield path
