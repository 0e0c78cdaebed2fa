"""What a virtual-time kernel is built from: fragments of configuration, source trees, builds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from bakeoff import data
from bakeoff.engines.kernel import build, build_tools, config, registry, source
from bakeoff.errors import BakeoffError
from kernel_boots import executable

ROOT = Path(__file__).resolve().parents[2]

# Configuration


def test_parse_takes_values_and_unset_symbols():
    text = '# comment\nCONFIG_HZ=1000\nCONFIG_LOCALVERSION="-x"\n# CONFIG_SMP is not set\n\nCONFIG_HZ=250\n'
    assert config.parse(text) == {"HZ": "250", "LOCALVERSION": '"-x"', "SMP": "n"}


def test_parse_names_the_place_of_a_bad_line():
    with pytest.raises(BakeoffError, match=r"wanted\.config:2: 'CONFIG_VETH y' is not a configuration line"):
        config.parse("CONFIG_NET=y\nCONFIG_VETH y\n", place="wanted.config")


def test_the_first_fragment_counts():
    merged = config.merge({"HZ": "1000", "SMP": "n"}, {"SMP": "y", "VETH": "y"})
    assert merged == {"HZ": "1000", "SMP": "n", "VETH": "y"}


def test_render_and_parse_are_inverse():
    options = {"HZ": "1000", "SMP": "n", "VETH": "y"}
    assert config.parse(config.render(options)) == options


def test_refused_counts_an_absent_symbol_as_not_set():
    asked = {"HZ": "1000", "SMP": "n", "NET_SCH_DUALPI2": "y", "VETH": "y"}
    assert config.refused(asked, {"HZ": "100", "VETH": "y"}) == ["HZ", "NET_SCH_DUALPI2"]


def test_offered_finds_what_a_development_tree_adds(tmp_path):
    (tmp_path / "net" / "sched").mkdir(parents=True)
    (tmp_path / "net" / "ipv4").mkdir()
    (tmp_path / "net" / "sched" / "Kconfig").write_text(
        "menuconfig NET_SCHED\nconfig NET_SCH_CNQ_COBALT\n\ttristate\nconfig NET_SCH_DEFAULT\nconfig DEFAULT_NET_SCH\n"
    )
    (tmp_path / "net" / "ipv4" / "Kconfig").write_text("config TCP_CONG_PRAGUE\n\ttristate\nconfig DEFAULT_PRAGUE\n")
    assert config.offered(tmp_path) == {"NET_SCH_CNQ_COBALT": "y", "TCP_CONG_PRAGUE": "y"}


def test_hz_is_defined_ahead_of_the_trees_own_kconfig():
    text = config.with_hz('# top\nmainmenu "Linux"\nsource "arch/um/Kconfig"\n', 1000)
    assert text == '# top\nmainmenu "Linux"\n\nconfig HZ\n\tint\n\tdefault 1000\nsource "arch/um/Kconfig"\n'


def test_the_projects_fragments_do_not_contradict_each_other():
    fragments = data.folder("kernel") / "config"
    required, wanted = (config.read(fragments / name) for name in ("required.config", "wanted.config"))
    assert required["UML_TIME_TRAVEL_SUPPORT"] == "y"
    assert required["HZ"] == str(build.HZ)
    assert not set(required) & set(wanted)
    # That for tests of kernel code gives no run less than it needs.
    debug = config.read(fragments / "debug.config")
    assert build._wishes([fragments / "debug.config"]) == debug
    assert debug["PROVE_LOCKING"] == "y"


def test_a_fragment_may_not_take_away_what_every_run_needs(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("CONFIG_USER_NS=m\n")
    second.write_text("CONFIG_USER_NS=y\nCONFIG_DEBUG_NET=y\n")
    assert build._wishes([first, second]) == {"USER_NS": "m", "DEBUG_NET": "y"}
    second.write_text("CONFIG_SMP=y\n")
    with pytest.raises(BakeoffError, match=r"^--config .*/second: CONFIG_SMP=y: not allowed; expected CONFIG_SMP=n$"):
        build.build(None, fragments=[first, second])


# Sources


def linux_tree(folder: Path, version: str = "7.3.4", *, um: bool = True) -> Path:
    major, minor, sub = version.split(".")
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text(
        f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = {sub}\nEXTRAVERSION = -rc1\n"
    )
    (folder / "Kconfig").write_text('mainmenu "x"\n')
    if um:
        (folder / "arch" / "um").mkdir(parents=True)
        (folder / "arch" / "um" / "Kconfig").write_text("config UML\n")
    return folder


def test_a_tree_has_a_release_and_an_identity(tmp_path):
    tree = linux_tree(tmp_path / "linux")
    first = source.prepare(tree)
    assert (first.tree, first.version, first.release) == (tree, (7, 3, 4), "7.3.4-rc1")
    (tree / "arch" / "um" / "Kconfig").write_text("config UML # changed\n")
    assert source.prepare(tree).identity != first.identity
    shutil.copytree(tree, tmp_path / "copy")
    assert source.prepare(tmp_path / "copy").identity == source.prepare(tree).identity


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "nothing", "no such file or folder"),
        (lambda path: path, "not a Linux source tree: no Makefile with VERSION"),
        (lambda path: linux_tree(path / "old", "6.5.9"), "Linux 6.5.9-rc1 is too old; expected 6.6 or later"),
        (lambda path: linux_tree(path / "no-um", um=False), "Linux 7.3.4-rc1 has no arch/um"),
        (lambda path: executable(path / "linux", "x"), "not a source tree; expected a folder or a .tar"),
        (lambda path: executable(path / "linux.tar.xz", "x"), "cannot be unpacked"),
    ],
)
def test_what_is_no_source_is_refused(tmp_path, cache_folder, make, message):
    with pytest.raises(BakeoffError, match=re.escape(message)):
        source.prepare(make(tmp_path))
    assert not list(cache_folder.glob("sources/*"))


def test_a_tarball_is_unpacked_once_in_the_cache(tmp_path, cache_folder):
    tree = linux_tree(tmp_path / "linux-7.3.4")
    tarball = tmp_path / "linux-7.3.4.tar.gz"
    with tarfile.open(tarball, "w:gz") as tar:
        tar.add(tree, "linux-7.3.4")
    steps: list[str] = []
    first = source.prepare(tarball, steps.append)
    assert first.tree.parent == cache_folder / "sources"
    assert (first.tree / "arch" / "um" / "Kconfig").is_file()
    assert first.identity.startswith("tarball:")
    assert source.prepare(tarball, steps.append) == first
    assert steps.count("unpacking linux-7.3.4.tar.gz") == 1


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_tree_built_in_place_is_copied_and_stays_as_it_is(tmp_path, cache_folder):
    tree = linux_tree(tmp_path / "linux")
    with (tree / "Makefile").open("a") as makefile:
        makefile.write("mrproper:\n\trm -rf .config include/config\n")
    (tree / ".config").write_text("CONFIG_X86=y\n")
    (tree / "include" / "config").mkdir(parents=True)
    (tree / "vmlinux").write_text("large")
    (tree / "init.o").write_text("object")
    (tree / "vmlinux.lds.S").write_text("source")
    (tree / "gone.c").write_text("int x;")
    prepared = source.prepare(tree)
    assert prepared.tree.parent == cache_folder / "sources"
    assert sorted(path.name for path in prepared.tree.iterdir()) == [
        "Kconfig", "Makefile", "arch", "gone.c", "include", "vmlinux.lds.S",
    ]  # fmt: skip
    (tree / "gone.c").unlink()
    assert not (source.prepare(tree).tree / "gone.c").exists()
    assert (tree / ".config").is_file()
    assert (tree / "vmlinux").is_file()


# Builds


def test_no_source_explains_where_to_get_one():
    with pytest.raises(BakeoffError, match=r"(?s)linux-source.*release tarball.*development tree of your own"):
        build.build(None)


def only(folder: Path, *absent: str) -> Path:
    """A folder for PATH in which every tool of a build does nothing, but for those that are absent."""
    for tool in build_tools.TOOLS:
        if tool not in absent:
            executable(folder / tool, "#!/bin/sh\n")
    return folder


def test_missing_tools_are_named_with_the_command_that_installs_them(tmp_path, monkeypatch):
    tree = linux_tree(tmp_path / "linux")
    monkeypatch.setenv("PATH", str(only(tmp_path, "flex", "bison")))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    message = "missing to build a kernel: flex, bison; install with: apt-get install --yes bison flex"
    with pytest.raises(BakeoffError, match=f"^{message}$"):
        build.build(tree)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert build_tools.install_command({"xz": "xz-utils", "bc": "bc"}) == "sudo apt-get install --yes bc xz-utils"


def test_a_gcc_without_headers_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(only(tmp_path)))
    assert build_tools.missing_tools() == {}
    executable(tmp_path / "gcc", "#!/bin/sh\nexit 1\n")
    assert build_tools.missing_tools() == {"the C library's headers": "libc6-dev"}


@pytest.mark.parametrize("command", [["make", "kernel"], ["kernel/fetch-source"]])
def test_nothing_is_downloaded_or_built_where_a_tool_is_missing(tmp_path, monkeypatch, command):
    """Every other program of the machine would say so, by its exit code, if it were asked."""
    programs = only(tmp_path, "bc", "make")
    for name in ("cargo", "apt-get", "apt-cache", "dpkg-deb"):
        executable(programs / name, f"#!/bin/sh\necho {name} was called; exit 77\n")
    # What stands in PATH may be a script that looks for others there.
    for name, path in (("make", shutil.which("make")), ("bash", shutil.which("bash")), ("python3", sys.executable)):
        executable(programs / name, f'#!/bin/sh\nexec {path} "$@"\n')
    environment = {"PATH": str(programs), "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "missing to build a kernel: bc; install with: " in done.stderr
    assert "was called" not in done.stdout + done.stderr


def test_a_folder_without_a_makefile_is_no_module(tmp_path):
    with pytest.raises(BakeoffError, match="not a folder with a Makefile or Kbuild"):
        build.build(linux_tree(tmp_path / "linux"), modules=[tmp_path])


@pytest.mark.parametrize("name", ["../x", "", "-x", "a b", "a/b"])
def test_a_bad_name_is_refused(tmp_path, name):
    with pytest.raises(BakeoffError, match="expected letters, digits"):
        build.build(linux_tree(tmp_path / "linux"), name=name)


@pytest.mark.skipif(
    bool(build_tools.missing_tools()), reason=f"not installed: {', '.join(build_tools.missing_tools())}"
)
def test_a_failing_compiler_is_quoted_and_the_kernel_is_not_listed(tmp_path, cache_folder):
    tree = linux_tree(tmp_path / "linux")
    with (tree / "Makefile").open("a") as makefile:
        makefile.write("allnoconfig:\n\t@echo 'tcp.c:1:2: error: no such thing'; false\n")
    with pytest.raises(BakeoffError, match=r"does not build: tcp\.c:1:2: error: no such thing\n  log: .*build\.log"):
        build.build(tree, name="broken")
    assert "no such thing" in (cache_folder / "kernels" / "broken" / "build.log").read_text()
    assert registry.list_kernels() == []


@pytest.mark.skipif(
    bool(build_tools.missing_tools()), reason=f"not installed: {', '.join(build_tools.missing_tools())}"
)
def test_a_tree_that_does_not_grant_what_is_required_is_refused(tmp_path, cache_folder):
    tree = linux_tree(tmp_path / "linux")
    with (tree / "Makefile").open("a") as makefile:
        makefile.write(
            "allnoconfig:\n\t@cp $(O)/asked.config $(O)/.config; sed -i s/CONFIG_HZ=1000/CONFIG_HZ=100/ $(O)/.config\n"
        )
    with pytest.raises(BakeoffError, match=r"misses required options: CONFIG_HZ=1000 \(got 100\)$"):
        build.build(tree)
    assert [file.name for file in cache_folder.glob("kernels/*/build.log")] == ["build.log"]


# A tree whose Makefile does what kbuild does, without a compiler.
FAKE_KBUILD = """
allnoconfig:
\t@cp $(O)/asked.config $(O)/.config; sed -i /CONFIG_WIREGUARD/d $(O)/.config
linux:
\t@echo '  CC      net/ipv4/tcp.o'; echo '  LD      linux'; mkdir -p $(O)/include/config
\t@echo 7.3.4-rc1 > $(O)/include/config/kernel.release; cp $(LINUX) $(O)/linux
modules:
\t@if [ -n "$(M)" ]; then echo made > $(M)/tcp_prague.ko; fi
"""


@pytest.mark.skipif(
    bool(build_tools.missing_tools()), reason=f"not installed: {', '.join(build_tools.missing_tools())}"
)
def test_a_build_is_registered_with_its_module_and_fingerprint(tmp_path, cache_folder, monkeypatch):
    tree = linux_tree(tmp_path / "linux")
    with (tree / "Makefile").open("a") as makefile:
        makefile.write(FAKE_KBUILD)
    monkeypatch.setenv("LINUX", str(executable(tmp_path / "fake", "#!/bin/sh\n")))
    module = tmp_path / "tcp_prague"
    module.mkdir()
    (module / "Kbuild").write_text("obj-m := tcp_prague.o\n")
    steps: list[tuple[str, int]] = []
    kernel = build.build(tree, name="mine", modules=[module], progress=lambda *step: steps.append(step))
    assert ("CC net/ipv4/tcp.o", 1) in steps
    # What is built in; modules lie elsewhere, and have UML's own code model.
    assert " CFLAGS_KERNEL=-mcmodel=small " in (kernel.binary.parent / "build.log").read_text()
    assert kernel == registry.get("mine")
    assert registry.list_kernels() == [kernel]
    assert kernel.release == "7.3.4-rc1"
    assert kernel.not_granted == ("WIREGUARD",)
    assert [path.read_text() for path in kernel.modules] == ["made\n"]
    assert sorted(path.name for path in module.iterdir()) == ["Kbuild"]
    assert list(cache_folder.glob("seed-*.so")), "runs have their seeds where there is no compiler later"
    assert build.build(tree, name="mine", modules=[module]).fingerprint == kernel.fingerprint
    plain = build.build(tree, name="plain")
    assert plain.fingerprint != kernel.fingerprint
    fragment = tmp_path / "debug.config"
    fragment.write_text("CONFIG_DEBUG_NET=y\n# CONFIG_USER_NS is not set\n")
    debug = build.build(tree, name="debug", fragments=[fragment])
    assert debug.fingerprint != plain.fingerprint
    assert (plain.options.get("USER_NS"), debug.options["USER_NS"], debug.options["DEBUG_NET"]) == ("y", "n", "y")
