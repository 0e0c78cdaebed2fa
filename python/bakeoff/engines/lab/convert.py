"""What the agent and tc left behind, as a results folder: series.parquet and counters.json."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files, jsonfile
from bakeoff.engines.lab import agent, pcapng, scenario_programs, tc_show, tool_output, tunnels, unwanted
from bakeoff.engines.lab.plan import Plan
from bakeoff.errors import BakeoffError, RunError
from bakeoff.results import layout, packed_captures, write_json, write_series
from bakeoff.results.counters import Counters
from bakeoff.scenario import Run
from bakeoff.scenario.headers import UDP_FRAME
from bakeoff.scenario.run import Flow, Short

if TYPE_CHECKING:
    import polars as pl

_QUANTILES: Final = {
    "p5_s": 0.05, "p50_s": 0.5, "p90_s": 0.9, "p95_s": 0.95, "p99_s": 0.99, "p999_s": 0.999,
}  # fmt: skip
_SOURCE: Final = (
    "cc", "ecn", "mss", "sent_packets", "sent_bytes", "delivered", "delivered_ce", "retransmits", "rtos",
)  # fmt: skip
"""Counters of a sender, which the agent and docs/results-folder.md call alike."""

_MOST_SAMPLES: Final = 1 << 30
"""Bytes of what one agent wrote: a million short flows leave about 100 MB."""


def convert(run: Run, plan: Plan, folder: Path, *tsvs: Path) -> tuple[pl.DataFrame, Counters, list[str]]:
    """Write series.parquet, counters.json and captures into `folder` from what the agents, tc and tcpdump left there.

    Returns the samples, the counters, and notes on what the kernel counted that may have shaped them.

    RunError if an agent did not get to its end, a flow never connected, the set-up was not what was asked for, or
    the kernel counted what no experiment should have.
    """
    summaries = [last_line(tsv) for tsv in tsvs]
    summary = together(summaries)
    setup_log = files.plain_text(folder / layout.SETUP_LOG)
    log = files.plain_text(folder / layout.TEARDOWN_LOG)
    check_bursts(plan, setup_log)
    notes = unwanted.check(run, plan, setup_log, log)
    tools = tool_output.read(run, plan, folder, summaries)
    scenario_programs.read(run, folder, tool_output.started(summaries), tools)
    for part, more in tools.counters.items():
        summary[part].update(more)
    for flow in run.flows:
        if (
            flow.transport == "tcp"
            and flow.name not in tools.counters["sources"]
            and _begins(flow)
            and summary["sources"].get(flow.name, {}).get("connected_s") is None
        ):
            raise RunError(f"flow '{flow.name}' never connected")
    frame = tool_output.added(without_clocks(series(*tsvs)), tools, run)
    write_series(folder / layout.SERIES, frame)
    counted = counters(run, plan, summary, frame, log)
    if run.programs:
        ended = {line["name"]: line for each in summaries for line in each.get("programs", ())}
        counted["programs"] = {
            program.name: {key: value for key, value in ended[program.name].items() if key != "name"}
            for program in run.programs
        }
    write_json(folder / layout.COUNTERS, counted)
    for name, file in plan.captures:
        target = (folder / file).with_suffix(".pcapng")
        pcapng.convert(folder / file, target, name, len(plan.captures), comment=pcapng.comment(run))
        (folder / file).unlink()
    packed_captures.pack(folder, [name for name, _ in plan.captures])
    return frame, Counters.of(counted, layout.COUNTERS), [*notes, *tools.notes]


def _begins(flow: Flow) -> bool:
    """Whether it opens a connection before it stops."""
    return not isinstance(flow.source, Short) or any(flow.start_s + at < flow.stop_s for at, _ in flow.source.objects)


def last_line(tsv: Path) -> dict[str, Any]:
    """The JSON object that ends the agent's output; RunError if there is none, or if it tells of an error."""
    if not os.path.lexists(tsv):
        raise RunError("no output from the agent")
    last = files.plain_last_line(tsv)
    if not last.startswith("#"):
        raise RunError("incomplete output from the agent: missing last line")
    try:
        summary = jsonfile.decoded(last[1:], "the agent's last line", dict[str, Any])
    except BakeoffError as error:
        raise RunError(str(error)) from None
    if summary.get("error") is not None:
        raise RunError(f"agent: {summary['error']}")
    if summary.get("complete") is not True:
        raise RunError("the agent was stopped before the end of the run")
    return summary


