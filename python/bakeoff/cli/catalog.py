"""list, show, schema: the contents of the catalog."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Engine, Format, FormatOption, Json, Only, Set, Yes, tell_code

if TYPE_CHECKING:
    from bakeoff.text.markup import Format as Form


def list_(
    pattern: Annotated[
        str | None,
        typer.Argument(
            help="Glob (or re:REGEX) on suite/scenario/run, or a scenario file.",
            autocompletion=complete.scenario,
        ),
    ] = None,
    *,
    only: Only = None,
    set_: Set = None,
    yes: Yes = False,
    format_: FormatOption = Format.terminal,
    as_json: Json = False,
) -> None:
    """List the scenarios of the catalog, or the runs of one.

    \b
    Examples:
      bakeoff list                         all scenarios
      bakeoff list 'l4s-tests/s6*'         the runs that 'bakeoff run' would do
      bakeoff list 're:s1.*-pfifo' --json
      bakeoff list linux -k bbr            runs of a suite whose name contains a word
      bakeoff list mine.yaml               the runs of a scenario file
    """
    from bakeoff.cli.output import print_rows
    from bakeoff.scenario import catalog, parse_settings
    from bakeoff.text.columns import Column

    scenarios = pattern is None and only is None and not set_
    rows: list[dict[str, str | int | float]]
    if scenarios:
        rows, count, simulated_s = [], 0, 0.0
        examples = catalog.examples()
        tell_code(run for several in examples.values() for run, _ in several)
        for entry, several in examples.items():
            runs = sum(alike for _, alike in several)
            length_s = sum(alike * run.duration_s for run, alike in several)
            name = f"{entry.suite}/{entry.scenario}"
            rows.append({"scenario": name, "title": entry.title, "runs": runs, "simulated_s": length_s})
            count, simulated_s = count + runs, simulated_s + length_s
    else:
        wanted = "*" if pattern is None else pattern
        chosen = catalog.select(wanted, only=only, settings=parse_settings(set_ or ()), yes=yes)
        tell_code(chosen)
        rows = [{"run": run.key, "title": run.title, "simulated_s": run.duration_s} for run in chosen]
        count, simulated_s = len(chosen), sum(run.duration_s for run in chosen)
    form: Form = "json" if as_json else format_.value
    what = "scenario" if scenarios else "run"
    heads = ("", "", "", "") if form == "terminal" else (what, "runs", "simulated", "title")
    columns = [Column(heads[0], [str(row[what]) for row in rows], text=True)]
    if scenarios:
        columns.append(Column(heads[1], [f"{row['runs']} run{'s' * (row['runs'] != 1)}" for row in rows]))
    columns.append(Column(heads[2], [f"{row['simulated_s']:.0f} s" for row in rows]))
    columns.append(Column(heads[3], [str(row["title"]) for row in rows], text=True))
    print_rows(f"{what}s", rows, columns, form)
    if form != "json":
        typer.echo(f"in all: {count} runs, {simulated_s:.0f} s simulated", err=True)


def show(
    pattern: Annotated[
        str,
        typer.Argument(
            help="suite/scenario, a glob (or re:REGEX) for a run, a scenario file, or FILE::PATTERN for a run of one.",
            autocompletion=complete.scenario,
        ),
    ],
    engine: Engine = "sim",
    only: Only = None,
    set_: Set = None,
    yes: Yes = False,
) -> None:
    """Print a scenario's YAML, or one run with every value.

    The scenario (YAML) or the run (JSON) goes to standard output, the engine's settings for it to standard error.

    \b
    Examples:
      bakeoff show l4s-tests/s6-rfc3168
      bakeoff show 'l4s-tests/s6-rfc3168/*pie*' | jq .flows
      bakeoff show mine.yaml::'*pie*'
      bakeoff show 'l4s-tests/s6-rfc3168/*pie*' --set network.rtt=40ms     override a value
    """
    from bakeoff import engines
    from bakeoff.scenario import catalog, parse_settings

    runs = catalog.select(pattern, only=only, settings=parse_settings(set_ or ()), yes=yes)
    first = runs[0]
    files = [each.path for each in catalog.scenarios() if f"{each.suite}/{each.scenario}" == pattern.rstrip("/")]
    if files and only is None and not set_:
        typer.echo(files[0].read_text(encoding="utf-8"), nl=False)
    else:
        typer.echo(json.dumps(first.model_dump(mode="json"), indent=2, ensure_ascii=False))
    sys.stdout.flush()
    if len(runs) > 1:
        typer.echo(f"\n{len(runs)} runs match; the first is {first.key}", err=True)
    tell_code(runs)
    typer.echo(f"\nIn effect ({engine}):\n{engines.get(engine).check(first).rstrip()}", err=True)


class Files(StrEnum):
    """Kinds of files with a schema."""

    scenario = "scenario"
    claims = "claims"
    evaluation = "evaluation"


def schema(of: Annotated[Files, typer.Argument(help="Kind of file to print the schema for.")] = Files.scenario) -> None:
    """Print the JSON Schema of scenarios, claims or batteries of evaluation cases.

    \b
    Examples:
      bakeoff schema > scenario.schema.json
      bakeoff schema claims > claims.schema.json
      bakeoff schema evaluation > battery.schema.json
    """
    if of is Files.claims:
        from bakeoff.claims.claim import json_schema
    elif of is Files.evaluation:
        from bakeoff.evaluation.battery import json_schema
    else:
        from bakeoff.scenario import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
