"""What a call felt: of every UDP flow the share that arrived, and the delay of the probes that went beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bakeoff.measure import MeasureError
from bakeoff.present import words
from bakeoff.present.caption import fitted
from bakeoff.present.over_time import delays_panel, probe_entries, rate_panels
from bakeoff.present.shown import Shown, lines

if TYPE_CHECKING:
    from matplotlib.artist import Artist

    from bakeoff.present.panels import Picture


def call(several: Sequence[Shown]) -> Picture:
    """The share of each UDP flow's bytes that arrived, the probes' round-trip times, and what else was on the line.

    Raises MeasureError if no flow is UDP with a rate of its own.
    """
    from bakeoff.present import panels

    drawn = lines(several)
    calls = [line for line in drawn if all(offered_bps(flow) is not None for _, flow in line.members)]
    others = [line for line in drawn if line not in calls]
    if not calls:
        raise MeasureError(f"{words.title(several[0].result)}: no flow is a call: UDP at a rate of its own")
    queues = list(dict.fromkeys(s.bottlenecks[f["name"]] for line in others for s, f in line.members))
    probes = any(("probe", p["name"], "rtt") in s.samples for s in several for p in s.resolved["probes"])
    made = panels.picture(several, 1 + probes + len(queues), row_inch=2.6, said=_felt(several))
    panel = panels.Panel(made.axes[0], "%", "arrived")
    made.panels.append(panel)
    panel.axes.set_ylabel("arrived of the call,\nshare of what was sent [%]")
    for line in calls:
        parts = []
        for shown, flow in line.members:
            time, goodput = shown.samples.of("flow", flow["name"], "goodput")
            inside = (time > flow["start_s"] + shown.resolved["sample_interval_s"]) & (time <= flow["stop_s"])
            parts.append((time[inside], 100 * goodput[inside] / (offered_bps(flow) or 1.0)))
        panels.draw_line(panel, several, line, parts, thin=False)
    panels.over_time(panel, several)
    entries: list[Artist] = [panels.line_entry(line) for line in drawn]
    if probes:
        delays_panel(made, made.axes[1], several, [], label="round-trip time\nbeside the call [ms]")
        entries += probe_entries(several)
    if queues:
        rate_panels(made, made.axes[1 + probes :], several, others, queues=queues, metric="goodput")
        entries.append(panels.capacity_entry())
    panels.legend(made, [*entries, *panels.time_entries(several, mean=True)])
    made.axes[-1].set_xlabel("time [s]")
    return made


def _felt(several: Sequence[Shown]) -> list[str]:
    """`call: 0.6 % lost; call-delay: half of the round trips above 104 ms, 1 % above 124 ms, 30 ms when idle`."""
    import numpy as np

    said = []
    for shown in several:
        parts = []
        for flow in shown.flows:
            counted = shown.result.counters.get("flows", {}).get(flow["name"], {})
            sent = counted.get("sent_packets", 0) * flow["source"].get("size", 0)
            if offered_bps(flow) is not None and sent:
                lost = max(0.0, 1 - counted.get("received_bytes", 0) / sent)
                parts.append(f"{flow['name']}: {100 * lost:.2g} % lost")
        for probe in shown.resolved["probes"]:
            if ("probe", probe["name"], "rtt") in shown.samples:
                time, rtt = shown.samples.of("probe", probe["name"], "rtt")
                inside = rtt[(time >= shown.window[0]) & (time <= shown.window[1])]
                if len(inside):
                    half, most = 1e3 * np.quantile(inside, [0.5, 0.99])
                    idle = 1e3 * shown.base_rtt_s(probe)
                    parts.append(
                        f"{probe['name']}: half of the round trips in the steady state above {half:.3g} ms, 1 % above "
                        f"{most:.3g} ms, {idle:.3g} ms on an empty path"
                    )
        said.append((f"{shown.label}: " if shown.label else "") + "; ".join(parts))
    return fitted(said)


def offered_bps(flow: Mapping[str, Any]) -> float | None:
    """The payload rate that a UDP flow's source sends by itself [bit/s]; None of what fills whatever there is."""
    source = flow["source"]
    if flow["transport"] != "udp":
        return None
    if source["kind"] == "rate":
        return float(source["rate_bps"])
    if source["kind"] == "periodic":
        return 8.0 * float(source["size"] * source["count"]) / float(source["every_s"])
    return None
