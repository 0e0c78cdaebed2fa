"""How much memory a run's TCP can take, the guest's size that follows from it, and TCP's limit in the plan."""

import pytest

from bakeoff.engines import netns
from bakeoff.engines.kernel import guest_memory
from bakeoff.engines.lab import plan
from bakeoff.engines.lab.tcp_memory import held
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run, catalog
from lab_runs import HTB, action, egress, flow, network, nodes, probe

MIB = 1 << 20
# tcp_wmem and tcp_rmem of a machine with 1 GB: 4 MiB and 6 MiB.
DEFAULTS = 10 * MIB
WIDE = {"net.ipv4.tcp_wmem": "4096 16384 67108864", "net.ipv4.tcp_rmem": "4096 131072 67108864"}


def shaped(child: str, rate: str = "1gbit", **changes: object) -> Run:
    """One flow through htb with `child` below it."""
    tree = {"qdisc": "htb default 1", "classes": [{"id": "1", "class": f"rate {rate}", "child": {"qdisc": child}}]}
    return network(**{"interfaces": egress(tree), "nodes": nodes(cli=WIDE, srv=WIDE), **changes})


def test_the_buffers_bound_what_sockets_hold():
    # A queue of 10,240 packets of 1514 bytes, six times, with overhead: more than a flow's buffers.
    assert held(network(interfaces=egress(HTB))) == DEFAULTS
    flows = [flow(name=name) for name in "abc"]
    assert held(network(interfaces=egress(HTB), flows=flows)) == 3 * DEFAULTS
    assert held(shaped("pfifo limit 100000")) == 128 * MIB
    assert held(network(interfaces=egress(HTB), flows=[], probes=[probe()])) == 0


@pytest.mark.parametrize(
    ("child", "queue"),
    [
        ("pfifo limit 100", 100 * 1514),
        ("fq_codel limit 100 memory_limit 32Mb", 100 * 1514),
        ("bfifo limit 100k", 100 * 1024),
        ("cake memlimit 2mb", 2 * MIB),
        ("pie", 10_240 * 1514),
        ("netem delay 10ms limit 1000000", 125_000_000 // 100),
    ],
)
def test_the_network_bounds_it_where_it_keeps_less(child, queue):
    many = [flow(name=f"f{number}") for number in range(100)]
    # Six copies with 1.6 of overhead, and 1 MiB for each flow.
    assert held(shaped(child, flows=many)) == round(queue * 1.6 * 6) + 100 * MIB


def test_a_wire_holds_what_is_on_its_way_in_both_directions():
    links = [{"ends": ["cli", "mid"], "delay_s": 0.05}, {"ends": ["mid", "srv"]}]
    run = shaped("pfifo limit 100", rate="100mbit", links=links)
    # 100 Mbit/s for 2 × 50 ms are 1.25 MB.
    assert held(run) == round((100 * 1514 + 1_250_000) * 9.6) + MIB
    faster = {"changes": [action(kind="class-change", side="egress", id="1", **{"class": "rate 800mbit"})]}
    # A rate that comes later counts: eight times as much is on the wire; the buffers hold less than that.
    assert held(shaped("pfifo limit 100", rate="100mbit", links=links, **faster)) == round(10_151_400 * 9.6) + MIB


def test_short_flows_hold_what_they_carry():
    source = {"kind": "short", "objects": [(0.0, 10_000), (1.0, 50_000_000)]}
    run = network(flows=[flow(source=source)])
    # Twice an object with its overhead, at most the buffers, and 1 MiB for each connection.
    assert held(run) == 32_000 + DEFAULTS + 2 * MIB


def test_a_guest_is_sized_by_the_run_and_bounded_by_the_host():
    small = guest_memory.guest(network(interfaces=egress(HTB)), host=1 << 34)
    assert (small.option, small.note) == ("512M", None)
    # 512 MiB without the kernel's own 128, one half for TCP, in pages of 4096 bytes.
    assert small.tcp_pages == 192 * MIB // 4096
    # Eight flows of 128 MiB are 1 GiB; twice that and 128 MiB, in steps of 256 MiB.
    eight = shaped("pfifo limit 100000", flows=[flow(name=f"f{number}") for number in range(8)])
    large = guest_memory.guest(eight, host=1 << 34)
    assert (large.held, large.option, large.note) == (1024 * MIB, "2304M", None)
    # The limit lies a quarter above what the buffers can grow to.
    assert large.tcp_pages * 4096 == 1280 * MIB
    # Three quarters of 2 GiB are 1536 MiB: 704 MiB for TCP.
    less = guest_memory.guest(eight, host=2 << 30)
    assert (less.option, less.tcp_pages) == ("1536M", large.tcp_pages)
    assert less.note == (
        "guest memory: TCP may hold up to 1.0 GiB in this run, and this machine can give it 0.7 GiB; "
        "if that is not enough the run fails"
    )


def test_a_guest_of_the_catalog_is_the_least_there_is(every_run):
    """So that a run's guest is the same on every machine."""
    larger = {run.key for run in every_run if guest_memory.guest(run, host=1 << 34).option != "512M"}
    # Where 32 bulk flows or 240 short ones may have buffers at once, and a queue that holds as much: not a short FIFO.
    several = ["linux/many/32-*", "linux/short", "ccafct", "future/many-flows/64-*", "advice/household"]
    several += ["slow-start/paths/*-500Mbit-*-4bdp", "slow-start/paths/*-500Mbit-300ms-1bdp"]
    several += ["slow-start/paths/*-500Mbit-160ms-1bdp", "slow-start/paths/*-100Mbit-300ms-4bdp"]
    many = catalog.select([*several, "l4s-pam2025/many/10-vs-10-*", "today/short-flows"])
    small = ("fifo", "500Mbit-10ms-")
    assert larger == {run.key for run in many if not any(part in run.run for part in small)}


# In the plan


def limits(**words: object) -> list[str]:
    return [command.line() for command in plan(**words).setup if "tcp_mem" in command.line()]


def test_a_kernel_of_ones_own_gets_its_limit_once_in_the_first_namespace():
    [first, *_] = plan(network(), tcp_pages=1000).setup
    # One number three times: none of them is to be reached.
    assert first.line() == "cli: sysctl -w 'net.ipv4.tcp_mem=1000 1000 1000'"
    assert first.netns is None
    assert limits(run=network()) == []


def test_a_scenarios_limit_counts_and_is_one_for_all_nodes():
    asked = {"net.ipv4.tcp_mem": "10 20 30"}
    both = nodes(cli=asked, srv=asked)
    assert limits(run=network(nodes=both), tcp_pages=9) == ["cli: sysctl -w 'net.ipv4.tcp_mem=10 20 30'"]
    unlike = nodes(cli=asked, srv={"net.ipv4.tcp_mem": "10 20 40"})
    with pytest.raises(RefusedError, match=r"nodes\[2\]\.sysctls: 'net\.ipv4\.tcp_mem' applies to all nodes, but"):
        plan(network(nodes=unlike), tcp_pages=9)
    with pytest.raises(RefusedError, match=r"applies to the whole machine"):
        plan(network(nodes=both))


def test_a_note_where_this_machines_limit_is_lower_than_what_the_run_holds():
    # 10 MiB are 2560 pages.
    assert netns._tcp_memory(network(interfaces=egress(HTB)), 2560) is None
    note = str(netns._tcp_memory(network(interfaces=egress(HTB)), 2559))
    assert note.startswith("net.ipv4.tcp_mem: from 2559 pages (9 MiB) on this machine lets no window grow")
    assert note.endswith("TCP may hold up to 10 MiB in this run")
