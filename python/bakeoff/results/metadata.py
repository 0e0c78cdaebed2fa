"""What campaign.json and run.json say, as types (docs/results-folder.md)."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any, Literal, Self

import msgspec
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_serializer

from bakeoff.errors import ResultsError
from bakeoff.results.request import Kept, Kind, Request
from bakeoff.scenario.run import Run


class Record(BaseModel):
    """Nothing changes after construction, and keys that this version does not know are left."""

    model_config = ConfigDict(frozen=True, defer_build=True, populate_by_name=True, serialize_by_alias=True)

    @classmethod
    def of(cls, content: dict[str, Any], place: str) -> Self:
        """The record that a JSON object holds. BakeoffError names `place`, the first wrong key and its form."""
        return cls.from_json(msgspec.json.encode(content), place)

    @classmethod
    def from_json(cls, text: bytes, place: str) -> Self:
        """The same of JSON text."""
        try:
            return cls.model_validate_json(text, strict=True, extra="ignore")
        except ValidationError as error:
            first = error.errors()[0]
            key, *inside = map(str, first["loc"] or ("the file",))
            why = first["msg"].removeprefix("Value error, ")
            separator = ": " if key == "resolved" else "."
            raise ResultsError(f"{key}{separator if inside else ''}{'.'.join(inside)}: {why}", place=place) from None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return self.model_dump(mode="json")


class Provenance(Record):
    """From which bakeoff, command, machine and day something is."""

    version: str
    commit: str | None
    """None if nothing says which one the package was built from."""
    dirty: bool | None
    """Whether the source had been changed since the commit; None without one."""
    model_epoch: int
    """See `bakeoff.version.MODEL_EPOCH`."""
    date: AwareDatetime
    command: tuple[str, ...]
    """The words of the command line."""
    host: str
    note: str | None
    """The user's own words (--note)."""


class Taken(Record):
    """Where a result comes from that its campaign did not make; its provenance says who made it, and when."""

    date: AwareDatetime
    """When it was taken."""
    store: str
    """The store's path or URL."""
    campaign: str | None
    """The campaign that it was made for."""


class CampaignRecord(Record):
    """campaign.json: what a campaign is, as it was begun."""

    format: Literal[1] = 1
    id: str
    """Random; run.json of each of its runs names it."""
    kind: Kind
    request: Request | None = None
    """What was to be run; None of an older bakeoff. See `begun`."""
    patterns: tuple[str, ...] = ()
    """The same in an older bakeoff's file: patterns, and options as they were typed."""
    engine: str
    versions: dict[str, str]
    """Name and version of everything that decides what comes out, as the engine tells it."""
    provenance: Provenance
    runs: int | None = None
    """How many runs it was begun for; None of a campaign that chooses runs as it goes on, or of an older bakeoff."""

    @property
    def begun(self) -> Request:
        """What was to be run. ResultsError if an older bakeoff's options cannot be read."""
        if self.request is None:
            return Request.of_lines(self.kind, self.patterns)
        return replace(self.request, kind=self.kind)

    def lines(self) -> list[str]:
        """What was to be run, for people."""
        return [*self.patterns] if self.request is None else self.begun.lines()

    @field_serializer("request")
    def _given(self, request: Request | None) -> dict[str, Any] | None:
        """The fields that say more than their default does."""
        if request is None:
            return None
        default = asdict(Request())
        return {key: value for key, value in asdict(request).items() if key != "kind" and value != default[key]}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, with what was to be run in one form."""
        return self.model_dump(mode="json", exclude={"patterns" if self.request is not None else "request"})


def _checked(run: Run) -> Run:
    """The run, whose window holds something and whose parts name each other.

    Names show as they are: they hold nothing that a terminal would act on.
    """
    start, end = run.window_s
    if start >= end:
        raise ValueError(f"window_s: from {start:g} s to {end:g} s; expected a non-empty window")
    unknown = _unknown(run)
    if unknown is not None:
        raise ValueError(unknown)
    several = (run.nodes, run.tunnels, run.flows, run.probes)
    names = [run.suite, run.scenario, run.run, *run.point, *run.point.values()]
    for name in (*names, *(part.name for parts in several for part in parts)):
        if not name.isprintable():
            raise ValueError(f"the name {name!r} contains an unprintable character")
    return run


def _unknown(run: Run) -> str | None:
    """The first place that names a node or a tunnel which the run does not have; None if there is none."""
    nodes, tunnels = {node.name for node in run.nodes}, {tunnel.name for tunnel in run.tunnels}
    sent = [(f"flows.{n}", flow.from_, flow.to, flow.tunnel) for n, flow in enumerate(run.flows)]
    sent += [(f"probes.{n}", probe.from_, probe.to, probe.tunnel) for n, probe in enumerate(run.probes)]
    for place, source, target, tunnel in sent:
        if source not in nodes or target not in nodes:
            return f"{place}: from '{source}' to '{target}'; expected nodes of the run"
        if tunnel is not None and tunnel not in tunnels:
            return f"{place}.tunnel: '{tunnel}': unknown tunnel"
    ends = [(f"links.{n}", link.ends) for n, link in enumerate(run.links)]
    ends += [(f"tunnels.{n}", tunnel.ends) for n, tunnel in enumerate(run.tunnels)]
    ends += [(f"interfaces.{n}", (interface.node, interface.peer)) for n, interface in enumerate(run.interfaces)]
    ends += [(f"changes.{n}", (change.node, change.peer)) for n, change in enumerate(run.changes)]
    for place, (one, other) in ends:
        if one not in nodes or other not in nodes:
            return f"{place}: '{one}' and '{other}' are not both nodes of the run"
    return None


class RunRecord(Record):
    """run.json: what one run was and how it ended."""

    format: Literal[1] = 1
    run: Annotated[Run, AfterValidator(_checked), Field(alias="resolved")]
    """The resolved run: docs/resolved-run.md."""
    engine: str
    versions: dict[str, str]
    seed: int
    digest: str | None
    """Of the samples; None if the run failed."""
    status: Literal["ok", "failed"]
    wall_s: float
    """The engine's time."""
    error: str | None
    """Why the run failed."""
    effective: tuple[str, ...] = ()
    """What was in effect and differs from what `resolved` asks for."""
    order: int | None = None
    """How many runs of the campaign stand before it in the order of the matrix; None if nothing says so."""
    campaign: str | None = None
    """The campaign's id. A result of before campaigns had one has neither this nor the next."""
    provenance: Provenance | None = None
    kept: Kept = "all"
    """Written only where it is not everything."""
    taken: Taken | None = None
    """None, and not written, for a result that its own campaign made."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        usual = {name for name, value in (("kept", "all"), ("taken", None)) if getattr(self, name) == value}
        return self.model_dump(mode="json", exclude=usual or None)

    def about(self) -> dict[str, Any]:
        """Plain JSON values of all but the resolved run."""
        return {key: value for key, value in self.to_json().items() if key != "resolved"}
