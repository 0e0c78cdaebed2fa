"""The kernel modules of this repository: which are built, what the plan makes of versions, and the modules in a kernel.

That they compute what the simulator computes is tested in crates/sim/src/cc/prague/module.rs and sce/module.rs there.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import bakeoff
from bakeoff.engines.kernel import build
from bakeoff.engines.kernel.boot import read_console
from bakeoff.engines.kernel.console import trouble
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.lab import plan, sce, versions
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run
from kernel_boots import guest
from lab_runs import flow, network, nodes, run_with

# 33 packets fill the pipe, and the step marks what is more.
ONE_FLOW = """
scenario: alone
profile: l4s-tests
duration: 20s
network: {{path: [cli, mid, srv], rtt: 40ms, delay: {{at: mid}}, bottleneck: {{rate: 10mbit, qdisc: dualpi2}}}}
flows: [{{name: f, cc: "{cc}"}}]
"""
# The window at which slow start ends, and what it costs to get back, tell the versions apart.
FIRST_MARKS = """
scenario: first-marks
duration: 3s
network: {{path: [cli, mid, srv], rtt: 20ms, bottleneck: {{rate: 20mbit, qdisc: codel ecn}}}}
hosts: {{sysctl: {{net.ipv4.tcp_ecn: 3}}, hz: 1000, offloads: false}}
flows: [{{name: f, cc: "{cc}"}}]
"""
# No queue of it marks SCE; CE is fq_codel's.
ONE_SCE_FLOW = """
scenario: alone
duration: 40s
network:
  path: [cli, mid, srv]
  nodes: {{srv: {{kind: host, sysctl: {{net.ipv4.tcp_sce: 1}}}}}}
  rtt: 40ms
  delay: {{at: mid}}
  bottleneck: {{rate: 20mbit, qdisc: fq_codel}}
