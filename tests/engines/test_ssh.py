"""Engine `ssh`: real sshd in namespaces that stand for machines (root), and a `ssh` that fails in every way."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from bakeoff import campaign, engines, results
from bakeoff.campaign import Execution
from bakeoff.engines import netns
from bakeoff.engines.lab import Command, Device, plan
from bakeoff.engines.ssh import connection, inventory, undo
from bakeoff.engines.ssh.connection import Connection
from bakeoff.errors import BakeoffError, RefusedError
from bakeoff.scenario import Run
from kernel_boots import gone
from lab_runs import SHORT, check_slowed, ctrl_c, egress, flow, meanwhile, network, probe, short, slowed

NODES = ("cli", "mid", "srv")
CABLES = {("cli", "mid"): ("c0", "m0"), ("mid", "srv"): ("m1", "s0")}


# Inventories


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: {}", "nodes: {}; expected at least 1 entry"),
        ("nodes: {a: {host: h}}", "nodes.a.interfaces: is missing"),
        (
            "nodes: {a: {host: -oProxyCommand=x, interfaces: {}}}",
            "nodes.a.host: '-oProxyCommand=x': invalid ssh destination",
        ),
        (
            "nodes: {a: {host: h, interfaces: {b: 'e 0'}}}",
            "nodes.a.interfaces.b: 'e 0'; expected the name of a device such as 'enp1s0'",
        ),
        ("nodes: {a: {host: h, interfaces: {b: e0, c: e0}}}", "nodes.a.interfaces.b: 'e0': used for two nodes"),
        (
            "nodes: {a: {host: h, interfaces: {}}, b: {host: h, interfaces: {}}}",
            "nodes.b.host: 'h': also the host of node 'a'; expected one machine per node",
        ),
        (
            "nodes: {a: {host: h, interfaces: {b: {device: e0, in_use: yes}}}}",
            "'yes'; expected one of refused, allowed",
        ),
        (
            'nodes: {a: {host: h, become: "sudo \'", interfaces: {}}}',
            "No closing quotation; expected a command such as",
        ),
        (
            "nodes: {a: {host: h, interfaces: {}}}\nconfig: none",
            "none': no such file; expected for example ~/.ssh/config",
        ),
        ("nodes: {a: {host: h, port: 22, interfaces: {}}}", "nodes.a.port: unknown key 'port'"),
    ],
)
def test_an_inventory_is_refused_by_file_place_value_and_form(tmp_path, text, message):
    file = tmp_path / "bed.yaml"
    file.write_text(text)
    with pytest.raises(BakeoffError, match=re.escape(message)) as error:
        inventory.read(file)
    assert str(error.value).startswith(f"{file}: ")


def test_an_engine_without_an_inventory_says_what_it_wants():
    with pytest.raises(BakeoffError, match="expected --engine ssh --inventory FILE"):
        engines.get("ssh").check(network())


# Plans and their inverse

MACHINES = {
    "cli": {"mid": Device("c0", "02:00:00:00:00:01")},
    "mid": {"cli": Device("m0", "02:00:00:00:00:02"), "srv": Device("m1", "02:00:00:00:00:03")},
    "srv": {"mid": Device("s0", "02:00:00:00:00:04")},
}


def test_a_node_may_be_a_machine():
    made = plan(network(interfaces=egress(SHORT)), machines=MACHINES)
    lines = [command.line() for command in made.setup]
    assert all(command.netns is None for command in (*made.setup, *made.statistics))
    assert (made.namespaces, made.teardown) == ((), ())
    assert "cli: sysctl -e -w net/ipv6/conf/c0/disable_ipv6=1" in lines
    assert "cli: ip link set dev c0 mtu 1500" in lines
    assert "cli: ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:04 dev c0 nud permanent" in lines
    assert "mid: ip link set dev m1 master bakeoff-br" in lines
    assert "mid: tc qdisc add dev m1 root handle 1: htb default 1" in lines
    assert not any("netns" in line or "veth" in line for line in lines)
    assert [(role["node"], role["netns"]) for role in made.roles] == [("srv", None), ("cli", None)]


def test_what_the_inventory_lacks_is_named():
    with pytest.raises(RefusedError, match="node 'srv' is not in the inventory; expected one of: cli, mid"):
        plan(network(), machines={"cli": MACHINES["cli"], "mid": MACHINES["mid"]})
    with pytest.raises(RefusedError, match="node 'mid': no interface to 'srv' in the inventory; expected one of: cli"):
        plan(network(), machines=MACHINES | {"mid": {"cli": Device("m0")}})


def test_every_command_has_its_inverse():
    link = {"flags": ["BROADCAST", "UP"], "mtu": 9000, "txqlen": 500, "master": "br-lan"}
    was = undo.Before(
        sysctls={"net.ipv4.tcp_ecn": "2", "net/ipv6/conf/e0/disable_ipv6": ""},
        links={"e0": link, "e1": {"flags": [], "mtu": 1500, "txqlen": 1000}},
        offloads={
            "e0": undo.features("Features for e0:\nrx-checksumming: on\ntcp-segmentation-offload: off [fixed]\n")
        },
    )

    def back(line: str) -> str | None:
        words = undo.inverse(Command("mid", tuple(shlex.split(line))), was)
        return shlex.join(words) if words is not None else None

    assert back("sysctl -w net.ipv4.tcp_ecn=3") == "sysctl -w net.ipv4.tcp_ecn=2"
    assert back("sysctl -e -w net/ipv6/conf/e0/disable_ipv6=1") is None
    assert back("ip link set dev e0 mtu 1500") == "ip link set dev e0 mtu 9000"
    assert back("ip link set dev e0 txqueuelen 1000") == "ip link set dev e0 txqueuelen 500"
    assert back("ip link set dev e0 master b") == "ip link set dev e0 master br-lan"
    assert back("ip link set dev e1 master b") == "ip link set dev e1 nomaster"
    assert (back("ip link set dev e0 up"), back("ip link set dev e1 up")) == (None, "ip link set dev e1 down")
    assert back("ip link add ifb.x type ifb") == "ip link del dev ifb.x"
    assert back("ip addr add 10.9.0.1/24 dev e0") == "ip addr del 10.9.0.1/24 dev e0"
    assert back("tc qdisc add dev e0 root handle 1: pie") == "tc qdisc del dev e0 root"
    assert back("tc qdisc add dev e0 handle ffff: ingress") == "tc qdisc del dev e0 ingress"
    assert back("tc qdisc add dev e0 parent 1:1 handle 2: pie") is None, "goes with its root"
    assert back("tc qdisc add dev ifb.x root handle 100: pie") is None, "goes with its device"
    assert back("ethtool -K e0 rx off tso off") == "ethtool -K e0 rx on"


# Failures, with a program that only says it is ssh

FAKE = """#!/bin/sh
# Takes ssh's arguments and runs the command here; FAIL names what goes wrong, for the host FAIL_HOST.
for last; do :; done
host=
for word; do case "$word" in h-*) host=$word;; esac; done
if [ "$host" = "$FAIL_HOST" ]; then
  case "$FAIL" in
    unreachable) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255;;
    key) echo "$host: Permission denied (publickey)." >&2; exit 255;;
    root) case "$last" in *' sh') exec setpriv --reuid=1000 --clear-groups sh -c "$last";; esac;;
    tc) case "$last" in *' sh') last="env PATH=$FAIL_PATH sh";; esac;;
    clock) case "$last" in *date*) echo none; exit 0;; esac;;
  esac
