"""The port that is replayed through: a tree of qdiscs, and what both sides must agree on besides it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from bakeoff import tc
from bakeoff.errors import ReplayError
from bakeoff.replay.arrivals import MAX_FLOWS, Arrivals
from bakeoff.scenario.run import Class, Qdisc
from bakeoff.scenario.units import parse_rate

START_NS: Final = 1 << 30
"""The first arrival, after the qdisc was made."""
DEFAULT_RATE: Final = "10mbit"
_HANDLES: Final = (1, 2)


@dataclass(frozen=True)
class Port:
    """What stands between the source and the wire."""

    qdisc: str
    """As it was asked for."""
    tree: Qdisc
    rate_bps: int
    """For the loads of patterns."""
    shaped: bool
    """Whether htb was put above."""


def port(qdisc: str, rate: str | None = None) -> Port:
    """The qdisc below an htb class of this rate; at the root if it limits the rate itself (tbf, netem, htb, cake with a
    bandwidth, …), or if it is a tree in JSON, as in a resolved run. BakeoffError if one of them cannot be read."""
    try:
        rate_bps = parse_rate(rate or DEFAULT_RATE)
    except ValueError as error:
        raise ReplayError(f"--rate: {error}") from error
    if qdisc.lstrip().startswith("{"):
        from pydantic import ValidationError

        try:
            return Port(qdisc, Qdisc.model_validate_json(qdisc), rate_bps, shaped=False)
        except ValidationError as error:
            first = error.errors()[0]
            raise ReplayError(f"qdisc: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if is_shaper(qdisc):
        return Port(qdisc, Qdisc(qdisc=qdisc), rate_bps, shaped=False)
    shaped = Class.model_validate({"id": "1", "class": f"rate {rate_bps}bit ceil {rate_bps}bit"})
    shaped = shaped.model_copy(update={"child": Qdisc(qdisc=qdisc)})
    return Port(qdisc, Qdisc(qdisc="htb default 1", classes=[shaped]), rate_bps, shaped=True)


def is_shaper(qdisc: str) -> bool:
    """Whether these words limit the rate themselves."""
    kind = tc.kinds().get(tc.kernel_kind(qdisc))
    if kind is None:
        return False
    return kind.alone or (kind.rate_word is not None and tc.value(qdisc, kind.rate_word) is not None)


def flow_hash(flow: int) -> int:
    """A flow's hash where there is no kernel to ask: its bits in reverse from the top, and as they are from the bottom,
    so that the buckets of flows 0 to N-1 differ wherever there are N or more, a power of two: of fq_codel, which
    scales, and of cake and sfq, which take the remainder."""
    return int(f"{flow:032b}"[::-1], 2) | flow


def flows(port: Port, arrivals: Arrivals) -> int:
    """How many flows there are, from 0: those that arrive, and those that a filter names."""
    named = [int(flow) for flow in re.findall(r'"flow": *"(\d{1,4})"', json.dumps(document(port)))]
    return max([packet.flow for packet in arrivals.packets] + [flow for flow in named if flow < MAX_FLOWS]) + 1


def by_priority(port: Port) -> bool:
    """Whether buckets are told by `skb->priority`: of sfq, which stirs the hash with a secret of each qdisc. With
    `perturb` there is a new secret every so often, and flows go by their hashes."""
    return tc.kind(port.qdisc) == "sfq" and tc.value(port.qdisc, "perturb") is None


def priority(port: Port, flow: int) -> int:
    """`skb->priority`: the flow's bucket, which sfq takes if the upper half is its handle; for others 0, since some
    take it for something else."""
    if not by_priority(port):
        return 0
    given = tc.value(port.qdisc, "divisor") or ""
    buckets = int(given) if given.isdecimal() else MAX_FLOWS
    return (_HANDLES[1] if port.shaped else _HANDLES[0]) << 16 | flow_hash(flow) % buckets + 1


def commands(port: Port, flows: int, offered: Collection[str] = ()) -> list[list[str]]:
    """What makes the tree on `veth0`: `tc`'s commands, and the agent's for the kinds that our modules add."""
    from bakeoff.engines.lab import module_qdiscs
    from bakeoff.engines.lab.tree import Tree
    from bakeoff.engines.lab.versions import renamed_tree
    from bakeoff.errors import RefusedError

    ports = {str(flow): ["match", "ip", "sport", str(1024 + flow), "0xffff"] for flow in range(flows)}
    try:
        wanted = port.tree
        if offered:
            wanted = renamed_tree(wanted, lambda words: module_qdiscs.line(words, offered))
        return Tree("veth0", _HANDLES[0], ports, 1000, offered).install(wanted, "qdisc")
    except RefusedError as error:
        raise ReplayError(str(error)) from error


def document(port: Port) -> object:
    """The tree as the simulator reads it."""
    return json.loads(port.tree.model_dump_json(by_alias=True))
