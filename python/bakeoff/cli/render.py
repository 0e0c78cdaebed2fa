"""render: pages from templates, whose numbers, tables, pictures and verdicts come from results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bakeoff.cli.options import Jobs
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.render.page import Page

SEEDS: Final = 3
"""As many as `bakeoff verify` does."""


def render(
    templates: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEMPLATE...",
            help="Markdown with Jinja2's words in it, as docs/render.md explains.",
            dir_okay=False,
        ),
    ],
    *,
    results: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Where the runs lie; repeatable.", show_default="the latest campaign"),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FOLDER/",
            help="A file, or a folder if it is one or ends in /. Pictures go into a folder beside the page.",
            show_default="the page is printed",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions of each run that decide a claim.")] = SEEDS,
    jobs: Jobs = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Keep what the results answered beside each page, in a file that ends in .answers.json."
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing and need no results: end with 1 if a page is not what its template and the recorded "
            "answers give.",
        ),
    ] = False,
) -> None:
    """Render pages from templates, with all numbers from results.

    \b
    Examples:
      bakeoff render paper.md --results results/fairness              the page is printed
      bakeoff render paper.md --results results/fairness --out out/   with its pictures
      bakeoff render catalog/studies/*.md --results results/verify/sim --out docs/studies/ --record
      bakeoff render catalog/studies/*.md --out docs/studies/ --check
    """
    from bakeoff import campaign
    from bakeoff.cli.output import print_rendered
    from bakeoff.cli.progress import patience
    from bakeoff.render import recorded
    from bakeoff.render.finished_runs import FinishedRuns
    from bakeoff.render.page import rendered, write
    from bakeoff.render.pictures import Pictures
    from bakeoff.render.template_functions import Functions
    from bakeoff.render.verdicts import Verdicts
    from bakeoff.results import epoch_warning

    places = _places(templates, out)
    if (record or check) and out is None:
        raise UsageError(f"--{'record' if record else 'check'} is about pages in files; expected --out too")
    if record and check:
        raise UsageError("--record writes and --check does not; expected one of them")
    if check:
        different = [line for template, path in places.items() if (line := recorded.difference(template, path))]
        for line in different:
            typer.echo(line, err=True)
        if different:
            raise typer.Exit(1)
        return
    with patience("reading") as tell:
        store = FinishedRuns(results or [campaign.latest()], tell)
    for complaint in [*store.complaints, *filter(None, [epoch_warning(store.results)])]:
        typer.echo(f"bakeoff: {complaint}", err=True)
    verdicts = Verdicts(store, seeds, jobs or campaign.cores())
    pages: dict[Path, Page] = {}
    for template, path in places.items():
        with patience(f"rendering {template.name}"):
            pictures = Pictures(None if out is None else path.stem)
            page = rendered(template, Functions(store, verdicts, pictures).functions())
        page.pictures = pictures.made
        if out is None:
            print_rendered(page.text, colours=False)
            continue
        if record:
            page.pictures |= {recorded.beside(path).name: recorded.text(page)}
        pages[path] = page
    for path in write(pages):
        typer.echo(path)


def _places(templates: list[Path], out: str | None) -> dict[Path, Path]:
    """Where the page of each template goes; without `out` only its name means something."""
    for template in templates:
        if not template.is_file():
            raise UsageError(f"{template}: no such template")
    if out is None:
        return {template: Path(template.name) for template in templates}
    if out.endswith("/") or Path(out).is_dir():
        places = {template: Path(out) / template.name for template in templates}
    elif len(templates) == 1 and not Path(out).suffix:
        raise UsageError(f"--out: '{out}' could be a page or a folder; expected '{out}.md' or '{out}/'")
    elif len(templates) == 1:
        places = {templates[0]: Path(out)}
    else:
        raise UsageError(f"--out: '{out}' is one file, and there are {len(templates)} templates; end it in /")
    for template, path in places.items():
        if path.resolve() == template.resolve():
            raise UsageError(f"--out: the page would take the place of its template, {template}; give another folder")
    if len(set(places.values())) < len(places):
        raise UsageError("--out: two templates have the same name; give each a folder of its own")
    return places
