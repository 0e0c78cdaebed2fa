"""qdisc-replay: the same packets through our queue and the kernel's."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Json
from bakeoff.cli.output import on_one_line
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.replay import Arrivals, Comparison, Replayed
    from bakeoff.replay.statistics import Statistics


def qdisc_replay(
    qdisc: Annotated[
        str,
        typer.Argument(
            metavar="QDISC",
            help="Qdisc in tc syntax, or a tree of qdiscs in JSON.",
            show_default=False,
            autocompletion=complete.qdisc,
        ),
    ],
    *,
    arrivals: Annotated[
        str,
        typer.Option(
            metavar="PATTERN|FILE",
            help="Arrival pattern (idle, overload, bursts, ramp, flows, ecn, tiny, step) or CSV file.",
        ),
    ] = "overload",
    rate: Annotated[
        str,
        typer.Option(help="Rate of the pattern, and of the htb above QDISC (none if QDISC shapes itself)."),
    ] = "10mbit",
    against: Annotated[
        str | None,
        typer.Option(metavar="kernel[:NAME|PATH]", help="Compare with a Linux kernel.", show_default="nothing"),
    ] = None,
    seed: Annotated[int, typer.Option(min=1, help="Seed of the pattern and of the qdisc.")] = 1,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the arrivals as CSV.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Replay arrivals through a simulated queue and the kernel's.

    Exits with 1 if any packet is treated differently. Qdiscs that draw random numbers (pie, red, dualpi2, cake) differ
    by chance.

    \b
    Examples:
      bakeoff qdisc-replay 'fq_codel flows 1' --arrivals bursts
      bakeoff qdisc-replay 'codel ecn' --arrivals ecn --against kernel
      bakeoff qdisc-replay 'cake bandwidth 20mbit' --arrivals mine.csv --against kernel:linux-7.3.4 --json
    """
    from bakeoff import replay
    from bakeoff.replay.arrivals import write as write_csv
    from bakeoff.replay.statistics import statistics

    port = replay.port(qdisc, rate)
    packets = replay.load(arrivals, rate_bps=port.rate_bps, seed=seed)
    if write is not None:
        write_csv(packets, write)
    if against is None:
        ours = replay.simulate(port, packets, seed=seed)
        _print_one(packets, ours, statistics(packets, ours), as_json=as_json)
        return
    engine, _, named = against.partition(":")
    if engine != "kernel":
        raise UsageError(f"--against: '{against}'; expected kernel, kernel:NAME or kernel:PATH")
    # What the simulator refuses needs no boot.
    replay.simulate(port, packets, seed=seed)
    recorded = replay.record([(port, packets)], kernel=named or None, seed=seed)
    [theirs] = recorded.replays
    if isinstance(theirs, str):
        raise UsageError(f"kernel {recorded.kernel}: {theirs}")
    ours = replay.simulate(port, packets, seed=seed, hz=recorded.hz, like=theirs)
    found = replay.compare(packets, ours, theirs)
    _print_both(recorded.kernel, packets, ours, theirs, found, as_json=as_json)
    if not found.identical:
        raise typer.Exit(1)


def _print_one(packets: Arrivals, ours: Replayed, numbers: Statistics, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"ours": asdict(numbers), "packets": _fates(packets, ours=ours)}))
        return
    typer.echo(f"{on_one_line(packets.name)}: {_words(numbers)}\n\n{ours.show}")


def _print_both(
    kernel: str, packets: Arrivals, ours: Replayed, theirs: Replayed, found: Comparison, *, as_json: bool
) -> None:
    if as_json:
        document = {"kernel": kernel, "identical": found.identical, **asdict(found)}
        typer.echo(json.dumps(document | {"packets": _fates(packets, ours=ours, theirs=theirs)}))
        return
    if found.first is None:
        typer.echo(f"{on_one_line(packets.name)}: identical, packet for packet, with Linux {kernel}")
    else:
        typer.echo(
            f"{on_one_line(packets.name)}: {found.differing} of {found.ours.packets} packets differ from Linux {kernel}"
        )
        typer.echo(f"first {found.first.text()}")
    typer.echo(f"  ours    {_words(found.ours)}\n  kernel  {_words(found.theirs)}")
    typer.echo(f"  the kernel's timer was up to {found.late_ns} ns late")
    typer.echo(f"\nours:\n{ours.show}\n\nkernel:\n{theirs.show.rstrip()}")


def _words(numbers: Statistics) -> str:
    return (
        f"{numbers.packets} packets, {numbers.drops} dropped, {numbers.marks} marked, sojourn mean "
        f"{numbers.mean_sojourn_s * 1e3:.3f} ms, max {numbers.max_sojourn_s * 1e3:.3f} ms"
    )


def _fates(packets: Arrivals, **sides: Replayed) -> list[dict[str, object]]:
    """By packet: what arrived, and on each side when it left and with which ECN field; nothing if it was dropped."""
    left = {name: {number: (at, ecn) for number, at, ecn in side.departures} for name, side in sides.items()}
    fates = []
    for number, packet in enumerate(packets.packets):
        fate: dict[str, object] = {"bytes": packet.bytes, "flow": packet.flow, "ecn": packet.ecn}
        for name, side in sides.items():
            fate["arrival_ns"] = side.arrivals_ns[number]
            if number in left[name]:
                at, ecn = left[name][number]
                fate[name] = {"departure_ns": at, "ecn": ecn}
        fates.append(fate)
    return fates