fi
case " $* " in *" -N "*|*" -O "*) exit 0;; esac
exec sh -c "$last"
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A testbed of hosts h-cli, h-mid, h-srv behind the fake; returns its engine."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    file = tmp_path / "bed.yaml"
    file.write_text(bed())
    return engines.get(f"ssh:{file}")


def bed(**more: str) -> str:
    nodes = {node: {"host": f"h-{node}", "interfaces": {}} for node in NODES}
    for (left, right), (one, other) in CABLES.items():
        nodes[left]["interfaces"][right] = one
        nodes[right]["interfaces"][left] = other
    return json.dumps({"nodes": nodes, **more})


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        ("unreachable", "node 'mid' (h-mid): ssh: connect to host h-mid port 22: No route to host"),
        ("key", "node 'mid' (h-mid): h-mid: Permission denied (publickey)."),
        ("root", "node 'mid' (h-mid): not root (no 'become' in the inventory): user id 1000"),
        ("tc", "node 'mid' (h-mid): tc not installed; install: iproute2"),
    ],
)
def test_a_node_that_cannot_be_one_is_named_before_anything_is_done(fake, monkeypatch, tmp_path, fail, message):
    monkeypatch.setenv("FAIL", fail)
    monkeypatch.setenv("FAIL_HOST", "h-mid")
    machine = fake.connections["mid"]
    if fail in ("root", "tc") and os.geteuid() != 0:
        pytest.skip("not root")
    # A machine that has all but tc.
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("sh", "id", "ip", "sysctl", "sha256sum", "uname"):
        folder.joinpath(name).symlink_to(
            shutil.which(name, path="/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin") or name
        )
    folder.joinpath("ethtool").symlink_to("/bin/true")
    monkeypatch.setenv("FAIL_PATH", str(folder))
    with pytest.raises(BakeoffError, match=re.escape(message)):
        machine_facts(machine)


