"""PID 1 of the real kernels in the tests: builds a chain of namespaces in the guest and measures in it.

`kernel_guest.py init SCRIPT`; SCRIPT is a JSON object: `results`, `path`, `do` and what that needs. Writes
`answer.json` into the results folder. Standard library only; runs on the host's Python inside the guest.
"""

import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, options=""):
    assert libc.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()) == 0, target


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}\n{text}"
    return done.stdout


def batch(program, *lines):
    run([*program.split(), "-batch", "-"], "\n".join(lines) + "\n")


def chain(nodes):
    """n0 - n1 - … : hosts at the ends, bridges between, no IPv6, neighbours permanent."""
    for node in range(nodes):
        batch("ip", f"netns add n{node}")
        for which in ("all", "default"):
            run(
                [
                    "ip",
                    "netns",
                    "exec",
                    f"n{node}",
                    "sh",
                    "-c",
                    f"echo 1 > /proc/sys/net/ipv6/conf/{which}/disable_ipv6",
                ]
            )
    for left in range(nodes - 1):
        batch("ip", f"link add name r{left} netns n{left} type veth peer name l{left + 1} netns n{left + 1}")
    for node in range(1, nodes - 1):
        batch(
            f"ip -n n{node}",
            "link add br0 type bridge stp_state 0 mcast_snooping 0",
            f"link set l{node} master br0",
            f"link set r{node} master br0",
            *(f"link set {device} up" for device in ("br0", f"l{node}", f"r{node}")),
        )
    last = nodes - 1
    batch("ip -n n0", "link set r0 address 02:00:00:00:00:01", "link set r0 up", "addr add 10.9.9.1/24 dev r0")
    batch(f"ip -n n{last}", f"link set l{last} address 02:00:00:00:00:02", f"link set l{last} up")
    batch(f"ip -n n{last}", f"addr add 10.9.9.2/24 dev l{last}")
    batch("ip -n n0", "neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev r0 nud permanent")
    batch(f"ip -n n{last}", f"neigh add 10.9.9.1 lladdr 02:00:00:00:00:01 dev l{last} nud permanent")
    # The kernel tells devices of a new carrier at most once a second.
    time.sleep(3)


def delay(node, device, words):
    """netem on an ifb at the ingress of a port."""
    batch(f"ip -n n{node}", f"link add i{device} type ifb", f"link set i{device} up")
    batch(
        f"tc -n n{node}",
        f"qdisc add dev {device} handle ffff: ingress",
        f"filter add dev {device} parent ffff: matchall action mirred egress redirect dev i{device}",
        f"qdisc add dev i{device} root netem delay {words} limit 1000000",
    )


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def ping(count):
    """Nanoseconds of each round trip, 84-byte packets."""
    handle = os.open("/run/netns/n0", os.O_RDONLY)
    assert libc.setns(handle, 0) == 0
    times = []
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        raw.settimeout(5)
        for sequence in range(count):
            head = struct.pack("!BBHHH", 8, 0, 0, 77, sequence)
            request = struct.pack("!BBHHH", 8, 0, checksum(head + bytes(56)), 77, sequence) + bytes(56)
            sent = time.monotonic_ns()
            raw.sendto(request, ("10.9.9.2", 0))
            while raw.recv(2000)[20] != 0:
                pass
            times.append(time.monotonic_ns() - sent)
            time.sleep(0.05)
    return times


def do_ping(script):
    chain(script["nodes"])
    if script["delay"]:
        delay(1, "l1", script["delay"])
        delay(script["nodes"] - 2, f"r{script['nodes'] - 2}", script["delay"])
    return ping(5)


def do_htb(_script):
    chain(2)
    batch("tc -n n0", "qdisc add dev r0 root handle 1: htb default 1")
    batch("tc -n n0", "class add dev r0 parent 1: classid 1:1 htb rate 50mbit ceil 50mbit")
    return run(["tc", "-n", "n0", "class", "show", "dev", "r0"])


