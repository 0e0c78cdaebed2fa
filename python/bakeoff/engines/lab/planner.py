"""From a resolved run to its plan: a pure function, so that a plan can be printed, compared and kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final

from bakeoff.engines.lab import (
    change_commands,
    departure_times,
    ingress,
    module_qdiscs,
    nodes,
    parameters,
    pcapng,
    sce,
    scenario_programs,
    small_queues,
    traffic_tools,
    tunnels,
    unwanted,
    versions,
)
from bakeoff.engines.lab.plan import Command, Plan, Queue
from bakeoff.engines.lab.roles import packets, roles
from bakeoff.engines.lab.topology import End, Machines, Topology, topology
from bakeoff.engines.lab.tree import INGRESS_HANDLE, Tree
from bakeoff.errors import RefusedError
from bakeoff.results import layout
from bakeoff.scenario import Run, cc_words, python_cc, units
from bakeoff.scenario.run import Interface, Policer, Qdisc

# Enough for a link's delay: a cable drops nothing for want of room.
_WIRE_LIMIT: Final = 1_000_000
# All of the lab's addresses.
NETWORK: Final = "10.9.0.0/16"

Trees = dict[tuple[str, str, str], Tree]
"""(node, peer, `egress` or `ingress`) -> what stands there."""


def plan(
    run: Run,
    *,
    prefix: str = "",
    ethtool: bool = True,
    captures: str = "",
    machines: Machines | None = None,
    tcp_pages: int | None = None,
    netem: bool = True,
    versions_offered: Mapping[str, versions.Parameter] = MappingProxyType({}),
    parameters_offered: frozenset[tuple[str, str]] | None = None,
    qdiscs_offered: Collection[str] = (),
) -> Plan:
    """The plan of a run.

    Nodes are namespaces called `prefix` and the node's name, or the `machines`. Without `ethtool` the offloads are only
    kept from building large packets (`gso_max_segs 1`). `captures` is the folder that tcpdump writes to, and where the
    plan's files lie. `tcp_pages` is the memory of all TCP sockets where the kernel is the lab's own. Without `netem`
    nothing is made of this qdisc but what the run asks for. `versions_offered` are those that a parameter of a kernel's
    modules chooses; `parameters_offered` are (module, parameter) that flows may ask for, None if this kernel is not the
    run's alone. `qdiscs_offered` are the kinds that our modules add, which the agent makes and shows. RefusedError
    names the place in the run that real Linux, or this lab, cannot do.
    """
    refuse(run)
    if parameters_offered is None:
        _refuse_parameters(run)
        asked = []
    else:
        asked = parameters.given(run, parameters_offered)
    notes = [
        *versions.notes(run, versions.given(run, versions_offered), qdiscs_offered),
        *(f"flows[].cc: {each.module}.{each.name} is {each.value} for the whole kernel" for each in asked),
        *_notes(run, ethtool=ethtool),
        *tunnels.notes(run),
        *traffic_tools.notes(run),
    ]
    run = versions.plain(run, qdiscs_offered)
    if sce.by_module(versions_offered):
        run, remarks = sce.on_accecn(run)
        notes += remarks
    net = topology(run, prefix, machines)
    if run.tunnels and machines is not None:
        raise RefusedError(
            f"tunnels[0]: '{run.tunnels[0].name}': tunnels between machines are not supported; expected --engine sim "
            "or kernel"
        )
    tunnels.check(run, net)
    flows = packets(run, net)
    # Between machines there are wires.
    stamped = departure_times.cleared(run) if machines is None else {}
    interfaces = _wires(run, stamped)
    trees: Trees = {}
    policers = _policers(run)
    clear = dict.fromkeys(stamped, departure_times.words(captures))
    queues = _queues(interfaces, policers, net, flows, trees, clear=clear, qdiscs_offered=qdiscs_offered)
    let_go, held = small_queues.let_go(run, net, interfaces, netem=netem)
    shown_first = _shown(interfaces, policers, net, trees, "-d")
    changed = tuple(change_commands.timed(run, net, trees))
    shared = nodes.of_the_kernel(run, net, tcp_pages)
    first = run.nodes[0].name
    setup = [Command(first, ("sysctl", "-w", f"{key}={value}")) for key, value in shared.items()]
    setup += [*nodes.namespaces(run, net), *nodes.cables(run, net, ethtool=ethtool), *queues, *let_go]
    setup += [
        *nodes.addresses(run, net),
        *tunnels.setup(run, net, captures),
        *shown_first,
    ]
    # What a machine remembers of the run before would begin this one.
    forget = [node for node in _hosts(run) if net.namespaces[node] is None]
    setup += [Command(node, ("ip", "tcp_metrics", "flush", NETWORK)) for node in forget]
    setup += [Command(node, ("ip", "tcp_metrics", "show"), net.namespaces[node]) for node in _hosts(run)]
    setup += unwanted.before(run, net)
    dumps, files = _captures(run, net, captures)
    return Plan(
        notes=(*notes, *held),
        namespaces=tuple(name for name in net.namespaces.values() if name is not None),
        setup=(*setup, *dumps),
        changes=changed,
        statistics=(
            *([Command(first, ("sysctl", *shared))] if shared else []),
            *_statistics(
                run, _shown(interfaces, policers, net, trees, "-s", "-d"), net, own_kernel=tcp_pages is not None
            ),
        ),
        teardown=tuple(
            Command(node, ("ip", "netns", "del", name))
            for node, name in reversed(net.namespaces.items())
            if name is not None
        ),
        roles=tuple(roles(run, net)),
        queues=tuple(_leaves(interfaces, net, trees)),
        captures=files,
        files=(*tunnels.files(run, net), *(departure_times.files() if stamped else ())),
        programs=(*traffic_tools.programs(run, net, captures), *scenario_programs.programs(run, net, captures)),
    )


def refuse(run: Run) -> None:
    """RefusedError for what only the simulator has."""
    if run.trace:
        raise RefusedError(f"trace[0]: '{run.trace[0]}': not available on a kernel; expected --engine sim")
    if run.when:
        raise RefusedError(
            f"when[0]: '{run.when[0].name}': the sender's state is not known on a kernel; expected --engine sim"
        )
    for index, node in enumerate(run.nodes):
        for key in ("stall", "timer_slack_s", "receive_coalescing_s"):
            if getattr(node, key):
                raise RefusedError(f"nodes[{index}].{key}: '{node.name}': only simulated; expected --engine sim")
    for index, flow in enumerate(run.flows):
        if python_cc.is_python(flow.cc):
            raise RefusedError(f"flows[{index}].cc: '{flow.cc}': written in Python; expected --engine sim")


def _refuse_parameters(run: Run) -> None:
    """On a kernel that other things use as well."""
    for index, flow in enumerate(run.flows):
        asked = cc_words.parse(flow.cc)
        if asked.parameters:
            raise RefusedError(
                f"flows[{index}].cc: '{flow.cc}': parameters per flow need --engine sim, a kernel module has one set "
                f"in /sys/module; expected '{asked.versioned}'"
            )


def _notes(run: Run, *, ethtool: bool) -> list[str]:
    if ethtool or all(node.offloads for node in run.nodes):
        return []
    return ["nodes[].offloads: ethtool is not installed: instead, senders build no large packets (gso_max_segs 1)"]


def _policers(run: Run) -> dict[End, Policer]:
    """The links' policers by where they stand: the end at which the sender's packets arrive."""
    return {
        (link.ends[link.ends[0] == sender], sender): policer
        for link in run.links
        for sender, policer in link.policers.items()
    }


def _wires(run: Run, stamped: Collection[End]) -> list[Interface]:
    """The run's interfaces, with the delay and loss of links as a netem where they arrive, and those with a policer.

    Those of `stamped` are among them.
    """
    known = {(end.node, end.peer): (index, end) for index, end in enumerate(run.interfaces)}
    ends = {link_end for link in run.links for link_end in (link.ends, link.ends[::-1])}
    for end, (index, _) in known.items():
        if end not in ends:
            raise RefusedError(f"interfaces[{index}]: {end[0]}>{end[1]}: no such link")
    found = dict(known)
    for index, link in enumerate(run.links):
        place = f"links[{index}]"
        other = next((name for name in link.features if name != "police"), None)
        if other is not None:
            raise RefusedError(f"{place}.features.{other}: not supported on a veth")
        if link.rate_bps is not None:
            raise RefusedError(
                f"{place}.rate_bps: not supported on a veth; expected a shaper such as htb at its egress"
            )
        for end in _policers(run):
            if set(end) == set(link.ends):
                found.setdefault(end, (len(found), Interface(node=end[0], peer=end[1])))
        for end in (link.ends, link.ends[::-1]):
            if end in stamped:
                found.setdefault(end, (len(found), Interface(node=end[0], peer=end[1])))
        for end in (link.ends, link.ends[::-1]):
            # What arrives at end[0] is what end[1] sent.
            loss = link.loss_of(end[1])
            if not link.delay_s and not loss:
                continue
            number, here = found.get(end, (len(found), Interface(node=end[0], peer=end[1])))
            if here.ingress is not None:
                raise RefusedError(
                    f"{place}: has a delay or loss, and {end[0]}<{end[1]} an ingress queue; expected one of them"
                )
            found[end] = (number, here.model_copy(update={"ingress": Qdisc(qdisc=wire(link.delay_s, loss))}))
    return [interface for _, interface in sorted(found.values(), key=lambda item: item[0])]


def wire(delay_s: float, loss: float) -> str:
    """A link's delay and loss as netem."""
    lost = f" loss {loss * 100:.10g}%" if loss else ""
    return f"netem delay {units.format_time(delay_s)}{lost} limit {_WIRE_LIMIT}"


