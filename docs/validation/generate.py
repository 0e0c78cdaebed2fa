"""Writes the tables of results.md and README's medians anew, from runs of the catalog: `make validation`.

Each table stands on its page between `<!-- NAME -->` and `<!-- end -->`. The runs are made if their folder below
`results/validation/` is not there, so that a second call only writes. A change of the simulator needs a
fresh folder: remove `results/validation` first.

With the argument `--check` it runs nothing, and ends with 1 unless the tables of the two pages are those of `TABLES`.
"""

import csv
import io
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median, quantiles, stdev
from typing import Any

PAGES = (Path(__file__).parent / "results.md", Path(__file__).parents[2] / "README.md")
RESULTS = Path("results/validation")
BLOCK = re.compile(r"(?<=<!-- )((?!end )[a-z0-9-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

RUNS = {
    "s1": ["l4s-tests/s1-*"],
    "s6": ["l4s-tests/s6*"],
    "linux": ["linux/single", "linux/pairs"],
    "prague-pairs": ["linux/prague-pairs"],
    "prague-one-queue": ["linux/prague-one-queue"],
    "linux-groups": ["re:^linux/(?!single|pairs|prague|family)"],
    "linux-family": ["linux/family"],
    "queue-delay": ["examples/queue-delay.yaml"],
    "queue-delay-kernel": ["examples/queue-delay.yaml", "--engine", "kernel"],
    "seeds": [
        "re:s1.*/ns-prague-vs-prague-dualpi2-50Mbit-(160ms-10ms|80ms-20ms)$",
        "re:s1.*/ns-cubic-vs-prague-dualpi2-50Mbit-10ms-10ms$",
        "re:s1.*-pfifo.1000.-50Mbit-10ms-10ms$",
        "re:s1.*/ns-prague-vs-prague-pfifo.1000.-50Mbit-160ms-10ms$",
        "re:s1.*/ns-prague-vs-cubic-(fq_codel|cnq_codel_af)-50Mbit-10ms-10ms$",
        "re:s6.*/ns-prague-vs-cubic-ecn-(fq_codel.1q.|pie|red.400000b.)-50Mbit-20ms$",
    ],
}
SEEDS = {"seeds": 8, "counters": 8, "linux-groups": 4, "linux-family": 4, "queue-delay": 2, "queue-delay-kernel": 2}
RUNS_OF = {"l4s-tests": ("s1", "s6"), "linux-7.3": ("prague-pairs", "prague-one-queue")}
"""Which runs have numbers in a reference."""
THEIRS = {  # bytes that left the bottleneck, marks: the queues' counters of L4STeam's re-run of 25 April 2020
    "l4s-s1-oneflow/ns-prague-dualpi2-50Mbit-80ms": (291_132_648, None),
    "l4s-s1-oneflow/ns-prague-dualpi2-5Mbit-80ms": (29_668_532, None),
    "l4s-s2-twoflow/ns-cubic-vs-prague-codel1q-80ms": (360_883_766, 38),
    "l4s-s2-twoflow/ns-cubic-vs-prague-codel1q(20ms)-80ms": (330_082_796, 2449),
    "l4s-s2-twoflow/ns-cubic-vs-prague-pie-80ms": (371_952_732, 65),
    "l4s-s2-twoflow/ns-cubic-vs-prague-red(150000)-80ms": (999_150_982, 958),
    "l4s-s5-burstiness/ns-prague-dualpi2-50Mbit-80ms": (43_457_236, None),
}


def bakeoff(*words: str) -> str:
    """What the command prints; it may end with 1, as `compare` does when a median is outside of its bound."""
    done = subprocess.run([sys.executable, "-m", "bakeoff", *words], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode > 1:
        raise SystemExit(f"bakeoff {' '.join(words)}: ended with {done.returncode}")
    return done.stdout


RUNS["counters"] = [f"sce-l4s-ect1/{run}" for run in THEIRS]


def made(name: str) -> Path:
    """The folder with the runs of `name`, which are made if they are missing."""
    folder = RESULTS / name
    if not folder.is_dir():
        bakeoff("run", *RUNS[name], "--seeds", str(SEEDS.get(name, 1)), "--out", str(folder))
    return folder


def rows(name: str, *words: str) -> list[dict[str, str]]:
    """`bakeoff table --format csv` of the runs of `name`."""
    return list(csv.DictReader(io.StringIO(bakeoff("table", str(made(name)), "--format", "csv", *words))))


def table(head: list[str], lines: Iterable[list[str]]) -> str:
    """A Markdown table."""
    cells = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def ninth(values: list[float]) -> float:
    """The 90th percentile, which lies among the values."""
    return quantiles(values, n=10, method="inclusive")[-1]


def spread(values: list[float]) -> list[str]:
    """Number, median, 90th percentile and maximum."""
    return [str(len(values)), *(f"{v:.2f}" for v in (median(values), ninth(values), max(values)))]


def distances(reference: str) -> dict[tuple[str, str], list[tuple[str, str, float, float, float]]]:
    """(scenario, qdisc and who) -> run, flow, our rate, the reference's in Mbit/s, ln(ours / reference)."""
    found: dict[tuple[str, str], list[tuple[str, str, float, float, float]]] = {}
    for name in RUNS_OF[reference]:
        for row in rows(name, "--reference", reference):
            for flow in ("flow1", "flow2"):
                ln = row.get(f"{flow}_log_ratio")
                if ln:
                    theirs = float(row[f"{flow}_reference_bps"]) / 1e6
                    where = row["run"], row[f"{flow}_name"], theirs * math.exp(float(ln)), theirs, float(ln)
                    who = _pragues(row) if reference == "linux-7.3" else ""
                    found.setdefault((name, f"`{row['axis_qdisc']}`{who}"), []).append(where)
    return found


def _pragues(row: dict[str, str]) -> str:
    """Which Prague takes part in a run, where the kernel had two."""
    names = {row["flow1_name"].removesuffix("-1"), row["flow2_name"].removesuffix("-2")} - {"cubic"}
    return f", {names.pop() if names else 'cubic alone'}"


def against(reference: str) -> str:
    """|ln| by scenario and queue."""
    lines = [[f"{s} {q}", *spread([abs(f[-1]) for f in flows])] for (s, q), flows in distances(reference).items()]
    return table(["scenario, queue", "flows", "median", "90th percentile", "maximum"], lines)


def far(reference: str) -> str:
    """The flows beyond 0.3."""
    lines = [
        [f"`{run}`", flow, f"{ours:.2f}", f"{theirs:.2f}", f"{ln:+.2f}"]
        for flows in distances(reference).values()
        for run, flow, ours, theirs, ln in flows
        if abs(ln) > 0.3
    ]
    return table(["run", "flow", "ours [Mbit/s]", "reference [Mbit/s]", "ln"], lines)


def medians() -> str:
    """README's table: by queue beside both references, and the whole suite `linux` beside a real Linux 7.3."""
    lines = []
    published, real = _by_queue("l4s-tests", "s1"), _by_queue("linux-7.3", "prague-pairs")
    for queue in ("fq_codel", "cnq_codel_af", "dualpi2", "pfifo(1000)"):
        sides = published[queue], real.get(queue.partition("(")[0], [])
        cells = ([str(len(side)), f"{median(side):.2f}"] if side else ["–", "–"] for side in sides)
        lines.append([f"s1 `{queue}`", *(cell for pair in cells for cell in pair)])
    one_queue = _by_queue("l4s-tests", "s6"), _by_queue("linux-7.3", "prague-one-queue")
    lines.append([f"s6, by qdisc ({len(one_queue[0])})"])
    for side in one_queue:
        middles = [median(values) for values in side.values()]
        [count] = {len(values) for values in side.values()}
        lines[-1] += [f"{count} each", f"{min(middles):.2f} to {max(middles):.2f}"]
    for name, what in (
        ("linux", "`linux/single`, `linux/pairs`"),
        ("linux-groups", "`linux`, beyond one bottleneck of 50 Mbit/s"),
    ):
        text = bakeoff("compare", str(made(name)), "linux", "--bound", "goodput=99", "-f", "csv")
        found = [row for row in csv.DictReader(io.StringIO(text)) if row["measure"] == "goodput"]
        runs = {(row["scenario"], row["run"]) for row in found}
        # The distance is infinite, and empty there, of a flow that got nothing on one side.
        middle = median(abs(float(row["ln"] or math.inf)) for row in found)
        lines.append([f"{what}, {len(runs)} runs", "–", "–", str(len(found)), f"{middle:.3f}"])
    with Path(__file__).with_name("testbeds.csv").open(encoding="utf-8", newline="") as stream:
        rates = [row for row in csv.DictReader(stream) if row["measure"] == "goodput"]
    rates = [row for row in rates if not row["axis_other"].startswith("bbr2")]
    for suite in dict.fromkeys(row["suite"] for row in rates):
        apart = [abs(math.log(float(row["ours"]) / float(row["theirs"]))) for row in rates if row["suite"] == suite]
        p90 = quantiles(apart, n=10, method="inclusive")[-1]
        lines.append([f"`{suite}` without `bbr2`", str(len(apart)), f"{median(apart):.3f}, p90 {p90:.2f}", "–", "–"])
    return table(["", "flows", "median to published rates", "flows", "median to a real Linux 7.3"], lines)


def _by_queue(reference: str, scenario: str) -> dict[str, list[float]]:
    """|ln| of all flows of a scenario by queue, whatever Prague took part."""
    found: dict[str, list[float]] = {}
    for (own, name), flows in distances(reference).items():
        if own == scenario:
            found.setdefault(name.split("`")[1], []).extend(abs(flow[-1]) for flow in flows)
    return found


def linux() -> str:
    """The suite `linux` against a real Linux 7.3, by queue."""
    text = bakeoff("compare", str(made("linux")), "linux", "--bound", "goodput=99", "--by", "qdisc", "-f", "csv")
    by: dict[str, dict[str, list[float]]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        if not row["ln"]:  # one of the two is 0
            continue
        for queue in ("all", row["axis_qdisc"]):
            by.setdefault(queue, {}).setdefault(row["measure"], []).append(abs(float(row["ln"])))
    measures = ["goodput", "tcp_delay_mean", "tcp_delay_p99", "marks", "drops"]
    lines = [[queue, *(f"{median(of[m]):.3f}/{ninth(of[m]):.2f}" for m in measures)] for queue, of in by.items()]
    return table(["queue", "goodput", "queue delay", "its 99th percentile", "marks", "drops"], lines)


def linux_groups() -> str:
    """The other scenarios of the suite `linux`, beside the kernel's distance from itself."""
    text = bakeoff("compare", str(made("linux-groups")), "linux", "--own", "-f", "csv")
    by: dict[str, dict[str, dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        by.setdefault(row["axis_scenario"], {})[row["measure"]] = row
    measures = {"goodput": "goodput", "tcp_delay_mean": "queue delay", "marks": "marks"}
    sides = ("all", "apart", "own")
    lines = []
    for scenario, of in by.items():
        lines.append([scenario, of["goodput"]["runs"], of["goodput"]["with_seeds"]])
        for measure, side in ((of[measure], side) for measure in measures for side in sides):
            # An infinite distance, of a flow that got nothing on one side, is empty there.
            middle, most = (float(measure[f"{side}_{quantile}"] or math.inf) for quantile in ("median", "p90"))
            lines[-1].append(f"{middle:.3f}/{most:.2f}")
    heads = [f"{measure}: {side}" for measure in measures.values() for side in sides]
    return table(["scenario", "runs", "with seeds", *heads], lines)


def linux_family() -> str:
    """Goodput of Linux's older controls against a real Linux 7.3, by what is beside them and the queue."""

    def compared(*words: str) -> list[dict[str, str]]:
        text = bakeoff("compare", str(made("linux-family")), "linux", "-f", "csv", *words)
        return [row for row in csv.DictReader(io.StringIO(text)) if row["measure"] == "goodput"]

    pfifo = {}
    for by in ("cc,beside,qdisc", "beside,qdisc"):
        for row in compared("--own", "--by", by):
            if (row["axis_beside"], row["axis_qdisc"]) == ("beside-cubic", "pfifo"):
                sides = (
                    f"{float(row[f'{side}_median']):.3f}/{float(row[f'{side}_p90']):.2f}" for side in ("apart", "own")
                )
                pfifo[row.get("axis_cc", "all")] = list(sides)
    means = compared("--unpaired", "--bound", "goodput=99")
    lines = []
    for name, seeds in pfifo.items():
        rows = [(row, abs(float(row["ln"]))) for row in means if name in (row["axis_cc"], "all")]
        alone = [ln for row, ln in rows if row["axis_beside"] == "alone"]
        fair = [ln for row, ln in rows if (row["axis_beside"], row["axis_qdisc"]) == ("beside-cubic", "fq_codel")]
        far = [row["overlap"] != "True" for row, ln in rows if ln > 0.3]
        cells = (f"{median(side):.3f}/{max(side):.2f}" for side in (alone, fair))
        lines.append([name, *cells, *seeds, f"{len(far)}/{sum(far)}"])
    head = ["control", "alone", "beside CUBIC, `fq_codel`", "`pfifo`", "`pfifo`: own", "beyond 0.3/no overlap"]
    return table(head, lines)


def controls() -> str:
    """Where congestion controls run: what is said of all of Linux's, and the names of all others."""
    from bakeoff.engines.controls import table as known

    of: dict[str, list[str]] = {"linux": [], "module": [], "sim": []}
    for name, control in known().items():
        of["sim" if not control.on_linux else "module" if control.module else "linux"].append(name)
    modules, simulated = ([f"`{name}`" for name in of[kind]] for kind in ("module", "sim"))
    with_modules = f"{', '.join(modules)} with bakeoff's modules"
    only_here = f"{', '.join(simulated)} on the simulator only"
    return f"Linux's {len(of['linux'])} congestion controls run on all engines; {with_modules}; {only_here}.\n"


def queue_delay() -> str:
    """Mean and 99th percentile of the delay by Little's law, ours/the kernel's, by queue, rate and RTT."""
    text = bakeoff("compare", str(made("queue-delay")), str(made("queue-delay-kernel")), "-f", "csv")
    by: dict[str, dict[tuple[str, str, str], str]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        both = "/".join(f"{float(row[side]) * 1e3:.3g}" for side in ("ours", "theirs")) if row["unit"] == "s" else ""
        of = row["axis_rate"], row["axis_rtt"], row["measure"]
        by.setdefault(row["axis_qdisc"], {})[of] = both
    at = [(rate, rtt) for rate in ("10mbit", "50mbit") for rtt in ("20ms", "80ms")]
    lines = [
        [queue, *(f"{of[*one, 'little_delay_mean']}; {of[*one, 'little_delay_p99']}" for one in at)]
        for queue, of in by.items()
    ]
    return table(["queue", *(f"{rate}, {rtt}" for rate, rtt in at)], lines)


def seeds() -> str:
    """How far eight seeds of a run differ."""
    lines = []
    for name, of in sorted(repetitions("seeds").items()):
        rates = [[flow.steady_state.goodput_bps / 1e6 for flow in run.summary.flows.values()] for run in of]
        first, second = zip(*rates, strict=True)
        ratios = [math.log(a / b) for a, b in zip(first, second, strict=True)]
        ranges = [f"{min(side):.2f}–{max(side):.2f}" for side in (first, second)]
        lines.append([f"`{name.rpartition('/')[2]}`", *ranges, f"{stdev(ratios):.3f}"])
    head = ["run", "first flow [Mbit/s]", "second flow [Mbit/s]", "standard deviation of ln(first / second)"]
    return table(head, lines)


def repetitions(name: str) -> dict[str, list[Any]]:
    """suite/scenario/run -> the result of each of its seeds."""
    from bakeoff import results

    found: dict[str, list[Any]] = {}
    for result in results.survey(made(name)).results:
        found.setdefault(result.key.partition("~")[0], []).append(result)
    return found


def counters() -> str:
    """Our counters beside those of another laboratory."""
    lines = []
    for run, of in sorted(repetitions("counters").items()):
        queues = [result.counters.queues["mid>srv"] for result in of]
        sent, marks = THEIRS[run.removeprefix("sce-l4s-ect1/")]
        ours = [(queue.sent_bytes or 0) / 1e6 for queue in queues]
        marked = [queue.marks for queue in queues]
        megabytes = [f"{min(ours):.1f}–{max(ours):.1f}", f"{sent / 1e6:.1f}"]
        lines.append([f"`{run}`", *megabytes, *([f"{min(marked)}–{max(marked)}", str(marks)] if marks else "––")])
    return table(["run", "MB, ours", "MB, theirs", "marks, ours", "marks, theirs"], lines)


TABLES: dict[str, Callable[[], str]] = {
    "published": lambda: against("l4s-tests"),
    "published-far": lambda: far("l4s-tests"),
    "linux-7-3": lambda: against("linux-7.3"),
    "linux-7-3-far": lambda: far("linux-7.3"),
    "medians": medians,
    "linux": linux,
    "linux-groups": linux_groups,
    "linux-family": linux_family,
    "controls": controls,
    "queue-delay": queue_delay,
    "seeds": seeds,
    "counters": counters,
}


def main() -> None:
    """Fills the pages, or checks their blocks."""
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    blocks = [match[1] for text in texts.values() for match in BLOCK.finditer(text)]
    if sorted(blocks) != sorted(TABLES):
        raise SystemExit(f"the pages have the tables {', '.join(blocks)}; there are {', '.join(TABLES)}")
    if "--check" in sys.argv:
        return
    for page, text in texts.items():
        page.write_text(BLOCK.sub(lambda m: f"{m[1]}{m[2]}\n{TABLES[m[1]]()}\n", text), encoding="utf-8")


if __name__ == "__main__":
    main()
