"""Run the commands of the tutorials in an empty folder, and compare what they print with what the pages show.

    .venv/bin/python docs/run_tutorials.py [--write] [docs/tutorials/NAME.md …]

A block of the language `console` holds commands after `$` and, below each, what it prints; a block with a title is a
file that the reader writes. `…` on a page stands for what differs from machine to machine: NOISE becomes one by itself.
On a line of its own it stands for any number of lines. With --write the pages get what is printed now, as a change of a
model makes necessary; lines with `…` stay where they still fit. What has `<!-- needs a kernel -->` above it needs a
virtual-time kernel, and other kernels print other numbers: there, any number stands for any other.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
BLOCK = re.compile(r'^(<!-- needs a kernel -->\n)?```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
ELLIPSIS = "…"
NOISE = re.compile(
    r"(?<=/)\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d"  # a folder's time of day
    r"|(?<= done in )[\d.]+ s"
    r"|(?<=simulated, about )\d+ \S+ with \d+ jobs?"
)


@dataclass(frozen=True)
class Step:
    """A command of a page: what the page shows below it, what it printed, and where it stands in the page."""

    page: Path
    command: str
    shown: str
    printed: str
    start: int
    any_number: bool

    @property
    def as_shown(self) -> bool:
        """Whether the page tells what the command printed."""
        shown, printed = (_shape(text) if self.any_number else text for text in (self.shown, self.printed))
        lines = ["(?:.*\n)*" if line == ELLIPSIS else _pattern(line) + "\n" for line in shown.splitlines()]
        return re.fullmatch("".join(lines), printed) is not None

    @property
    def anew(self) -> str:
        """What the page should show: what was printed, with the lines of the page that hold `…` where they fit."""
        elided = [line for line in self.shown.splitlines() if ELLIPSIS in line and line != ELLIPSIS]
        lines = self.printed.splitlines()
        return "".join(next((old for old in elided if re.fullmatch(_pattern(old), new)), new) + "\n" for new in lines)


def steps(page: Path, folder: Path, *, kernel: bool) -> Iterator[Step]:
    """Do what a page says in `folder`, and yield each command as it has ended; without what needs a kernel if asked."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        needs_kernel, language, title, content = block.groups()
        if title:
            (folder / title).write_text(content, encoding="utf-8")
        elif language == "console" and (kernel or not needs_kernel):
            for part in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", content, re.MULTILINE):
                printed = _run(part[1], folder)
                yield Step(page, part[1], part[2], printed, block.start(4) + part.start(2), bool(needs_kernel))


def main() -> int:
    """Run the pages that the command line names, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write what is printed now into the pages")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    asked = parser.parse_args()
    differ = 0
    for page in asked.pages or sorted(TUTORIALS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            done = list(steps(page, Path(folder), kernel=True))
        for step in reversed(done):
            if not step.as_shown:
                differ += 1
                print(f"{page}: $ {step.command}\n{step.printed}")
                text = text[: step.start] + step.anew + text[step.start + len(step.shown) :]
        if asked.write:
            page.write_text(text, encoding="utf-8")
    return 1 if differ and not asked.write else 0


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split(ELLIPSIS))


def _shape(text: str) -> str:
    """A text with `#` for each number, and without the widths that depend on numbers."""
    return re.sub(r"─+", "─", re.sub(r" +", " ", re.sub(r"[+-]?\d+(?:\.\d+)*", "#", text)))


def _run(command: str, folder: Path) -> str:
    """What a command prints, without colours and progress: of one that fails, the message."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "BAKEOFF_STORE": "none"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    printed = done.stdout + (done.stderr if done.returncode else "")
    return "".join(NOISE.sub(ELLIPSIS, line.rstrip()) + "\n" for line in printed.splitlines())


if __name__ == "__main__":
    sys.exit(main())