def do_show(script):
    """What tc shows of each qdisc line, and of its classes; what it says where it refuses."""
    shown = []
    os.environ["TC_LIB_DIR"] = script["distributions"]
    batch("ip", "link add v0 type veth peer name v1", "link set v0 up", "link set v1 up")
    for line, classes in script["lines"]:
        commands = [f"tc qdisc add dev v0 root handle 1: {line}"]
        for words in classes:
            parent, minor, rest = words.split(maxsplit=2)
            commands.append(f"tc class add dev v0 parent {parent} classid 1:{minor} htb {rest}")
        said = []
        for command in commands:
            done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if done.returncode:
                said.append(done.stderr or done.stdout)
        if said:
            shown.append(["refused", *said])
        else:
            lines = run(["tc", "-s", "-d", "qdisc", "show", "dev", "v0", "root"]).splitlines()
            shown.append([*lines, *(run(["tc", "-d", "class", "show", "dev", "v0"]).splitlines() if classes else [])])
        subprocess.run(["tc", "qdisc", "del", "dev", "v0", "root"], capture_output=True, check=False)
    return shown


def do_write(script):
    """Try to write a host file outside the results, then to mount the host's files writable and to write again."""
    said = []
    for prepare in (lambda: None, lambda: mount("none", "/mnt", "hostfs", script["outside"])):
        try:
            prepare()
            target = "/mnt" if Path("/mnt/marker").exists() else script["outside"]
            (Path(target) / "evil").write_text("written")
            said.append("written")
        except (OSError, AssertionError) as error:
            said.append(f"{type(error).__name__}: {getattr(error, 'strerror', error)}")
    return said


def do_reach(script):
    """What the guest can do to files of the host: read; with a folder mounted writable, list, change mode and time."""
    said = []

    def attempt(what):
        try:
            what()
            said.append("done")
        except OSError as error:
            said.append(error.strerror)

    for path in script["files"]:
        attempt(Path(path).read_bytes)
    folder, name = os.path.split(script["files"][0])
    mount("none", "/mnt", "hostfs", folder)
    attempt(lambda: list(Path("/mnt").iterdir()))
    attempt(lambda: Path("/mnt", name).chmod(0o777))
    attempt(lambda: os.utime(f"/mnt/{name}", (1, 1)))
    return said


def do_module(script):
    """A congestion control's module: what it refuses, whom it serves, many connections reset, and unloading it."""
    module = Path(script["module"])
    said = {"at load": {}, "later": {}, "cc": {}}
    for words in script["refused"]:
        done = subprocess.run(["insmod", module, words], capture_output=True, text=True, check=False)
        said["at load"][words] = done.stderr.strip().rpartition(": ")[2]
    run(["insmod", module])
    for words in script["refused"]:
        key, _, value = words.partition("=")
        try:
            Path(f"/sys/module/{module.stem}/parameters/{key}").write_text(value)
        except OSError as error:
            said["later"][words] = error.strerror
    batch("ip", "link set lo up")
    rule = "tcp dport 5001 tcp flags & (syn | fin | rst) == 0 ip ecn"
    chain = "type filter hook postrouting priority 0;"
    ends = [f"add rule ip t c {rule} {ecn} counter" for ecn in ("not-ect", "ect0", "ect1", "ce")]
    run(["nft", "-f", "-"], "\n".join(["add table ip t", f"add chain ip t c {{ {chain} }}", *ends]) + "\n")
    listener = socket.create_server(("127.0.0.1", 5001), backlog=128)
    for ecn in (0, 2, 3):
        Path("/proc/sys/net/ipv4/tcp_ecn").write_text(str(ecn))
        with connected(script["cc"]) as client, listener.accept()[0] as server:
            client.sendall(bytes(20_000))
            server.recv(20_000, socket.MSG_WAITALL)
            said["cc"][ecn] = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
    counted = run(["nft", "list", "chain", "ip", "t", "c"])
    said["counted"] = [int(line.split("packets ")[1].split()[0]) for line in counted.splitlines() if "packets" in line]
    both = [(connected(script["cc"]), listener.accept()[0]) for _ in range(100)]
    for client, _ in both:
        client.sendall(bytes(50_000))
        # Closed with data on their way: a reset.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    said["unload"] = [unloaded(module.stem)]
    for client, server in both:
        client.close()
        server.close()
    listener.close()
    # The resets, and the connections that were closed before, have come to their ends by then.
    time.sleep(70)
    said["unload"].append(unloaded(module.stem))
    return said


