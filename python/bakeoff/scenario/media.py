"""What makes a link more than a cable: its features in the resolved run, and its outages; `docs/links.md`."""

from pathlib import Path
from typing import Any, Final

from bakeoff import files
from bakeoff.scenario.error import DocumentError, did_you_mean
from bakeoff.scenario.language import Document
from bakeoff.scenario.network import LinkSpec
from bakeoff.scenario.run import Change, LinkChange
from bakeoff.scenario.shipped import root

_LARGEST_TRACE: Final = 64 << 20
"""Bytes. Traces that come with mahimahi have about 1 MB."""
_DIGITS: Final = 12
"""Of a millisecond: thirty years."""


def features(link: LinkSpec, folder: Path, place: str) -> dict[str, Any]:
    """The features of `link`; a trace is read from `folder`, DocumentError names what is wrong at `place`."""
    made: dict[str, Any] = {}
    if link.trace is not None:
        named = link.trace if isinstance(link.trace, dict) else dict.fromkeys(link.ends, link.trace)
        _known(link, list(named), f"{place}.trace")
        made["trace"] = {
            sender: {"file": file, "ms": read_trace(file, folder, f"{place}.trace")} for sender, file in named.items()
        }
    if link.wifi is not None:
        wifi = link.wifi
        access = wifi.access if isinstance(wifi.access, list) else [wifi.access, wifi.access]
        if access[0] > access[1]:
            raise DocumentError(f"{place}.wifi.access", f"{access}; expected [least, most]")
        made["wifi"] = {"access_s": access, "packets": wifi.packets, "bytes": wifi.bytes}
    if link.docsis is not None:
        docsis = link.docsis
        _known(link, [docsis.modem], f"{place}.docsis.modem")
        made["docsis"] = {"modem": docsis.modem, "interval_s": docsis.interval, "pending": docsis.pending}
    if link.police is not None:
        police = link.police
        senders = [police.from_] if police.from_ is not None else link.ends
        _known(link, senders, f"{place}.police.from")
        exceed = "drop" if police.exceed == "drop" else {"dscp": police.exceed}
        made["police"] = {
            sender: {"rate_bps": police.rate, "burst": police.burst, "exceed": exceed} for sender in senders
        }
    if link.half_duplex is not None:
        made["half_duplex"] = {"turnaround_s": link.half_duplex.turnaround}
    if link.jitter is not None:
        made["jitter"] = {"wifi_s": link.jitter.wifi}
    if link.multipath is not None:
        made["multipath"] = {
            "by": link.multipath.by,
            "paths": [
                {
                    "weight": path.weight,
                    "rate_bps": path.rate,
                    "delay_s": path.delay,
                    "loss": path.loss,
                    "limit": path.limit,
                }
                for path in link.multipath.paths
            ],
        }
    _fit(link, made, place)
    return made


def loss(link: LinkSpec, place: str) -> float | dict[str, float]:
    """The loss of both directions, or by sending end where they differ."""
    if not isinstance(link.loss, dict):
        return link.loss
    _known(link, list(link.loss), place)
    both = {link.loss.get(end, 0.0) for end in link.ends}
    return both.pop() if len(both) == 1 else {end: share for end, share in link.loss.items() if share}


def _known(link: LinkSpec, names: list[str], place: str) -> None:
    for name in names:
        if name not in link.ends:
            raise DocumentError(place, f"'{name}': not an end of the link{did_you_mean(name, link.ends)}")


def _fit(link: LinkSpec, made: dict[str, Any], place: str) -> None:
    media = [name for name in ("docsis", "multipath", "trace", "wifi") if name in made]
    if len(media) > 1:
        raise DocumentError(place, f"{' and '.join(media)} are mutually exclusive")
    if "half_duplex" in made and media not in ([], ["wifi"]):
        raise DocumentError(place, f"half_duplex and {media[0]} are mutually exclusive")
    for name in ("multipath", "trace"):
        if name in made and link.rate is not None:
            raise DocumentError(f"{place}.rate", f"'{name}' sets the rate; expected no 'rate'")
    for name in ("docsis", "half_duplex", "wifi"):
        if name in made and link.rate is None:
            raise DocumentError(f"{place}.rate", f"missing; '{name}' needs a rate")


def read_trace(named: str, folder: Path, place: str) -> list[int]:
    """The milliseconds of a trace in mahimahi's format; DocumentError at `place` if it is none.

    The file lies in `folder` or below, or in the catalog. No message tells what else a file holds: it may be private.
    """
    path = folder / named
    if not any(files.is_below(path, each) for each in (folder, root())):
        raise DocumentError(place, f"'{named}' is outside the scenario's folder; expected a file in {folder.resolve()}")
    try:
        lines = files.read(path, _LARGEST_TRACE).decode("ascii").splitlines() or [""]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text of numbers"
        raise DocumentError(place, f"{path}: cannot be read: {reason}") from None
    if lines[-1] == "":
        lines.pop()
    ms: list[int] = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text.isdecimal() or len(text) > _DIGITS or (ms and int(text) < ms[-1]):
            raise DocumentError(
                place,
                f"{path}: line {number}: invalid or decreasing; expected one integer of at most {_DIGITS} digits per "
                "line, in order",
            )
        ms.append(int(text))
    if not ms or ms[-1] == 0:
        raise DocumentError(place, f"{path}: empty, or ends at 0; expected one millisecond per line")
    return ms


def outages(doc: Document) -> list[Change]:
    """What takes links down and up again, at both ends."""
    made = []
    for index, link in enumerate(doc.network.links):
        end = 0.0
        for number, (down, up) in enumerate(link.down):
            place = f"network.links[{index}].down[{number}]"
            if not end <= down < up:
                raise DocumentError(place, f"from {down:g} s to {up:g} s; expected increasing times")
            if down > doc.duration:
                raise DocumentError(place, f"{down:g} s is after the end of the run at {doc.duration:g} s")
            end = up
            for at, state in ((down, False), (up, True)):
                if at <= doc.duration + doc.idle:
                    made += [
                        Change(at_s=at, node=node, peer=peer, action=LinkChange(up=state))
                        for node, peer in (link.ends, link.ends[::-1])
                    ]
    return made
