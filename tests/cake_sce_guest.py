"""What test_cake_sce_module.py does in a guest: cake_sce configured by rtnetlink, watched at work, taken down.

kernel_boots.guest puts this ahead of kernel_guest.py, which calls `do_cake`. Standard library only.
"""

import ctypes
import os
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

ROOT = 0xFFFFFFFF
NEW, DELETE, GET = 36, 37, 38
ADD, CHANGE = 0x605, 0x5  # NLM_F_REQUEST | NLM_F_ACK, and NLM_F_CREATE | NLM_F_EXCL to add
RATE = 2
OPTIONS, STATS2, QUEUE, APP, TINS = 2, 7, 3, 4, 10


def shell(*commands):
    for command in commands:
        subprocess.run(command.split(), check=True)


def attribute(kind, value):
    return struct.pack("HH", len(value) + 4, kind) + value + bytes(-len(value) % 4)


def numbers(values):
    """Attributes of 32 bits, or 64 for the rate (2); bytes as they are."""
    text = b""
    for kind, value in values.items():
        size = 8 if int(kind) == RATE else 4
        whole = value if isinstance(value, bytes) else value.to_bytes(size, "little", signed=value < 0)
        text += attribute(int(kind), whole)
    return text


def attributes(text):
    found = []
    while len(text) >= 4:
        length, kind = struct.unpack_from("HH", text)
        found.append((kind & 0x3FFF, text[4:length]))
        text = text[(length + 3) & ~3 :]
    return found


def ask(kind, flags, device, place=(0, 0), text=b""):
    """One request of rtnetlink: what the kernel refuses it with, or "", and the messages of its answer."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.setsockopt(270, 11, 1)  # NETLINK_EXT_ACK
        body = struct.pack("BxHiIII", 0, 0, socket.if_nametoindex(device), *place, 0) + text
        link.send(struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        answers = []
        while True:
            text = link.recv(1 << 20)
            while text:
                length, kind = struct.unpack_from("IH", text)
                answer, text = text[16:length], text[(length + 3) & ~3 :]
                if kind == 3:  # NLMSG_DONE
                    return "", answers
                if kind == 2:  # NLMSG_ERROR
                    (error,) = struct.unpack_from("i", answer)
                    if error == 0:
                        return "", answers
                    (inner,) = struct.unpack_from("I", answer, 4)
                    said = dict(attributes(answer[4 + inner :])).get(1, b"").rstrip(b"\0").decode()
                    return said or f"error {error}", answers
                answers.append(answer)


def cake(flags, options, handle=0x10000, parent=ROOT, kind="cake_sce"):
    text = attribute(1, kind.encode() + b"\0") + attribute(OPTIONS, numbers(options))
    return ask(NEW, flags, "v0", (handle, parent), text)[0]


def taken_away():
    return ask(DELETE, CHANGE, "v0", (0, ROOT))[0]


def shown():
    """Each qdisc of v0: options, qlen, backlog, drops, the tins' statistics."""
    found = {}
    for answer in ask(GET, 0x301, "v0")[1]:
        if struct.unpack_from("i", answer, 4)[0] != socket.if_nametoindex("v0"):
            continue
        parts = dict(attributes(answer[20:]))
        stats = dict(attributes(parts[STATS2]))
        qlen, backlog, drops = struct.unpack_from("III", stats[QUEUE])
        tins = [dict(attributes(tin)) for _, tin in attributes(dict(attributes(stats.get(APP, b""))).get(TINS, b""))]
        found[parts[1].rstrip(b"\0").decode()] = {
            "options": {kind: int.from_bytes(value, "little") for kind, value in attributes(parts.get(OPTIONS, b""))},
            "queue": [qlen, backlog, drops],
            "tins": [{kind: int.from_bytes(value, "little") for kind, value in tin.items()} for tin in tins],
        }
    return found


def frames(count, *, tos=2, mark=0, port=1024, first=0, gap_s=0):
    """Sends so many UDP packets of 1000 bytes, numbered from `first` on."""
    length = 1000
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as source:
        source.bind(("v0", 0))
        source.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
        source.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)  # SO_SNDBUFFORCE
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, tos, length - 14, 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
        udp = struct.pack("!HHHH", port, 9, length - 34, 0)
        head = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0" + ip + udp
        for number in range(first, first + count):
            source.send((head + struct.pack("!I", number)).ljust(length, b"\0"))
            if gap_s:
                time.sleep(gap_s)


def refused(script):
    said = [cake(ADD, options) for options in script["refused"]]
    cake(ADD, {})
    said += [cake(CHANGE, options) for options in script["refused"]]
    said.append(cake(CHANGE, {15: b"\1\0"}))
    unchanged = shown()["cake_sce"]["options"]
    taken_away()
    return {"said": said, "defaults": unchanged}


