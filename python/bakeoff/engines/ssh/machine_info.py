"""What a machine is like: checked before the first run, each fault named with the node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bakeoff.engines.kernel.host_programs import PACKAGES
from bakeoff.engines.lab.topology import Device
from bakeoff.engines.ssh import replies
from bakeoff.engines.ssh.connection import Connection, LostError
from bakeoff.errors import TestbedError, UnreachableError

_NEEDED: Final = ("ip", "tc", "sysctl", "ethtool", "sha256sum")
_LACKING: Final = 'for p; do command -v "$p" >/dev/null || echo "$p"; done'
_CONGESTION_CONTROLS: Final = "/proc/sys/net/ipv4/tcp_available_congestion_control"


@dataclass(frozen=True)
class MachineInfo:
    """One machine."""

    kernel: str
    iproute2: str
    devices: dict[str, Device]
    """peer -> device."""


def gather(machine: Connection) -> MachineInfo:
    """Look at a machine; BakeoffError names the first thing that is not as it has to be, UnreachableError the machine.

    Changes nothing.
    """
    try:
        return _gather(machine)
    except LostError as error:
        raise UnreachableError(str(error)) from None


def _gather(machine: Connection) -> MachineInfo:
    user = machine.run(["id", "-u"])
    if user.code != 0 or user.out.strip() != b"0":
        how = f"become: '{machine.machine.become}'" if machine.machine.become else "no 'become' in the inventory"
        reason = f": {user.shown}" if user.code != 0 else f": user id {user.shown}"
        raise TestbedError(f"{machine.place}: not root ({how}){reason}; expected a command such as 'sudo -n'")
    need_programs(machine, _NEEDED)
    kernel = replies.line(machine, "uname", "-r")
    devices = {peer: _device(machine, peer) for peer in machine.machine.interfaces}
    return MachineInfo(kernel, replies.line(machine, "tc", "-V"), devices)


def need_programs(machine: Connection, names: Sequence[str]) -> None:
    """BakeoffError names the programs that the machine has not, with their packages."""
    lacking = machine.ask("sh", "-c", _LACKING, "lacking", *names).split()
    if lacking:
        packages = " ".join(sorted({PACKAGES.get(name, name) for name in lacking}))
        raise TestbedError(f"{machine.place}: {', '.join(lacking)} not installed; install: {packages}")


def _device(machine: Connection, peer: str) -> Device:
    interface = machine.machine.interfaces[peer]
    name = interface.device
    place = f"{machine.place}: interface '{name}' to '{peer}'"
    if machine.run(["ip", "link", "show", "dev", name]).code != 0:
        there = ", ".join(each["ifname"] for each in replies.links(machine, "ip", "-json", "link", "show"))
        raise TestbedError(f"{place}: does not exist; expected one of: {there}")
    links = replies.link(machine, "ip", "-json", "addr", "show", "dev", name)
    addresses = [each.get("local", "") for each in links.get("addr_info", []) if each.get("scope") == "global"]
    ours = machine.ask("sh", "-c", 'echo "$SSH_CONNECTION"', root=False).split()
    if len(ours) > 2 and ours[2] in addresses:
        raise TestbedError(f"{place}: carries the ssh connection ({ours[2]}); expected another device")
    if interface.in_use == "refused":
        if addresses:
            raise TestbedError(
                f"{place}: in use, with {', '.join(addresses)}; expected a device without addresses, or 'in_use: "
                "allowed'"
            )
        if "master" in links:
            raise TestbedError(
                f"{place}: in use, by '{links['master']}'; expected a device without a master, or 'in_use: allowed'"
            )
    for qdisc in replies.qdiscs(machine, "tc", "-json", "qdisc", "show", "dev", name):
        # The kernel's own have no handle, and come back by themselves.
        if (qdisc.get("root") and qdisc["handle"] != "0:") or qdisc["kind"] in ("ingress", "clsact"):
            raise TestbedError(
                f"{place}: non-default qdisc: {qdisc['kind']} {qdisc['handle']}; expected the default qdisc"
            )
    return Device(name, links.get("address"))


def lacking_ccs(machine: Connection, names: Sequence[str]) -> Iterator[str]:
    """The congestion controls that the machine's kernel has not, neither built in nor as a module."""
    for name in sorted(set(names)):
        available = machine.ask("cat", _CONGESTION_CONTROLS).split()
        if name not in available:
            machine.run(["modprobe", "-q", f"tcp_{name}"])
            if name not in machine.ask("cat", _CONGESTION_CONTROLS).split():
                yield name
