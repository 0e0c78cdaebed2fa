"""What every test process begins with."""

import fcntl
import os
import signal
import tempfile
from pathlib import Path

import pytest

from bakeoff.engines.kernel import registry, virtual
from bakeoff.engines.lab import agent
from bakeoff.errors import BakeoffError

# A shell that starts the tests in the background has them and their children ignore Ctrl-C; several tests send one.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def kernel():
    """The engine's name for a real kernel in virtual time: BAKEOFF_TEST_KERNEL, or the one that was built here."""
    name = os.environ.get("BAKEOFF_TEST_KERNEL")
    if name is None and not registry.list_kernels():
        pytest.skip("no virtual-time kernel was built here, and BAKEOFF_TEST_KERNEL names none")
    try:
        agent.find()
        report = virtual.VirtualTime(name).report
    except BakeoffError as error:
        pytest.skip(str(error))
    if not report.names("boot"):
        pytest.skip(f"the sandbox forbids User-Mode Linux: {report.findings[0].why}")
    return "kernel" if name is None else f"kernel:{name}"


@pytest.fixture
def alone():
    """Namespaces and machines have fixed names: one test at a time makes them, of all processes that test here."""
    with Path(tempfile.gettempdir(), "bakeoff-tests.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