def do_qdisc(script):
    """A queue's module: options that it refuses, packets that are dropped, reset and thrown away, and unloading it."""
    module, kind = Path(script["module"]), script["kind"]
    run(["insmod", module])
    # Nobody else sends.
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    batch("ip", "link add veth0 type veth peer name veth1", "link set veth0 up", "link set veth1 up")
    time.sleep(1)
    said = {"refused": [new_qdisc(kind, *option) for option in script["refused"]]}
    # RTM_NEWQDISC, 1.25 MB/s; then as a change.
    rate = (2, struct.pack("Q", 1_250_000).hex())
    said["made"] = [new_qdisc(kind, *rate), new_qdisc(kind, 7, struct.pack("I", 50_000).hex(), flags=0)]
    said["in use"] = unloaded(module.stem)
    flood()
    batch("ip", "link set veth0 down", "link set veth0 up")
    flood()
    batch("tc", "qdisc del dev veth0 root")
    batch("tc", "qdisc add dev veth0 root handle 1: htb default 1")
    batch("tc", "class add dev veth0 parent 1: classid 1:1 htb rate 10mbit")
    said["made"].append(new_qdisc(kind, *rate, parent=0x10001, handle=0x20000))
    flood()
    said["standing"] = run(["tc", "-s", "qdisc", "show", "dev", "veth0"])
    time.sleep(60)
    said["drained"] = run(["tc", "-s", "qdisc", "show", "dev", "veth0"])
    flood()
    batch("tc", "qdisc del dev veth0 root")
    said["unload"] = unloaded(module.stem)
    return said


def new_qdisc(kind, number, value, *, parent=0xFFFFFFFF, handle=0x10000, flags=0x600):
    """A qdisc of veth0 with one option, in hexadecimal; "" or what the kernel says. Flags: made, and not there yet."""

    def attribute(number, value):
        return struct.pack("HH", 4 + len(value), number) + value + bytes(-len(value) % 4)

    where = struct.pack("BxxxiIII", 0, socket.if_nametoindex("veth0"), handle, parent, 0)
    options = attribute(number, bytes.fromhex(value))
    body = where + attribute(1, kind.encode() + b"\0") + attribute(2, options)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as asked:
        for option in (10, 11):  # NETLINK_CAP_ACK, NETLINK_EXT_ACK
            asked.setsockopt(270, option, 1)
        # RTM_NEWQDISC; NLM_F_REQUEST and NLM_F_ACK besides.
        asked.send(struct.pack("IHHII", 16 + len(body), 36, 5 | flags, 1, 0) + body)
        answer = asked.recv(4096)
    (error,) = struct.unpack_from("i", answer, 16)
    told = answer[36:].split(b"\0\0")[0] if error else b""
    words = "".join(chr(byte) for byte in told if 32 <= byte < 127).strip()
    return f"{os.strerror(-error)}: {words}" if error else ""


