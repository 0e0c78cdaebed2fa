"""Writes testbeds.md, how far the simulator is from two open testbeds, from testbeds.csv. `make testbeds` runs first.

With `--page` it runs nothing. With `--first` what the runs give is kept in the column `first`, beside which later runs
are shown. testbeds.csv has every number with a reference: ours, theirs, the noise of theirs (sd of one trial / mean).
"""

import argparse
import csv
import io
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median

from bakeoff import references
from bakeoff.references import noise_of

PAGE = Path(__file__).with_suffix(".md")
TABLE = Path(__file__).with_suffix(".csv")
RESULTS = Path("results/testbeds")
SUITES = ("l4s-pam2025", "prague-fallback")
SEEDS, JOBS = 2, 2
FAR = 0.3
COLUMNS = (
    "suite", "scenario", "run", "flow", "measure", "ours", "theirs", "noise", "first",
    "axis_qdisc", "axis_other", "axis_buffer", "axis_kernel",
)  # fmt: skip
WALL = "wall_s"
"""The measure of a row that has the duration of all runs of a suite, in s."""

STEPS = """\
|first comparison, `prague@2023` and `@2021-06`|0.027/0.23|0.026/0.30|0.035/0.92|
|+ epoch 9: `rcv_mss` falls, handshake, writes|0.025/0.23|0.023/0.30|0.048/0.92|
|+ `prague@5.15`|0.020/0.22|0.018/0.19|0.032/0.90|
|+ `dualpi2@2020`: now|0.020/0.22|0.018/0.19|0.028/0.21|
"""
"""One change turned back in the files of both suites at epoch 9, SEEDS seeds; the first row is the column `first`."""

OPEN = "open"
CAUSES: list[tuple[str, str, str]] = [
    ("*/*-Codel-*", "*", "plausible: stalls of the machines"),
    ("*/*-FQ-*", "*", "plausible: stalls or unpunctual machines"),
]
"""Patterns of SCENARIO/RUN and of the flow, and the cause; the first that matches counts."""

Row = dict[str, str]


