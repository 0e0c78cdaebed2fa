"""Writes lockstep.csv: the simulator's data packets beside the kernel's, one by one. `make lockstep` does all runs.

Both engines do each run with seed 1 and a capture at the sender, which is deleted once it is compared. The table keeps
runs of the same model epoch and duration, so that an interrupted call continues; `--fresh` repeats them. The shares
are printed; `--page` prints those of the table without a run. Times are in seconds since a connection's first packet.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from statistics import median_low

import numpy as np

import bakeoff
from bakeoff.captures import lockstep, packets
from bakeoff.captures.lockstep import Compared
from bakeoff.captures.packets import CWR, Stream
from bakeoff.scenario.catalog import select
from bakeoff.version import MODEL_EPOCH

TABLE = Path(__file__).with_suffix(".csv")
SUITES = ("linux/single", "linux/pairs")
NARROW_US, WIDE_US = 20.0, 1000.0
RANDOM = frozenset({"bbr", "pie", "red", "dualpi2"})
"""What draws random numbers: BBR the phase of a probing cycle, the queues whether they mark."""

COLUMNS = (
    "run", "epoch", "duration_s", "packets", "kernel_packets", "same", "same_until_first",
    "first_flow", "first_packet", "first_s", "first_what", "first_apart_us",
    "beyond_20us_packet", "beyond_20us_s", "beyond_20us_apart_us", "beyond_1ms_packet", "beyond_1ms_s",
    "loss_s", "cwr_s", "p50_us", "max_us", "until_loss_same", "until_loss_max_us", "start_apart_us", "wall_s",
)  # fmt: skip
"""Counts are of data packets of all flows, `same` as `bakeoff compare --packets` counts. `first_…` is the first packet
that differs, of the flow in which that is earliest, `first_apart_us` the time difference there. `…apart_us`: simulator
- kernel. `loss_s`: first retransmission of either side, and of any flow; `cwr_s`: first CWR flag. `p50_us`, `max_us`:
of |simulator - kernel| of the same packets. `until_loss_…`: packets before `loss_s`, paired by sequence number."""

Row = dict[str, str]


class Flow:
    """One flow's data packets on both sides."""

    def __init__(self, name: str, found: Compared, ours: Stream, theirs: Stream) -> None:
        self.name, self.found, self.ours, self.theirs = name, found, ours, theirs
        self.apart_us = np.abs(found.apart_s) * 1e6

    def beyond(self, bound_us: float) -> tuple[float, int, float] | None:
        """Time, number and time difference [µs] of the first of the same packets that are further apart."""
        rows = np.flatnonzero(self.apart_us > bound_us)
        if not len(rows):
            return None
        at_s = float(self.found.matched_s[rows[0]])
        return at_s, int(np.searchsorted(self.ours.at_ns * 1e-9, at_s)) + 1, float(self.found.apart_s[rows[0]]) * 1e6

    def first(self) -> tuple[float, int, str, float] | None:
        """Time, number, what differs and time difference [µs] of the first packet that is not the same.

        An end is no difference: the kernel's captures end 0.2 s before the simulator's.
        """
        first = self.found.first
        if first is None or first.ours is None or first.theirs is None:
            return None
        at_s = min(first.ours.time_s, first.theirs.time_s)
        fields = (f"{name} {getattr(first.ours, name)}/{getattr(first.theirs, name)}" for name in first.what)
        return at_s, first.index + 1, "; ".join(fields), (first.ours.time_s - first.theirs.time_s) * 1e6

    def until(self, end_s: float) -> tuple[bool, float]:
        """Whether the packets before `end_s` are the same, and the largest time difference [µs] of those with equal
        sequence number.
        """
        first = self.first()
        mine, other = (side.chosen(side.at_ns * 1e-9 < end_s) for side in (self.ours, self.theirs))
        _, at, of = np.intersect1d(mine.seq, other.seq, return_indices=True)
        apart_ns = np.abs(mine.at_ns[at] - other.at_ns[of])
        return first is None or first[0] >= end_s, float(apart_ns.max(initial=0)) * 1e-3

    def cwr_s(self) -> float | None:
        """Time of the first CWR flag of either side."""
        sides = (side.at_ns[side.flags & CWR != 0] for side in (self.ours, self.theirs))
        return min((float(at[0]) * 1e-9 for at in sides if len(at)), default=None)


