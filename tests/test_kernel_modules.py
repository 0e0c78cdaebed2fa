"""The kernel modules of this repository: which are built, what the plan makes of versions, and tcp_prague in a kernel.

That the module computes what the simulator computes is tested in crates/sim/src/cc/prague/module.rs.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import bakeoff
from bakeoff.engines.kernel import build
from bakeoff.engines.kernel.boot import read_console
from bakeoff.engines.kernel.console import trouble
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.lab import versions
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run
from kernel_boots import guest
from lab_runs import flow, network

# 33 packets fill the pipe, and the step marks what is more.
ONE_FLOW = """
scenario: alone
profile: l4s-tests
duration: 20s
network: {{path: [cli, mid, srv], rtt: 40ms, delay: {{at: mid}}, bottleneck: {{rate: 10mbit, qdisc: dualpi2}}}}
flows: [{{name: f, cc: "{cc}"}}]
"""


def run_with(*ccs: str) -> Run:
    return network(flows=[flow(name=f"f{n}", cc=cc) for n, cc in enumerate(ccs)])


def module(kernel: BuiltKernel, name: str) -> Path:
    """The module, or a skip where the kernel was built without."""
    found = [path for path in kernel.modules if path.stem == name]
    if not found:
        pytest.skip(f"kernel {kernel.name} was built without {name}: 'make kernel' builds it in")
    return found[0]


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


def test_two_versions_of_a_module_are_refused():
    with pytest.raises(BakeoffError, match=r"^flows\[2\]\.cc: 'prague': flows\[0\] asks for 'prague@2020-08', and a"):
        versions.given(run_with("prague@2020-08", "cubic", "prague"), versions.OFFERED)


# In a kernel


def test_what_tcp_prague_refuses_and_whom_it_serves(real_kernel, tmp_path):
    bad = ["prague_form=2", "prague_burst_shift=32", "prague_rtt_target=0", "prague_cwnd_mode=4", "prague_alpha_mode=x"]
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


@pytest.mark.parametrize("cc", ["prague", "prague@2020-08"])
def test_one_flow_does_on_the_kernel_what_it_does_in_the_simulator(real_kernel, tmp_path, cc):
    module(real_kernel, "tcp_prague")
    path = tmp_path / "alone.yaml"
    path.write_text(ONE_FLOW.format(cc=cc))
    means = {}
    for number, engine in enumerate(("sim", f"kernel:{real_kernel.name}")):
        [result] = bakeoff.run(str(path), engine=engine, out=tmp_path / str(number))
        late = result.series.filter(pl.col("name") == "f", pl.col("time") > 10)
        means[engine] = [late.filter(metric=metric)["value"].mean() for metric in ("cwnd", "srtt")]
    sim, kernel = means.values()
    assert kernel == pytest.approx(sim, rel=0.05)
