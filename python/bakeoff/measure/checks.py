"""Self-checks: what was in effect, next to what was asked for.

A chart that compares two algorithms is worthless if both flows ran the same one. So every flow echoes what it ran
with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from bakeoff.results.summary import Check
from bakeoff.scenario.cc_words import is_met, parse

if TYPE_CHECKING:
    from bakeoff.results.counters import Counters
    from bakeoff.scenario.run import Flow, Run

_TCP_ECN = "net.ipv4.tcp_ecn"


def checks(run: Run, counters: Counters) -> list[Check]:
    """One check per thing compared.

    `cc`: the congestion control each TCP flow ran (a plain name asks for any version of it). `ecn`: the negotiated
    feedback against what both ends' `tcp_ecn` give; `requested` is null where that depends on more than the sysctl, and
    AccECN for prague, which without it is a classic flow (RFC 9331, 4.2).
    `unlike`: flows that ask for different congestion controls must not report the same one; a check per pair of
    controls, of the first flows that report the same, or else of the first that ask for them. `conservation`: packets
    sent = delivered + dropped + queued.
    """
    found = []
    flows = [flow for flow in run.flows if flow.transport == "tcp"]
    total = counters.conservation
    for flow in flows:
        counted = counters.flow(flow.name)
        cc, ecn = counted.cc, counted.ecn
        if total is not None or cc is not None or flow.cc != "unknown":
            found.append(_check("cc", flow.name, flow.cc, cc, ok=cc is not None and is_met(flow.cc, cc)))
        wanted = _negotiated(run, flow)
        if total is None and (ecn is None or flow.cc == "unknown"):
            continue  # a tool tells nothing of it; what was captured does not tell what was asked for
        if total is not None and flow.name in counters.flows and not counted.delivered:
            continue  # nothing of it came through, perhaps not even what negotiates it
        found.append(_check("ecn", flow.name, wanted, ecn, ok=ecn is not None and wanted in (None, ecn)))
    found += _unlike(flows, counters)
    if total is not None:
        gone = total.delivered + total.dropped + total.queued
        found.append(_check("conservation", None, total.sent, gone, ok=total.sent == gone))
    return found


def _unlike(flows: Sequence[Flow], counters: Counters) -> Iterator[Check]:
    # Of ten thousand flows there are fifty million pairs, and of what they ask for a few.
    asked: dict[str, dict[str | None, str]] = {}  # control asked for -> control that ran -> the first such flow
    for flow in flows:
        ran = counters.flow(flow.name).cc
        asked.setdefault(flow.cc, {}).setdefault(ran, flow.name)
    for one, other in combinations(asked, 2):
        if is_met(one, other) or is_met(other, one):
            continue
        both = [ran for ran in asked[one] if ran in asked[other]]
        first, second = (next(iter(both or asked[words])) for words in (one, other))
        names = f"{asked[one][first]}, {asked[other][second]}"
        yield _check("unlike", names, f"{one}, {other}", f"{first}, {second}", ok=not both)


def _check(
    check: str, flow: str | None, requested: str | int | None, effective: str | int | None, *, ok: bool
) -> Check:
    return Check(check=check, flow=flow, requested=requested, effective=effective, ok=ok)


def _negotiated(run: Run, flow: Flow) -> str | None:
    """What the ends' `tcp_ecn` negotiate, None if more than that decides.

    Source: Linux 7.3, ip-sysctl: 3 requests AccECN, 3 to 5 accept it; 1 and 4 request RFC 3168, all but 0 accept it.
    """
    rewritten = any(rule.clear_syn_ecn for interface in run.interfaces for rule in interface.mangle)
    if rewritten:
        return None
    sysctl = {node.name: node.sysctls.get(_TCP_ECN, "2") for node in run.nodes}
    asks, accepts = sysctl[flow.from_], sysctl[flow.to]
    cc = parse(flow.cc).name
    if (asks == "3" and accepts in ("3", "4", "5")) or cc == "prague":
        return "accecn"
    if cc in ("dctcp", "dctcp-sce"):  # asks for ECN by itself
        return None
    return "rfc3168" if asks in ("1", "3", "4") and accepts != "0" else "off"
