# ruff: noqa: S108  (the guest's own /tmp, mounted by this program)
"""PID 1 of the boot that `replay` makes: send recorded frames through a qdisc, and write down when each left it.

Runs inside the guest, on the host's Python with the standard library only: `replay_guest.py init SCRIPT`. SCRIPT is a
JSON object with `results` (the host's path of the results folder), `path` (PATH), `modules`, `start_ns`, `arrivals`
(name -> list of [ns, bytes, flow, priority, ecn]), `flows` (how many there are) and `replays` (list of {`arrivals`:
name, `commands`, `show`}). Writes `hashes.json`, the kernel's hash of each flow, and `N.json` for replay N:
`{"arrivals": [ns], "departures": [[number, ns, ecn]], "show": "…"}`, times of CLOCK_MONOTONIC; or `{"error": "…"}`.

Each replay has a network namespace and a pair of veth devices of its own; `commands` make the qdisc on `veth0`. A frame
is IPv4 and UDP with its number as payload. Its arrival is the kernel's own time stamp ahead of the qdisc
(SOF_TIMESTAMPING_TX_SCHED), its departure that of its reception on `veth1`, which in virtual time is the same instant.
`skb_get_hash` depends on a secret of the boot and on addresses, ports and protocol: one frame of each flow is received
into a ring (TPACKET_V3), which tells it.
"""

