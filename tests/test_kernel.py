"""The kernel engine's ground: fragments, sources, builds, the registry, boots; the last part boots a real kernel.

Real boots need a kernel: BAKEOFF_TEST_KERNEL (a name or a path), or any that 'bakeoff kernel build' has made here. They
are skipped where there is none, and where the sandbox does not let one start.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bakeoff import doctor
from bakeoff.engines.kernel import boot, build, check, config, programs, registry, source
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.errors import BakeoffError

GUEST = Path(__file__).with_name("kernel_guest.py")


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bakeoff"


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


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
    fragments = config.folder() / "config"
    required, wanted = (config.read(fragments / name) for name in ("required.config", "wanted.config"))
    assert required["UML_TIME_TRAVEL_SUPPORT"] == "y"
    assert required["HZ"] == str(build.HZ)
    assert not set(required) & set(wanted)


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
        (lambda path: linux_tree(path / "old", "6.5.9"), "Linux 6.5.9-rc1 is too old; virtual time needs 6.6 or later"),
        (lambda path: linux_tree(path / "no-um", um=False), "Linux 7.3.4-rc1 without arch/um"),
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


def test_missing_tools_are_named_with_their_packages(tmp_path, monkeypatch):
    tree = linux_tree(tmp_path / "linux")
    for tool in build.TOOLS:
        if tool not in {"flex", "bison"}:
            executable(tmp_path / tool, "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BakeoffError, match="missing to build a kernel: flex, bison; install: bison flex"):
        build.build(tree)


def test_a_folder_without_a_makefile_is_no_module(tmp_path):
    with pytest.raises(BakeoffError, match="not a folder with a Makefile or Kbuild"):
        build.build(linux_tree(tmp_path / "linux"), modules=[tmp_path])


@pytest.mark.parametrize("name", ["../x", "", "-x", "a b", "a/b"])
def test_a_bad_name_is_refused(tmp_path, name):
    with pytest.raises(BakeoffError, match="expected letters, digits"):
        build.build(linux_tree(tmp_path / "linux"), name=name)


@pytest.mark.skipif(bool(build.missing_tools()), reason=f"not installed: {', '.join(build.missing_tools())}")
def test_a_failing_compiler_is_quoted_and_the_kernel_is_not_listed(tmp_path, cache_folder):
    tree = linux_tree(tmp_path / "linux")
    with (tree / "Makefile").open("a") as makefile:
        makefile.write("allnoconfig:\n\t@echo 'tcp.c:1:2: error: no such thing'; false\n")
    with pytest.raises(BakeoffError, match=r"does not build: tcp\.c:1:2: error: no such thing\n  log: .*build\.log"):
        build.build(tree, name="broken")
    assert "no such thing" in (cache_folder / "kernels" / "broken" / "build.log").read_text()
    assert registry.list_kernels() == []


@pytest.mark.skipif(bool(build.missing_tools()), reason=f"not installed: {', '.join(build.missing_tools())}")
def test_a_tree_that_does_not_grant_what_is_required_is_refused(tmp_path):
    tree = linux_tree(tmp_path / "linux")
    with (tree / "Makefile").open("a") as makefile:
        makefile.write(
            "allnoconfig:\n\t@cp $(O)/asked.config $(O)/.config; sed -i s/CONFIG_HZ=1000/CONFIG_HZ=100/ $(O)/.config\n"
        )
    with pytest.raises(BakeoffError, match=r"does not grant what every run needs: CONFIG_HZ=1000 \(got 100\)$"):
        build.build(tree)


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


@pytest.mark.skipif(bool(build.missing_tools()), reason=f"not installed: {', '.join(build.missing_tools())}")
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
    assert kernel == registry.get("mine")
    assert registry.list_kernels() == [kernel]
    assert kernel.release == "7.3.4-rc1"
    assert kernel.not_granted == ("WIREGUARD",)
    assert [path.read_text() for path in kernel.modules] == ["made\n"]
    assert sorted(path.name for path in module.iterdir()) == ["Kbuild"]
    assert build.build(tree, name="mine", modules=[module]).fingerprint == kernel.fingerprint
    assert build.build(tree, name="plain").fingerprint != kernel.fingerprint


# Registry


def fake_linux(
    path: Path, body: str, options: str = "CONFIG_UML=y\nCONFIG_UML_TIME_TRAVEL_SUPPORT=y\nCONFIG_HZ=1000"
) -> Path:
    text = f"#!/bin/sh\ncase $1 in --showconfig) echo '{options}'; exit;; --version) echo 7.3.4; exit;; esac\n{body}\n"
    return executable(path, text)


def test_a_kernel_by_path_says_what_it_is(tmp_path):
    kernel = registry.get(fake_linux(tmp_path / "linux", ""))
    assert (kernel.release, kernel.options["HZ"]) == ("7.3.4", "1000")
    assert re.fullmatch("[0-9a-f]{64}", kernel.fingerprint)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("CONFIG_UML=y", "no virtual time (CONFIG_UML_TIME_TRAVEL_SUPPORT is not set)"),
        ("CONFIG_X86=y", "not a User-Mode-Linux kernel"),
        ("hello", "not a User-Mode-Linux kernel"),
    ],
)
def test_a_kernel_without_virtual_time_is_refused(tmp_path, options, message):
    with pytest.raises(BakeoffError, match=re.escape(message)):
        registry.get(fake_linux(tmp_path / "linux", "", options))


def test_an_unknown_kernel_is_refused_with_those_there_are(tmp_path, cache_folder):
    with pytest.raises(BakeoffError, match="no kernel 'mine'; built here: none yet"):
        registry.get("mine")
    with pytest.raises(BakeoffError, match="no such kernel"):
        registry.get(tmp_path / "linux")
    (tmp_path / "text").write_text("x")
    with pytest.raises(BakeoffError, match="not executable"):
        registry.get(tmp_path / "text")


def test_a_damaged_kernel_is_named_and_not_listed(cache_folder):
    folder = cache_folder / "kernels" / "mine"
    folder.mkdir(parents=True)
    (folder / "build.json").write_text('{"format": 1}')
    with pytest.raises(BakeoffError, match=r"build\.json: damaged"):
        registry.get("mine")
    assert registry.list_kernels() == []


# Boots of a fake kernel: a shell script that says on the console what the real one would


BANNER = "echo 'Linux version 7.3.4 (x) #1'; echo '[    0.000000] Run /init as init process'; "


@pytest.fixture
def boot_fake(tmp_path):
    (tmp_path / "results").mkdir()
    script = tmp_path / "script.json"
    script.write_text("{}")
    init = executable(tmp_path / "init", "#!/bin/sh\n")

    def run(body: str) -> boot.Outcome:
        kernel = registry.get(fake_linux(tmp_path / "linux", body))
        return boot.boot(kernel, script, results=tmp_path / "results", init=init, simulated_s=1, seed=1)

    return run


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (BANNER + "echo 'reboot: Power down'", "ok", ""),
        (
            BANNER + "echo 'Kernel panic - not syncing: Fatal exception in interrupt'; kill -ABRT $$",
            "panic",
            "kernel panic: Fatal exception in interrupt",
        ),
        (
            BANNER + "echo 'bakeoff-agent: no plan'; "
            "echo 'Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200'; kill -ABRT $$",
            "init-ended",
            "PID 1 (the agent) ended with exit code 2; it said: 'bakeoff-agent: no plan'",
        ),
        (
            "echo 'Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b'; kill -ABRT $$",
            "init-ended",
            "PID 1 (the agent) was killed by SIGSEGV",
        ),
        (
            BANNER + "echo 'Kernel panic - not syncing: Requested init /x failed (error -8).'; kill -ABRT $$",
            "failed",
            "PID 1 cannot be executed in the guest: Requested init /x failed (error -8).",
        ),
        (
            BANNER + "echo 'write: No space left on device'; echo 'reboot: Power down'",
            "disk-full",
            "no space left where the results are written",
        ),
        (BANNER + "kill -BUS $$", "disk-full", "no space left for the guest's memory"),
        (BANNER + "exit 3", "failed", "the kernel process ended with exit code 3 without powering off"),
        (BANNER + "kill -SEGV $$", "failed", "the kernel process was killed by SIGSEGV"),
        (
            "echo 'ptrace: Operation not permitted'; exit 1",
            "not-started",
            "last line: 'ptrace: Operation not permitted'",
        ),
    ],
)
def test_how_a_boot_ended_is_read_from_the_console(boot_fake, tmp_path, body, status, reason):
    outcome = boot_fake(body)
    assert (outcome.status, outcome.reason[: len(reason)] if status != "not-started" else outcome.reason) == (
        status,
        reason if status != "not-started" else f"this machine does not let the kernel start; {reason}",
    )
    assert outcome.console == tmp_path / "results" / "console.log"
    assert outcome.console.stat().st_size > 0


def gone(pid: int) -> bool:
    """Whether a process ended, at the latest after five seconds. A zombie that nobody reaps counts as ended."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_a_hang_is_killed_with_all_its_processes(boot_fake, tmp_path, monkeypatch):
    monkeypatch.setattr(boot, "_STARTUP_S", -1.5)
    # 0.5 s of wall time = -1.5 s + 1 simulated second × 2 s
    outcome = boot_fake(BANNER + f"sleep 1000 & echo $! $$ > {tmp_path}/results/pids; echo waiting; wait")
    assert outcome.status == "hang"
    assert (
        "did not end within its budget of 0 s (60 s + 1 simulated seconds × 2 s); last console line: 'waiting'"
        in outcome.reason
    )
    for pid in map(int, (tmp_path / "results" / "pids").read_text().split()):
        assert gone(pid)


