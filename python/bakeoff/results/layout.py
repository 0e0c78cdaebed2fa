"""Names inside a results folder, and the marks of incomplete folders."""

import re
from typing import Final

FORMAT: Final = 1
CAMPAIGN: Final = "campaign.json"
RUN: Final = "run.json"
SERIES: Final = "series.parquet"
TRACE: Final = "trace.parquet"
COUNTERS: Final = "counters.json"
SUMMARY: Final = "summary.json"
MEASURED: Final = "measured.json"
SETUP_LOG: Final = "setup.log"
TEARDOWN_LOG: Final = "teardown.log"
PROGRAMS: Final = "programs"
"""The folder of the programs that ran in the network; each has a folder of its own there."""
PROGRAM_OUT: Final = "stdout"
PROGRAM_ERR: Final = "stderr"

_PARTIAL = re.compile(r"\..+\.\d+\.partial")


def capture(name: str) -> str:
    """The file of the packets at the interface `name`: leaving (`mid>srv`) or arriving (`mid<srv`).

    Engines write it; then `packed_captures.pack` compresses it.
    """
    return name.replace(">", "-to-").replace("<", "-from-") + ".pcapng"


def both_ways(name: str) -> str:
    """The compressed file of the packets that leave and arrive at an interface, from the name of one direction."""
    node, _, peer = name.replace("<", ">").partition(">")
    return f"{node}-{peer}.pcapng.gz"


def partial_name(name: str, pid: int) -> str:
    """The name under which process `pid` writes the folder `name`."""
    return f".{name}.{pid}.partial"


def is_partial(name: str) -> bool:
    """Whether a folder of this name is being written, or was left by a crash."""
    return _PARTIAL.fullmatch(name) is not None