def machine_facts(machine: Connection) -> None:
    from bakeoff.engines.ssh import machine_info

    try:
        machine.open()
    except connection.LostError as error:
        raise BakeoffError(str(error)) from None
    machine_info.gather(machine)


def test_a_clock_is_compared_within_half_a_round_trip(fake, monkeypatch):
    told = fake.connections["cli"].offset()
    # It is this machine's own clock.
    assert abs(told.ns) <= told.uncertainty_ns
    monkeypatch.setenv("FAIL", "clock")
    monkeypatch.setenv("FAIL_HOST", "h-cli")
    with pytest.raises(connection.LostError, match="its clock cannot be read: 'date \\+%s%N' printed 'none'"):
        fake.connections["cli"].offset()


def test_words_arrive_as_they_were(fake):
    odd = ["printf", "%s|", "a b", "$HOME", "it's", "`id`", "*", ""]
    assert fake.connections["cli"].ask(*odd, root=False) == "a b|$HOME|it's|`id`|*||"


def test_a_file_that_does_not_arrive_whole_is_told(fake, tmp_path):
    machine = fake.connections["cli"]
    machine.put(b"abc\x00", str(tmp_path / "file"), "640")
    assert (tmp_path / "file").read_bytes() == b"abc\x00"
    with pytest.raises(RuntimeError, match="node 'cli' \\(h-cli\\): /none/file: incomplete transfer"):
        machine.put(b"abc", "/none/file")


def test_what_runs_in_the_background_ends_with_its_connection(fake, tmp_path):
    with (tmp_path / "out").open("wb") as out:
        process = fake.connections["cli"].start(["sh", "-c", "echo $$; exec sleep 1000"], out.fileno())
        while not (tmp_path / "out").read_text().endswith("\n"):
            assert process.poll() is None
            time.sleep(0.01)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=60)
    started = int((tmp_path / "out").read_text().splitlines()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)


# Real sshd, in namespaces


