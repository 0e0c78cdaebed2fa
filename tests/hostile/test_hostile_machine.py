"""A machine of a testbed that means harm: what it says ends in time and in size, and is an error that names it."""

import json
import re
import shlex

import pytest

from bakeoff import engines
from bakeoff.engines.ssh import connection, inventory, machine_info, replies, undo
from bakeoff.engines.ssh.connection import LostError
from bakeoff.errors import BakeoffError
from lab_runs import short
from ssh_fakes import behind_fake

HERE = re.escape("node 'mid' (h-mid): ")
FLOOD = "exec yes"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Make one that does this in place of every command, or only what it is told."""
    made = []

    def make(does: str | None = None):
        made.append(behind_fake(tmp_path, monkeypatch, does))
        return made[-1]

    yield make
    for each in made:
        each.close()


def says(text: str) -> str:
    """What a machine does that answers this to every command of its shell."""
    return f"""while read -r asked; do
        end=$(printf '%s' "$asked" | sed 's/.* \\([0-9a-f]*\\) \\$?$/\\1/')
        printf '%s\\n%s 0\\n' {shlex.quote(text)} "$end"
    done"""


def test_the_deadline_holds_while_it_talks(machine):
    # A little at a time, for ever: less than any bound of size.
    with pytest.raises(LostError, match=HERE + "timed out: true"):
        machine("while echo y; do sleep 0.01; done").run(["true"], timeout_s=0.3)


def test_a_machine_that_does_not_answer_is_waited_for_once(tmp_path, monkeypatch, cli):
    """Whatever the number of runs: each of these six asks for all three nodes."""
    behind_fake(tmp_path, monkeypatch, f"echo >> {tmp_path}/asked; exit 255").close()
    node = {"host": "h", "interfaces": {}}
    beds = {"cli": ["mid"], "mid": ["cli", "srv"], "srv": ["mid"]}
    nodes = {n: node | {"host": f"h-{n}", "interfaces": {p: f"to-{p}" for p in to}} for n, to in beds.items()}
    (tmp_path / "bed.yaml").write_text(json.dumps({"nodes": nodes}))
    words = ["--engine", "ssh", "--inventory", str(tmp_path / "bed.yaml"), "--out", str(tmp_path / "out")]
    code, _, err = cli("run", "l4s-tests/s7-oneflow/*", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert "node 'cli' (h-cli): ssh ended with exit code 255" in err
    assert (tmp_path / "asked").read_text() == "\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("flood", [FLOOD, "yes >&2"])
def test_an_answer_has_a_size(machine, monkeypatch, flood):
    monkeypatch.setattr(connection, "_SAID", 1 << 20)
    for root in (True, False):
        with pytest.raises(LostError, match=HERE + "more than 1,048,576 bytes of output from: true"):
            machine(flood).ask("true", root=root)


@pytest.mark.parametrize("code", [0, 1])
def test_an_answer_of_many_lines_is_no_message_of_many_lines(machine, code):
    """Ten megabytes may come as an answer, here 2,500,000 lines: 20 of them are shown."""
    said = f"""while read -r asked; do
        end=$(printf '%s' "$asked" | sed 's/.* \\([0-9a-f]*\\) \\$?$/\\1/')
        yes 'x y' | head -c 10000000
        printf '\\n%s {code}\\n' "$end"
    done"""
    with pytest.raises(BakeoffError, match=HERE + r".*not root \(no 'become' in the inventory\): ") as told:
        machine_info.gather(machine(said))
    assert "(2,499,980 lines omitted)" in str(told.value)
    assert str(told.value).count("\n") == 20


def test_an_answer_of_one_long_line_of_words_is_shown_in_part(machine):
    with pytest.raises(BakeoffError, match=HERE + r".*not root (?s:.*)\(197,999 characters omitted\)") as told:
        machine_info.gather(machine(says("x y " * 50_000)))
    assert len(str(told.value)) < 2300


def test_connecting_ends_whatever_it_says(machine, monkeypatch):
    monkeypatch.setattr(connection, "_OPEN_S", 0.3)
    with pytest.raises(LostError, match=HERE + "timeout after 0 s while connecting"):
        machine("exec sleep 1000").open()
    monkeypatch.setattr(connection, "_OPEN_S", 60.0)
    with pytest.raises(LostError, match=HERE + "more than 1,048,576 bytes came while connecting"):
        machine("yes | head -c 3000000; exec sleep 1000").open()


def test_a_program_in_the_background_may_not_fill_the_disk(machine, tmp_path):
    with (tmp_path / "out").open("w+b") as out:
        process = machine(FLOOD).start(["true"], out.fileno())
        assert connection.ended(process, out.fileno(), 60.0) == "more than 1,048,576 bytes came"
        assert process.poll() is not None
        assert len(connection.tail(out)) == 1 << 16
        process.stdin.close()


def test_a_word_of_a_command_is_one_word_there(machine, tmp_path):
    """The shell that takes all commands, and a session of a command's own."""
    words = ["$(id)", "; touch x", "a'b", "*", "", "~", "`id`", "a\\b", "two\nlines", "-n"]
    done = machine().run(["printf", "%s\\0", *words])
    assert done.out.split(b"\0")[:-1] == [word.encode() for word in words]
    said = machine().ask("printf", "%s\\0", *words, root=False)
    assert said.split("\0")[:-1] == words


