"""The commands, put together. Only typer is imported before a command is known."""

from typing import Annotated

import typer

from bakeoff.cli import (
    advise,
    catalog,
    compare,
    diff,
    doctor,
    duel,
    evaluate,
    export,
    import_,
    kernel,
    packetdrill,
    plot,
    qdisc_replay,
    reference,
    remote,
    render,
    reproduce,
    results,
    run,
    serve,
    shell,
    site,
    store,
    suites,
    sweep,
    table,
    trace,
    verify,
    with_,
)
from bakeoff.cli.command import Group, add

# With colour: what a name holds is shown by `output`, and not taken out where nobody has a terminal.
# Without rich's markup: twice as fast to show, and examples stay as they were typed.
app = typer.Typer(
    cls=Group,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "color": True},
)
add(app, duel.duel, run.run, sweep.sweep, verify.verify, advise.advise, evaluate.evaluate, shell.shell, section="Run")
add(app, with_.with_, section="Run", before_command=True)
add(app, catalog.list_, suites.suites, catalog.show, section="Catalog")
add(app, table.table, table.report, plot.plot, site.site, serve.serve, render.render, trace.trace, section="Look")
add(app, compare.compare, diff.diff, reproduce.reproduce, section="Compare")
add(app, import_.import_, export.export, remote.push, remote.pull, section="Exchange")
app.add_typer(reference.app, name="reference")
app.add_typer(kernel.app, name="kernel")
add(app, packetdrill.packetdrill, qdisc_replay.qdisc_replay, section="Kernel")
add(app, results.results, results.logs, results.rm, store.store, catalog.schema, doctor.doctor, section="Manage")


def _version(wanted: bool) -> None:
    if wanted:
        from bakeoff.version import version as installed

        typer.echo(f"bakeoff {installed()}")
        raise typer.Exit


@app.callback()
def _bakeoff(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A laboratory for congestion control that fits in a laptop.

    \b
    Examples:
      bakeoff duel prague cubic --qdisc "fq_codel flows 1" --rate 50mbit --rtt 20ms
      bakeoff list                    scenarios of the catalog
      bakeoff run 'l4s-tests/s6*'     all runs of one of them
      bakeoff table                   results next to the published numbers
      bakeoff plot                    pictures of the results
    """