def flood():
    """3000 frames of ten flows, not ECN-capable, in a second."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as source:
        source.bind(("veth0", 0))
        source.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)  # SO_SNDBUFFORCE
        for number in range(3000):
            head = struct.pack("!BBHHHBBH4B4B", 0x45, 0, 986, 0, 0, 64, 17, 0, 10, 0, 0, 1, 10, 0, 0, 2)
            ports = struct.pack("!HHHH", 1024 + number % 10, 9, 966, 0)
            source.send((b"\2" * 12 + b"\x08\0" + head + ports).ljust(1000, b"\0"))
            if number % 30 == 29:
                time.sleep(0.01)


def do_ect1(script):
    """What windows of SCE's module come to where the path makes ECT(1) of a share of ECT(0): one flow per case.

    The mean window in packets, the bytes that came as ECT(1) and ECT(0) meanwhile as the sender was told, and the
    packets that the path marked of how many.
    """
    run(["insmod", script["module"]])
    chain(3)
    # The path marks packet by packet.
    batch("ip -n n0", "link set r0 gso_max_segs 1")
    for device in ("l1", "r1"):
        delay(1, device, "20ms")
    enter("n2")
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text("5")
    listener = socket.create_server(("10.9.9.2", 5001))
    enter("n0")
    said = []
    for case in script["cases"]:
        for key, value in case["parameters"].items():
            Path(f"/sys/module/tcp_sce/parameters/{key}").write_text(str(value))
        # CE ends slow start, which marks of SCE do not in every form.
        remark("numgen random mod 100 < 5 ip ecn set ce")
        with connected(case["cc"], "10.9.9.2") as client, listener.accept()[0] as server:
            for end in (client, server):
                end.settimeout(60)
            threading.Thread(target=pour, args=(client,), daemon=True).start()
            threading.Thread(target=drain, args=(server,), daemon=True).start()
            time.sleep(2)
            remark(f"counter numgen random mod 1000 < {case['permille']} counter ip ecn set ect1")
            time.sleep(case["settle_s"])
            before, windows = tcp_info(client), []
            for _ in range(750):
                time.sleep(0.04)
                windows.append(struct.unpack_from("I", tcp_info(client), 80)[0])
            early, late = (struct.unpack_from("II", info, TOLD) for info in (before, tcp_info(client)))
            told = [late[0] - early[0], late[1] - early[1]]
            counted = run(["ip", "netns", "exec", "n1", "nft", "list", "table", "bridge", "t"])
            seen, marked = (int(part.split()[0]) for part in counted.split("counter packets ")[1:])
            total = struct.unpack_from("I", tcp_info(client), TOLD)[0]
            said.append({"window": sum(windows) / len(windows), "told": told, "path": [marked, seen], "total": total})
            client.shutdown(socket.SHUT_RDWR)
    return said


def do_middleboxes(script):
    """What a connection does behind each middlebox: Mbit/s of its second to sixth second, and its control at the end.

    The path has 10 Mbit/s, 20 ms and room for 50 packets. A middlebox is nft's rules for what is forwarded, and what of
    TCP's flags it clears: nft may not write those. SYNs that are no answers, or all other segments, lose CWR and ECE.
    """
    run(["insmod", script["module"]])
    chain(3)
    batch("ip -n n0", "link set r0 gso_max_segs 1")
    for device in ("l1", "r1"):
        delay(1, device, "10ms")
    batch("tc -n n1", "qdisc add dev r1 root netem rate 10mbit limit 50")
    for node, device in ((0, "r0"), (2, "l2")):
        batch(f"tc -n n{node}", f"qdisc add dev {device} clsact")
    enter("n2")
    Path("/proc/sys/net/ipv4/tcp_ecn").write_text("3")
    listener = socket.create_server(("10.9.9.2", 5001))
    enter("n0")
    said = {}
    for name, (rules, flags) in script["middleboxes"].items():
        text = "add table bridge t\ndelete table bridge t\nadd table bridge t\n"
        text += "add chain bridge t c { type filter hook forward priority 0; }\n"
        text += "".join(f"add rule bridge t c {words}\n" for words in rules)
        run(["ip", "netns", "exec", "n1", "nft", "-f", "-"], text)
        for node, device in ((0, "r0"), (2, "l2")):
            clear = "action pedit ex munge tcp flags set 0 retain 0xc0 pipe action csum tcp"
            where = f"filter add dev {device} egress protocol ip flower ip_proto tcp tcp_flags"
            batch(f"tc -n n{node}", f"filter del dev {device} egress", *([f"{where} {flags} {clear}"] if flags else []))
        # What a peer's middlebox did before is not remembered.
        run(["ip", "tcp_metrics", "flush"])
        with connected(script["cc"], "10.9.9.2") as client, listener.accept()[0] as server:
            for end in (client, server):
                end.settimeout(60)
            threading.Thread(target=pour, args=(client,), daemon=True).start()
            threading.Thread(target=drain, args=(server,), daemon=True).start()
            time.sleep(2)
            before = struct.unpack_from("Q", tcp_info(client), ACKED)[0]
            time.sleep(5)
            acked = struct.unpack_from("Q", tcp_info(client), ACKED)[0] - before
            control = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
            said[name] = [acked * 8 / 5e6, control]
            client.shutdown(socket.SHUT_RDWR)
    return said


# tcpi_bytes_acked
ACKED = 120
# tcpi_delivered_e1_bytes and, after it, tcpi_delivered_e0_bytes
TOLD = 252


def tcp_info(client):
    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)


def enter(namespace):
    handle = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    assert libc.setns(handle, 0) == 0
    os.close(handle)


def remark(words):
    """The bridge does this to data that it forwards, and nothing else."""
    text = "add table bridge t\ndelete table bridge t\nadd table bridge t\n"
    text += "add chain bridge t c { type filter hook forward priority 0; }\n"
    text += f"add rule bridge t c tcp dport 5001 ip ecn ect0 {words}\n"
    run(["ip", "netns", "exec", "n1", "nft", "-f", "-"], text)


def pour(client):
    try:
        while True:
            client.sendall(bytes(100_000))
    except OSError:
        pass


def drain(server):
    try:
        while server.recv(1_000_000):
            pass
    except OSError:
        pass


def unloaded(name):
    """ "" or why not; delete_module(2) of x86-64, which not every machine has a program for."""
    return "" if libc.syscall(176, name.encode(), os.O_NONBLOCK) == 0 else os.strerror(ctypes.get_errno())


def connected(congestion_control, address="127.0.0.1"):
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    client.connect((address, 5001))
    return client


def do_random(_script):
    return os.urandom(32).hex()


def do_exit(script):
    os._exit(script["code"])


def do_hang(_script):
    while True:
        pass


def look_for_leaks():
    """Have a kernel that can (kernel/config/debug.config) look for memory that nobody points to."""
    leaks = Path("/sys/kernel/debug/kmemleak")
    if leaks.parent.exists():
        mount("none", str(leaks.parent), "debugfs")
    if leaks.exists():
        # What is younger than 5 s is no leak, and what the first look finds may be one that is just being made.
        for _ in range(2):
            time.sleep(6)
            leaks.write_text("scan")
        for line in leaks.read_text().splitlines():
            print(line, flush=True)


def main():
    script = json.loads(Path(sys.argv[2]).read_text())
    for kind, target in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")):
        mount(kind, target, kind)
    Path("/tmp/out").mkdir()
    mount("none", "/tmp/out", "hostfs", script["results"])
    os.environ["PATH"] = script["path"]
    # Timers go over to high resolution after the first virtual tick.
    time.sleep(1)
    try:
        answer = {"answer": globals()[f"do_{script['do']}"](script)}
        look_for_leaks()
    except Exception:
        print(traceback.format_exc(), flush=True)
        answer = {"error": traceback.format_exc()}
    Path("/tmp/out/answer.json").write_text(json.dumps(answer))
    os.sync()
    libc.reboot(0x4321FEDC)


if __name__ == "__main__":
    main()
