"""The inverse of each set-up command, to what was there before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bakeoff.engines.ssh import replies

if TYPE_CHECKING:
    from bakeoff.engines.lab import Command
    from bakeoff.engines.ssh.connection import Connection

# What `ethtool -k` calls the words that `ethtool -K` takes.
_OFFLOADS: Final = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tso": "tcp-segmentation-offload",
    "gso": "generic-segmentation-offload",
    "gro": "generic-receive-offload",
    "rxvlan": "rx-vlan-offload",
    "txvlan": "tx-vlan-offload",
}


@dataclass(frozen=True)
class Before:
    """What a machine was like before the set-up."""

    sysctls: Mapping[str, str]
    links: Mapping[str, Mapping[str, Any]]
    """device -> what `ip -json link show` says."""
    offloads: Mapping[str, Mapping[str, str]]
    """device -> what `ethtool -k` says: name -> `on` or `off`, without those that are fixed."""


def read(machine: Connection, commands: Sequence[Command]) -> Before:
    """Everything that `commands` (all of this node) will change. BakeoffError if the machine does not tell."""
    sysctls, links, offloads = {}, {}, {}
    made = {_device(command.argv) for command in commands if command.argv[:3] == ("ip", "link", "add")}
    for command in commands:
        argv = command.argv
        if argv[0] == "sysctl" and "-w" in argv:
            key = argv[-1].partition("=")[0]
            # -e: what the kernel does not have is empty, and nothing is to be put back.
            sysctls[key] = machine.ask("sysctl", "-n", "-e", key).strip().replace("\t", " ")
        elif argv[:3] == ("ip", "link", "set"):
            device = _device(argv)
            if device not in made and device not in links:
                links[device] = replies.link(machine, "ip", "-json", "link", "show", "dev", device)
        elif argv[:2] == ("ethtool", "-K"):
            offloads[argv[2]] = features(machine.ask("ethtool", "-k", argv[2]))
    return Before(sysctls, links, offloads)


def features(output: str) -> dict[str, str]:
    """What `ethtool -k` says can be changed."""
    pairs = (line.strip().partition(": ") for line in output.splitlines())
    return {name: value for name, _, value in pairs if value in ("on", "off")}


def inverse(command: Command, before: Before) -> tuple[str, ...] | None:  # noqa: PLR0911 (a table)
    """The command that takes `command` back; None if there is nothing to, or if what it made goes with other things."""
    argv = command.argv
    match argv[:3]:
        case ("ip", "link", "add"):
            return ("ip", "link", "del", "dev", _device(argv))
        case ("ip", "link", "set"):
            return _link(argv, before)
        case ("ip", "addr", "add"):
            return ("ip", "addr", "del", *argv[3:])
        # These go by themselves with their device: flush is content if there is nothing.
        case ("ip", "neigh", "replace"):
            return ("ip", "neigh", "flush", "to", argv[3], "dev", argv[argv.index("dev") + 1], "nud", "all")
        case ("ip", "route", "replace"):
            return ("ip", "route", "flush", "exact", argv[3], "dev", argv[argv.index("dev") + 1])
        case ("tc", "qdisc", "add"):
            device = argv[argv.index("dev") + 1]
            if device not in before.links:
                return None
            if "root" in argv or "ingress" in argv:
                return ("tc", "qdisc", "del", "dev", device, "root" if "root" in argv else "ingress")
        case ("ethtool", "-K", device):
            was = before.offloads[device]
            words = [word for name in argv[3::2] if (value := was.get(_OFFLOADS[name])) for word in (name, value)]
            return ("ethtool", "-K", device, *words) if words else None
    if argv[0] == "sysctl" and "-w" in argv:
        key = argv[-1].partition("=")[0]
        return ("sysctl", "-w", f"{key}={before.sysctls[key]}") if before.sysctls[key] else None
    return None


def _link(argv: tuple[str, ...], before: Before) -> tuple[str, ...] | None:
    device = _device(argv)
    was = before.links.get(device)
    if was is None:
        return None
    on = ("ip", "link", "set", "dev", device)
    match argv[5:]:
        case ("up",):
            return None if "UP" in was["flags"] else (*on, "down")
        case ("mtu", _):
            return (*on, "mtu", str(was["mtu"]))
        case ("txqueuelen", _):
            return (*on, "txqueuelen", str(was.get("txqlen", 0)))
        case ("master", _):
            return (*on, "master", was["master"]) if "master" in was else (*on, "nomaster")
    return None


def _device(argv: tuple[str, ...]) -> str:
    for word in ("dev", "name"):
        if word in argv:
            return argv[argv.index(word) + 1]
    return argv[3]
