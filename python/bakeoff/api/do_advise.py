"""`bakeoff.advise`: recommend a queue for an access line."""

from __future__ import annotations

import operator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff import advice, campaign, results
from bakeoff.arguments import check
from bakeoff.campaign.store import place
from bakeoff.errors import RunError, UsageError
from bakeoff.results import Request
from bakeoff.scenario import access_line
from bakeoff.scenario.access_line import Asked

if TYPE_CHECKING:
    from bakeoff.advice import Advice


def advise(
    *,
    up: str = "20mbit",
    down: str = "100mbit",
    rtt: str = "30ms",
    link: str = Asked.link,
    buffer: str | None = Asked.buffer,
    duration: str = Asked.duration,
    mix: Path | str | None = None,
    seeds: int = 3,
    engine: str = "sim",
    jobs: int | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    store: str | None = None,
    fresh: bool = False,
    note: str | None = None,
) -> Advice:
    """Compare the queues for an access line, as `bakeoff advise` does, and return the advice.

    Rates, times and `link` are as for the command; `mix` is a scenario file. `out` defaults to a new folder in
    results/advise/. `seeds`, `engine`, `jobs`, `resume`, `store`, `fresh` and `note` as for `run`. BakeoffError for
    invalid input, RunError if a run failed.
    """
    check(
        "advise", up=("rate", up), down=("rate", down), rtt=("time", rtt), link=("text", link),
        buffer=("time?", buffer), duration=("time", duration), mix=("path?", mix), seeds=("whole", seeds),
        engine=("text", engine), jobs=("whole?", jobs), out=("path?", out), resume=("flag", resume),
        store=("text?", store), fresh=("flag", fresh), note=("text?", note),
    )  # fmt: skip
    seeds = operator.index(seeds)
    if seeds < 1:
        raise UsageError(f"advise: seeds: {seeds}; expected at least 1")
    asked = Asked(
        up=up, down=down, rtt=rtt, link=link, buffer=buffer, duration=duration, mix=None if mix is None else Path(mix)
    )
    report = campaign.run(
        access_line.runs(asked, seeds=seeds),
        campaign.new_folder(campaign.ADVICE) if out is None else Path(out),
        campaign.Execution(engine=engine, jobs=jobs, store=place(store), fresh=fresh, note=note),
        request=request_of(asked),
        resume=resume,
        latest=campaign.LATEST_ADVICE,
    )
    if report.failed:
        raise RunError(report.failed[0].error or "failed", place=report.failed[0].key)
    return advised(asked, report)


def request_of(asked: Asked) -> Request:
    """The request for campaign.json."""
    return Request(kind="advise", line={key: str(value) for key, value in asdict(asked).items() if value is not None})


def advised(asked: Asked, report: campaign.Report) -> Advice:
    """The advice from the runs of a campaign. RunError if one of them failed."""
    return advice.advise([results.read(done.path) for done in report.runs], own=access_line.own_choices(asked))
