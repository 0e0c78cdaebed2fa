"""A sender's small queues (TSQ) end at its own device.

Linux lets a socket have little in the queues of its own host: it counts each packet until the device says that it was
sent. A veth does not say so. Between namespaces a packet goes on counting until IP takes it in, or a netem delays it,
and a bridge does neither: a queue there would hold its senders back as their own queue does, which no cable allows.
"""

from __future__ import annotations

import re
from typing import Final

from bakeoff import tc
from bakeoff.engines.lab.plan import Command
from bakeoff.engines.lab.topology import Topology
from bakeoff.scenario import Run
from bakeoff.scenario.run import Interface, Qdisc

# A netem lets go of what it delays, and a rate counts as a delay. At this one a packet of 64 KiB takes 5 ns.
_LETS_GO: Final = "handle 1: netem rate 100tbit limit 1000000"
_DELAYS: Final = re.compile(r"\s(?:delay|latency|rate) \S*[1-9]")


def let_go(run: Run, net: Topology, interfaces: list[Interface], *, netem: bool) -> tuple[list[Command], list[str]]:
    """The commands by which each host's packets stop counting as they leave it, and notes of where they do not.

    A host that has an egress queue keeps it. `netem`: whether the kernel has this qdisc.
    """
    wanted = {(end.node, end.peer): end for end in interfaces}
    commands, notes = [], []
    for link in run.links:
        for host, bridge in (link.ends, link.ends[::-1]):
            netns = net.namespaces[host]
            if netns is None or (net.kinds[host], net.kinds[bridge]) != ("host", "bridge"):
                continue
            arrives, leaves = wanted.get((bridge, host)), wanted.get((host, bridge))
            if arrives is not None and arrives.ingress is not None and _delays(arrives.ingress):
                continue
            queued = leaves is not None and leaves.egress is not None
            if not queued and netem:
                words = ("tc", "qdisc", "add", "dev", net.interfaces[host, bridge].dev, "root", *_LETS_GO.split())
                commands.append(Command(host, words, netns))
            elif leaves is None or leaves.egress is None or not _delays(leaves.egress):
                why = "has a queue of its own" if queued else "this kernel has no netem"
                notes.append(
                    f"{host}>{bridge}: {why}, and nothing delays what arrives at {bridge}: TCP counts what waits in "
                    f"the queues of {bridge} as if it waited in {host}, and sends less ahead (TSQ)"
                )
    return commands, notes


def _delays(tree: Qdisc) -> bool:
    """Whether all that passes the tree is delayed by a netem at its end."""
    below = [child for child in (tree.child, *(cls.child for cls in tree.classes)) if child is not None]
    if below:
        return all(map(_delays, below))
    return tc.kernel_kind(tree.qdisc) == "netem" and _DELAYS.search(tree.qdisc) is not None