def test_a_flood_on_the_console_is_stopped(boot_fake, monkeypatch):
    monkeypatch.setattr(boot, "_CONSOLE_LIMIT", 1 << 20)
    outcome = boot_fake(BANNER + "yes flood | head -c 2000000; sleep 1000")
    assert (outcome.status, outcome.reason[:28]) == ("failed", "more than 1 MiB on the conso")


INTERRUPTED = """
import sys
from pathlib import Path
from bakeoff.engines.kernel import boot, registry
here = Path(sys.argv[1])
kernel = registry.get(here / "linux")
boot.boot(kernel, here / "script.json", results=here / "results", init=here / "init", simulated_s=100)
"""


def start_and_signal(folder: Path, number: int) -> list[int]:
    """Boot in a process of its own, signal it as soon as the fake kernel has written its process ids, return them."""
    (folder / "results").mkdir()
    (folder / "script.json").write_text("{}")
    executable(folder / "init", "#!/bin/sh\n")
    environment = os.environ | {"PYTHONPATH": str(Path(boot.__file__).parents[3])}
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(folder)], env=environment, stderr=subprocess.DEVNULL
    )
    written = folder / "results" / "pids"
    for _ in range(1000):
        if written.is_file() and written.read_text().endswith("\n"):
            break
        time.sleep(0.01)
    process.send_signal(number)
    process.wait(timeout=10)
    return [int(word) for word in written.read_text().split()]