def measured(name: str, duration: str) -> Row:
    """Does a run by both engines, and compares."""
    begin = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="lockstep-"))
    try:
        folders = []
        for engine in ("sim", "kernel"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a shorter run: that its steady state is shorter, too
                [done] = bakeoff.run(
                    name, engine=engine, settings={"duration": duration}, seed=1, seeds=1, jobs=1,
                    capture=["cli>mid"], store="none", out=root / engine,
                )  # fmt: skip
            folders.append(done.path)
        found = compared(*folders)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    found |= {"run": name, "epoch": MODEL_EPOCH, "duration_s": duration.removesuffix("s")}
    found["wall_s"] = round(time.monotonic() - begin, 1)
    return {column: text(found.get(column)) for column in COLUMNS}


def compared(ours: Path, theirs: Path) -> dict[str, object]:
    """What two captures of a sender, or two runs' folders, give for the table."""
    sides = [packets.read(path) for path in (ours, theirs)]
    found = lockstep.compare(*sides)
    # The engines have addresses and clients' ports of their own.
    if found.unpaired or any(_port(flow.ours) != _port(flow.theirs) for flow in found.flows):
        raise RuntimeError(f"{ours}: other connections than in {theirs}; expected the same servers' ports")
    flows = []
    for flow, *both in zip(found.flows, *sides, strict=True):
        data = (one.up.chosen(one.up.payload > 0) for one in both)
        flows.append(Flow(_port(flow.ours), flow.data[0], *data))
    return numbers(flows) | {"start_apart_us": max(abs(flow.start_apart_s) for flow in found.flows) * 1e6}


def _port(name: str) -> str:
    """The server's."""
    return name.rpartition(":")[2]


def numbers(flows: list[Flow]) -> dict[str, object]:
    """Of all flows of a run."""
    firsts = [(*first, flow.name) for flow in flows if (first := flow.first()) is not None]
    first_s, first_packet, what, apart, name = min(firsts, default=(None, None, None, None, None))
    narrow, wide = (
        min((one for flow in flows if (one := flow.beyond(bound)) is not None), default=(None, None, None))
        for bound in (NARROW_US, WIDE_US)
    )
    loss_s = min((flow.found.loss_s for flow in flows if flow.found.loss_s is not None), default=None)
    until = [flow.until(np.inf if loss_s is None else loss_s) for flow in flows]
    apart_us = np.concatenate([flow.apart_us for flow in flows])
    prefix = (flow.found.first.index if flow.found.first else flow.found.ours for flow in flows)
    return {
        "packets": sum(flow.found.ours for flow in flows),
        "kernel_packets": sum(flow.found.theirs for flow in flows),
        "same": sum(flow.found.same for flow in flows),
        "same_until_first": sum(prefix),
        "first_flow": name,
        "first_packet": first_packet,
        "first_s": first_s,
        "first_what": what,
        "first_apart_us": apart,
        "beyond_20us_s": narrow[0],
        "beyond_20us_packet": narrow[1],
        "beyond_20us_apart_us": narrow[2],
        "beyond_1ms_s": wide[0],
        "beyond_1ms_packet": wide[1],
        "loss_s": loss_s,
        "cwr_s": min((at for flow in flows if (at := flow.cwr_s()) is not None), default=None),
        "p50_us": float(np.median(apart_us)),
        "max_us": float(apart_us.max()),
        "until_loss_same": int(all(same for same, _ in until)),
        "until_loss_max_us": max(most for _, most in until),
    }


def text(value: object) -> str:
    """A cell: six decimals of a second are enough for the bounds."""
    return "" if value is None else f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def read(table: Path) -> dict[str, Row]:
    """The table's rows by run."""
    if not table.exists():
        return {}
    with table.open(encoding="utf-8", newline="") as stream:
        return {row["run"]: row for row in csv.DictReader(stream)}


def write(table: Path, rows: Iterable[Row]) -> None:
    """The table, sorted by run; as a whole, so that an interruption leaves the one before."""
    new = table.with_suffix(".new")
    with new.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["run"]))
    new.replace(table)


def parts(row: Row) -> tuple[str, str, str, str]:
    """Scenario, congestion controls, qdisc and RTT."""
    scenario, _, name = row["run"].rpartition("/")
    cc, qdisc, rtt = name.rsplit("-", 2)
    return scenario, cc, qdisc, rtt