hosts: {{sysctl: {{net.ipv4.tcp_ecn: 1}}, hz: 1000, offloads: false}}
flows: [{{name: f, cc: "{cc}"}}]
"""


def module(kernel: BuiltKernel, name: str) -> Path:
    """The module, or a skip where the kernel was built without."""
    found = [path for path in kernel.modules if path.stem == name]
    if not found:
        pytest.skip(f"kernel {kernel.name} was built without {name}: 'make kernel' builds it in")
    return found[0]


def check_alone(kernel: BuiltKernel, folder: Path, scenario: str) -> None:
    """The flow f has the same mean window and RTT on the kernel and in the simulator, within 5 %, over four starts.

    DualPI2 marks at random: the window's standard deviation over starts is 3 % in the simulator and 2 % on the kernel
    (six of prague@2019-11), so that the difference of two means of four has one of 2 %.
    """
    path = folder / "alone.yaml"
    path.write_text(scenario)
    means = {}
    for number, engine in enumerate(("sim", f"kernel:{kernel.name}")):
        late = [
            result.series.filter(pl.col("name") == "f", pl.col("time") > 10)
            for result in bakeoff.run(str(path), engine=engine, seeds=4, out=folder / str(number))
        ]
        means[engine] = [
            sum(one.filter(metric=metric)["value"].mean() for one in late) / len(late) for metric in ("cwnd", "srtt")
        ]
    sim, real = means.values()
    assert real == pytest.approx(sim, rel=0.05)


# Built in


def test_only_a_tree_with_accecn_gets_the_modules(tmp_path):
    assert build._own_modules(tmp_path) == []
    header = tmp_path / "include" / "net" / "tcp.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define TCP_CONG_NEEDS_ECN BIT(1)\n")
    assert build._own_modules(tmp_path) == []
    header.write_text("#define TCP_CONG_NO_FALLBACK_RFC3168 BIT(4)\n")
    assert "tcp_prague" in [folder.name for folder in build._own_modules(tmp_path)]


# Versions


def test_a_version_takes_the_parameter_of_its_module():
    given = versions.given(run_with("prague@2020-08", "cubic", "prague@2020-08"), versions.OFFERED)
    assert given == {"prague@2020-08": versions.Parameter("tcp_prague", "prague_form", "1")}
    assert versions.given(run_with("prague", "cubic@5.4"), versions.OFFERED) == {}
    # A kernel without the module gives nothing, and the plan says so.
    assert versions.given(run_with("prague@2020-08"), {}) == {}
    assert len(versions.notes(run_with("prague@2020-08", "cubic@5.4"), {})) == 2
    assert len(versions.notes(run_with("prague@2020-08", "cubic@5.4"), given)) == 1


def test_a_module_offers_the_versions_that_its_parameter_describes():
    module = b"\0parm=prague_form:0: module 0.7; 1: of August 2020\0parm=prague_cwnd_mode:2: switch; 3: as 2\0"
    assert list(versions.offered({"tcp_prague": module})) == ["prague@2020-08"]
    assert list(versions.offered({"tcp_prague": module.replace(b"1: of August", b"5: of September")})) == [
        "prague@2019-09"
    ]
    assert versions.offered({"tcp_prague": b"", "tcp_sce": module}) == {}


def test_the_module_describes_every_version_offered():
    source = Path(__file__).parents[2] / "kernel" / "modules" / "tcp_prague" / "module.c"
    [text] = re.findall(r'BOUNDED\(prague_form, .*\n\t"(.*)"\);', source.read_text())
    described = {word: number for number, word in re.findall(r"(\d): (\d{4}-\d\d);", text)}
    asked = {
        version.removeprefix("prague@"): each.value
        for version, each in versions.OFFERED.items()
        if each.module == "tcp_prague"
    }
    assert described == asked


def test_two_versions_of_a_module_are_refused():
    with pytest.raises(
        BakeoffError,
        match=r"^flows\[2\]\.cc: 'prague': flows\[0\] is 'prague@2020-08', but a kernel has one version of",
    ):
        versions.given(run_with("prague@2020-08", "cubic", "prague"), versions.OFFERED)


# In a kernel


def test_what_tcp_prague_refuses_and_whom_it_serves(real_kernel, tmp_path):
    bad = [
        "prague_form=6",
        "prague_rtt_scaling=5",
        "prague_burst_shift=32",
        "prague_rtt_target=0",
        "prague_cwnd_mode=4",
        "prague_alpha_mode=x",
    ]
    path = str(module(real_kernel, "tcp_prague"))
    done = guest(real_kernel, tmp_path, do="module", module=path, cc="prague", refused=bad, simulated_s=120.0)
    said = done["answer"]
    assert said["at load"] == dict.fromkeys(bad, "Invalid parameters")
    assert said["later"] == dict.fromkeys(bad, "Invalid argument")
    # 0: no ECN; 2: a peer that has only that of RFC 3168.
    assert said["cc"] == {"0": "prague-reno", "2": "prague-reno", "3": "prague"}
    not_ect, ect0, ect1, ce = said["counted"]
    assert not_ect > 0  # of prague-reno
    assert (ect0, ce) == (0, 0)
    assert ect1 > 0
    assert said["unload"] == ["Resource temporarily unavailable", ""]
    assert trouble(read_console(done["outcome"].console)) is None


@pytest.mark.parametrize(
    "cc",
    [
        "prague",
        "prague@2019-09",
        "prague@2019-11",
        "prague@2020-04 ecn_fallback 0",
        "prague@2020-08",
        "prague@2021-06 rtt_scaling scalable",
    ],
)
def test_one_flow_does_on_the_kernel_what_it_does_in_the_simulator(real_kernel, tmp_path, cc):
    module(real_kernel, "tcp_prague")
    check_alone(real_kernel, tmp_path, ONE_FLOW.format(cc=cc))


@pytest.mark.parametrize("cc", ["prague@2019-09", "prague@2019-11", "prague@2020-04", "prague@2020-08"])
def test_each_version_answers_the_first_marks_as_in_the_simulator(real_kernel, tmp_path, cc):
    # Highest window in packets and mean RTT in ms, simulated: 382 and 209, 228 and 33, 392 and 42, 392 and 45.
    module(real_kernel, "tcp_prague")
    path = tmp_path / "first-marks.yaml"
    path.write_text(FIRST_MARKS.format(cc=cc))
    sim, real = (
        bakeoff.run(str(path), engine=engine, out=tmp_path / str(number))[0].series.filter(pl.col("name") == "f")
        for number, engine in enumerate(("sim", f"kernel:{real_kernel.name}"))
    )
    for of in (lambda s: s.filter(metric="cwnd")["value"].max(), lambda s: s.filter(metric="srtt")["value"].mean()):
        assert of(real) == pytest.approx(of(sim), rel=0.02)


# SCE


def sce_flow(**words: object) -> dict:
    return flow(**({"cc": "reno-sce@2019"} | words))


def of_sce(cli: dict, srv: dict, *flows: dict) -> Run:
    return network(nodes=nodes(cli=cli, srv=srv), flows=list(flows))


def test_forms_of_two_controls_of_one_module_go_together():
    given = versions.given(run_with("reno-sce@2019", "dctcp-sce", "cubic-sce"), versions.OFFERED)
    assert given == {"reno-sce@2019": versions.Parameter("tcp_sce", "reno_form", "1")}
    both = versions.given(run_with("reno-sce@2019", "dctcp-sce@2019"), versions.OFFERED).values()
    assert {parameter.name for parameter in both} == {"reno_form", "dctcp_form"}
    with pytest.raises(BakeoffError, match=r"^flows\[1\]\.cc: 'reno-sce': .* one version of 'reno-sce'"):
        versions.given(run_with("reno-sce@2019", "reno-sce"), versions.OFFERED)


@pytest.mark.parametrize(
    ("asked", "granted"), [(None, "5"), ("1", "4"), ("2", "5"), ("3", "3"), ("4", "4"), ("5", "5")]
)
def test_a_receiver_of_sce_grants_accecn_and_asks_for_what_it_asked_for(asked, granted):
    own = {"net.ipv4.tcp_ecn": asked} if asked else {}
    wanted = of_sce({"net.ipv4.tcp_ecn": "1"}, {**own, sce.ECHO: "1"}, sce_flow())
    run, notes = sce.on_accecn(wanted)
    assert [node.sysctls for node in run.nodes] == [
        {"net.ipv4.tcp_ecn": "1"},
        {},
        {"net.ipv4.tcp_ecn": granted, "net.ipv4.tcp_ecn_option": "2"},
    ]
    assert notes[0].startswith("nodes[2].sysctls: 'net.ipv4.tcp_sce' is not set")
    assert "'srv' negotiates AccECN" in notes[1]


def test_no_other_host_is_made_to_grant_accecn():
    echo = {sce.ECHO: "1"}
    for run in (
        of_sce(echo, {}, sce_flow()),  # the sender's own
        of_sce({}, echo, flow()),  # no flow of SCE
        of_sce({}, {sce.ECHO: "0"}, sce_flow()),
        of_sce({}, echo | {"net.ipv4.tcp_ecn": "0"}, sce_flow()),
    ):
        changed, _ = sce.on_accecn(run)
        assert all(node.sysctls in ({}, {"net.ipv4.tcp_ecn": "0"}) for node in changed.nodes)
    # AccECN tells of marks where the scenario wants no echo: the notes say so.
    _, notes = sce.on_accecn(of_sce({}, {"net.ipv4.tcp_ecn": "3"}, sce_flow()))
    assert notes == ["nodes[2].sysctls: 'srv' negotiates AccECN; senders receive SCE marks without 'net.ipv4.tcp_sce'"]


def test_pacing_of_sce_is_a_parameter_of_the_module():
    paced = {sce.PACING: "1"}
    assert sce.pacing(of_sce(paced, {}, sce_flow())) == [versions.Parameter("tcp_sce", "sce_pacing", "1")]
    assert sce.pacing(of_sce({}, paced, sce_flow())) == sce.pacing(of_sce(paced, {}, flow())) == []
    with pytest.raises(
        BakeoffError, match=r"^nodes: 'srv' has net\.ipv4\.tcp_sce_pacing 0, but nodes: 'cli' has .* 1, but"
    ):
        sce.pacing(of_sce(paced, {}, sce_flow(), sce_flow(name="b", **{"from": "srv", "to": "cli"})))


def test_the_plan_leaves_the_sysctls_of_sce_out_only_where_the_module_is():
    run = of_sce({sce.PACING: "1"}, {sce.ECHO: "1"}, sce_flow())
    for offered, left in ((versions.OFFERED, 0), ({}, 2)):
        made = plan(run, versions_offered=offered)
        assert len([line for line in map(str, made.setup) if "tcp_sce" in line]) == left
    assert [note for note in plan(run, versions_offered=versions.OFFERED).notes if "sce_pacing=1" in note]


def test_what_tcp_sce_refuses_and_whom_it_serves(real_kernel, tmp_path):
    names = ("reno_form", "dctcp_form", "cubic_origin", "sce_feedback", "sce_mss", "sce_pacing")
    bad = [f"{name}=2" for name in names] + ["reno_form=x"]
    path = str(module(real_kernel, "tcp_sce"))
    done = guest(real_kernel, tmp_path, do="module", module=path, cc="cubic-sce", refused=bad, simulated_s=120.0)
    said = done["answer"]
    assert said["at load"] == dict.fromkeys(bad, "Invalid parameters")
    assert said["later"] == dict.fromkeys(bad, "Invalid argument")
    assert said["cc"] == {"0": "cubic-sce", "2": "cubic-sce", "3": "cubic-sce"}
    not_ect, ect0, ect1, ce = said["counted"]
    # A peer without ECN is served without, and ECT(1) is never sent: it is the mark.
    assert min(not_ect, ect0) > 0
    assert (ect1, ce) == (0, 0)
    assert said["unload"] == ["Resource temporarily unavailable", ""]
    assert trouble(read_console(done["outcome"].console)) is None


@pytest.mark.parametrize("cc", ["reno-sce@2019", "dctcp-sce", "cubic-sce"])
def test_one_flow_of_sce_without_marks_does_what_it_does_in_the_simulator(real_kernel, tmp_path, cc):
    module(real_kernel, "tcp_sce")
    check_alone(real_kernel, tmp_path, ONE_SCE_FLOW.format(cc=cc))


def test_windows_follow_the_share_of_ect1_on_the_path(real_kernel, tmp_path):
    # reno-sce rests where 1 - f = f root: f = 0.105 asks for the root 8.5, between those of 80 and 81 packets.
    # In 2019 a mark took half: f = 0.19 gives 4.26 = 8.5 / 2. dctcp-sce: 1 - f = f W / 2, W = 64.7 for f = 0.03.
    laws = [("reno-sce", 105, 0, 80.5), ("reno-sce", 190, 1, 80.5), ("dctcp-sce", 30, 0, 64.7)]
    cases = [
        {"cc": cc, "permille": permille, "settle_s": 15, "parameters": {"reno_form": form}}
        for cc, permille, form, _ in laws
    ]
    path = str(module(real_kernel, "tcp_sce"))
    done = guest(real_kernel, tmp_path, do="ect1", module=path, cases=cases, simulated_s=300.0)
    for (*_, expected), answer in zip(laws, done["answer"], strict=True):
        assert answer["window"] == pytest.approx(expected, rel=0.06)
        marked, _ = answer["path"]
        # The sender is told of what the path marked, but for a window; AccECN's option takes 12 bytes of 1448.
        assert answer["total"] == pytest.approx(marked * (1448 - 12), abs=100 * 1448)
    assert trouble(read_console(done["outcome"].console)) is None