def test_ctrl_c_leaves_no_process(tmp_path):
    fake_linux(tmp_path / "linux", f"sleep 1000 & echo $! $$ > {tmp_path}/results/pids; wait")
    for pid in start_and_signal(tmp_path, signal.SIGINT):
        assert gone(pid)


def test_the_kernel_dies_with_a_parent_that_was_killed(tmp_path):
    fake_linux(tmp_path / "linux", f"echo $$ > {tmp_path}/results/pids; exec sleep 1000")
    for pid in start_and_signal(tmp_path, signal.SIGKILL):
        assert gone(pid)


@pytest.mark.skipif(not boot.has_landlock(), reason="this host's kernel has no Landlock")
def test_landlock_keeps_the_kernel_process_to_its_folders(boot_fake, tmp_path):
    outcome = boot_fake(
        BANNER + f"echo in > {tmp_path}/results/inside; echo out > {tmp_path}/outside; rm {tmp_path}/script.json; "
        f"echo m > $TMPDIR/memory && echo 'memory is writable'; echo x > /dev/null && echo 'reboot: Power down'"
    )
    assert outcome.status == "ok"
    assert outcome.confined
    assert (tmp_path / "results" / "inside").read_text() == "in\n"
    assert not (tmp_path / "outside").exists()
    assert (tmp_path / "script.json").exists()
    assert "memory is writable" in outcome.console.read_text()


