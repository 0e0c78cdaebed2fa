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
    export,
    import_,
    kernel,
    packetdrill,
    plot,
    present,
    qdisc_replay,
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
    trace,
    verify,
)
from bakeoff.cli.command import Command, Group

# With colour: what a name holds is shown by `output`, and not taken out where nobody has a terminal.
# Without rich's markup: twice as fast to show, and examples stay as they were typed.
app = typer.Typer(
    cls=Group,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "color": True},
)
app.command("list", cls=Command)(catalog.list_)
app.command(cls=Command)(catalog.show)
app.command(cls=Command)(run.run)
app.command(cls=Command)(sweep.sweep)
app.command(cls=Command)(present.table)
app.command(cls=Command)(present.report)
app.command(cls=Command)(plot.plot)
app.command(cls=Command)(site.site)
app.command(cls=Command)(serve.serve)
app.command(cls=Command)(render.render)
app.command(cls=Command)(export.export)
app.command("import", cls=Command)(import_.import_)
app.command(cls=Command)(compare.compare)
app.command(cls=Command)(suites.suites)
app.command(cls=Command)(verify.verify)
app.command(cls=Command)(diff.diff)
app.command(cls=Command)(reproduce.reproduce)
app.command(cls=Command)(results.results)
app.command(cls=Command)(results.logs)
app.command(cls=Command)(results.rm)
app.command(cls=Command)(store.store)
app.command(cls=Command)(remote.push)
app.command(cls=Command)(remote.pull)
app.command(cls=Command)(trace.trace)
app.command(cls=Command)(shell.shell)
app.command(cls=Command)(duel.duel)
app.command(cls=Command)(advise.advise)
app.command(cls=Command)(packetdrill.packetdrill)
app.command("qdisc-replay", cls=Command)(qdisc_replay.qdisc_replay)
app.command(cls=Command)(catalog.schema)
app.command(cls=Command)(doctor.doctor)
app.add_typer(kernel.app, name="kernel")


def _version(wanted: bool) -> None:
    if wanted:
        from bakeoff.version import version as installed

        typer.echo(f"bakeoff {installed()}")
        raise typer.Exit


@app.callback()
def _bakeoff(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A laboratory for congestion control that fits in a laptop.

    \b
    Examples:
      bakeoff duel prague cubic --qdisc "fq_codel flows 1" --rate 50mbit --rtt 20ms
      bakeoff list                    the published experiments
      bakeoff run 'l4s-tests/s6*'     one of them, all its runs
      bakeoff table                   what came out, beside what was published
      bakeoff plot                    the same as pictures
    """