def ip(words: str) -> str:
    return subprocess.run(["ip", *words.split()], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def testbed(alone, built_agent, monkeypatch, tmp_path):
    """Three machines: namespaces with an sshd each, cables between them; the inventory's path."""
    if lacking := netns.missing_capabilities():
        pytest.skip(f"no {', '.join(lacking)}: no namespaces for machines")
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    for program, package in ((sshd, "openssh-server"), (shutil.which("ssh"), "openssh-client")):
        if program is None:
            pytest.skip(f"{package} is not installed")
    if shutil.which("ethtool", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        pytest.skip("ethtool is not installed")
    if [node for node in NODES if Path(f"/var/lib/bakeoff-{node}").exists()]:
        pytest.skip("another run has machines of these names: /var/lib/bakeoff-*")
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True, capture_output=True
        )
    (tmp_path / "sshd_config").write_text(
        f"HostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/key.pub\nUsePAM no\nStrictModes no\n"
        "PermitRootLogin prohibit-password\nPidFile none\n"
    )
    public = (tmp_path / "host.pub").read_text()
    space = {node: f"bed{os.getpid()}-{node}" for node in NODES}
    lines = []
    for node in NODES:
        # One sshd per connection, in the machine's namespace: no address is needed to get there.
        proxy = f"ip netns exec {space[node]} {sshd} -i -f {tmp_path}/sshd_config"
        lines += [f"Host h-{node}", f"  ProxyCommand {proxy}", f"  IdentityFile {tmp_path}/key"]
        lines += ["  IdentitiesOnly yes", f"  UserKnownHostsFile {tmp_path}/known", "  StrictHostKeyChecking yes"]
        lines += ["  User root"]
        with (tmp_path / "known").open("a") as known:
            known.write(f"h-{node} {public}")
    (tmp_path / "ssh_config").write_text("\n".join(lines) + "\n")
    file = tmp_path / "bed.yaml"
    file.write_text(bed(config="ssh_config"))
    inventory.permit(file)
    # Connections are closed when Python ends, which a worker of pytest-xdist does without calling anything.
    closing: list[Callable[[], None]] = []
    monkeypatch.setattr("bakeoff.engines.ssh.testbed.atexit", SimpleNamespace(register=closing.append))
    try:
        for node in NODES:
            ip(f"netns add {space[node]}")
        for (left, right), (one, other) in CABLES.items():
            ip(f"-n {space[left]} link add {one} type veth peer name {other} netns {space[right]}")
        yield file, space
        assert [node for node in NODES if Path(f"/var/lib/bakeoff-{node}").exists()] == []
    finally:
        for close in closing:
            close()
        for node in NODES:
            subprocess.run(["ip", "netns", "del", space[node]], check=False, capture_output=True)
    assert all(gone(pid) for pid in connected(tmp_path / "ssh_config"))


def connected(config: Path) -> list[int]:
    """The processes of OpenSSH that a test with this configuration began."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if str(config).encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def state(space: dict[str, str]) -> dict[str, str]:
    """All that a run changes on the machines, as text."""
    commands = ["ip addr show", "ip route show", "ip neigh show", "tc qdisc show", "sysctl net.ipv4.tcp_rmem",
                "sysctl net.ipv4.tcp_wmem", "sysctl net.ipv4.tcp_ecn", "sysctl net.ipv6.conf"]  # fmt: skip
    commands += [f"ethtool -k {dev}" for pair in CABLES.values() for dev in pair]
    said = {}
    for node, name in space.items():
        for command in commands:
            done = subprocess.run(
                ["ip", "netns", "exec", name, *command.split()], capture_output=True, text=True, check=False
            )
            # A device that is down has no qdisc or the kernel's own, which it gives when the device comes up.
            text = re.sub(r"^qdisc noqueue 0: .*\n", "", done.stdout, flags=re.MULTILINE)
            said[f"{node}: {command}"] = re.sub(r"state \S+|(?<=qdisc )no(op|queue)", "", text)
    return said


def on(file: Path, run: Run, root: Path) -> campaign.worker.Done:
    [done] = campaign.run([run], root, Execution(engine=f"ssh:{file}")).runs
    return done


def test_a_run_on_machines(testbed, tmp_path):
    file, space = testbed
    before = state(space)
    captures = ["mid>srv"] if shutil.which("tcpdump") else []
    run = slowed(probes=[probe(every_s=0.1), probe(name="u", proto="udp", every_s=0.1)], captures=captures)
    done = on(file, run, tmp_path / "r")
    assert done.error is None
    assert state(space) == before
    result = results.read(done.path)
    check_slowed(result)
    assert result.series.filter((pl.col("kind") == "queue") & (pl.col("name") == "mid>srv")).height > 0
    told = json.loads((done.path / "run.json").read_text())
    assert told["engine"] == f"ssh:{file}"
    assert {f"kernel {node}" for node in NODES} <= told["versions"].keys()
    clocks = [note for note in told["effective"] if "its clock is" in note]
    assert len(clocks) == 3
    # One kernel, one clock: what is measured lies within what is said to be uncertain.
    for note in clocks:
        [ahead, within] = re.findall(r"([+-]?[0-9.]+) ms", note)
        assert abs(float(ahead)) <= float(within) + 0.001
    if captures:
        assert (done.path / "mid-to-srv.pcapng.gz").stat().st_size > 1000


def test_a_failed_command_fails_the_run_and_everything_is_put_back(testbed, tmp_path):
    file, space = testbed
    before = state(space)
    done = on(file, network(interfaces=egress({"qdisc": "pfifo limit many"})), tmp_path / "r")
    assert "setup: mid: tc qdisc add dev m1 root handle 1: pfifo limit many: exit code" in done.error
    assert "teardown" not in done.error
    assert state(space) == before


def at_work(node: str) -> Callable[[], bool]:
    """Whether the agent of a node writes."""
    return Path(f"/var/lib/bakeoff-{node}/agent.tsv").exists


def test_an_agent_that_dies_half_way_is_named_with_its_node(testbed, tmp_path):
    file, space = testbed
    before = state(space)

    def end_agent() -> None:
        for pid in ip(f"netns pids {space['srv']}").split():
            # Some have ended since.
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/exe").readlink().name == "bakeoff-agent":
                    os.kill(int(pid), signal.SIGKILL)

    with meanwhile(end_agent, once=at_work("srv")):
        done = on(file, short(duration_s=60.0), tmp_path / "r")
    assert "node 'srv' (h-srv): agent: " in done.error
    assert state(space) == before


def test_ctrl_c_puts_everything_back(testbed, tmp_path):
    file, space = testbed
    before = state(space)
    with meanwhile(ctrl_c, once=at_work("srv")), pytest.raises(KeyboardInterrupt):
        on(file, short(duration_s=60.0), tmp_path / "r")
    assert list((tmp_path / "r").rglob("run.json")) == []
    assert state(space) == before


def test_a_node_that_is_lost_is_named_and_the_others_are_put_back(testbed, tmp_path):
    file, space = testbed
    before = state(space)
    config = tmp_path / "ssh_config"

    def lose() -> None:
        # Nobody gets there any more, neither by the connection that there is nor by a new one.
        text = config.read_text()
        config.write_text(text.replace(f"ip netns exec {space['mid']}", "false"))
        pids = ip(f"netns pids {space['mid']}").split()
        for pid in pids:
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip().startswith("sshd"):
                    os.kill(int(pid), signal.SIGKILL)

    with meanwhile(lose, once=at_work("mid")):
        done = on(file, short(duration_s=60.0), tmp_path / "r")
    assert "node 'mid' (h-mid)" in done.error
    assert "teardown: node 'mid' (h-mid): " in done.error
    assert "/var/lib/bakeoff-mid/restore.sh puts it back" in done.error
    after = state(space)
    assert {key: text for key, text in after.items() if not key.startswith("mid")} == {
        key: text for key, text in before.items() if not key.startswith("mid")
    }
    # A person does what the error says.
    config.write_text(config.read_text().replace("ProxyCommand false", f"ProxyCommand ip netns exec {space['mid']}"))
    with pytest.raises(BakeoffError, match="another run has the machine, or one was killed"):
        engines.get(f"ssh:{file}").check(short())
    subprocess.run(["ip", "netns", "exec", space["mid"], "sh", "/var/lib/bakeoff-mid/restore.sh"], check=True)
    assert state(space) == before


def test_a_teardown_that_fails_on_one_node_is_told(testbed, tmp_path):
    file, space = testbed
    with meanwhile(lambda: ip(f"-n {space['mid']} link del bakeoff-br"), once=at_work("mid")):
        done = on(file, short(), tmp_path / "r")
    assert "teardown: mid: ip link del dev bakeoff-br: exit code 1" in done.error
    assert done.status == "failed"
    subprocess.run(["sh", "-c", "rm -r /var/lib/bakeoff-mid"], check=False)


def test_devices_that_are_used_otherwise_are_refused(testbed):
    file, space = testbed
    engine = engines.get(f"ssh:{file}")
    ip(f"-n {space['cli']} addr add 192.0.2.1/24 dev c0")
    with pytest.raises(BakeoffError, match=r"interface 'c0' to 'mid': in use, with 192.0.2.1"):
        engine.check(short())
    ip(f"-n {space['cli']} addr flush dev c0")
    ip("netns exec {} tc qdisc add dev c0 root handle 7: pfifo".format(space["cli"]))
    with pytest.raises(BakeoffError, match="interface 'c0' to 'mid': non-default qdisc: pfifo 7:"):
        engine.check(short())
    ip("netns exec {} tc qdisc del dev c0 root".format(space["cli"]))
    ip(f"-n {space['cli']} link set dev c0 name c9")
    with pytest.raises(BakeoffError, match="interface 'c0' to 'mid': does not exist; expected one of: lo, c9"):
        engine.check(short())


def test_a_wrong_key_is_told_in_opensshs_words(testbed, tmp_path):
    file, _ = testbed
    (tmp_path / "key.pub").write_text("")
    with pytest.raises(BakeoffError, match=r"node 'cli' \(h-cli\): .*Permission denied"):
        engines.get(f"ssh:{file}").check(short())


def test_what_the_kernel_there_has_not_is_refused(testbed):
    file, _ = testbed
    engine = engines.get(f"ssh:{file}")
    with pytest.raises(BakeoffError, match=r"cc 'nix' is missing in its kernel; expected module tcp_nix"):
        engine.check(network(flows=[flow(cc="nix")]))
