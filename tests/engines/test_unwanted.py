"""Counters that fail a run: what is read of a kernel's files, what of it counts, and what an experiment may have."""

import re
from pathlib import Path

import pytest

from bakeoff.engines.kernel import console
from bakeoff.engines.lab import Device, plan, unwanted
from bakeoff.scenario import Run
from lab_runs import action, egress, lines, network


def log(**texts: str) -> str:
    """A log in which the commands of `COMMANDS` printed what is given, on node srv."""
    return "".join(f"+ srv: {' '.join(COMMANDS[name])}\n{text}" for name, text in texts.items())


COMMANDS = {
    "netstat": unwanted.NETSTAT,
    "links": unwanted.LINKS,
    "neighbours": unwanted.NEIGHBOURS,
    "softnet": unwanted.SOFTNET,
}


def netstat(**counts: int) -> str:
    """Both files: of each part a line of names and one of numbers."""
    parts = {
        "TcpExt": ("TCPTimeouts", "TCPRcvQDrop", "TCPMemoryPressures", "PruneCalled"),
        "Ip": ("InDiscards", "OutNoRoutes"),
    }
    lines = "Tcp: RtoAlgorithm MaxConn\nTcp: 1 -1\n"  # a MaxConn of -1 is Linux's word for no fixed number
    for part, names in parts.items():
        lines += f"{part}: {' '.join(names)}\n{part}: {' '.join(str(counts.get(name, 0)) for name in names)}\n"
    return lines


def links(rx_dropped: int = 0, tx_dropped: int = 0, device: str = "srv.mid@if7") -> str:
    return (
        f"2: {device}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT\n"
        "    link/ether 02:00:0a:09:00:02 brd ff:ff:ff:ff:ff:ff link-netns mid\n"
        "    RX:  bytes packets errors dropped  missed   mcast\n"
        f"    27144836   17930      0       {rx_dropped}       0       0\n"
        "    TX:  bytes packets errors dropped carrier collsns\n"
        f"      592414    8975      0       {tx_dropped}       0       0\n"
    )


def checked(run: Run, teardown_log: str, setup_log: str = "") -> list[str]:
    return unwanted.check(run, plan(run, tcp_pages=9), setup_log, teardown_log)


def test_a_run_in_which_nothing_unwanted_happened():
    assert checked(network(), log(netstat=netstat(TCPTimeouts=3), links=links())) == []


def test_a_receiver_that_packed_what_it_held_is_noted_and_one_that_threw_some_away_fails_the_run():
    told = "srv: TcpExt PruneCalled 2: a receiver's full buffer was collapsed"
    assert checked(network(), log(netstat=netstat(PruneCalled=2))) == [told]
    with pytest.raises(RuntimeError, match=r"counters: srv: TcpExt TCPRcvQDrop 1: [^;]*$"):
        checked(network(), log(netstat=netstat(PruneCalled=2, TCPRcvQDrop=1)))


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"netstat": netstat(TCPMemoryPressures=2)}, r"srv: TcpExt TCPMemoryPressures 2: TCP came to the limit of"),
        ({"netstat": netstat(InDiscards=1)}, r"srv: Ip InDiscards 1: IP dropped packets"),
        ({"links": links(rx_dropped=7)}, r"srv: srv\.mid: RX dropped 7: packets were dropped at ingress"),
        ({"links": links(tx_dropped=1)}, r"srv: srv\.mid: TX dropped 1: "),
    ],
)
def test_a_counter_that_moved_fails_the_run(told, message):
    with pytest.raises(RuntimeError, match=f"^unexpected kernel counters: {message}"):
        checked(network(), log(**told))


def test_all_that_moved_is_told_but_the_message_stays_short():
    text = log(netstat=netstat(TCPMemoryPressures=2, TCPRcvQDrop=5, InDiscards=1), links=links(1, 1))
    with pytest.raises(RuntimeError, match=r"RcvQDrop 5: .*MemoryPressures 2: .*; and 1 more in teardown\.log$"):
        checked(network(), text)


def test_a_tunnel_and_a_link_that_goes_down_may_drop():
    checked(network(), log(links=links(rx_dropped=7, device="tun0")))
    down = network(changes=[action(kind="link", up=False), action(kind="link", up=True) | {"at_s": 1.5}])
    checked(down, log(netstat=netstat(OutNoRoutes=4), links=links(tx_dropped=4)))
    with pytest.raises(RuntimeError, match="TCPRcvQDrop"):
        checked(down, log(netstat=netstat(TCPRcvQDrop=1)))


def test_the_kernel_as_a_whole_is_asked_once_where_it_is_the_labs_own():
    run = network(interfaces=egress({"qdisc": "fq_codel"}))
    asked = [command.line() for command in plan(run, tcp_pages=9).statistics]
    assert asked[-3:] == [
        "cli: cat /proc/net/softnet_stat",
        "cli: cat /proc/net/stat/arp_cache",
        "cli: cat /proc/vmstat",
    ]
    assert "cli: cat /proc/net/softnet_stat" not in [command.line() for command in plan(run).statistics]
    softnet = "+ cli: cat /proc/net/softnet_stat\n0002f0a1 0000001f 00000003 00000000\n00000000 00000001 00000000 0\n"
    # 0x1f and 1 of the second processor are 32.
    with pytest.raises(RuntimeError, match=r"cli: softnet dropped 32: the kernel's input queue was full"):
        checked(run, softnet)
    neighbours = "+ cli: cat /proc/net/stat/arp_cache\nentries allocs unresolved_discards table_fulls\n2 2 0000000a 0\n"
    with pytest.raises(RuntimeError, match=r"cli: unresolved_discards 10: "):
        checked(run, neighbours)
    with pytest.raises(RuntimeError, match=r"cli: pgscan_kswapd 32: memory ran low"):
        checked(run, "+ cli: cat /proc/vmstat\nnr_free_pages 91234\npgscan_kswapd 32\noom_kill 0\n")