def together(summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the agents of several nodes counted, as if one had."""
    parts = ("sources", "sinks", "probes", "queues")
    return {part: {key: value for each in summaries for key, value in each.get(part, {}).items()} for part in parts}


def series(*tsvs: Path) -> pl.DataFrame:
    """The agents' rows, one series after the other, each in order of time."""
    import polars as pl

    schema = {"time": pl.Float64, "kind": pl.String, "name": pl.String, "metric": pl.String, "value": pl.Float64}
    parts = []
    for tsv in tsvs:
        with files.plain_opened(tsv, most=_MOST_SAMPLES) as file:
            parts.append(pl.read_csv(file, separator="\t", comment_prefix="#", quote_char=None, schema=schema))
    return pl.concat(parts).sort(["kind", "name", "metric", "time"], maintain_order=True)


def _received_ect1(source: Mapping[str, Any], received: Mapping[str, Any]) -> dict[str, int]:
    """Segments that arrived as ECT(1), from their bytes, which Linux counts with AccECN only."""
    count, mss = received.get("received_ect1_bytes"), source.get("mss")
    return {"received_ect1": -(-count // mss)} if source.get("ecn") == "accecn" and count is not None and mss else {}


def without_clocks(frame: pl.DataFrame) -> pl.DataFrame:
    """`transit`, which holds the difference of two machines' clocks, as `delay_variation`: less the run's smallest."""
    import polars as pl

    ours = pl.col("metric") == "transit"
    above = pl.col("value") - pl.col("value").min().over("kind", "name", "metric")
    return frame.with_columns(
        value=pl.when(ours).then(above).otherwise(pl.col("value")),
        metric=pl.when(ours).then(pl.lit("delay_variation")).otherwise(pl.col("metric")),
    )


def counters(
    run: Run, plan: Plan, summary: Mapping[str, Any], frame: pl.DataFrame, teardown_log: str
) -> dict[str, Any]:
    """counters.json. What the kernel does not count has no key, and its histograms are empty."""
    flows = {}
    for flow in run.flows:
        sent, received = summary["sources"].get(flow.name, {}), summary["sinks"].get(flow.name, {})
        source = {key: sent[key] for key in _SOURCE if key in sent}
        # TCP's receiver is asked for tcpi_received_ce; the one of datagrams counts by itself.
        arrived = [received[key] for key in ("received_ce", "ce") if key in received]
        if flow.transport == "udp" and "sent_packets" in source:
            # Senders of datagrams count their payload; results count frames, as the simulator does.
            source["sent_bytes"] += source["sent_packets"] * UDP_FRAME
        flows[flow.name] = {
            **source,
            "received_bytes": received.get("received_bytes", 0),
            **({"received_ce": arrived[0]} if arrived else {}),
            **_received_ect1(source, received),
            **({"objects": sent["objects"]} if "objects" in sent else {}),
            "rtt": {"n": 0},
        }
    probes = {
        probe.name: {
            "sent": summary["probes"][probe.name]["sent"],
            "received": summary["probes"][probe.name]["received"],
            "rtt": _histogram(frame, probe.name, run.window_s),
        }
        for probe in run.probes
    }
    try:
        queues = _queues(plan, summary, teardown_log)
        inside = tunnels.counters(run, tc_show.sections(teardown_log))
    except ValueError as error:
        raise RunError(f"{layout.TEARDOWN_LOG}: {error}") from None
    found = {"flows": flows, "queues": queues, "probes": probes}
    return found | ({"tunnels": inside} if inside else {})


def check_bursts(plan: Plan, setup_log: str) -> None:
    """RunError if tc computed the bursts of htb for a coarse clock: then every result is wrong."""
    asked: dict[tuple[str, str], dict[str, str]] = {}
    for command in plan.setup:
        if command.argv[:3] == ("tc", "class", "add"):
            words = list(command.argv)
            dev, number = words[words.index("dev") + 1], words[words.index("classid") + 1]
            asked.setdefault((command.node, dev), {})[number] = " ".join(words)
    printed = tc_show.sections(setup_log)
    for command in plan.setup:
        if command.argv[0] == "tc" and "class" in command.argv and "show" in command.argv:
            dev = command.argv[-1]
            wrong = tc_show.coarse_bursts(asked.get((command.node, dev), {}), printed.get(command.line(), ""))
            if wrong:
                raise RunError(f"{command.node}: {dev}: {wrong[0]}: no high-resolution timers")


def _queues(plan: Plan, summary: Mapping[str, Any], teardown_log: str) -> dict[str, Any]:
    """The counters that the agents read, and the configuration that tc shows."""
    printed = tc_show.sections(teardown_log)
    outputs: dict[tuple[str, str], str] = {}
    for command in plan.statistics:
        if command.argv[0] in ("tc", agent.NAME) and "qdisc" in command.argv:
            # What the agent shows, tc shows as well, without its words.
            end = command.node, command.argv[-1]
            outputs[end] = printed.get(command.line(), "") + outputs.get(end, "")
    found = {}
    for queue in plan.queues:
        counted = summary["queues"].get(queue.name)
        words = tc_show.configured(outputs.get((queue.node, queue.dev), ""), queue.at)
        if counted is None or words is None:
            raise RunError(f"{queue.name}: no qdisc at '{queue.at}' of {queue.dev} after the run")
        found[queue.name] = {
            "qdisc": words,
            "sent": counted["sent_packets"],
            "sent_bytes": counted["sent_bytes"],
            "queued": counted["queued"],
            "marks": counted.get("marks", 0),
            **({"sce_marks": counted["sce_marks"]} if "sce_marks" in counted else {}),
            "drops": counted["drops"],
            "flows": {},
            "sojourn": {"n": 0},
        }
    return found


def _histogram(frame: pl.DataFrame, name: str, window_s: tuple[float, float]) -> dict[str, Any]:
    """The probe's round trips inside the window: docs/results-folder.md, HISTOGRAM."""
    import polars as pl

    own = (pl.col("kind") == "probe") & (pl.col("name") == name) & (pl.col("metric") == "rtt")
    values = frame.filter(own & pl.col("time").is_between(*window_s))["value"]
    if values.is_empty():
        return {"n": 0}
    spread = {"n": values.len(), "mean_s": values.mean(), "min_s": values.min(), "max_s": values.max()}
    return spread | {key: values.quantile(q, "linear") for key, q in _QUANTILES.items()}