def bakeoff(*words: str) -> str:
    """What the command prints; `compare` ends with 1 where a median is outside of its bound."""
    done = subprocess.run([sys.executable, "-m", "bakeoff", *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode > 1:
        raise SystemExit(f"bakeoff {' '.join(words[:3])} …: ended with {done.returncode}")
    return done.stdout


def record(*, first: bool) -> None:
    """Does every run that a reference has, and writes testbeds.csv."""
    before = {key(row): row for row in rows()} if TABLE.exists() else {}
    made: list[Row] = []
    for suite in SUITES:
        folder = RESULTS / suite
        shutil.rmtree(folder, ignore_errors=True)
        runs = sorted({f"{line.suite}/{line.scenario}/{line.run}" for line in references.named(suite)})
        begin = time.monotonic()
        bakeoff("run", *runs, "--seeds", str(SEEDS), "--jobs", str(JOBS), "--fresh", "--quiet", "--out", str(folder))
        wall = time.monotonic() - begin
        text = bakeoff("compare", str(folder), suite, "--bound", "goodput=99", "-f", "csv")
        made += [trimmed(row) for row in csv.DictReader(io.StringIO(text))]
        made.append({"suite": suite, "measure": WALL, "ours": f"{wall:.0f}", "theirs": str(len(runs) * SEEDS)})
    for row in made:
        old = before.get(key(row), {})
        row["first"] = row["ours"] if first else old.get("first", "")
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n", restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(sorted(made, key=key))


def trimmed(row: Row) -> Row:
    """Its numbers with five digits."""
    return row | {name: f"{float(row[name]):.5g}" for name in ("ours", "theirs", "noise") if row[name]}


def key(row: Mapping[str, str]) -> tuple[str, ...]:
    """What a number is of."""
    return tuple(row.get(column, "") for column in COLUMNS[:5])


def rows() -> list[Row]:
    """testbeds.csv."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def ln(row: Row, side: str = "ours") -> float:
    """ln(ours / theirs), infinite if one is 0."""
    ours, theirs = float(row[side]), float(row["theirs"])
    return math.log(ours / theirs) if ours > 0 and theirs > 0 else math.inf


def quantile(values: Iterable[float], share: float) -> float:
    """Linear between the ranks."""
    ranked = sorted(values)
    at = share * (len(ranked) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] if low in (high, at) else ranked[low] + (at - low) * (ranked[high] - ranked[low])


def both(values: list[float]) -> str:
    """Median and 90th percentile."""
    return f"{median(values):.3f}/{quantile(values, 0.9):.2f}" if values else "–"


def cells(found: list[Row]) -> list[str]:
    """Flows, goodput now and first, its noise, queue delay."""
    rates = [row for row in found if row["measure"] == "goodput"]
    delays = [row for row in found if row["measure"] == "tcp_delay_mean"]
    noise = noise_of(float(row["noise"]) for row in rates)
    floor = "–" if noise is None else f"{noise.median:.3f}/{noise.p90:.2f}"
    firsts = [abs(ln(row, "first")) for row in rates if row["first"]]
    return [
        str(len(rates)),
        both([abs(ln(row)) for row in rates]),
        both(firsts),
        floor,
        both([abs(ln(d)) for d in delays]),
    ]


def table(head: str, groups: Mapping[str, list[Row]]) -> str:
    """A line for each group."""
    return markdown(
        [head, "flows", "goodput", "first", "noise", "delay"], ([n, *cells(of)] for n, of in groups.items())
    )


def markdown(heads: list[str], lines: Iterable[list[str]]) -> str:
    """A table."""
    return "".join(f"|{'|'.join(line)}|\n" for line in [heads, ["---"] * len(heads), *lines])


def by(found: Iterable[Row], of: Callable[[Row], str]) -> dict[str, list[Row]]:
    """The rows by a label, in the order of the labels' medians of goodput."""
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(of(row), []).append(row)
    return groups


def cause(row: Row) -> str:
    """Why a cell is far, as far as that is known."""
    place = f"{row['scenario']}/{row['run']}"
    return next(
        (why for where, flow, why in CAUSES if fnmatchcase(place, where) and fnmatchcase(row["flow"], flow)), OPEN
    )


def is_far(row: Row) -> bool:
    """A rate beyond FAR."""
    return row["measure"] == "goodput" and abs(ln(row)) > FAR


def has_bbr2(row: Row) -> bool:
    """Whether a flow of its run has a control whose parameters on the testbed are unknown."""
    return row.get("axis_other", "").startswith("bbr2")


def far(found: Iterable[Row]) -> str:
    """The rates beyond FAR by queue and cause, the worst of each, without `bbr2`."""
    beyond = [row for row in found if is_far(row) and not has_bbr2(row)]
    groups = by(beyond, lambda row: f"{row['scenario']}, {row['axis_qdisc']}\0{cause(row)}")
    lines = []
    for name, of in sorted(groups.items()):
        where, why = name.split("\0")
        worst = max(of, key=lambda row: abs(ln(row)))
        rates = [f"{float(worst[side]) / 1e6:.1f}" for side in ("ours", "theirs")]
        lines.append([where, str(len(of)), f"`{worst['run']}`, {worst['flow']}", *rates, why])
    return markdown(["where", "flows", "worst", "ours", "theirs", "cause"], lines)


def page(found: list[Row]) -> str:
    """The text of testbeds.md."""
    numbers = [row for row in found if row["measure"] != WALL]
    walls = {row["suite"]: (int(row["ours"]), int(row["theirs"])) for row in found if row["measure"] == WALL}
    pam, fallback = ([row for row in numbers if row["suite"] == suite] for suite in SUITES)
    every = [row for row in pam if row["scenario"] != "many"]
    alone = [row for row in every if not has_bbr2(row)]
    many = [row for row in pam if row["scenario"] == "many"]
    total = [row for row in alone if row["measure"] == "goodput"]
    return TEXT.format(
        all=table(
            "",
            {
                "l4s-pam2025, one against one": alone,
                "N against M": many,
                "prague-fallback, CUBIC": [row for row in fallback if row["axis_other"] == "cubic"],
                "both, bbr2": [row for row in numbers if has_bbr2(row)],
            },
        ),
        steps=STEPS,
        queues=table("queue", by(alone, lambda row: f"`{row['axis_qdisc']}`")),
        others=table("neighbour", by(every, lambda row: f"{row['axis_other']}, {row['scenario']}")),
        buffers=table("buffer", by([r for r in alone if r["axis_qdisc"] != "DualPI2"], lambda row: row["axis_buffer"])),
        many=table("queue", by(many, lambda row: f"`{row['axis_qdisc']}`")),
        fallback=table("", by(fallback, lambda row: f"{row['scenario']}, {row['axis_kernel']}, {row['axis_other']}")),
        far=far(numbers),
        beyond=sum(map(is_far, numbers)),
        unknown=sum(is_far(row) and has_bbr2(row) for row in numbers),
        flows=sum(row["measure"] == "goodput" for row in numbers),
        cells=len({(row["suite"], row["scenario"], row["run"]) for row in numbers}),
        alone=len(total),
        seeds=SEEDS,
        walls="; ".join(f"{suite}: {runs} runs in {wall} s" for suite, (wall, runs) in walls.items()),
        jobs=JOBS,
    )


TEXT = """# Two open testbeds

How far the simulator is from measurements of other people. `make testbeds` writes this page.

- `l4s-pam2025`: six virtual machines on FABRIC; Linux 5.15, 5.13 and 6.4; 10 trials of 60 s. Sarpkaya, Fund, Panwar,
  PAM 2025; fatihsarpkaya/L4S-PAM2025.
- `prague-fallback`: one machine, Mininet; Linux 5.15; 10 or 30 trials of 60 s. 2025;
  Greenscreen23/prague-fallback-experiments.

The numbers are the median and 90th percentile of |ln(ours / theirs)| over flows, in {cells} cells. Ours is the mean of
{seeds} seeds. *Noise* is the distance of two of their trials. *First* is the first comparison, with `prague@2023` and
`prague@2021-06`. *Delay* is smoothed RTT minus base RTT.

Only buffers of 1 and 4 BDP and round trips of 16 and 64 ms are used. The other cells are kept aside as an independent
check. The form of dualpi2 and the ECN parameters
of bbr2 were chosen after seeing cells of this table; nothing else was.

{all}
By mechanism, on the cells of *first* (306, 132 and 80 flows):

|changes|one against one|N against M|prague-fallback|
|---|---|---|---|
{steps}
Worse than at first: FIFO, one against one (0.097/0.22 on the cells of *first*). The cause is the burst of two packets
in `prague@5.15`: `min_tso_segs 1` gives 42.7 Mbit/s beside CUBIC at 1 BDP (theirs 45.9, ours 54.5). FIFO with N
against M and `prague-fallback` FIFO need two, so the least burst is open. `single_queue_FQ` has 0.053/0.45 on these
cells (first 0.047/0.71); its 0.096 includes the new `cubic-ecn-fallback`.

## One against one

Prague against another flow, 100 Mbit/s, 2 and 10 ms, by queue (without `bbr2`), neighbour and buffer:

{queues}
{others}
{buffers}
## Several flows

N Prague flows against M of CUBIC, sums of rates:

{many}
## The detector

Prague with `ecn_fallback`, before and after the fix ([study](../studies/prague-fallback.md)):

{fallback}
## Beyond {far_bound}

{beyond} of {flows} rates differ by more than {far_bound}; {unknown} are beside `bbr2` (open: unknown parameters and
start offsets). The worst of the others by queue and cause, in Mbit/s:

{far}
Stalls are plausible, not proven. With `--set 'hosts.stall="5ms every 1s"'` `cubic-Codel-1bdp` gives 74.0 and 21.0
Mbit/s (theirs 73.6 and 21.0).

## Limits

- `bbr2` with ECN has `ecn_enable 1 ecn_max_rtt_us 0`, as the shares suggest.
- Only Prague, `bbr2` and `dualpi2` have versions near those of the testbed; the rest is Linux 7.3.
- Feedback to `bbr3 ecn_low` is AccECN's here, DCTCP's there.
- Start offsets are unknown; here below 10 ms.

{walls}, {jobs} jobs.
""".replace("{far_bound}", str(FAR))


def main() -> None:
    """Runs, unless that is not wanted, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="Only write the page.")
    parser.add_argument("--first", action="store_true", help="Keep the numbers as those to compare later ones with.")
    given = parser.parse_args()
    if not given.page:
        record(first=given.first)
    PAGE.write_text(page(rows()), encoding="utf-8")


if __name__ == "__main__":
    main()
