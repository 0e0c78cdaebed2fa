"""Tunnels as commands: devices, security associations, keys, addresses; and what they counted.

The ends of tunnel N have 10.8.N.1 and 10.8.N.2; a flow through it goes to the other end's. Keys follow from the run's
seed. docs/tunnels.md says what each kind adds to a packet.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Final

from bakeoff.engines.lab import tc_show, x25519
from bakeoff.engines.lab.plan import Command
from bakeoff.engines.lab.topology import Topology
from bakeoff.errors import RefusedError, RunError
from bakeoff.scenario import Run
from bakeoff.scenario.run import Flow, Probe, Tunnel

# Each tunnel has the port above that of the one before.
_WIREGUARD_PORT: Final = 51820
_FOU_PORT: Final = 5556
_VXLAN_PORT: Final = 4789
_IPIP: Final = "4"
_SPI: Final = 0x1000
_MOST: Final = 256
# XFRMA_REPLAY_ESN_MAX of linux/xfrm.h.
_LARGEST_WINDOW: Final = 4096
_WIREGUARD_WINDOW: Final = 8128
_XFRM_STATE: Final = ("ip", "-s", "xfrm", "state")
# Bytes between the MTU of the links and that of the device; XFRM computes its own.
_OVERHEAD: Final = {"wireguard": 80, "fou": 28, "gre": 24, "vxlan": 50}


def check(run: Run, net: Topology) -> None:
    """RefusedError if a tunnel cannot be, or a flow or probe goes through one that does not join its ends."""
    if len(run.tunnels) > _MOST:
        raise RefusedError(f"tunnels: {len(run.tunnels)} of them; expected at most {_MOST}")
    for index, tunnel in enumerate(run.tunnels):
        place = f"tunnels[{index}]"
        if [other.name for other in run.tunnels].count(tunnel.name) > 1:
            raise RefusedError(f"{place}.name: duplicate name '{tunnel.name}'")
        for end in tunnel.ends:
            if net.kinds.get(end) not in ("host", "router"):
                raise RefusedError(f"{place}.ends: '{end}' is not a host")
        if tunnel.ends[0] == tunnel.ends[1] or not net.reaches(*tunnel.ends):
            raise RefusedError(f"{place}.ends: no path from '{tunnel.ends[0]}' to '{tunnel.ends[1]}'")
        _check_options(tunnel, place)
    for index, flow in enumerate(run.flows):
        _check_ends(run, flow, f"flows[{index}].tunnel")
    for index, probe in enumerate(run.probes):
        _check_ends(run, probe, f"probes[{index}].tunnel")


def _check_options(tunnel: Tunnel, place: str) -> None:
    window = tunnel.replay_window
    if tunnel.kind == "ipsec":
        if window is None or not 0 <= window <= _LARGEST_WINDOW:
            raise RefusedError(
                f"{place}.replay_window: {window}; expected packets, at most Linux's {_LARGEST_WINDOW}, 0 for no check"
            )
        if tunnel.cipher is None:
            raise RefusedError(f"{place}.cipher: missing; expected aes-gcm or aes-cbc-hmac-sha256")
        return
    if tunnel.cipher is not None:
        raise RefusedError(f"{place}.cipher: only valid for ipsec")
    fixed = (None, _WIREGUARD_WINDOW) if tunnel.kind == "wireguard" else (None,)
    if window not in fixed:
        raise RefusedError(f"{place}.replay_window: {window}: not supported by Linux for {tunnel.kind}")


def _check_ends(run: Run, user: Flow | Probe, place: str) -> None:
    if user.tunnel is None:
        return
    tunnel = next((tunnel for tunnel in run.tunnels if tunnel.name == user.tunnel), None)
    if tunnel is None:
        names = ", ".join(tunnel.name for tunnel in run.tunnels) or "none"
        raise RefusedError(f"{place}: unknown tunnel '{user.tunnel}'; expected one of: {names}")
    if {user.from_, user.to} != set(tunnel.ends):
        raise RefusedError(
            f"{place}: '{tunnel.name}' joins {tunnel.ends[0]} and {tunnel.ends[1]}, not {user.from_} and {user.to}"
        )


def notes(run: Run) -> list[str]:
    """Where the kernel does something else than was asked for."""
    return [
        f"tunnels[{index}].inner_hash: false asked for: nodes that share a kernel share the inner flow's hash"
        for index, tunnel in enumerate(run.tunnels)
        if not tunnel.inner_hash
    ]


def address(run: Run, net: Topology, user: Flow | Probe) -> str:
    """Where a flow or probe goes to: the other host, or its end of the tunnel."""
    for index, tunnel in enumerate(run.tunnels):
        if tunnel.name == user.tunnel:
            return _inside(index, tunnel, user.to)
    return net.address(user.to)


def ends(run: Run) -> list[tuple[str, str, str]]:
    """(address, tunnel, node) of each end of each tunnel."""
    return [
        (_inside(index, tunnel, node), tunnel.name, node)
        for index, tunnel in enumerate(run.tunnels)
        for node in tunnel.ends
    ]


def _inside(index: int, tunnel: Tunnel, node: str) -> str:
    return f"10.8.{index}.{tunnel.ends.index(node) + 1}"


def setup(run: Run, net: Topology, folder: str) -> list[Command]:
    """The commands at both ends of every tunnel; `folder` has `files`."""
    commands = []
    for index, tunnel in enumerate(run.tunnels):
        for here, there in (tunnel.ends, tunnel.ends[::-1]):
            argvs = _ipsec(run, net, index, here) if tunnel.kind == "ipsec" else _device(run, net, index, here, folder)
            inside = f"{_inside(index, tunnel, here)}/24"
            dev = _underlay(net, here) if tunnel.kind == "ipsec" else f"tun{index}"
            argvs.append(["ip", "addr", "add", inside, "dev", dev])
            if tunnel.kind == "ipsec":
                argvs.append(["ip", "xfrm", "policy", "show"])
            else:
                argvs.append(["ip", "link", "set", "dev", dev, "up"])
                if tunnel.kind == "vxlan":
                    words = ["lladdr", _mac(index, tunnel, there), "dev", dev, "nud", "permanent"]
                    argvs.append(["ip", "neigh", "replace", _inside(index, tunnel, there), *words])
                argvs.append(["ip", "-d", "link", "show", "dev", dev])
            commands += [Command(here, tuple(argv), net.namespaces[here]) for argv in argvs]
    return commands


def _underlay(net: Topology, node: str) -> str:
    return next(interface.dev for interface in net.of(node) if interface.address == net.address(node))


def _mac(index: int, tunnel: Tunnel, node: str) -> str:
    return f"02:00:0a:08:{index:02x}:{tunnel.ends.index(node) + 1:02x}"


def _other(tunnel: Tunnel, node: str) -> str:
    return tunnel.ends[1 - tunnel.ends.index(node)]


def _device(run: Run, net: Topology, index: int, here: str, folder: str) -> list[list[str]]:
    tunnel = run.tunnels[index]
    dev = f"tun{index}"
    mtu = str(min(link.mtu for link in run.links) - _OVERHEAD[tunnel.kind])
    add = ["ip", "link", "add", "name", dev, "mtu", mtu]
    ends = ["remote", net.address(_other(tunnel, here)), "local", net.address(here)]
    match tunnel.kind:
        case "wireguard":
            return [[*add, "type", "wireguard"], ["wg", "setconf", dev, f"{folder}/{_config(index, here)}"]]
        case "fou":
            port = str(_FOU_PORT + index)
            source = "auto" if tunnel.inner_hash else port
            encap = ["encap", "fou", "encap-sport", source, "encap-dport", port]
            return [
                ["ip", "fou", "add", "port", port, "ipproto", _IPIP],
                [*add, "type", "ipip", *ends, *encap],
            ]
        case "gre":
            return [[*add, "type", "gre", *ends]]
        case _:
            port = str(_VXLAN_PORT + index)
            # A range of one port: its end is not in it.
            source_ports = [] if tunnel.inner_hash else ["srcport", port, str(int(port) + 1)]
            device = [*add, "address", _mac(index, tunnel, here), "type", "vxlan", "id", str(index + 1), *ends]
            return [[*device, "dstport", port, *source_ports, "nolearning"]]


def _ipsec(run: Run, net: Topology, index: int, here: str) -> list[list[str]]:
    tunnel = run.tunnels[index]
    there = _other(tunnel, here)
    argvs = []
    for way, source, target in (("out", here, there), ("in", there, here)):
        outer = ["src", net.address(source), "dst", net.address(target)]
        spi = f"0x{_SPI + 2 * index + tunnel.ends.index(source):x}"
        mode = ["proto", "esp", "reqid", str(index + 1), "mode", "tunnel"]
        window = ["replay-window", str(tunnel.replay_window)]
        state = [*outer, "proto", "esp", "spi", spi, *mode[2:], *window, *_cipher(run, tunnel, source)]
        argvs.append(["ip", "xfrm", "state", "add", *state])
        inner = [f"{_inside(index, tunnel, node)}/32" for node in (source, target)]
        argvs.append(
            ["ip", "xfrm", "policy", "add", "src", inner[0], "dst", inner[1], "dir", way, "tmpl", *outer, *mode]
        )
    return argvs


def _cipher(run: Run, tunnel: Tunnel, source: str) -> list[str]:
    def key(use: str, size: int) -> str:
        return "0x" + _secret(run, tunnel, source, use)[:size].hex()

    if tunnel.cipher == "aes-gcm":
        # AES-128 and a salt of 4 bytes (RFC 4106).
        return ["aead", "rfc4106(gcm(aes))", key("gcm", 20), "128"]
    return ["auth-trunc", "hmac(sha256)", key("hmac", 32), "128", "enc", "cbc(aes)", key("cbc", 16)]


def _secret(run: Run, tunnel: Tunnel, node: str, use: str) -> bytes:
    return hashlib.sha256(f"{run.seed} {tunnel.name} {node} {use}".encode()).digest()


def _config(index: int, node: str) -> str:
    return f"tun{index}-{node}.conf"


def files(run: Run, net: Topology) -> Iterator[tuple[str, str]]:
    """The configurations that `wg setconf` reads."""
    for index, tunnel in enumerate(run.tunnels):
        if tunnel.kind != "wireguard":
            continue
        private = {end: x25519.clamp(_secret(run, tunnel, end, "wireguard")) for end in tunnel.ends}
        port = _WIREGUARD_PORT + index
        for here, there in (tunnel.ends, tunnel.ends[::-1]):
            lines = [
                "[Interface]",
                f"PrivateKey = {b64encode(private[here]).decode()}",
                f"ListenPort = {port}",
                "[Peer]",
                f"PublicKey = {b64encode(x25519.public(private[there])).decode()}",
                f"AllowedIPs = {_inside(index, tunnel, there)}/32",
                f"Endpoint = {net.address(there)}:{port}",
            ]
            yield _config(index, here), "\n".join(lines) + "\n"


def statistics(run: Run, net: Topology) -> list[Command]:
    """What both ends counted; of devices `ip -s link` tells."""
    commands: list[Command] = []
    ipsec = {end: None for tunnel in run.tunnels if tunnel.kind == "ipsec" for end in tunnel.ends}
    for end in ipsec:
        commands += [Command(end, argv, net.namespaces[end]) for argv in (_XFRM_STATE, ("cat", "/proc/net/xfrm_stat"))]
    for index, tunnel in enumerate(run.tunnels):
        if tunnel.kind == "wireguard":
            commands += [Command(end, ("wg", "show", f"tun{index}"), net.namespaces[end]) for end in tunnel.ends]
    return commands


_PACKETS = re.compile(r"lifetime current:\s+\d+\(bytes\), (\d+)\(packets\)")
_STATS = re.compile(r"stats:\s+replay-window (\d+) replay (\d+) failed (\d+)")


def counters(run: Run, printed: dict[str, str]) -> dict[str, dict[str, dict[str, int]]]:
    """`tunnels` of counters.json: what XFRM counted; other kinds count nothing that matters here.

    `printed` has the sections of teardown.log. RunError if a security association is not in it.
    """
    found: dict[str, dict[str, dict[str, int]]] = {}
    for index, tunnel in enumerate(run.tunnels):
        if tunnel.kind != "ipsec":
            continue
        for here, there in (tunnel.ends, tunnel.ends[::-1]):
            spi = _SPI + 2 * index + tunnel.ends.index(here)
            sent, received = (_association(printed, node, spi) for node in (here, there))
            found.setdefault(tunnel.name, {})[f"{here}>{there}"] = {
                "sent": _numbers(_PACKETS, sent)[0],
                "received": _numbers(_PACKETS, received)[0],
                **dict(zip(("replay_window", "replay", "failed"), _numbers(_STATS, received), strict=True)),
            }
    return found


def _association(printed: dict[str, str], node: str, spi: int) -> str:
    text = printed.get(Command(node, _XFRM_STATE).line(), "")
    for part in re.split(r"^(?=src )", text, flags=re.MULTILINE):
        if f"spi 0x{spi:08x}" in part:
            return part
    raise RunError(f"{node}: missing security association 0x{spi:x} after the run")


def _numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    match = pattern.search(text)
    if match is None:
        raise RunError(f"'ip -s xfrm state': no '{pattern.pattern}' in the output:\n{text}")
    return [tc_show.count(group) for group in match.groups()]
