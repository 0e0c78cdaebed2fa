"""What campaign.json and run.json say, as types (docs/results-folder.md)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, ValidationError

from bakeoff.errors import BakeoffError

Kind = Literal["run", "duel"]


class Record(BaseModel):
    """Nothing changes after construction, and keys that this version does not know are left."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    @classmethod
    def of(cls, content: dict[str, Any], place: str) -> Self:
        """The record that a JSON object holds. BakeoffError names `place`, the first wrong key and its form."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            key, why = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
            raise BakeoffError(f"{place}: {key}: {why}") from None

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


class CampaignRecord(Record):
    """campaign.json: what a campaign is, as it was begun."""

    format: Literal[1] = 1
    id: str
    """Random; run.json of each of its runs names it."""
    kind: Kind
    patterns: tuple[str, ...]
    """What was to be run, as the user wrote it."""
    engine: str
    versions: dict[str, str]
    """Name and version of everything that decides what comes out, as the engine tells it."""
    provenance: Provenance


def _named(resolved: dict[str, Any]) -> dict[str, Any]:
    """Whoever has a record may build its name (`read.run_key`), and show that and the other names as they are."""
    forms = {"suite": str, "scenario": str, "run": str, "seed": int}
    for key, form in forms.items():
        if not isinstance(resolved.get(key), form):
            raise ValueError(f"{key}: {resolved.get(key)!r}; expected {form.__name__}")  # noqa: TRY004 (pydantic's)
    flows, point = resolved.get("flows", []), resolved.get("point", {})
    if not isinstance(point, dict) or not isinstance(flows, list) or not all(isinstance(flow, dict) for flow in flows):
        raise ValueError("point: expected an object, flows: expected a list of objects")
    names = [*(resolved[key] for key in ("suite", "scenario", "run")), *point, *point.values()]
    names += [flow.get("name") for flow in flows]
    for name in names:
        if not str(name).isprintable():
            raise ValueError(f"the name {name!r} holds a character that cannot be printed")
    return resolved


class RunRecord(Record):
    """run.json: what one run was and how it ended."""

    format: Literal[1] = 1
    resolved: Annotated[dict[str, Any], AfterValidator(_named)]
    """docs/resolved-run.md"""
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
