"""Build the documentation as a site, with Zensical: `python docs/build_site.py [FOLDER]` (default: build).

The pages are staged in FOLDER/pages; the site is FOLDER/docs:

- The navigation is docs/index.md: each of its headings is a section, each link of a list below it a page.
- Files outside of docs/ that a page links to, as `../CONTRIBUTING.md`, lie under `repository/`, and links lead there.
- docs/commands.md gets the help of every command from the command line itself.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from bakeoff.cli.app import app

DOCS: Final = Path(__file__).resolve().parent
ROOT: Final = DOCS.parent
LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
COMMANDS: Final = "<!-- the help of every command -->"
NOT_PUBLISHED: Final = shutil.ignore_patterns("*.py", "*.answers.json", "__pycache__")


def build(folder: Path) -> int:
    """Stage the pages and build the site; Zensical's exit code, which is not 0 for a link that leads nowhere."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(DOCS, pages, ignore=NOT_PUBLISHED)
    for file in _linked():
        target = pages / _uri(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    for page in pages.rglob("*.md"):
        page.write_text(_staged(page.read_text(encoding="utf-8"), page.relative_to(pages)), encoding="utf-8")
    # Zensical takes folders that are relative to the configuration.
    places = {"docs_dir": "pages", "site_dir": "docs", "nav": _navigation()}
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in places.items()]
    config = folder / "mkdocs.yml"
    config.write_text((ROOT / "mkdocs.yml").read_text(encoding="utf-8") + "".join(lines), encoding="utf-8")
    shutil.rmtree(folder / "docs", ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    return subprocess.run([zensical, "build", "--strict", "--config-file", config], cwd=ROOT, check=False).returncode


def _navigation() -> list[dict[str, Any]]:
    sections: dict[str, list[dict[str, str]]] = {}
    section: list[dict[str, str]] = []
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for heading, title, link in re.findall(r"^## (.+)$|^- \[(.+?)\]\((.+?)\)", index, re.MULTILINE):
        if heading:
            section = sections.setdefault(heading, [])
        else:
            section.append({title: _uri(DOCS / link)})
    return [{"Start": "index.md"}, *({heading: pages} for heading, pages in sections.items() if pages)]


def _linked() -> set[Path]:
    """The files outside of docs/ that pages link to, and those that these link to."""
    pages = list(DOCS.rglob("*.md"))
    found: set[Path] = set()
    while pages:
        for target in _targets(pages.pop()):
            if target in found or target.is_relative_to(DOCS) or not target.is_file():
                continue
            found.add(target)
            if target.suffix == ".md":
                pages.append(target)
    return found


def _targets(page: Path) -> Iterator[Path]:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        yield (page.parent / link).resolve()


def _staged(markdown: str, page: Path) -> str:
    """The text of a page of the site, with links to where the site has their targets."""
    parts = page.parts
    source = ROOT.joinpath(*parts[1:]) if parts[0] == "repository" else DOCS / page

    def within_the_site(link: re.Match[str]) -> str:
        return os.path.relpath(_uri(source.parent / link[1]), start=page.parent)

    return LINK.sub(within_the_site, markdown).replace(COMMANDS, "\n".join(_helps()))


def _uri(file: Path) -> str:
    """Where the site has a file of the repository."""
    file = file.resolve()
    return str(file.relative_to(DOCS)) if file.is_relative_to(DOCS) else f"repository/{file.relative_to(ROOT)}"


def _helps(command: Any = None, words: tuple[str, ...] = ("bakeoff",)) -> Iterator[str]:  # noqa: ANN401 (click's)
    """Markdown: a heading and the help of each command, as a narrow terminal shows it."""
    command = command or typer.main.get_command(app)
    context = command.context_class(command, info_name=" ".join(words), terminal_width=92, max_content_width=92)
    yield f"\n{'#' * min(len(words) + 1, 4)} {' '.join(words)}\n\n```text\n{command.get_help(context)}\n```"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, (*words, name))


if __name__ == "__main__":
    raise SystemExit(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"))
