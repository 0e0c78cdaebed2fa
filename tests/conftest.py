"""What every test process begins with, and what is there once for all tests."""

import fcntl
import functools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import typer
from hypothesis import settings

from bakeoff.engines.kernel import host_programs, registry, virtual
from bakeoff.engines.lab import agent
from bakeoff.errors import BakeoffError
from bakeoff.scenario import catalog
from fakes import CATALOG, TESTS
from kernel_boots import guest

# No test takes its runs from what another one, or an earlier day, has stored.
os.environ["BAKEOFF_STORE"] = "none"

# A shell that starts the tests in the background has them and their children ignore Ctrl-C; several tests send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Several hundred tests call the command line in their own process, and each call would put its commands together anew,
# which takes some hundredths of a second.
typer.main.get_command = functools.cache(typer.main.get_command)

# No test depends on how fast the machine is.
settings.register_profile("bakeoff", deadline=None)
settings.load_profile("bakeoff")

# Each takes half a minute or more by itself.
LONG = ("test_rust_cc", "test_tutorials", "test_wheel", "test_docs_site")

NAMED = os.environ.get("BAKEOFF_TEST_KERNEL")


def pytest_collection_modifyitems(items):
    """What takes long begins first: at the end, one process would be at it while the others have nothing left.

    Then what reads the whole catalog, side by side, so that one process does it and expands the catalog once. What
    boots a kernel has the mark `kernel`.
    """
    for item in items:
        if "real_kernel" in item.fixturenames:
            item.add_marker("kernel")
    items.sort(key=lambda item: 0 if item.path.stem in LONG else 1 if "every_run" in item.fixturenames else 2)


@pytest.fixture(scope="session")
def every_run():
    """All runs of the catalog."""
    return catalog.select(["*"])


@pytest.fixture(scope="session")
def real_kernel():
    """A real kernel that boots here: BAKEOFF_TEST_KERNEL (a name or a path), or the newest that was built."""
    # Who names a kernel wants to have it tested.
    lacking = pytest.skip if NAMED is None else pytest.fail
    if NAMED is None and not registry.list_kernels():
        pytest.skip("no virtual-time kernel was built here, and BAKEOFF_TEST_KERNEL names none")
    for program in ("ip", "tc"):
        if host_programs.find(program) is None:
            lacking(f"{program} is not installed")
    built = virtual.choose(NAMED).kernel
    with tempfile.TemporaryDirectory() as folder:
        outcome = guest(built, Path(folder), do="random")["outcome"]
    if outcome.status == "not-started":
        lacking(f"the sandbox forbids User-Mode Linux: {outcome.reason}")
    assert outcome.status == "ok", outcome.reason
    return built


@pytest.fixture(scope="session")
def built_agent():
    """Traffic on real kernels needs it."""
    try:
        return agent.find()
    except BakeoffError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kernel(real_kernel, built_agent):
    """The engine's name for `real_kernel` in virtual time."""
    return "kernel" if NAMED is None else f"kernel:{NAMED}"


@pytest.fixture(scope="session")
def record(real_kernel):
    """`bakeoff.replay.record` with `real_kernel`."""
    from bakeoff import replay

    return lambda jobs: replay.record(jobs, kernel=NAMED)


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch):
    # pytest-xdist exports its own width to the workers.
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def cli(monkeypatch, capsys):
    """Call the command line: the exit code, standard output and standard error."""
    from bakeoff.cli import main

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["bakeoff", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return int(ended.value.code or 0), out, err

    return call


@pytest.fixture
def fake_engine(monkeypatch):
    """The catalog of the fake engine, here and in the processes that a test starts, which find the engine too."""
    monkeypatch.setenv("BAKEOFF_CATALOG", str(CATALOG))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent / "python")]))


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """An empty cache of bakeoff's, which need not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bakeoff"


@pytest.fixture
def alone():
    """Namespaces and machines have fixed names: one test at a time makes them, of all processes that test here."""
    with Path(tempfile.gettempdir(), "bakeoff-tests.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def tmpfs(tmp_path):
    """Mount a file system with given limits; skipped where that is not allowed."""
    mounted = []

    def mount(options: str) -> Path:
        folder = tmp_path / f"tmpfs{len(mounted)}"
        folder.mkdir()
        command = ["/bin/mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("cannot mount a tmpfs here (needs root)")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["/bin/umount", str(folder)], check=True)
