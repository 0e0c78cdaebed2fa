"""compare --packets: two runs, or two captures, packet by packet."""

from __future__ import annotations

from pathlib import Path

import typer

from bakeoff.errors import UsageError


def compare_packets(ours: str, theirs: str, *, plot: Path | None, as_json: bool) -> None:
    """Show what differs first and how far apart the times are; end with 1 unless all data packets are the same."""
    from bakeoff.captures import lockstep, lockstep_report, packets, sender_state
    from bakeoff.cli.output import print_rendered
    from bakeoff.cli.progress import patience

    paths = (_run_or_capture(ours), _run_or_capture(theirs))
    with patience("reading packets"):
        sides = [packets.read(path) for path in paths]
    with patience("comparing"):
        found = lockstep.compare(*sides)
    firsts = [flow.first_times() for flow in found.flows]
    states = (
        sender_state.of_flows(paths[0], [mine for mine, _ in firsts]),
        sender_state.of_flows(paths[1], [other for _, other in firsts]),
    )
    if plot is not None:
        lockstep_report.draw(found, plot)
    if as_json:
        print_rendered(lockstep_report.encoded(found, states), colours=False)
    else:
        print_rendered(lockstep_report.text(found, states), colours=True)
    if not found.same:
        raise typer.Exit(1)


def _run_or_capture(name: str) -> Path:
    """A capture, a run's folder, or the only run of a campaign's folder."""
    from bakeoff.results import captures, layout, survey

    path = Path(name)
    if not path.exists():
        raise UsageError(f"{name}: no such file or folder; expected a capture or a run with captures")
    if not path.is_dir() or (path / layout.RUN).exists() or captures.of_folder(path):
        return path
    runs = survey(path).runs
    if len(runs) != 1:
        raise UsageError(f"{name}: has {len(runs)} runs; expected the folder of one run with --packets")
    return runs[0]
