"""render: pages from templates, whose numbers, tables, pictures and verdicts come from results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.claims import SEEDS
from bakeoff.cli.options import Jobs
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.render.page import Page


def render(
    templates: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEMPLATE...",
            help="Markdown with Jinja2 expressions; see docs/render.md.",
            dir_okay=False,
        ),
    ],
    *,
    results: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Results folder; repeatable.", show_default="the latest campaign"),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FOLDER/",
            help="Destination file, or folder if it exists or ends in /. Pictures go to a folder next to the page.",
            show_default="standard output",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions per run for claims.")] = SEEDS,
    jobs: Jobs = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="Record the values from the results in an .answers.json file next to each page."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing; exit with 1 if a page differs from its template filled in with the recorded values.",
        ),
    ] = False,
) -> None:
    """Render pages from templates, with all numbers from results.

    \b
    Examples:
      bakeoff render paper.md --results results/fairness              to standard output
      bakeoff render paper.md --results results/fairness --out out/   with pictures
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
        raise UsageError(f"--{'record' if record else 'check'}: needs --out")
    if record and check:
        raise UsageError("--record and --check: mutually exclusive")
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
        raise UsageError(f"--out: '{out}' is ambiguous; expected '{out}.md' (a file) or '{out}/' (a folder)")
    elif len(templates) == 1:
        places = {templates[0]: Path(out)}
    else:
        raise UsageError(
            f"--out: '{out}' is a file, but there are {len(templates)} templates; expected a folder ending in /"
        )
    for template, path in places.items():
        if path.resolve() == template.resolve():
            raise UsageError(f"--out: the page would overwrite its template {template}; expected another folder")
    if len(set(places.values())) < len(places):
        raise UsageError("--out: duplicate template name; expected unique names, or one call per folder")
    return places