def test_the_command_line_is_the_same_for_every_run(tmp_path):
    kernel = BuiltKernel("x", tmp_path / "linux", "7.3.4", "", {})
    first = boot.command_line(kernel, memory="256M", uml_dir=tmp_path / "a")
    second = boot.command_line(kernel, memory="256M", uml_dir=tmp_path / "b")
    # uml_dir= is the one word that UML takes out before the guest sees its command line.
    assert [word for word in first if not word.startswith("uml_dir=")] == [
        word for word in second if not word.startswith("uml_dir=")
    ]
    assert {"time-travel=inf-cpu", "seccomp=auto", "ro", "rootfstype=hostfs"} <= set(first)
    old = BuiltKernel("x", tmp_path / "linux", "6.6.8", "", {})
    assert "seccomp=auto" not in boot.command_line(old, memory="256M", uml_dir=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory": "256"}, "memory '256': expected a number and K, M or G"),
        ({"results": Path("/nonexistent")}, "no such results folder"),
        ({"init": Path("/etc/passwd")}, "not executable"),
    ],
)
def test_bad_arguments_of_a_boot_are_refused(tmp_path, change, message):
    (tmp_path / "script.json").write_text("{}")
    arguments = {"results": tmp_path, "init": Path("/bin/sh"), "simulated_s": 1.0} | change
    kernel = registry.get(fake_linux(tmp_path / "linux", ""))
    with pytest.raises(BakeoffError, match=re.escape(message)):
        boot.boot(kernel, tmp_path / "script.json", **arguments)


# What a kernel cannot run


def report(*findings: check.Finding, adds: dict[str, list[str]] | None = None) -> check.Report:
    return check.Report("mine", "7.3.4", "0", findings, adds or {"cc": [], "qdisc": []})


def test_missing_names_every_place_that_a_kernel_cannot_serve():
    run = {
        "flows": [
            {"name": "a", "cc": "prague@2020-08", "transport": "tcp"},
            {"name": "b", "cc": "cubic"},
            {"name": "c", "cc": "own"},
        ],
        "interfaces": [
            {"egress": {"qdisc": "htb default 1", "classes": [{"id": "1", "child": {"qdisc": "cnq_codel_af"}}]}}
        ],
        "changes": [{"action": {"kind": "qdisc-replace", "qdisc": "made_up limit 5"}}],
        "point": {"qdisc": "words of the matrix"},
    }
    known = report(
        check.Finding("cc", "prague", False, "CONFIG_TCP_CONG_PRAGUE is not set"),
        check.Finding("cc", "cubic", True, ""),
        check.Finding("qdisc", "htb", True, ""),
        check.Finding("qdisc", "cnq_codel_af", False, "CONFIG_NET_SCH_CNQ_CODEL_AF is not set"),
        adds={"cc": ["own"], "qdisc": []},
    )
    assert check.missing(run, known) == [
        "flows[0].cc: 'prague': CONFIG_TCP_CONG_PRAGUE is not set",
        "interfaces[0].egress.classes[0].child.qdisc: 'cnq_codel_af': CONFIG_NET_SCH_CNQ_CODEL_AF is not set",
        "changes[0].action.qdisc: 'made_up' is not in kernel mine",
    ]
    with pytest.raises(BakeoffError, match=r"s1\.yaml: flows\[0\]\.cc: 'prague'"):
        check.require(run, known, place="s1.yaml")


@pytest.mark.parametrize("program", ["ip", "tc"])
def test_check_without_ip_or_tc_names_the_package(tmp_path, monkeypatch, program):
    kernel = registry.get(fake_linux(tmp_path / "linux", ""))
    monkeypatch.setattr(programs, "find", lambda name: None if name == program else Path("/bin/true"))
    with pytest.raises(BakeoffError, match=f"{program} is not installed; install: iproute2"):
        check.check_kernel(kernel)


def test_a_borrowed_program_is_found_before_the_systems_own(cache_folder):
    assert programs.find("made-up-program") is None
    (cache_folder / "programs" / "bin").mkdir(parents=True)
    mine = executable(
        cache_folder / "programs" / "bin" / "tc", "#!/bin/sh\necho tc utility, iproute2-7.2.0, libbpf 1.7.0\n"
    )
    assert programs.find("tc") == mine
    assert programs.iproute2_version(mine) == (7, 2)
    assert programs.search_path().startswith(str(mine.parent))


