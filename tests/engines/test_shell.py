"""`bakeoff shell`: who is refused, what the guest is told, and shells and commands in a kernel."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bakeoff.engines.kernel import command_stream, host_programs, shell, virtual
from bakeoff.engines.lab.topology import topology
from kernel_boots import fake_linux, gone
from lab_runs import network

SCENARIO = """
scenario: own
duration: 5s
network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: "{qdisc}"}}
flows: [{name: a, cc: reno}]
vary: {qdisc: {fifo: pfifo, fq_codel: fq_codel}}
"""


@pytest.fixture
def own(tmp_path) -> str:
    path = tmp_path / "own.yaml"
    path.write_text(SCENARIO)
    return str(path)


# Without a kernel


def test_one_run_has_to_be_named(cli, own):
    code, _, said = cli("shell", own)
    assert code == 2
    assert said.endswith("matches 2 runs; expected one, for example with -k:\n  local/own/fifo\n  local/own/fq_codel\n")
    code, _, said = cli("shell", "no-such-run")
    assert (code, "no such run in the catalog" in said) == (2, True)


def test_what_cannot_be_is_refused_before_a_boot(cli, own, tmp_path, cache_folder):
    virtual.choose.cache_clear()  # an earlier test may have found a kernel
    said = {
        "no virtual-time kernel": (),
        "--out: ": ("--out", str(tmp_path)),
        "--reads: /no/such: no such file or folder": ("--reads", "/no/such"),
        "no kernel 'nix'": ("--kernel", "nix"),
    }
    for words, options in said.items():
        code, out, err = cli("shell", own, "-k", "fifo", "-c", "true", *options)
        assert (code, out) == (2, "")
        assert words in err
        assert err.count("\n") == 1


def test_what_only_a_boot_tells_is_refused_before_anything_is_made(cli, own, tmp_path, built_agent):
    # By its configuration it has all that the run needs; it ends with 3 as soon as it is asked.
    has = [f"CONFIG_{name}=y" for name in ("UML", "UML_TIME_TRAVEL_SUPPORT", "DEVTMPFS_MOUNT", "NET_SCH_FIFO",
                                           "NET_SCH_HTB", "NET_SCH_NETEM")]  # fmt: skip
    linux = fake_linux(tmp_path / "linux", "exit 3", options="\n".join(has))
    out = tmp_path / "kept"
    code, printed, said = cli("shell", own, "-k", "fifo", "--kernel", str(linux), "--out", str(out), "-c", "true")
    assert (code, printed, out.exists()) == (2, "", False)
    assert said.count("\n") == 1
    assert "local/own/fifo: kernel linux: " in said


def test_every_address_has_a_name():
    run = network()
    assert shell.hosts(run, topology(run)).splitlines() == [
        "127.0.0.1 localhost",
        "10.9.0.1 cli cli.mid",
        "10.9.0.2 srv srv.mid",
    ]


def test_a_shell_begins_where_the_first_flow_is_sent(own):
    run = network()
    assert shell.first_host(run) == run.flows[0].from_
    assert shell.first_host(run.model_copy(update={"flows": []})) == run.nodes[0].name


def test_frames_pass_in_both_directions(capfdbinary):
    joined = command_stream.CommandStream(terminal=False)
    reads, writes = joined.guest
    with joined.attached():
        # 'ab' as output, 'c' as an error, and 300, which is 1 * 256 + 44, as the exit code.
        os.write(writes, b"o\0\2abe\0\1cx\0\4\0\0\1\x2c")
        os.close(writes)
        joined.join()
    os.close(reads)
    assert capfdbinary.readouterr() == (b"ab", b"c")
    assert joined.exit_code == 300


# In a kernel


def bakeoff(*words: str) -> list[str]:
    return [sys.executable, "-m", "bakeoff", *words]


def test_a_command_is_a_programs_in_the_network(kernel, own):
    # 20 ms of delay in virtual time, in which programs take no time; 3 is the command's own exit code.
    words = "cat; ping -c 3 -i 0.1 srv; echo $NODE >&2; on mid tc qdisc show dev mid.srv; exit 3"
    done = subprocess.run(
        bakeoff("shell", own, "-k", "fq_codel", "--clock", "virtual", "-c", words),
        input="given\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "cli\n")
    assert done.stdout.startswith("given\nPING srv (10.9.0.2)")
    [least] = re.findall(r"rtt min/avg/max/mdev = ([0-9.]+)/", done.stdout)
    assert 20.0 <= float(least) < 20.1
    assert "qdisc fq_codel 2: parent 1:1" in done.stdout


def test_files_stay_in_a_folder_of_the_users(kernel, own, tmp_path):
    out = tmp_path / "kept"
    (tmp_path / "mine.txt").write_text("mine")
    words = f"cat {tmp_path}/mine.txt > copy; cat {own}"
    done = subprocess.run(
        bakeoff("shell", own, "-k", "fifo", "--clock", "virtual", "--out", str(out), "--reads",
                str(tmp_path / "mine.txt"), "-c", words),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    # The other file was not named, so that it cannot be read.
    assert (done.returncode, done.stdout) == (1, "")
    assert (out / "copy").read_text() == "mine"
    assert sorted(path.name for path in out.iterdir()) == ["console.log", "copy", "setup.log"]


def test_a_tunnel_has_a_name_and_its_packets_are_wrapped_outside(kernel, own):
    if host_programs.host_program("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    # The second ping goes while tcpdump listens for one packet each way.
    words = (
        "ping -c 1 srv.vpn; on mid timeout 5 tcpdump -n -c 2 -i mid.srv & sleep 1; ping -c 1 srv.vpn >/dev/null; wait;"
        "on srv ping -c 1 cli.vpn | grep 'bytes from'"
    )
    vpn = "network.tunnels=[{name: vpn, kind: ipsec}]"
    done = subprocess.run(
        bakeoff("shell", own, "-k", "fifo", "--set", vpn, "--clock", "virtual", "-c", words),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.startswith("PING srv.vpn (10.8.0.2)")
    [least] = re.findall(r"rtt min/avg/max/mdev = ([0-9.]+)/", done.stdout)
    assert 20.0 <= float(least) < 20.1
    assert re.findall(r"IP 10\.9\.0\.(\d) > 10\.9\.0\.(\d): ESP", done.stdout) == [("1", "2"), ("2", "1")]
    assert re.search(r"bytes from .*10\.8\.0\.1", done.stdout)


def set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def in_terminal(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command of ours with a terminal of 30 rows; the process and our side of the terminal."""
    ours, theirs = pty.openpty()
    set_size(theirs, 30, 100)
    process = subprocess.Popen(
        bakeoff(*words), stdin=theirs, stdout=theirs, stderr=theirs, process_group=0, env=os.environ | {"TERM": "dumb"}
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def until(terminal: int, wanted: str) -> str:
    """What is written there until that appears, in this order if there are several lines of it."""
    seen = ""
    while not re.search(wanted.replace("\n", ".*"), seen, re.DOTALL):
        seen += os.read(terminal, 4096).decode(errors="replace")
    return seen


def children(pid: int) -> list[int]:
    """Those of the process, and theirs."""
    try:
        found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # a guest's process may end at any time
        return []
    return found + [further for child in found for further in children(child)]


def test_a_shell_has_a_terminal(kernel, own):
    with in_terminal("shell", own, "-k", "fifo", "--node", "srv") as (process, terminal):
        before = termios.tcgetattr(terminal)
        until(terminal, "fifo srv# ")
        os.write(terminal, b"stty size\n")
        until(terminal, "30 100")
        set_size(terminal, 40, 120)
        os.kill(process.pid, signal.SIGWINCH)
        # It has arrived when stty says so.
        os.write(terminal, b"until stty size | grep 40.120; do :; done\n")
        until(terminal, "\r.40 120")
        # What it answers, no echo does.
        os.write(terminal, b"sed s/in/out/\nsaid in\n")
        until(terminal, "said out")
        # Ctrl-C is that of the program inside, here of sed.
        os.write(terminal, b"\x03")
        until(terminal, "srv# ")
        os.write(terminal, b"echo $?; getent hosts cli; on cli sh -c 'echo at $NODE'\n")
        assert "130" in until(terminal, "at cli")
        os.write(terminal, b"echo d''one; (exit 7)\n")
        until(terminal, "done\nsrv# ")
        os.write(terminal, b"\x04")
        assert process.wait() == 7
        assert termios.tcgetattr(terminal) == before


def test_a_killed_shell_leaves_no_kernel(kernel, own):
    with in_terminal("shell", own, "-k", "fifo") as (process, terminal):
        until(terminal, "fifo cli# ")
        inside = children(process.pid)
        assert inside
        process.kill()
        assert all(map(gone, inside))


def test_ctrl_c_is_the_commands_and_a_second_one_ends_everything(kernel, own):
    deaf = "trap 'echo deaf' INT; echo begun; while :; do sleep 1; done"
    for words, answer in (("echo begun; sleep 60", b""), (deaf, b"deaf\n")):
        process = subprocess.Popen(bakeoff("shell", own, "-k", "fifo", "-c", words), stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n"
            inside = children(process.pid)
            assert inside
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == answer
            if answer:
                process.send_signal(signal.SIGINT)
            # 128 + 2, be it the command's, which SIGINT killed, or ours.
            assert process.wait() == 130
        finally:
            process.kill()
            process.communicate()
        assert all(map(gone, inside))
