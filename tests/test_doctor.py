"""What this machine lacks is named, with the one command that puts it right; and which bakeoff it is that says so."""

import json
import os
import shutil
from pathlib import Path

import pytest

from bakeoff import data, doctor
from bakeoff.engines.kernel import build_tools, host_programs, registry
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.lab import agent
from bakeoff.errors import BakeoffError
from kernel_boots import executable


@pytest.fixture
def debian(monkeypatch):
    """A Debian whose user is root: there is apt-get, whatever else there is."""
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **rest: name if name == "apt-get" else which(name, **rest))
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.fixture
def installed(monkeypatch):
    """Not used from a checkout."""
    monkeypatch.setattr(data, "checkout", lambda: None)


def lines():
    return {(line.area, line.name): line for line in doctor.report()}


def test_what_is_missing_has_its_package_and_a_command(cache_folder, debian, monkeypatch):
    monkeypatch.setattr(host_programs, "find", lambda _: None)
    monkeypatch.setattr(build_tools, "missing_tools", lambda: {"flex": "flex", "bison": "bison"})
    monkeypatch.setattr(doctor, "_capabilities", lambda: 1 << 12)
    found = lines()
    kernel = found["kernel", "virtual-time kernel"]
    assert (kernel.status, kernel.detail, kernel.install) == ("missing", "none built yet", "make kernel")
    assert (found["kernel", "tc"].status, found["kernel", "tc"].packages) == ("missing", ("iproute2",))
    assert found["kernel", "tc"].install == "apt-get install --yes iproute2"
    build = found["kernel", "build tools"]
    assert (build.status, build.install) == ("limited", "apt-get install --yes bison flex")
    assert found["netns", "privilege"].detail == "this process has no CAP_NET_RAW and no CAP_SYS_ADMIN"
    assert {"tc", "ip", "privilege"} <= set(doctor.lacking(found.values(), "netns"))
    assert doctor.lacking(found.values(), "sim") == []
    assert all(line.detail and "\n" not in line.detail for line in found.values())
    json.dumps([line.to_json() for line in found.values()])


def test_one_command_installs_all_packages_and_leaves_out_what_apt_may_not_have(debian):
    checks = [
        doctor.Check("kernel", "build tools", "limited", "", packages=("flex", "bison")),
        doctor.Check("kernel", "tc", "missing", "", packages=("iproute2",)),
        doctor._packaged("tools", "netperf", "limited", "not installed", "netperf (Debian: non-free)"),
    ]
    assert doctor.install_all(checks) == "apt-get install --yes bison flex iproute2"
    assert checks[2].detail == "not installed (Debian: non-free)"
    assert checks[2].install == "apt-get install --yes netperf"
    assert doctor.install_all([]) == ""


def test_without_apt_the_packages_are_named_as_debian_calls_them(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert doctor._packaged("ssh", "ssh", "missing", "", "openssh-client").install == (
        "install the Debian packages openssh-client"
    )


def test_without_insmod_a_kernel_with_modules_cannot_run(cache_folder, debian, monkeypatch):
    """Every run on it loads them; one without modules runs."""
    found = host_programs.find
    monkeypatch.setattr(host_programs, "find", lambda name: None if name == "insmod" else found(name))

    def built(name: str, *modules: str) -> BuiltKernel:
        return BuiltKernel(name, Path("linux"), "7.3.4", "f", {}, tuple(map(Path, modules)))

    for kernels, status, detail in (
        ([], "limited", "no external modules"),
        ([built("plain")], "limited", "no external modules"),
        ([built("own", "a.ko"), built("plain")], "limited", "no run on own, which load modules"),
        ([built("own", "a.ko"), built("two", "b.ko")], "missing", "no run on own, two, which load modules"),
    ):
        monkeypatch.setattr(registry, "list_kernels", lambda kernels=kernels: kernels)
        [check] = [check for check in doctor.report() if (check.area, check.name) == ("kernel", "insmod")]
        assert (check.status, check.detail) == (status, f"not installed: {detail}")
        assert check.packages == ("kmod",)


def test_an_old_tc_is_told(tmp_path, cache_folder, monkeypatch):
    old = executable(tmp_path / "tc", "#!/bin/sh\necho tc utility, iproute2-6.1.0, libbpf 1.1.0\n")
    monkeypatch.setattr(host_programs, "find", lambda _: old)
    line = lines()["kernel", "tc"]
    assert (line.status, line.install) == ("limited", "bakeoff kernel fetch-programs --suite forky")


def test_an_installation_says_what_to_do_without_a_checkout(cache_folder, debian, installed, monkeypatch):
    monkeypatch.setattr(agent, "_PACKAGE", cache_folder)
    monkeypatch.delenv("BAKEOFF_AGENT", raising=False)
    found = lines()
    fetched = 'bakeoff kernel build --source "$(bakeoff kernel fetch-source --suite trixie-backports)"'
    assert found["kernel", "virtual-time kernel"].install == fetched
    assert found["kernel", "agent"].status == "missing"
    assert "make agent" not in found["kernel", "agent"].detail + found["kernel", "agent"].install
    assert {"agent"} <= set(doctor.lacking(found.values(), "netns")) & set(doctor.lacking(found.values(), "ssh"))
    assert ": the installation in " in doctor.origin()


def test_user_mode_linux_is_for_one_processor_only(cache_folder, monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    line = lines()["kernel", "processor"]
    assert (line.status, line.detail) == ("missing", "aarch64: User-Mode Linux is for x86_64 only")


def test_the_agent_of_a_checkout_is_its_newest_build_and_that_of_a_wheel_lies_in_the_package(tmp_path, monkeypatch):
    monkeypatch.delenv("BAKEOFF_AGENT", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(agent, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(data, "checkout", lambda: tmp_path)
    for place in ("package/bin", "target/debug", "target/ci", "target/release"):
        (tmp_path / place).mkdir(parents=True)
    with pytest.raises(BakeoffError, match=f"'make agent' in {tmp_path} makes it, or set BAKEOFF_AGENT"):
        agent.find()
    shipped = executable(tmp_path / "package/bin/bakeoff-agent", "#!/bin/sh\n")
    assert agent.find() == shipped
    debug = executable(tmp_path / "target/debug/bakeoff-agent", "#!/bin/sh\n")
    release = executable(tmp_path / "target/release/bakeoff-agent", "#!/bin/sh\n")
    os.utime(debug, (1, 1))
    assert agent.find() == release
    os.utime(release, (0, 0))
    assert agent.find() == debug
    # The profile of `make test`, where `make setup` was not called before.
    ci = executable(tmp_path / "target/ci/bakeoff-agent", "#!/bin/sh\n")
    assert agent.find() == ci
    monkeypatch.setattr(data, "checkout", lambda: None)
    assert agent.find() == shipped


def test_the_table_says_of_each_engine_whether_it_can_run(cli, cache_folder, debian):
    code, out, _ = cli("doctor")
    assert code == 0
    assert f": the checkout {data.checkout()}" in out.splitlines()[0]
    assert "\nengine sim: can run\n" in out
    assert "\nengine kernel: cannot run without: " in out
    assert "-> make kernel" in out
