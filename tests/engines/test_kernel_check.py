"""What a kernel lacks is named, and borrowed programs are found first."""

from __future__ import annotations

from pathlib import Path

import pytest

from bakeoff.engines.kernel import check, host_programs, registry
from bakeoff.errors import BakeoffError
from kernel_boots import executable, fake_linux
from synthetic import as_run, resolved

# What a kernel cannot run


def report(*findings: check.Finding, adds: dict[str, list[str]] | None = None) -> check.Report:
    return check.Report("mine", "7.3.4", "0", findings, adds or {"cc": [], "qdisc": []})


def test_missing_names_every_place_that_a_kernel_cannot_serve():
    document = resolved(flows=(("a", "prague@2020-08"), ("b", "cubic"), ("c", "own")), point={"qdisc": "of the matrix"})
    document["nodes"] = document["nodes"][:2]
    document["nodes"][1]["sysctls"] = {"net.ipv4.tcp_sce": "1"}
    tree = {"qdisc": "htb default 1", "classes": [{"id": "1", "class": "", "child": {"qdisc": "cnq_codel_af"}}]}
    document["interfaces"] = [{"node": "mid", "peer": "srv", "egress": tree}]
    put = {"kind": "qdisc-replace", "side": "egress", "handle": "", "qdisc": {"qdisc": "made_up limit 5"}}
    change = {"kind": "qdisc-change", "side": "egress", "handle": "", "qdisc": "other limit 5"}
    document["changes"] = [{"at_s": 1.0, "node": "mid", "peer": "srv", "action": each} for each in (put, change)]
    run = as_run(document)
    known = report(
        check.Finding("cc", "prague", False, "CONFIG_TCP_CONG_PRAGUE is not set"),
        check.Finding("cc", "cubic", True, ""),
        check.Finding("qdisc", "htb", True, ""),
        check.Finding("qdisc", "cnq_codel_af", False, "CONFIG_NET_SCH_CNQ_CODEL_AF is not set"),
        adds={"cc": ["own"], "qdisc": []},
    )
    assert check.missing(run, known) == [
        "flows[0].cc: 'prague': CONFIG_TCP_CONG_PRAGUE is not set",
        "nodes[1].sysctls: 'net.ipv4.tcp_sce' is of the SCE tree, and not in kernel mine",
        "interfaces[0].egress.classes[0].child.qdisc: 'cnq_codel_af': CONFIG_NET_SCH_CNQ_CODEL_AF is not set",
        "changes[0].action.qdisc.qdisc: 'made_up' is not in kernel mine",
        "changes[1].action.qdisc: 'other' is not in kernel mine",
    ]
    with pytest.raises(BakeoffError, match=r"s1\.yaml: flows\[0\]\.cc: 'prague'"):
        check.require(run, known, place="s1.yaml")


@pytest.mark.parametrize("program", ["ip", "tc"])
def test_check_without_ip_or_tc_names_the_package(tmp_path, monkeypatch, program):
    kernel = registry.get(fake_linux(tmp_path / "linux", ""))
    monkeypatch.setattr(host_programs, "find", lambda name: None if name == program else Path("/bin/true"))
    with pytest.raises(BakeoffError, match=f"{program} is not installed; install: iproute2"):
        check.check_kernel(kernel)


def test_a_borrowed_program_is_found_before_the_systems_own(cache_folder):
    assert host_programs.find("made-up-program") is None
    (cache_folder / "programs" / "bin").mkdir(parents=True)
    mine = executable(
        cache_folder / "programs" / "bin" / "tc", "#!/bin/sh\necho tc utility, iproute2-7.2.0, libbpf 1.7.0\n"
    )
    assert host_programs.find("tc") == mine
    assert host_programs.iproute2_version(mine) == (7, 2)
    assert host_programs.search_path().startswith(str(mine.parent))
