"""Which congestion control runs where is one table, and what an engine lacks is said with the engine that has it."""

import re
from pathlib import Path

import pytest

from bakeoff import _sim
from bakeoff.engines import controls, netns, sim
from bakeoff.engines.kernel import check, config, registry
from bakeoff.errors import BakeoffError
from synthetic import as_run, resolved

README = Path(__file__).parents[2] / "README.md"


def test_the_table_has_what_the_simulator_registers_and_what_linux_has():
    table = controls.table()
    assert {name for name, each in table.items() if each.simulated} == {
        name.partition("@")[0] for name in _sim.congestion_controls()
    }
    assert table["bbr3"].engines == ("sim",)
    assert table["cubic"].engines == ("sim", "kernel", "netns", "ssh")
    assert table["cubic"].versions == ("@5.4", "@7.3")
    assert (table["reno-sce"].module, table["bic"].module) == ("tcp_sce", None)


def test_the_readme_says_where_each_runs():
    """Linux's own as a number, all others by name, before and behind the semicolon of those with a module."""
    [said] = re.findall(r"<!-- controls -->\s*(.*?)\s*<!-- end -->", README.read_text(encoding="utf-8"), re.DOTALL)
    linux, modules, simulated = (re.findall(r"`([^`]+)`", part) for part in said.split(";"))
    table = controls.table()
    assert said.startswith(f"Linux's {len(controls.LINUX)} ")
    assert linux == []
    assert modules == sorted(controls.MODULES)
    assert simulated == [name for name, each in table.items() if each.engines == ("sim",)]


def test_a_symbol_of_the_configuration_and_its_name_are_each_others_reverse():
    assert controls.symbol("highspeed") == "TCP_CONG_HSTCP"
    for name in controls.LINUX.union(controls.MODULES):
        options = {controls.symbol(name): "y"}
        assert [controls.named(each) for each in config.names(options, "TCP_CONG_")] == [name]


def test_a_configuration_and_modules_tell_what_a_kernel_has(tmp_path):
    modules = (tmp_path / "tcp_sce.ko",)
    kernel = registry.BuiltKernel("mine", tmp_path, "7.3.4", "0", {"TCP_CONG_HSTCP": "y"}, modules)
    report = check.configured(kernel)
    assert report.names("cc") == {"reno", "highspeed", "reno-sce", "cubic-sce", "dctcp-sce"}
    assert report.adds["cc"] == []


def one_flow(cc: str):
    return as_run(resolved(flows=(("a", cc),)))


def test_what_an_engine_lacks_is_said_with_the_engine_that_has_it(monkeypatch):
    empty = check.Report("mine", "7.3.4", "0", (), {"cc": [], "qdisc": []})
    assert check.missing(one_flow("bbr3"), empty)[0] == (
        "flows[0].cc: 'bbr3' is not in kernel mine; it runs with --engine sim"
    )
    assert check.missing(one_flow("nix"), empty)[0] == "flows[0].cc: 'nix' is not in kernel mine"
    monkeypatch.setattr(netns, "missing_capabilities", list)
    monkeypatch.setattr(netns, "_tried", lambda _: "")
    monkeypatch.setattr(netns, "_has_cc", lambda _: False)
    lacks = "cc 'cubic-sce' is not in this host's kernel; module tcp_sce; it runs with --engine sim or --engine kernel"
    with pytest.raises(BakeoffError, match=lacks):
        netns.Namespaces().check(one_flow("cubic-sce"))


def test_the_simulator_names_the_engine_of_a_control_that_only_linux_has(monkeypatch):
    only_linux = controls.Control("ours", (), simulated=False, on_linux=True, module=None)
    monkeypatch.setattr(controls, "table", lambda: {"ours": only_linux})
    with pytest.raises(BakeoffError, match=r"unknown congestion control 'ours'.*; it runs with --engine kernel$"):
        sim.choose(None).check(one_flow("ours"))
    with pytest.raises(BakeoffError) as refused:
        sim.choose(None).check(one_flow("other"))
    assert "it runs with" not in str(refused.value)