# Files


def test_a_file_of_the_machine_is_bounded_and_replaces_nothing(machine, tmp_path):
    (tmp_path / "there").write_bytes(b"x" * 1000)
    machine().fetch(str(tmp_path / "there"), tmp_path / "here", most=1000)
    assert (tmp_path / "here").read_bytes() == b"x" * 1000
    with pytest.raises(RuntimeError, match=HERE + ".*there has 1,000 bytes; expected at most 999"):
        machine().fetch(str(tmp_path / "there"), tmp_path / "more", most=999)
    with pytest.raises(FileExistsError):
        machine().fetch(str(tmp_path / "there"), tmp_path / "here")


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("-1", "unknown size: 'stat' printed '-1"),
        ("9" * 5000, "unknown size: 'stat' printed '999"),
        ("9" * 19, "has 9,999,999,999,999,999,999 bytes"),
        ("100", "more than 100 bytes of output from: cat /f"),
    ],
)
def test_a_size_that_is_a_lie_is_told(machine, tmp_path, size, message):
    does = f'case "$1" in *stat*) echo {size};; *) exec yes;; esac'
    with pytest.raises(RuntimeError, match=HERE + ".*" + re.escape(message)):
        machine(does).fetch("/f", tmp_path / "f")
    # 100 bytes were said: no more than these are here.
    assert not (tmp_path / "f").exists() or (tmp_path / "f").stat().st_size <= 100


# Numbers


@pytest.mark.parametrize(
    ("clock", "message"),
    [
        ("echo none", "its clock cannot be read: 'date +%s%N' printed 'none'"),
        ("echo -5", "its clock cannot be read"),
        ("printf '\\377\\n'", "its clock cannot be read"),
        ("printf '%05000d\\n' 1", "its clock cannot be read"),
        ("echo 1", "its clock is -"),
        ("echo 99999999999999999999", "days off the controller's; expected less than one"),
        ("exit", "its clock cannot be read: 'date +%s%N' printed ''"),
    ],
)
def test_a_clock_is_one(machine, clock, message):
    with pytest.raises((LostError, BakeoffError), match=HERE + ".*" + re.escape(message)):
        machine(f"while read -r x; do {clock}; done").offset()


