"""What mkdocs asks while it builds the site of the documentation (mkdocs.yml names this file).

- The navigation is docs/index.md: each of its headings is a section, each link of a list below it is a page.
- A page may link to a file outside of docs/, as in `../CONTRIBUTING.md`. The site has such files under `repository/`.
- docs/commands.md gets the help of every command, from the command line itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from bakeoff.cli.app import app

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
COMMANDS = "<!-- the help of every command -->"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from docs/index.md."""
    sections: dict[str, list[dict[str, str]]] = {}
    section: list[dict[str, str]] = []
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for heading, title, link in re.findall(r"^## (.+)$|^- \[(.+?)\]\((.+?)\)", index, re.MULTILINE):
        if heading:
            section = sections.setdefault(heading, [])
        else:
            section.append({title: _uri(DOCS / link)})
    # Its page of errors has paths that only a server at the root of a host could follow.
    config.theme.static_templates.discard("404.html")
    config.nav = [{"Start": "index.md"}, *({heading: pages} for heading, pages in sections.items() if pages)]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files outside of docs/ that pages link to, and those that these link to."""
    pages = [Path(file.abs_src_path or "") for file in files.documentation_pages()]
    seen = set(pages)
    while pages:
        for target in _targets(pages.pop()):
            if target in seen or target.is_relative_to(DOCS) or not target.is_file():
                continue
            seen.add(target)
            file = File.generated(config, _uri(target), content=target.read_bytes())
            file.inclusion = InclusionLevel.NOT_IN_NAV  # no complaint if the index does not name it
            files.append(file)
            if target.suffix == ".md":
                pages.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links where the site has their targets; write the catalogue of commands."""
    uri = page.file.src_uri
    place = _place(uri)

    def within_the_site(link: re.Match[str]) -> str:
        return os.path.relpath(_uri(_file(place, link[1])), start=Path(uri).parent)

    markdown = LINK.sub(within_the_site, markdown)
    return markdown.replace(COMMANDS, "\n".join(_helps()))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the theme's search for those who hear the page, because its dialog has no name."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


def _targets(page: Path) -> Iterator[Path]:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        yield _file(page, link)


def _file(page: Path, link: str) -> Path:
    """The file that a link on a page leads to."""
    return (page.parent / link).resolve()


def _uri(file: Path) -> str:
    """Where the site has a file of the repository."""
    file = file.resolve()
    return str(file.relative_to(DOCS)) if file.is_relative_to(DOCS) else f"repository/{file.relative_to(ROOT)}"


def _place(uri: str) -> Path:
    """The file that the site has at `uri`."""
    return ROOT / uri.removeprefix("repository/") if uri.startswith("repository/") else DOCS / uri


def _helps(command: Any = None, words: tuple[str, ...] = ("bakeoff",)) -> Iterator[str]:  # noqa: ANN401 (click's)
    """Markdown: a heading and the help of each command, as a narrow terminal shows it."""
    command = command or typer.main.get_command(app)
    context = command.context_class(command, info_name=" ".join(words), terminal_width=92, max_content_width=92)
    yield f"\n{'#' * min(len(words) + 1, 4)} {' '.join(words)}\n\n```text\n{command.get_help(context)}\n```"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _helps(inner, (*words, name))