def test_machines_counted_before_the_run_too():
    run = network()
    middle = {"cli": Device("m0"), "srv": Device("m1")}
    devices = {"cli": {"mid": Device("c0")}, "mid": middle, "srv": {"mid": Device("s0")}}
    made = plan(run, machines=devices)
    [earlier] = lines(made.setup, *unwanted.NETSTAT)[1:]
    assert earlier == "srv: cat /proc/net/netstat /proc/net/snmp"
    assert "srv: cat /proc/net/softnet_stat" in lines(made.statistics, "cat")
    before, same = log(netstat=netstat(InDiscards=3)), log(netstat=netstat(InDiscards=3), links=links(rx_dropped=9))
    # What a card drops may be other people's frames.
    unwanted.check(run, made, before, same)
    with pytest.raises(RuntimeError, match="srv: Ip InDiscards 2: "):
        unwanted.check(run, made, before, log(netstat=netstat(InDiscards=5)))


def test_the_page_lists_the_counters_of_the_code():
    page = (Path(__file__).parents[2] / "docs" / "lab.md").read_text()
    section = page.split("## What fails a run")[1].split("These may move")[0]
    rows = "".join(re.findall(r"(?m)^\| .+ \| .+ \|$", section))
    fails = {name for _, meanings in unwanted.READ.values() for name in meanings} - set(unwanted.NOTED)
    assert set(re.findall("`([^`]+)`", rows)) == fails
    assert all(f"`{name}`" in section for name in unwanted.NOTED)


# The console


def test_what_the_kernel_says_of_trouble():
    quiet = "[    0.000000] Linux version 7.3.4\nWARNING: a program's own words\n[    9.1] reboot: Power down\n"
    assert console.trouble(quiet) is None
    told = "[   12.345678] TCP: out of memory -- consider tuning tcp_mem\n[   13.0] agent: page allocation failure\n"
    assert console.trouble(quiet + told) == (
        "TCP came to the limit of its memory: '[   12.345678] TCP: out of memory -- consider tuning tcp_mem'"
    )


@pytest.mark.parametrize(
    ("said", "meaning"),
    [
        # Linux 7.3's own words: mm/slub.c, lib/ubsan.c, kernel/locking/lockdep.c, lib/ref_tracker.c, net/core/dev.c.
        ("BUG kmalloc-64 (Tainted: G           O): Right Redzone overwritten", "the kernel spoilt its own memory"),
        ("UBSAN: shift-out-of-bounds in net/sched/sch_api.c:9:2", "the kernel came upon a fault of its own"),
        ("BUG: KASAN: slab-use-after-free in cnq_codel_af_dequeue+0x1/0x2", "the kernel came upon a fault of its own"),
        ("INFO: trying to register non-static key.", "the kernel disabled its lock checks"),
        ("turning off the locking correctness validator.", "the kernel disabled its lock checks"),
        ("ref_tracker: net notrefcnt@0 has 1/1 users at", "the kernel lost count of who uses a device or a namespace"),
        (
            "unregister_netdevice: waiting for lo to become free. Usage count = 2",
            "the kernel lost count of who uses a device or a namespace",
        ),
        ("kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)", "the kernel lost memory"),
    ],
)
def test_what_a_kernel_with_checks_of_its_own_reports(said, meaning):
    line = f"[    9.100000] {said}"
    assert console.trouble(f"[    0.000000] kmemleak: Kernel memory leak detector initialized\n{line}\n") == (
        f"{meaning}: {line!r}"
    )


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"netstat": "Ip: InDiscards\nIp: many\n"}, "cat /proc/net/netstat /proc/net/snmp: .*'many' is not a count"),
        ({"netstat": "Ip: InDiscards\nIp: " + "9" * 5000}, ".*'9{40}' is not a count"),
        ({"netstat": "Ip: InDiscards\nIp: -1\n"}, ".*'-1' is not a count"),
        ({"netstat": "Ip: InDiscards OutNoRoutes\nIp: 1\n"}, ".*'Ip' has 2 names and 1 numbers"),
        ({"links": "2: mid: <UP>\n RX: errors\n \u0663\n"}, "ip -s link show: .*'\u0663' is not a count"),
    ],
)
def test_what_a_machine_prints_in_place_of_counters_is_told(told, message):
    with pytest.raises(RuntimeError, match=f"^srv: {message.replace(': .*', ': printed no counters: .*')}"):
        checked(network(), log(**told))


@pytest.mark.parametrize("printed", ["0 1\n0002f0a1\n", "0 " + "f" * 17, "0 +1", "0 1_0"])
def test_a_column_that_is_missing_or_no_number_is_told(printed):
    run = network(interfaces=egress({"qdisc": "fq_codel"}))
    with pytest.raises(RuntimeError, match=r"^cli: cat /proc/net/softnet_stat: printed no counters: "):
        checked(run, f"+ cli: cat /proc/net/softnet_stat\n{printed}\n")