def _queues(
    interfaces: list[Interface],
    policers: dict[End, Policer],
    net: Topology,
    flows: dict[str, list[str]],
    trees: Trees,
    *,
    clear: Mapping[End, list[str]],
    qdiscs_offered: Collection[str],
) -> list[Command]:
    commands: list[Command] = []
    for index, wanted in enumerate(interfaces):
        end = net.interfaces[wanted.node, wanted.peer]
        place = f"interfaces[{index}]"
        argvs = [_tx_queue_len(end.dev, wanted.tx_queue_len)]
        if wanted.egress is not None:
            tree = Tree(end.dev, 1, flows, wanted.tx_queue_len, qdiscs_offered)
            argvs += tree.install(wanted.egress, f"{place}.egress")
            trees[wanted.node, wanted.peer, "egress"] = tree
        if wanted.ingress is not None:
            argvs.append(["ip", "link", "add", end.ifb, "type", "ifb"])
            argvs.append(_tx_queue_len(end.ifb, wanted.tx_queue_len))
            tree = Tree(end.ifb, INGRESS_HANDLE, flows, wanted.tx_queue_len, qdiscs_offered)
            argvs += tree.install(wanted.ingress, f"{place}.ingress")
            argvs.append(["ip", "link", "set", "dev", end.ifb, "up"])
            trees[wanted.node, wanted.peer, "ingress"] = tree
        here = (wanted.node, wanted.peer)
        argvs += ingress.hook(
            end.dev, end.ifb, wanted, flows, place, policer=policers.get(here), clear=clear.get(here, ())
        )
        commands += [Command(wanted.node, tuple(argv), end.netns) for argv in argvs]
    return commands