@pytest.mark.parametrize(
    "said",
    [
        "[" * 100_000,
        '[{"ifname": "e0", "flags": [], "mtu": -1}]',
        '[{"ifname": "e0", "flags": [], "mtu": 1e400}]',
        '[{"ifname": "e0", "flags": [], "mtu": NaN}]',
        '[{"ifname": "e0", "flags": [], "mtu": ' + "9" * 5000 + "}]",
        '[{"ifname": "-batch", "flags": [], "mtu": 1}]',
        '[{"ifname": "../../x/y/z/etc/passwd", "flags": [], "mtu": 1}]',
        '[{"ifname": "\\u001b[2J", "flags": [], "mtu": 1}]',
        '[{"ifname": "e0", "flags": [], "mtu": 1, "master": "-all"}]',
        "[{}]",
        "[]",
        "7",
        "no JSON",
    ],
)
def test_a_device_is_one(machine, said):
    bad = machine(says(said))
    with pytest.raises(BakeoffError, match=HERE) as told:
        replies.link(bad, "ip", "link")
    assert len(str(told.value)) < 1000
    assert str(told.value).isprintable()


def test_a_device_as_ip_tells_it_is_taken_and_put_back(machine):
    real = [
        {"ifindex": 2, "ifname": "e0", "flags": ["UP"], "mtu": 9000, "operstate": "UP", "address": "02:00:00:00:00:01"}
    ]
    told = replies.link(machine(says(json.dumps(real))), "ip", "link")
    # A queue of no length is not told.
    before = undo.Before({}, {"e0": told}, {})
    assert undo._link(("ip", "link", "set", "dev", "e0", "txqueuelen", "9"), before)[-1] == "0"
    assert undo._link(("ip", "link", "set", "dev", "e0", "mtu", "9"), before)[-1] == "9000"


@pytest.mark.parametrize("text", ["7.3.4\\nmore", "", "\x1b]0;x\x07", "x" * 201])
def test_a_version_is_one_line(machine, text):
    with pytest.raises(BakeoffError, match=HERE + "uname -r: said .*; expected one line of plain text"):
        replies.line(machine(says(text.replace("\\n", "\n"))), "uname", "-r")


# The agent's file

HEAD = "time\tkind\tname\tmetric\tvalue\n"
SUMMARY = '#{"complete": true, "error": null, "sources": {"a": {"connected_s": -0.001, "sent_packets": 5}}}\n'


def test_what_an_agent_measures_is_taken(tmp_path):
    file = tmp_path / "agent.tsv"
    file.write_text(f"{HEAD}0.5\tflow\ta\tcwnd\t10\n0.5\tflow\tu\ttransit\t-3.5\n{SUMMARY}")
    replies.need_sane("node 'mid' (h-mid)", file, short())


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}0.5\tflow\ta\tcwnd\tNaN\n{SUMMARY}",
        f"{HEAD}0.5\tflow\ta\tcwnd\tinf\n{SUMMARY}",
        f"{HEAD}0.5\tflow\ta\tcwnd\t-1\n{SUMMARY}",
        f"{HEAD}0.5\tflow\ta\tcwnd\t1e300\n{SUMMARY}",
        f"{HEAD}1e18\tflow\ta\tcwnd\t1\n{SUMMARY}",
        f"{HEAD}0.5\tflow\ta\tcwnd\n{SUMMARY}",
        f"{HEAD}0.5\tflow\ta\tcwnd\tmany\n{SUMMARY}",
        HEAD + SUMMARY.replace("5}", "-5}"),
        HEAD + SUMMARY.replace("5}", "NaN}"),
        HEAD + SUMMARY.replace("5}", "1e999}"),
        HEAD + SUMMARY.replace("5}", "9" * 400 + "}"),
        HEAD + SUMMARY.replace("5}", "9" * 5000 + "}"),
        HEAD + "#" + "[" * 100_000,
    ],
)
def test_what_nothing_measures_names_the_machine(tmp_path, text):
    file = tmp_path / "agent.tsv"
    file.write_text(text)
    with pytest.raises(RuntimeError, match="^" + HERE) as told:
        replies.need_sane("node 'mid' (h-mid)", file, short())
    assert len(str(told.value)) < 500


# An inventory that somebody else wrote


def bed_with(folder, config: str):
    (folder / "ssh_config").write_text(config)
    file = folder / "bed.yaml"
    file.write_text(
        "config: ssh_config\nnodes:\n  cli: {host: h-cli, interfaces: {mid: a0}}\n"
        "  mid: {host: h-mid, interfaces: {cli: a0, srv: a1}}\n  srv: {host: h-srv, interfaces: {mid: a0}}\n"
    )
    return file


