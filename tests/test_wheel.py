"""The wheel in an empty environment: what it holds, and that every command works from it, far from the repository.

The wheel is made as pip makes it, from the extension and the agent that `make setup agent` left in target/ by the
profile BAKEOFF_TEST_PROFILE (`make test` sets it; `release` otherwise), so that cargo has nothing to compile: this
tests what is packed and how it is found, not the compiler. The environment is a
fresh venv in a temporary folder. Links to the distributions that the wheel's metadata asks for, and to nothing else,
stand in for their download: a dependency that nobody declared is missing here too.
"""

import fcntl
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROFILE = os.environ.get("BAKEOFF_TEST_PROFILE", "release")
MINE = """\
scenario: mine
duration: 2s
network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: "{qdisc}"}}
flows: [{name: a, cc: prague}, {name: b, cc: cubic}]
vary: {qdisc: [fq_codel, pie]}
measure: {steady_state: {window: 1s, ends: at end}}
"""
SCRIPT = """\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 8>
"""


def clean() -> dict[str, str]:
    """The environment without what leads to the checkout or to the venv that these tests run in."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BAKEOFF", "VIRTUAL"))}


def backend(call: str) -> str:
    """What packaging/backend.py returns, called as pip calls it: with the project as working folder."""
    program = f"import sys; sys.path.insert(0, 'packaging'); import backend; print(backend.{call})"
    environment = clean() | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def needed(requires: list[str], found: dict[str, PathDistribution]) -> dict[str, PathDistribution]:
    """The installed distributions that the requirements name, and those that these ask for in turn."""
    for line in requires:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if requirement.name.lower() not in found:
            found[requirement.name.lower()] = distribution(requirement.name)
            needed(found[requirement.name.lower()].requires or [], found)
    return found


def environment(folder: Path, wheel: Path) -> Path:
    """A venv in `folder` with the wheel installed; the folder of its programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    with zipfile.ZipFile(wheel) as file:
        metadata = next(name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        requires = [
            line.removeprefix("Requires-Dist: ")
            for line in file.read(metadata).decode().splitlines()
            if line.startswith("Requires-Dist: ")
        ]
    for dependency in needed(requires, {}).values():
        tops = {path.parts[0] for path in dependency.files or [] if path.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(dependency.locate_file(top))))
    # Without an index pip can only find out that everything that the wheel asks for is there.
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-index"]
    done = subprocess.run([*pip, str(wheel)], cwd=folder, env=clean(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "bin"


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> tuple[Path, Path]:
    """(the wheel, the folder of programs of a venv that holds it), made once for all processes of a test session."""
    if not all((ROOT / "target" / PROFILE / name).is_file() for name in ("lib_sim.so", "bakeoff-agent")):
        pytest.skip(f"nothing is compiled in target/{PROFILE}: 'make setup agent' does it, in minutes")
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "wheel"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "bin").exists():
            arguments = f"--profile {PROFILE} --locked --compatibility pypi"
            backend(f"build_wheel({str(shared)!r}, {{'build-args': {arguments!r}}})")
            (shared / "bin").symlink_to(environment(shared / "venv", next(shared.glob("*.whl"))))
    return next(shared.glob("*.whl")), (shared / "bin").resolve()


@pytest.fixture
def bakeoff(installed, tmp_path):
    """Call the installed program in an empty folder far from the repository; what it printed."""

    def call(*arguments: str, code: int = 0, path: str | None = None) -> subprocess.CompletedProcess[str]:
        told = clean() | {"PATH": f"{installed[1]}:{os.environ['PATH']}" if path is None else path}
        command = [str(installed[1] / "bakeoff"), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=told, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    return call


def test_it_holds_the_catalog_the_kernels_files_the_agent_and_the_commit(installed):
    wheel, _ = installed
    assert wheel.name.startswith("bakeoff-")
    # One wheel for every Python from 3.11 on, and a tag that promises no older C library than was linked against.
    assert "-cp311-abi3-manylinux_2_" in wheel.name
    known = subprocess.run(
        ["git", "ls-files", "catalog", "kernel"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        for name in known:
            assert file.read(f"bakeoff/data/{name}") == (ROOT / name).read_bytes(), name
        agent = file.getinfo("bakeoff/bin/bakeoff-agent")
        assert agent.external_attr >> 16 & 0o111 == 0o111
        commit, _, state = file.read("bakeoff/built-from.txt").decode().strip().partition(" ")
    assert len(commit) == 40
    assert state in ("clean", "dirty")
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert not (ROOT / "python" / "bakeoff" / "bin").exists(), "what was put beside the sources is taken away again"


def test_the_agent_is_made_for_the_machine_that_the_wheel_is_for():
    # Neither pip install of a checkout nor of an sdist gives any argument.
    assert backend("target([])") == "None"
    assert backend("target(['--locked', '--target', 'aarch64-unknown-linux-gnu'])") == "aarch64-unknown-linux-gnu"
    assert backend("target(['--zig', '--target=aarch64-unknown-linux-gnu'])") == "aarch64-unknown-linux-gnu"


def test_the_agent_is_compiled_by_the_profile_of_the_extension():
    assert backend("profile([])") == "release"
    assert backend("profile(['--profile', 'ci', '--locked'])") == "ci"


def test_two_builds_in_one_tree_wait_for_each_other():
    inside = "fcntl.flock((backend.ROOT / 'target' / 'packaging.lock').open('w'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    program = f"import fcntl, backend\nwith backend._alone():\n    {inside}"
    told = clean() | {"PYTHONPATH": str(ROOT / "packaging")}
    done = subprocess.run([sys.executable, "-c", program], env=told, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("BlockingIOError")


def test_the_agent_is_linked_statically_and_starts(installed):
    _, programs = installed
    agent = next((programs.parent / "lib").glob("python*/site-packages/bakeoff/bin/bakeoff-agent"))
    said = subprocess.run([str(agent), "--version"], env={}, capture_output=True, text=True, check=True).stdout
    assert said.startswith("bakeoff-agent ")
    # PT_INTERP, the name of a dynamic loader, is what a dynamically linked program has.
    assert b"/lib64/ld-linux" not in agent.read_bytes()[:4096]


def test_the_catalog_is_that_of_the_checkout(bakeoff, cli):
    assert bakeoff("list").stdout == cli("list")[1]
    assert bakeoff("show", "l4s-tests/s6-rfc3168").stdout == (
        ROOT / "catalog" / "suites" / "l4s-tests" / "s6-rfc3168.yaml"
    ).read_text(encoding="utf-8")


def test_a_file_of_ones_own_runs_and_becomes_a_table_and_a_plot(bakeoff, tmp_path):
    (tmp_path / "mine.yaml").write_text(MINE)
    bakeoff("run", "mine.yaml", "--out", "results/mine")
    table = bakeoff("table", "results/mine", "--format", "csv").stdout
    assert "fq_codel" in table
    bakeoff("plot", "results/mine", "--out", "plots/")
    assert list((tmp_path / "plots").rglob("*.svg"))


def test_a_run_of_the_catalog_stands_beside_the_references(bakeoff):
    bakeoff("run", "linux/single/reno-pfifo-10ms", "--out", "results/reno")
    lines = bakeoff("compare", "results/reno", "linux").stdout.splitlines()
    # Of each measure, the distance of the one run that both have.
    assert {"goodput": "1", "drops": "1"}.items() <= {line.split()[0]: line.split()[1] for line in lines[3:]}.items()


def test_a_duel_a_schema_packetdrill_and_a_replay(bakeoff, tmp_path):
    assert "Mbit/s" in bakeoff("duel", "reno", "cubic", "--qdisc", "pie", "--duration", "2s").stdout
    assert json.loads(bakeoff("schema").stdout)["title"] == "bakeoff scenario"
    (tmp_path / "handshake.pkt").write_text(SCRIPT)
    assert "1 of 1 applicable scripts passed" in bakeoff("packetdrill", "handshake.pkt").stdout
    assert "dropped" in bakeoff("qdisc-replay", "fq_codel", "--arrivals", "tiny").stdout


def test_the_doctor_knows_where_it_is(bakeoff, installed):
    place = str(next((installed[1].parent / "lib").glob("python*/site-packages")) / "bakeoff")
    said = bakeoff("doctor").stdout
    assert f"the installation in {place}" in said.splitlines()[0]
    assert "engine sim: can run" in said
    found = {(line["area"], line["name"]): line for line in json.loads(bakeoff("doctor", "--json").stdout)}
    assert found["sim", "catalog"]["detail"].endswith(f"in {place}/data/catalog")
    assert found["kernel", "agent"]["detail"].startswith(f"{place}/bin/bakeoff-agent (version ")


def test_what_a_kernel_build_needs_is_checked_without_a_checkout(bakeoff, installed):
    assert "'bakeoff kernel fetch-source' fetches one" in bakeoff("kernel", "build", code=2).stderr
    bare = str(installed[1])
    for arguments in (("kernel", "build", "--source", "."), ("kernel", "fetch-source")):
        said = bakeoff(*arguments, code=2, path=bare).stderr
        assert "missing to build a kernel: gcc, make, flex, bison" in " ".join(said.split())
    assert "fetch-programs: apt-get is not installed" in bakeoff("kernel", "fetch-programs", code=2, path=bare).stderr


def test_the_kernel_engine_runs_with_the_wheels_agent(bakeoff, real_kernel):
    arguments = ("--qdisc", "fq_codel", "--duration", "2s", "--engine", f"kernel:{real_kernel.binary}")
    assert "Mbit/s" in bakeoff("duel", "reno", "cubic", *arguments).stdout


def test_the_sdist_holds_what_a_build_needs(tmp_path):
    name = backend(f"build_sdist({str(tmp_path)!r})")
    with tarfile.open(tmp_path / name) as file:
        file.extractall(tmp_path, filter="data")
    [folder] = [path for path in tmp_path.iterdir() if path.is_dir()]
    # Real files in the links' place, which maturin packs into a wheel by the same names.
    assert not [path for path in folder.rglob("*") if path.is_symlink()]
    for part in ("catalog", "kernel"):
        ours = subprocess.run(["git", "ls-files", part], cwd=ROOT, capture_output=True, text=True, check=True)
        for line in ours.stdout.split():
            assert (folder / "python" / "bakeoff" / "data" / line).read_bytes() == (ROOT / line).read_bytes(), line
    named = tomllib.loads((folder / "pyproject.toml").read_text())["build-system"]
    assert (folder / named["backend-path"][0] / f"{named['build-backend']}.py").is_file()
    assert len((folder / "python" / "bakeoff" / "built-from.txt").read_text().split()[0]) == 40
    # Every crate of the workspace is there, and the lock file fits them: the agent too is built from it.
    cargo = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
    done = subprocess.run(cargo, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"bakeoff-agent", "bakeoff-bindings", "bakeoff-sim"} <= {
        crate["name"] for crate in json.loads(done.stdout)["packages"]
    }