# Doctor


def test_the_doctor_names_what_is_missing_and_the_package(cache_folder, monkeypatch):
    monkeypatch.setattr(programs, "find", lambda _: None)
    monkeypatch.setattr(build, "missing_tools", lambda: {"flex": "flex", "bison": "bison"})
    monkeypatch.setattr(doctor, "_capabilities", lambda: 1 << 12)
    lines = {(line.area, line.name): line for line in doctor.report()}
    assert lines["kernel", "virtual-time kernel"].status == "missing"
    assert lines["kernel", "virtual-time kernel"].install == "bakeoff kernel build --source DIR|TARBALL"
    assert (lines["kernel", "tc"].status, lines["kernel", "tc"].install) == ("missing", "iproute2")
    assert (lines["kernel", "build tools"].status, lines["kernel", "build tools"].install) == ("limited", "bison flex")
    assert lines["netns", "privilege"].detail == "this process has no CAP_SYS_ADMIN"
    assert all(line.detail and "\n" not in line.detail for line in lines.values())
    json.dumps([line.to_json() for line in lines.values()])


def test_the_doctor_tells_an_old_tc(tmp_path, cache_folder, monkeypatch):
    old = executable(tmp_path / "tc", "#!/bin/sh\necho tc utility, iproute2-6.1.0, libbpf 1.1.0\n")
    monkeypatch.setattr(programs, "find", lambda _: old)
    line = next(line for line in doctor.report() if (line.area, line.name) == ("kernel", "tc"))
    assert (line.status, line.install) == ("limited", "kernel/fetch-programs --suite SUITE")


# The real kernel


@pytest.fixture(scope="session")
def real_kernel():
    named = os.environ.get("BAKEOFF_TEST_KERNEL")
    kernels = [registry.get(named)] if named else registry.list_kernels()
    if not kernels:
        pytest.skip("no virtual-time kernel was built here, and BAKEOFF_TEST_KERNEL names none")
    for program in ("ip", "tc"):
        if programs.find(program) is None:
            pytest.skip(f"{program} is not installed")
    with tempfile.TemporaryDirectory() as folder:
        answer = guest(kernels[0], Path(folder), do="random")
    if answer["outcome"].status == "not-started":
        pytest.skip(f"the sandbox forbids User-Mode Linux: {answer['outcome'].reason}")
    return kernels[0]


def guest(kernel: BuiltKernel, folder: Path, *, simulated_s: float = 20.0, seed: int = 1, **words: object) -> dict:
    """Boot kernel_guest.py with these words; its answer and the outcome."""
    results = folder / "results"
    results.mkdir(parents=True)
    script = folder / "script.json"
    script.write_text(json.dumps({"results": str(results), "path": programs.search_path(), **words}))
    init = executable(folder / "init", f"#!{sys.executable} -IS\n{GUEST.read_text()}")
    outcome = boot.boot(kernel, script, results=results, init=init, simulated_s=simulated_s, seed=seed)
    path = results / "answer.json"
    answer = json.loads(path.read_text()) if path.is_file() else {}
    assert "error" not in answer, answer["error"]
    return {"outcome": outcome, **answer}


@pytest.mark.parametrize("nodes", [3, 16])
@pytest.mark.parametrize("delay_ms", [None, 0, 1, 5, 10, 40, 150])
def test_an_idle_path_shows_its_configured_delay(real_kernel, tmp_path, nodes, delay_ms):
    words = "" if delay_ms is None else f"{delay_ms}ms"
    answer = guest(real_kernel, tmp_path, do="ping", nodes=nodes, delay=words)
    assert answer["outcome"].status == "ok"
    # netem at both ports of the middle delays each direction once.
    expected_ns = 2 * (delay_ms or 0) * 1_000_000
    assert len(answer["answer"]) == 5
    for rtt_ns in answer["answer"]:
        assert 0 <= rtt_ns - expected_ns <= 10_000


def test_htb_computes_its_burst_for_high_resolution_timers(real_kernel, tmp_path):
    answer = guest(real_kernel, tmp_path, do="htb")
    # With nanosecond timers tc takes one packet (1600 B); with a coarse clock it would be 7850 B.
    assert "rate 50Mbit ceil 50Mbit burst 1600b cburst 1600b" in answer["answer"]