@pytest.mark.parametrize(
    "line",
    [
        "ProxyCommand sh -c 'touch /tmp/x'",
        "  proxycommand=nc %h %p",
        '"ProxyCommand" nc',
        "\tLocalCommand id",
        "Match host a exec id",
        'Match !exec "id"',
        "KnownHostsCommand /x",
        "PKCS11Provider ./x.so",
        "SecurityKeyProvider ./x.so",
        "Include /elsewhere",
        # OpenSSH passes over what is empty before a keyword, and over quotes within a word.
        "=ProxyCommand touch x",
        '""ProxyCommand touch x',
        '= "" ProxyCommand touch x',
        'Match ex"ec" id',
        # It gives the user of a jump to a shell.
        "ProxyJump `id`@gate",
        "ProxyJump gate,$(id)@gate",
    ],
)
def test_what_would_be_started_here_is_shown_and_needs_a_yes(tmp_path, monkeypatch, capsys, line):
    machine = behind_fake(tmp_path, monkeypatch, f"touch {tmp_path}/started")
    file = bed_with(tmp_path, f"Host *\n{line}\n")
    with pytest.raises(BakeoffError, match=re.escape(f"{tmp_path}/ssh_config:2: {line.strip()}\nexpected")) as told:
        engines.get(f"ssh:{file}").facts("mid")
    assert "--allow-code" in str(told.value)
    assert not (tmp_path / "started").exists()
    # With a yes it is shown first, and done.
    engines.permit_code(f"ssh:{file}")
    with pytest.raises(BakeoffError):
        engines.get(f"ssh:{file}").facts("mid")
    assert f"OpenSSH starts on this machine: {tmp_path}/ssh_config:2: {line.strip()}\n" in capsys.readouterr().err
    assert (tmp_path / "started").exists()
    machine.close()


def test_a_configuration_that_starts_nothing_needs_none(tmp_path):
    config = "# ProxyCommand x\nHost exec\n  ProxyCommand none\n  User lab\n  ProxyJump a@gate:22,[::1%e0]\n"
    file = bed_with(tmp_path, config)
    assert inventory.need_permission(file, inventory.read(file)) == []


@pytest.mark.parametrize("key", ["host", "user"])
@pytest.mark.parametrize("value", ["`id`", "$(id)", "a;id", "a|id", "a&id", "a>x", "'a", '"a', "a\nb", "-oX=y", ""])
def test_a_destination_is_nothing_that_a_shell_acts_on(tmp_path, key, value):
    """The user's own configuration may say `ProxyCommand nc %h %p`, and OpenSSH gives that to a shell."""
    node = {"host": "h", "interfaces": {}} | {key: value}
    (tmp_path / "bed.yaml").write_text(json.dumps({"nodes": {"mid": node}}))
    with pytest.raises(BakeoffError, match=rf"(?s)nodes\.mid\.{key}: .* invalid ssh destination"):
        inventory.read(tmp_path / "bed.yaml")


@pytest.mark.parametrize("host", ["mid.lab", "192.0.2.7", "2001:db8::7", "fe80::1%e0", "ssh://lab@mid.lab:22", "büro"])
def test_a_destination_as_people_write_it_is_taken(tmp_path, host):
    node = {"host": host, "user": "DOMAIN\\some.body+x", "interfaces": {}}
    (tmp_path / "bed.yaml").write_text(json.dumps({"nodes": {"mid": node}}))
    assert inventory.read(tmp_path / "bed.yaml").nodes["mid"].host == host


def test_the_command_line_asks_before_it_connects(tmp_path, cli):
    file = bed_with(tmp_path, "ProxyCommand touch started\x1b[2J\n")
    words = ["run", "l4s-tests/s6-rfc3168/*cubic*pie-*", "--engine", "ssh", "--inventory", str(file), "--dry-run"]
    code, _, err = cli(*words)
    assert code == 2
    assert "ssh_config:1: ProxyCommand touch started" in err
    assert "\x1b" not in err
