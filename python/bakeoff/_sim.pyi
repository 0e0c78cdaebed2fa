"""The simulator. Written in Rust; see crates/bindings."""

from typing import TypedDict

import numpy as np
import numpy.typing as npt

class Samples(TypedDict):
    """Series i of `names` (kind, name, metric) has the rows where `series == i`."""

    time: npt.NDArray[np.float64]
    series: npt.NDArray[np.uint32]
    value: npt.NDArray[np.float64]
    names: list[tuple[str, str, str]]

class Outcome(Samples):
    """What a run gave; docs/results-folder.md has the meaning of every field."""

    counters: str
    setup: str
    teardown: str
    captures: dict[str, bytes]
    trace: Samples | None

class Packets(TypedDict):
    """The TCP segments of a capture: columns of equal length, in the order of the file."""

    ends: list[tuple[str, str]]
    """Source and destination (`10.0.0.1:5201`) of each direction of each connection, by first appearance."""
    at_ns: npt.NDArray[np.int64]
    """Since 1970."""
    direction: npt.NDArray[np.uint32]
    """Index into `ends`."""
    seq: npt.NDArray[np.uint32]
    ack: npt.NDArray[np.uint32]
    payload: npt.NDArray[np.uint32]
    """Bytes by the headers."""
    flags: npt.NDArray[np.uint16]
    """FIN is bit 0, CWR bit 7, AE bit 8."""
    ecn: npt.NDArray[np.uint8]

class QdiscKind(TypedDict):
    """A kind of qdisc; `bakeoff.tc.Kind` explains each key."""

    name: str
    least_words: str
    rate_word: str | None
    classful: bool
    alone: bool
    limit_in_bytes: bool
    module: str | None
    simulated_as: str | None
    tried: bool
    order: int | None

class HookError(Exception):
    """A congestion control in Python raised: the place; `__cause__` is what was raised."""

def simulate(run: str, modules: dict[str, type] | None = None, *, exact: bool = False) -> Outcome:
    """Run a resolved run (JSON). `modules`: congestion controls in Python, by what stands in a flow's `cc`.
    `exact`: every packet step by step, with the same results.

    Raises ValueError with one clear message if the document is refused, RuntimeError if the run broke an invariant
    (bytes not conserved), HookError if a module raised. Releases the GIL.
    """

def check(run: str, modules: dict[str, type] | None = None) -> str:
    """Build everything that `run` (JSON) names, without running; returns the effective configuration as text.

    Raises ValueError with one clear message, starting with the place (`flows[1].cc: …`).
    """

def check_qdisc(line: str) -> str:
    """Parse a qdisc line and return the configuration in effect, in tc's words; ValueError names the word."""

def qdiscs() -> list[str]:
    """The qdiscs that the simulator models."""

def qdisc_kinds() -> list[QdiscKind]:
    """What is known of each kind of qdisc, of Linux's and of those of bakeoff's own kernel modules."""

def qdisc_replay(document: str) -> str:
    """Drive a queue alone with recorded arrivals. JSON in: `qdisc` (a tree as in a resolved run), `seed`, `hz`,
    `arrivals` ({at, bytes, flow, hash, ecn}; ns) and `ticks` (ns: when a real kernel's watchdog expired). JSON out:
    `departures` ({packet, at, ecn}), `left`, `late` (ns) and `show`.

    Raises ValueError with one clear message if the document is refused. Releases the GIL.
    """

def congestion_controls() -> list[str]:
    """The congestion controls that the simulator models, with versions."""

def congestion_control_parts() -> list[str]:
    """Slow starts and rules of validation that may follow a control's own words: `hystart++`, `validation`."""

def packetdrill(script: str) -> str:
    """Run a packetdrill script against the simulated TCP; the report as JSON: `verdict` (passed, failed,
    not_applicable), `line`, `expected` and `got` or `reason`, and `log`.

    Raises ValueError (`line N: …`) if the script cannot be read.
    """

def trace(path: str, options: str = "{}") -> bytes:
    """Read the packet capture at `path` (`-`: standard input); the report as JSON, as docs/trace.md has it.

    `options` (JSON): `interval_s` (of series; none if it is left out), `window_s` (of the least and most goodput, 1),
    `burst_gap_s` (the longest gap within a burst, 0.001), `ecn` (`none`, `rfc3168`, `accecn`, `sce`; chosen per flow if
    it is left out) and `flows` (how many TCP flows are followed, 65536).

    Raises ValueError with one clear message, which names the file, if it cannot be read as a capture or an option is
    wrong. A file that is damaged somewhere is read up to there, and `capture.notes` says so. Releases the GIL; Ctrl-C
    ends it.
    """

def packets(path: str) -> Packets:
    """The TCP segments of the capture at `path` (`-`: standard input).

    Raises ValueError as `trace` does. Releases the GIL; Ctrl-C ends it.
    """