def _tx_queue_len(dev: str, packets: int) -> list[str]:
    return ["ip", "link", "set", "dev", dev, "txqueuelen", str(packets)]


def _leaves(interfaces: list[Interface], net: Topology, trees: Trees) -> list[Queue]:
    found = []
    for wanted in interfaces:
        end = net.interfaces[wanted.node, wanted.peer]
        for side, sign in (("egress", ">"), ("ingress", "<")):
            tree = trees.get((wanted.node, wanted.peer, side))
            if tree is None:
                continue
            base = f"{wanted.node}{sign}{wanted.peer}"
            found += [
                Queue(
                    name=base if len(tree.first) == 1 else f"{base}/{leaf.path}",
                    node=wanted.node,
                    netns=end.netns,
                    dev=tree.dev,
                    at=tree.place(leaf),
                    qdisc=leaf.qdisc,
                    sampled=side == "egress",
                )
                for leaf in tree.first
            ]
    return found


def _hosts(run: Run) -> list[str]:
    return [node.name for node in run.nodes if node.kind != "bridge"]


def _shown(
    interfaces: list[Interface], policers: dict[End, Policer], net: Topology, trees: Trees, *options: str
) -> list[Command]:
    commands = []
    for (node, peer, _), tree in trees.items():
        end = net.interfaces[node, peer]
        for what in ("qdisc", "class"):
            commands.append(Command(node, ("tc", *options, what, "show", "dev", tree.dev), end.netns))
        if tree.by_agent:
            commands.append(Command(node, module_qdiscs.show(tree.dev), end.netns))
    filtered = [(end.node, end.peer) for end in interfaces if end.mangle or (end.node, end.peer) in policers]
    for node, peer in filtered:
        end = net.interfaces[node, peer]
        commands.append(Command(node, ("tc", *options, "filter", "show", "dev", end.dev, "parent", "ffff:"), end.netns))
    return commands


def _statistics(run: Run, show_commands: list[Command], net: Topology, *, own_kernel: bool) -> list[Command]:
    kernels = run.nodes if net.namespaces[run.nodes[0].name] is None else run.nodes[:1]
    commands = [Command(node.name, ("uname", "-a")) for node in kernels]
    commands += show_commands
    for index, node in enumerate(run.nodes):
        netns = net.namespaces[node.name]
        keys = nodes.sysctls(node, f"nodes[{index}]", netns)
        if keys:
            commands.append(Command(node.name, ("sysctl", *keys), netns))
        if node.kind != "bridge":
            commands.append(Command(node.name, ("ip", "tcp_metrics", "show"), netns))
    return commands + tunnels.statistics(run, net) + unwanted.after(run, net, own_kernel=own_kernel)


def _captures(run: Run, net: Topology, folder: str) -> tuple[list[Command], tuple[tuple[str, str], ...]]:
    commands, files = [], []
    most = pcapng.most_packets(len(run.captures))
    for index, name in enumerate(run.captures):
        node, sign, peer = name.partition(">") if ">" in name else name.partition("<")
        end: End = (node, peer)
        if end not in net.interfaces:
            known = ", ".join(f"{a}>{b}" for a, b in net.interfaces)
            raise RefusedError(f"captures[{index}]: '{name}': unknown interface; expected one of {known}")
        file = layout.capture(name).removesuffix("ng")
        way = "out" if sign == ">" else "in"
        here = net.interfaces[end]
        bounds = ("-s", str(pcapng.SNAP_LENGTH), "-c", str(most))
        argv = ("tcpdump", "-i", here.dev, "-n", "-Q", way, *bounds, "--time-stamp-precision=nano", "-Z", "root")
        commands.append(Command(node, (*argv, "-w", f"{folder}/{file}"), here.netns, background=True))
        files.append((name, file))
    return commands, tuple(files)
