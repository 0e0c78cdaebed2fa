"""`bakeoff.trace`: the flows of a packet capture."""

from __future__ import annotations

from pathlib import Path

from bakeoff import captures
from bakeoff.arguments import check
from bakeoff.captures import CaptureFile, Ecn, IrttFile
from bakeoff.errors import UsageError


def trace(
    file: Path | str, *, flow: str | None = None, ecn: Ecn = "auto", interval: str | None = None
) -> CaptureFile | IrttFile:
    """Read a packet capture, or a JSON file of irtt's client, as `bakeoff trace` does.

    The attribute `report` (`test` for irtt) of the result has every number of docs/trace.md; `print` shows the table
    of the command. `flow` selects flows by number, address, port or glob. `ecn` is the interpretation of TCP's ECN
    bits; `auto` follows each handshake. `interval`, from 1ms to 1h, adds series to the flows of a capture.
    BakeoffError names the file, the position in it and the expected form.
    """
    check("trace", file=("path", file), flow=("text?", flow), ecn=("text", ecn), interval=("time?", interval))
    found = captures.read(
        Path(file), ecn=ecn, interval_s=None if interval is None else interval_s("trace: interval", interval)
    )
    return captures.of_flows(found, flow) if flow is not None and isinstance(found, CaptureFile) else found


def interval_s(place: str, text: str) -> float:
    """In seconds. BakeoffError unless it is a time between 1 ms and an hour."""
    from bakeoff.scenario.units import parse_time

    try:
        found_s = parse_time(text)
    except ValueError as error:
        raise UsageError(f"{place}: {error}") from None
    if not 1e-3 <= found_s <= 3600:
        raise UsageError(f"{place}: '{text}'; expected a time from 1ms to 1h")
    return found_s