def worked():
    """A queue of 1 Mbit/s, 8 ms a packet, is changed, reset and deleted with packets in it."""
    said = {}
    cake(ADD, {2: 125_000, 3: 4, 20: 1})  # precedence, sce
    for tos in (0x02, 0x42, 0xE2):
        frames(20, tos=tos)
    said["before"] = shown()["cake_sce"]
    cake(CHANGE, {3: 3, 5: 0})  # besteffort, flowblind: seven tins go, with their packets
    said["after"] = shown()["cake_sce"]
    cake(CHANGE, {2: 0})
    # The clock that the packet before has set runs out, and all others leave at once.
    time.sleep(0.01)
    said["unlimited"] = shown()["cake_sce"]
    cake(CHANGE, {2: 125_000})
    frames(20)
    shell("ip link set v0 down")
    said["reset"] = shown()["cake_sce"]
    shell("ip link set v0 up")
    # A new carrier is told at most once a second.
    time.sleep(2)
    frames(20)
    time.sleep(1)
    said["marked"] = shown()["cake_sce"]
    frames(20)
    said["unload"] = [unload()]
    said["deleted"] = taken_away()
    return said


def at_peer(make):
    """What `make` makes in the namespace of its own that v1 has."""
    here, there = (os.open(path, os.O_RDONLY) for path in ("/proc/self/ns/net", "/run/netns/peer"))
    setns = ctypes.CDLL(None, use_errno=True).setns
    assert setns(there, 0) == 0
    made = make()
    assert setns(here, 0) == 0
    os.close(here)
    os.close(there)
    return made


def listening():
    return at_peer(lambda: socket.create_server(("10.0.0.2", 0)))


def watching():
    """Hears what arrives at v1."""
    watch = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    watch.bind(("v1", 0))
    watch.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    watch.setblocking(False)
    return watch


def beside(script):
    """What cake_sce and mainline's cake let through, number and ToS, of the same packets; what both say afterwards."""
    said = {}
    for name, case in script["beside"].items():
        said[name] = {}
        for kind in ("cake", "cake_sce"):
            assert cake(ADD, case["options"], kind=kind) == ""
            with at_peer(watching) as watch:
                first = 0
                for sent in case["frames"]:
                    frames(first=first, **sent)
                    first += sent["count"]
                time.sleep(5)
                passed = []
                while True:
                    try:
                        frame = watch.recv(2000)
                    except BlockingIOError:
                        break
                    passed.append([struct.unpack_from("!I", frame, 42)[0], frame[15]])
            said[name][kind] = {"passed": passed, **shown()[kind]}
            taken_away()
    return said


def carried():
    """A TCP connection with large buffers through cake_sce below htb, and what htb counts when all is done."""
    said = []
    for split in (1, 0):
        shell(
            "tc qdisc add dev v0 root handle 1: htb default 1",
            "tc class add dev v0 parent 1: classid 1:1 htb rate 50mbit",
        )
        cake(ADD, {2: 2_500_000, 3: 3, 17: split, 20: 1, 10: 200_000}, parent=0x10001, handle=0x100000)
        with listening() as listener, socket.socket() as client:
            client.connect(listener.getsockname())
            with listener.accept()[0] as server:
                threading.Thread(target=client.sendall, args=(bytes(3_000_000),), daemon=True).start()
                got = 0
                while got < 3_000_000:
                    got += len(server.recv(1 << 16))
        # The last acknowledgements have left by then.
        time.sleep(2)
        found = shown()
        said.append({"got": got, "htb": found["htb"]["queue"], **found["cake_sce"]})
        shell("tc qdisc del dev v0 root")
    return said


def unload():
    """ "" or why not; delete_module(2) of x86-64, which not every machine has a program for."""
    libc = ctypes.CDLL(None, use_errno=True)
    return "" if libc.syscall(176, b"sch_cake_sce", os.O_NONBLOCK) == 0 else os.strerror(ctypes.get_errno())


def do_cake(script):
    run = {"refused": refused, "worked": lambda _: worked(), "carried": lambda _: carried(), "beside": beside}
    subprocess.run(["insmod", script["module"]], check=True)
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    shell(
        "ip netns add peer",
        "ip link add v0 type veth peer name v1 netns peer",
        "ip link set v0 address 02:00:00:00:00:01",
        "ip -n peer link set v1 address 02:00:00:00:00:02",
        "ip addr add 10.0.0.1/24 dev v0",
        "ip -n peer addr add 10.0.0.2/24 dev v1",
        "ip link set v0 up",
        "ip -n peer link set v1 up",
    )
    time.sleep(2)
    said = {name: steps(script) for name, steps in run.items()}
    said["worked"]["unload"].append(unload())
    return said