import ctypes
import errno
import gc
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_POWER_OFF = 0x4321FEDC
_CLONE_NEWNET = 0x40000000
_PR_SET_TIMERSLACK = 29
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_SO_TIMESTAMPNS, _SO_TIMESTAMPING = 35, 37
# TX_SCHED | RAW: software stamps ahead of the qdisc, reported, numbered, without the frame.
_STAMPS = 1 << 8 | 1 << 4 | 1 << 7 | 1 << 11
_SOL_PACKET, _PACKET_TX_TIMESTAMP = 263, 16
_PACKET_RX_RING, _PACKET_VERSION, _TPACKET_V3 = 5, 10, 2
_FILL_RXHASH = 1
_RING = 1 << 20
_ETH_P_IP = 0x0800
_MSG_ERRQUEUE = 0x2000
_BUFFER = 256 << 20
_HEADERS = 42
# A multiple of the periods of dualpi2 (16 ms), pie (15 ms) and adaptive red (500 ms): their timers then tick at
# multiples of their periods.
_ALIGNMENT_NS = 6_000_000_000
# The end of a replay: nothing left for so long.
_SILENCE_S = 3
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, options: str = "") -> None:
    """mount(2); OSError names the target."""
    if _libc.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def run(command: list[str]) -> str:
    """What one command printed; RuntimeError with what it said if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout


def frame(number: int, length: int, flow: int, ecn: int) -> bytes:
    """Ethernet, IPv4 (10.0.0.1 to 10.0.0.2), UDP (from 1024 + flow to 9), the number, zeros."""
    ethernet = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0"
    addresses = b"\x0a\0\0\x01\x0a\0\0\x02"
    head = struct.pack("!BBHHHBBH", 0x45, ecn, length - 14, 0, 0x4000, 64, 17, 0) + addresses
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    ip = head[:10] + struct.pack("!H", checksum) + head[12:]
    udp = struct.pack("!HHHH", 1024 + flow, 9, length - 34, 0)
    return (ethernet + ip + udp + struct.pack("!I", number)).ljust(length, b"\0")


def realtime_offset() -> int:
    """CLOCK_REALTIME - CLOCK_MONOTONIC, ns. A reading takes the clock one step on, so the one in the middle is half way
    between its neighbours."""
    before = time.clock_gettime_ns(time.CLOCK_REALTIME)
    middle = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    after = time.clock_gettime_ns(time.CLOCK_REALTIME)
    return (before + after) // 2 - middle


class Wire:
    """Both ends of the veth, and what was seen at them; times in ns of CLOCK_REALTIME."""

    def __init__(self) -> None:
        """Opens the sockets; the devices exist and are up."""
        self.arrivals: dict[int, int] = {}
        self.departures: list[tuple[int, int, int]] = []
        self.source = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.source.bind(("veth0", 0))
        self.source.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
        self.source.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self.source.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _STAMPS)
        self.sink = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
        self.sink.bind(("veth1", _ETH_P_IP))
        self.sink.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
        self.sink.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self.sink.setblocking(False)

    def read(self) -> int:
        """Take what waits at both ends; how many frames left the qdisc."""
        while True:
            try:
                _, control, _, _ = self.source.recvmsg(0, 256, _MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            found = {(level, kind): data for level, kind, data in control}
            seconds, ns = struct.unpack_from("qq", found[socket.SOL_SOCKET, _SO_TIMESTAMPING])
            (number,) = struct.unpack_from("I", found[_SOL_PACKET, _PACKET_TX_TIMESTAMP], 12)
            self.arrivals[number] = seconds * 1_000_000_000 + ns
        before = len(self.departures)
        while True:
            try:
                data, control, _, _ = self.sink.recvmsg(_HEADERS + 4, 64)
            except BlockingIOError:
                return len(self.departures) - before
            seconds, ns = struct.unpack("qq", control[0][2])
            (number,) = struct.unpack_from("!I", data, _HEADERS)
            self.departures.append((number, seconds * 1_000_000_000 + ns, data[15] & 3))

    def close(self) -> None:
        """Close both ends."""
        self.source.close()
        self.sink.close()


def hashes(flows: int) -> list[int]:
    """`skb_get_hash` of each flow."""
    device_pair()
    sink = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sink.setsockopt(_SOL_PACKET, _PACKET_VERSION, _TPACKET_V3)
    # struct tpacket_req3: one block, which is handed over full or after 10 ms
    ring = struct.pack("7I", _RING, 1, 2048, _RING // 2048, 10, 0, _FILL_RXHASH)
    sink.setsockopt(_SOL_PACKET, _PACKET_RX_RING, ring)
    found: dict[int, int] = {}
    with mmap.mmap(sink.fileno(), _RING) as block, socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as source:
        sink.bind(("veth1", _ETH_P_IP))
        source.bind(("veth0", 0))
        # A new device sends nothing until the kernel has told its carrier.
        time.sleep(1)
        for flow in range(flows):
            source.send(frame(flow, 64, flow, 0))
        time.sleep(1)
        # struct tpacket_block_desc, then for each frame a struct tpacket3_hdr, both of <linux/if_packet.h>
        _, _, status, packets, at = struct.unpack_from("5I", block, 0)
        if not status & 1:
            raise RuntimeError("no ring of received frames")
        for _ in range(packets):
            next_one, _, _, _, _, _, mac, _, rxhash = struct.unpack_from("6IHHI", block, at)
            (number,) = struct.unpack_from("!I", block, at + mac + _HEADERS)
            found[number] = rxhash
            at += next_one
    sink.close()
    return [found[flow] for flow in range(flows)]


def device_pair() -> None:
    """A network namespace of its own with veth0 and veth1."""
    if _libc.unshare(_CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "unshare")
    ipv6 = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    if ipv6.exists():
        ipv6.write_text("1")
    run(["ip", "link", "add", "veth0", "txqueuelen", "1000", "type", "veth", "peer", "name", "veth1"])
    for device in ("veth0", "veth1"):
        run(["ip", "link", "set", device, "up"])


def replay(job: dict[str, Any], arrivals: list[list[int]], start_ns: int) -> dict[str, Any]:
    """One sequence of arrivals through one qdisc."""
    device_pair()
    packets = [frame(number, a[1], a[2], a[4]) for number, a in enumerate(arrivals)]
    offset = realtime_offset()
    wire = Wire()
    base = (time.monotonic_ns() // _ALIGNMENT_NS + 1) * _ALIGNMENT_NS
    time.sleep((base - time.monotonic_ns()) / 1e9)
    for command in job["commands"]:
        run(command)
    before = None
    priority = 0
    for number, arrival in enumerate(arrivals):
        if arrival[0] != before:
            before = arrival[0]
            if number % 64 == 0:
                wire.read()
            wait = base + start_ns + before - time.monotonic_ns()
            if wait > 0:
                time.sleep(wait / 1e9)
        if arrival[3] != priority:
            priority = arrival[3]
            wire.source.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, priority)
        try:
            wire.source.send(packets[number])
        except OSError as error:
            # How the kernel tells a sender that the qdisc dropped a packet at once.
            if error.errno != errno.ENOBUFS:
                raise
    silent = 0
    while silent < _SILENCE_S:
        time.sleep(1)
        silent = 0 if wire.read() else silent + 1
    output = "".join(run(command) for command in job["show"])
    wire.close()
    return {
        "arrivals": [wire.arrivals[number] - offset for number in range(len(arrivals))],
        "departures": [(number, at - offset, ecn) for number, at, ecn in wire.departures],
        "show": output,
    }


def main() -> None:
    """Mount, replay, write, power off."""
    script = json.loads(Path(sys.argv[2]).read_text())
    for kind, target in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")):
        mount(kind, target, kind)
    out = Path("/tmp/out")
    out.mkdir()
    mount("none", str(out), "hostfs", script["results"])
    os.environ["PATH"] = script["path"]
    _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.disable()
    for module in script["modules"]:
        run(["insmod", module])
    # Timers go over to high resolution after the first tick; an earlier tc would compute bursts for a coarse clock.
    time.sleep(1)
    (out / "hashes.json").write_text(json.dumps(hashes(script["flows"])))
    for number, job in enumerate(script["replays"]):
        try:
            answer = replay(job, script["arrivals"][job["arrivals"]], script["start_ns"])
        except (OSError, RuntimeError, LookupError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        (out / f"{number}.json").write_text(json.dumps(answer))
    os.sync()
    _libc.reboot(_POWER_OFF)


if __name__ == "__main__":
    main()
