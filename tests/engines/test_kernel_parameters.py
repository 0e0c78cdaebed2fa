"""Parameters of a flow's congestion control on a kernel that boots for one run."""

from __future__ import annotations

import polars as pl
import pytest

import bakeoff
from bakeoff.engines.kernel import boot
from bakeoff.engines.lab import parameters, plan, sce
from bakeoff.engines.lab.versions import Parameter
from bakeoff.errors import BakeoffError
from lab_runs import flow, network, nodes, run_with


@pytest.mark.parametrize(
    ("ccs", "asked"),
    [
        (["cubic", "prague@2020-08"], []),
        (["cubic beta 600 hystart 0", "reno"], [("tcp_cubic", "beta", "600"), ("tcp_cubic", "hystart", "0")]),
        # The kernel's own CUBIC runs, and has the word, too.
        (["cubic hystart off", "cubic hystart 0"], [("tcp_cubic", "hystart", "0")]),
        (["cubic@5.4 hystart 0"], [("tcp_cubic", "hystart", "0")]),
        (["prague rtt_target 15ms"], [("tcp_prague", "prague_rtt_target", "15000")]),
        (["prague rtt_target 1500", "cubic"], [("tcp_prague", "prague_rtt_target", "1500")]),
        (["prague@2020-04 ecn_fallback 0"], [("tcp_prague", "prague_ecn_fallback", "0")]),
        (["prague@2021-06 rtt_scaling none", "cubic"], [("tcp_prague", "prague_rtt_scaling", "0")]),
        (["reno-sce@2019 mss rcv_mss", "cubic-sce mss rcv_mss"], [("tcp_sce", "sce_mss", "1")]),
        (["cubic-sce origin literal", "dctcp-sce"], [("tcp_sce", "cubic_origin", "1")]),
        (["dctcp dctcp_shift_g 5", "dctcp dctcp_shift_g 5"], [("tcp_dctcp", "dctcp_shift_g", "5")]),
    ],
)
def test_words_are_parameters_of_modules(ccs, asked):
    assert parameters.given(run_with(*ccs), parameters.OFFERED) == [Parameter(*each) for each in asked]


@pytest.mark.parametrize(
    ("ccs", "message"),
    [
        (["reno", "cubic beta 600", "cubic"], r"^flows\[2\]\.cc: 'cubic': flows\[1\] is 'cubic beta 600', but"),
        (["cubic beta 600", "cubic beta 601"], r"^flows\[1\]\.cc: .* tcp_cubic\.beta applies to all"),
        (["cubic-sce", "reno-sce mss rcv_mss"], r"^flows\[0\]\.cc: 'cubic-sce': flows\[1\] is 'reno-sce mss rcv_mss'"),
        (["prague@2020-08 alpha_mode 0"], r"^flows\[0\]\.cc: .* unknown parameter 'alpha_mode' of .*'prague@2020-08'"),
        (["prague ecn_fallback 0"], r"^flows\[0\]\.cc: .*'ecn_fallback'"),
        (["cubic beta 600 search"], r"^flows\[0\]\.cc: .* unknown parameter 'search' of this kernel's 'cubic'"),
        (
            ["reno-sce hystart++ css_rounds 3"],
            r"^flows\[0\]\.cc: .* unknown parameter 'hystart\+\+' of this kernel's 'r",
        ),
        (["cubic beta x"], r"^flows\[0\]\.cc: cc 'cubic beta x': beta: 'x' is not a whole number from 1 to 1023$"),
        (["cubic beta"], r"^flows\[0\]\.cc: cc 'cubic beta': 'beta' needs a value$"),
    ],
)
def test_what_one_kernel_cannot_be_given_is_refused(ccs, message):
    with pytest.raises(BakeoffError, match=message):
        parameters.given(run_with(*ccs), parameters.OFFERED)


def test_a_kernel_without_the_parameter_refuses_the_word():
    with pytest.raises(BakeoffError, match=r"unknown parameter 'alpha_mode' of this kernel's 'prague'; expected 'pr"):
        plan(run_with("prague alpha_mode 1"), parameters_offered=frozenset({("tcp_cubic", "beta")}))
    # Other things of that machine use its kernel.
    with pytest.raises(
        BakeoffError, match=r"parameters per flow need --engine sim, a kernel module has one set in /sys/module"
    ):
        plan(run_with("cubic beta 600"))


def test_a_flow_of_sce_may_pace_whatever_the_sysctl_says():
    paced = nodes(cli={sce.PACING: "1"})
    assert sce.pacing(network(flows=[flow(cc="reno-sce pacing on")])) == [Parameter("tcp_sce", "sce_pacing", "1")]
    assert sce.pacing(network(nodes=paced, flows=[flow(cc="reno-sce pacing off")])) == []
    with pytest.raises(BakeoffError, match=r"^nodes: 'cli' has .*tcp_sce_pacing 0, but flows\[0\]\.cc: 'cubic-sce pac"):
        sce.pacing(run_with("cubic-sce pacing on", "reno-sce pacing sysctl"))


def test_parameters_stand_on_the_command_line_ahead_of_those_of_init(tmp_path, real_kernel):
    words = boot.command_line(real_kernel, memory="256M", uml_dir=tmp_path, parameters=["tcp_cubic.beta=600"])
    assert words.index("tcp_cubic.beta=600") < words.index("--")


def test_a_drop_takes_from_cubic_what_beta_says(real_kernel, tmp_path):
    text = """
scenario: sawtooth
duration: 30s
network: {{path: [cli, mid, srv], rtt: 40ms, delay: {{at: mid}}, bottleneck: {{rate: 10mbit, qdisc: pfifo limit 33}}}}
hosts: {{hz: 1000, offloads: false}}
flows: [{{name: f, cc: "{cc}"}}]
"""
    shares = {}
    for beta in (512, 819):
        path = tmp_path / f"{beta}.yaml"
        path.write_text(text.format(cc=f"cubic beta {beta} tcp_friendliness 0 hystart 0"))
        [result] = bakeoff.run(str(path), engine=f"kernel:{real_kernel.name}", out=tmp_path / str(beta))
        windows = result.series.filter(pl.col("name") == "f", pl.col("metric") == "cwnd", pl.col("time") > 10)["value"]
        shares[beta] = windows.min() / windows.max()
    # The window falls to beta/1024 of itself: 0.5 and 0.8; a sample each 100 ms sees both ends nearly.
    assert shares[512] == pytest.approx(0.5, abs=0.06)
    assert shares[819] == pytest.approx(0.8, abs=0.06)