def draws(row: Row) -> bool:
    """Whether the run has random draws."""
    _, cc, qdisc, _ = parts(row)
    return not RANDOM.isdisjoint((*cc.split("-vs-"), qdisc))


def until_loss(row: Row, bound_us: float, *, same: bool = True) -> bool:
    """Whether the packets before the first loss are within the bound, and the same."""
    return float(row["until_loss_max_us"]) <= bound_us and (row["until_loss_same"] == "1" or not same)


def event(row: Row) -> str:
    """What comes first, and whether a loss or a CWR came before: a mark is a CWR of one side, a time a packet beyond
    20 µs, and otherwise these fields of a packet differ.
    """
    first_s, late_s, loss_s, cwr_s = (
        float(row[name] or "inf") for name in ("first_s", "beyond_20us_s", "loss_s", "cwr_s")
    )
    at_s = min(first_s, late_s)
    if at_s == np.inf:
        return "none"
    if first_s <= late_s and "CWR" in row["first_what"]:
        what = "mark"
    elif late_s <= first_s or abs(float(row["first_apart_us"])) > NARROW_US:
        what = "time"
    else:
        what = " ".join(one.split()[0] for one in row["first_what"].split("; "))
    return f"{what}, {'after a loss' if loss_s <= at_s else 'after a CWR' if cwr_s < at_s else 'before both'}"


SHARES: dict[str, Callable[[Row], bool]] = {
    "same packets": lambda row: not row["first_what"],
    "and ≤ 20 µs": lambda row: not row["first_what"] and float(row["max_us"]) <= NARROW_US,
    "until loss: same": lambda row: row["until_loss_same"] == "1",
    "and ≤ 20 µs ": lambda row: until_loss(row, NARROW_US),
    "and ≤ 1 ms": lambda row: until_loss(row, WIDE_US),
    "times alone ≤ 1 ms": lambda row: until_loss(row, WIDE_US, same=False),
}


def shares(rows: list[Row]) -> str:
    """How many runs of each group hold which bound, and medians, as text."""
    heads = ["", "runs", *SHARES, "first other [s]", "> 20 µs [s]", "loss [s]", "p50 [µs]"]
    lines = []
    for scenario in dict.fromkeys(parts(row)[0] for row in rows):
        of = [row for row in rows if parts(row)[0] == scenario]
        groups = {scenario: of, "without random draws": [row for row in of if not draws(row)]}
        for place in (1, 2, 3):
            for row in of:
                groups.setdefault(parts(row)[place], []).append(row)
        for row in of:
            groups.setdefault(event(row), []).append(row)
        lines += [line(name, group) for name, group in groups.items() if group]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [heads, ["---"] * len(heads), *lines])


def line(name: str, rows: list[Row]) -> list[str]:
    """The cells of a group. A run in which something never happens counts as an infinite time."""
    times = ([float(row[of] or "inf") for row in rows] for of in ("first_s", "beyond_20us_s", "loss_s", "p50_us"))
    held = (str(sum(map(holds, rows))) for holds in SHARES.values())
    return [name, str(len(rows)), *held, *(f"{median_low(values):.3f}" for values in times)]


def main() -> None:
    """Does the runs that are missing, writes the table after each, and prints the shares."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("patterns", nargs="*", default=SUITES, help="runs, such as linux/single")
    options.add_argument("--duration", default="60s")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--table", type=Path, default=TABLE)
    options.add_argument("--fresh", action="store_true", help="repeat recorded runs")
    options.add_argument("--page", action="store_true", help="only print the shares")
    asked = options.parse_args()
    rows = read(asked.table)
    if not asked.page:
        like = (str(MODEL_EPOCH), asked.duration.removesuffix("s"))
        done = {name for name, row in rows.items() if (row["epoch"], row["duration_s"]) == like and not asked.fresh}
        names = [name for run in select(asked.patterns) if (name := run.key.partition("~")[0]) not in done]
        names.sort(key=lambda name: zlib.crc32(name.encode()))  # so that the part that is done is a sample
        with ProcessPoolExecutor(asked.jobs) as pool:
            for future in as_completed([pool.submit(partial(measured, duration=asked.duration), n) for n in names]):
                row = future.result()
                rows[row["run"]] = row
                write(asked.table, rows.values())
                print(f"{row['run']}: {row['wall_s']} s, first {row['first_s']} s", file=sys.stderr)
    print(shares(list(rows.values())), end="")


if __name__ == "__main__":
    main()