def test_the_guest_cannot_write_host_files(real_kernel, tmp_path):
    # The guest has a tmpfs of its own on /tmp, but sees the host's /var/tmp.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as outside:
        (Path(outside) / "marker").write_text("host")
        answer = guest(real_kernel, tmp_path / "run", do="write", outside=outside)
        assert answer["answer"][0] == "OSError: Read-only file system"
        if answer["outcome"].confined:
            # The host's kernel refuses what the guest's own kernel would allow.
            assert answer["answer"][1] == "PermissionError: Permission denied"
            assert [path.name for path in Path(outside).iterdir()] == ["marker"]


def test_the_same_seed_gives_the_same_random_numbers(real_kernel, tmp_path):
    seeds = [5, 5, 6]
    with ThreadPoolExecutor(2) as pool:
        answers = list(
            pool.map(lambda job: guest(real_kernel, tmp_path / str(job[0]), do="random", seed=job[1]), enumerate(seeds))
        )
    if not answers[0]["outcome"].seeded:
        pytest.skip("no C compiler for kernel/seed.c, or a statically linked kernel")
    first, again, other = (answer["answer"] for answer in answers)
    assert first == again
    assert first != other


def test_an_agent_that_ends_is_reported(real_kernel, tmp_path):
    outcome = guest(real_kernel, tmp_path, do="exit", code=3)["outcome"]
    assert (outcome.status, outcome.reason) == ("init-ended", "PID 1 (the agent) ended with exit code 3")


def test_a_guest_that_spins_is_killed(real_kernel, tmp_path, monkeypatch):
    monkeypatch.setattr(boot, "_STARTUP_S", 3.0)
    before = {path.name for path in Path("/proc").iterdir() if path.name.isdigit()}
    outcome = guest(real_kernel, tmp_path, do="hang", simulated_s=0)["outcome"]
    assert outcome.status == "hang"
    binary = str(real_kernel.binary)
    for pid in {path.name for path in Path("/proc").iterdir() if path.name.isdigit()} - before:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            assert binary.encode() not in words or str(tmp_path).encode() not in words or gone(int(pid))


RUNS_ITSELF = (
    "import hashlib, subprocess, sys; hashlib.file_digest; subprocess.run([sys.executable, '-c', ''], check=True)"
)
AS_NOBODY = """
import sys
from pathlib import Path
from bakeoff.engines.kernel import boot, registry
here = Path(sys.argv[1])
kernel = registry.get(here / "linux")
outcome = boot.boot(kernel, here / "script.json", results=here / "home", init=here / "init", simulated_s=20)
print(outcome.status, outcome.exit_code)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: the other tests are unprivileged already")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_no_root_is_needed(real_kernel):
    """As user 65534 without capabilities, in a folder that this user can read, with one that it can write."""
    user = [
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]
    pythons = [
        python
        for python in (sys.executable, "/usr/bin/python3")
        if subprocess.run([*user, python, "-c", RUNS_ITSELF], capture_output=True, check=False).returncode == 0
    ]
    if not pythons:
        pytest.skip("no Python 3.11 that another user can execute")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(real_kernel.binary, folder / "linux")
        for part in ("python", "kernel"):
            shutil.copytree(
                Path(__file__).parents[1] / part, folder / part, ignore=shutil.ignore_patterns("__pycache__")
            )
        home = folder / "home"
        home.mkdir()
        home.chmod(0o777)
        script = {
            "results": str(home),
            "path": "/usr/sbin:/usr/bin:/sbin:/bin",
            "do": "ping",
            "nodes": 3,
            "delay": "10ms",
        }
        (folder / "script.json").write_text(json.dumps(script))
        executable(folder / "init", f"#!{pythons[0]} -IS\n{GUEST.read_text()}")
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{folder}/python", "XDG_CACHE_HOME": f"{home}/cache"}
        done = subprocess.run(
            [*user, pythons[0], "-B", "-c", AS_NOBODY, str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == ["ok", "0"], done.stderr
        rtts_ns = json.loads((home / "answer.json").read_text())["answer"]
        # 2 × 10 ms
        assert all(20_000_000 <= rtt_ns <= 20_010_000 for rtt_ns in rtts_ns)
