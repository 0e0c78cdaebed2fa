"""What the published experiments saw that tells the versions of Prague and of reno-sce apart.

Three sources are quoted. "The bake-off" is sce-l4s-bakeoff of November 2019, "the ECT(1) report" is sce-l4s-ect1 of
April 2020, each with the lines of its README. "The review" is what Henderson, Tilmans and White wrote about issues 16
and 17 of the bake-off, with its lines.

The published numbers were read off plots by eye, and have no intervals. The tests therefore assert what was stated,
over several seeds, with bounds that follow from arithmetic. Where the simulator disagrees the docstring says so.
"""

import json
import math
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from bakeoff.engines import sim
from bakeoff.results.series import read_series
from bakeoff.scenario.observe import observe
from bakeoff.scenario.scenario import from_document

ACCECN = {"net.ipv4.tcp_ecn": 3}
# The SCE hosts of the bake-off. It did not set `tcp_sce_pacing`: so the two ratios size bursts, and nothing is paced.
SCE = {
    "net.ipv4.tcp_ecn": 1,
    "net.ipv4.tcp_sce": 1,
    "net.ipv4.tcp_pacing_ca_ratio": 40,
    "net.ipv4.tcp_pacing_ss_ratio": 100,
}
CAKE = "cake@sce bandwidth 50mbit sce flowblind besteffort"
CODEL = "fq_codel flows 1"
FRAME = 1514 * 8
SEEDS = (1, 2)


@dataclass(frozen=True)
class Ran:
    series: pl.DataFrame
    trace: pl.DataFrame | None
    counters: dict[str, Any]

    def of(self, name: str, metric: str) -> pl.DataFrame:
        return self.series.filter(name=name, metric=metric).sort("time")

    def rate(self, name: str, start: float, end: float) -> float:
        """Mean goodput in Mbit/s."""
        got = self.of(name, "received")
        first, last = (got.filter(pl.col("time") <= t)["value"][-1] for t in (start, end))
        return (last - first) * 8 / (end - start) / 1e6


def ran(network: dict, flows: list, *, seconds: int, seed: int, sysctl: dict = ACCECN, trace: bool = False) -> Ran:
    return _ran(json.dumps([network, flows, sysctl]), seconds, seed, trace)


@cache
def _ran(text: str, seconds: int, seed: int, trace: bool) -> Ran:
    network, flows, sysctl = json.loads(text)
    document = {
        "title": "x", "run": "x", "duration": f"{seconds}s", "sample_interval": "50ms", "network": network,
        "flows": flows, "hosts": {"sysctl": sysctl}, "probes": [{"name": "ping", "type": "icmp", "every": "100ms"}],
    }  # fmt: skip
    run = from_document(document, path="test", suite="local", default_name="versions").resolve({}, seed)
    with tempfile.TemporaryDirectory() as folder:
        sim.Simulator().execute(observe(run, trace=["cc"]) if trace else run, Path(folder))
        series, *traced = (
            read_series(Path(folder) / f"{name}.parquet") for name in (["series", "trace"] if trace else ["series"])
        )
        counters = json.loads((Path(folder) / "counters.json").read_text())
    return Ran(series, traced[0] if traced else None, counters)


def dumbbell(rtt: str, qdisc: str, rate: str = "50mbit", **delay: Any) -> dict:
    bottleneck = {"qdisc": qdisc} | ({} if "bandwidth" in qdisc.partition(" ")[2][:20] else {"rate": rate})
    return {"path": ["cli", "mid", "srv"], "rtt": rtt, "bottleneck": bottleneck, "delay": {"limit": 1000000, **delay}}


def pair(first: str, second: str, *, late: float = 0) -> list[dict[str, str]]:
    """`first` from the start, `second` 10 s and `late` ms later; named after themselves, or `1` and `2`."""
    names = [cc.partition("@")[0] for cc in (first, second)]
    names = names if names[0] != names[1] else ["1", "2"]
    return [{"name": names[0], "cc": first}, {"name": names[1], "cc": second, "start": f"{10000 + late}ms"}]


# Alpha 0 against 1


def disturbed(result: Ran, name: str, metric: str) -> tuple[float, float]:
    """How long (s) and by how much at most (s) delays exceed the least by 10 ms."""
    samples = result.of(name, metric)
    extra = samples["value"] - samples["value"].min()
    times = samples["time"].filter(extra > 0.010)
    return times.max() - times.min(), extra.max()


@pytest.mark.parametrize("rtt", ["10ms", "80ms"])
def test_alpha_0_holds_a_full_fifo_for_seconds_and_alpha_1_does_not(rtt):
    """Scenario 6 of the bake-off (its issue 17): a FIFO at 52.5 Mbit/s stands before FQ-CoDel at 50 Mbit/s.

    The code of September 2019 begins with an alpha of 0. For it the review states: "ICMP disturbed up to 6 s, peak
    about 250 ms; prague's own latency recovers in about 15 s" (line 26) and "alpha 0 explains the multi-second spike,
    alpha 1 removes it" (lines 29, 52 and 59). Otherwise spikes are "never longer than about 1 s" (line 28), as they are
    for Reno.

    A FIFO of 1000 frames holds 1000 * 1514 * 8 / 52.5e6 = 0.231 s, and the ping waits behind it. FQ-CoDel marks every
    packet while Prague's queue is above the target. After k such rounds alpha is 1 - (15/16)^k, which is about k/16,
    and each round takes alpha/2 off the window. The window is half when k^2/64 = ln 2, which takes 6.7 rounds of
    0.231 s or more: 1.5 s. With an alpha of 1 the first round halves it.

    In the simulator ICMP is disturbed for 3.3 to 3.5 s, which is shorter than published, and the peak agrees. Prague's
    own delay has recovered after 11 s at 80 ms; at 10 ms it comes back again and again. The code of November with an
    alpha of 0 has the spike too: 3.8 s at 10 ms, but 1.1 s at 80 ms.
    """
    path = {"path": ["c2", "m1", "m3", "m4", "s2"], "rtt": rtt, "delay": {"at": "m1"}}
    queues = [
        {"at": "m3", "rate": "52.5mbit", "qdisc": "pfifo_fast"},
        {"at": "m4", "rate": "50mbit", "qdisc": "fq_codel"},
    ]
    fifo = 1000 * FRAME / 52.5e6
    rounds = math.sqrt(64 * math.log(2)) - 0.5
    for seed in SEEDS:
        found = {}
        for cc in ("prague@2019-09", "prague@2019-11", "reno"):
            result = ran({**path, "bottleneck": queues}, [{"name": "a", "cc": cc}], seconds=40, seed=seed)
            found[cc] = (*disturbed(result, "ping", "rtt"), disturbed(result, "a", "srtt")[0])
        others, peak, own = found["prague@2019-09"]
        assert others > rounds * fifo
        assert abs(peak - fifo) < 0.005
        assert own > 5
        for cc in ("prague@2019-11", "reno"):
            others, peak, own = found[cc]
            assert others < 1.0
            assert own < 3
            assert peak < fifo - 0.010
    if rtt == "10ms":
        flows = [{"name": "a", "cc": "prague@2019-11 alpha_mode 0"}]
        bug = ran({**path, "bottleneck": queues}, flows, seconds=40, seed=1)
        assert disturbed(bug, "ping", "rtt")[0] > rounds * fifo


# Loss in slow start


def test_april_2020_ignores_loss_in_slow_start_and_runs_at_the_receive_window():
    """Scenario 2 of the ECT(1) report, `pie(noecn)` at 160 ms with CUBIC first: Prague ignores loss.

    The report states: "prague uses the full receive window at over 90 % loss, cubic fully starved" (line 45). The run
    that L4STeam made of the same scenario with another kernel had 0.07 % loss.

    Half or more of the 6 MiB of tcp_rmem is window, which is above 2172 segments, and what was retransmitted is in
    flight too. Nothing ends slow start, so that ssthresh stays infinite. With the module of August in its place slow
    start ends at the first loss, and CUBIC gets more than Prague.

    The send buffer must not be the limit for that. With the default of tcp_wmem, 4 MiB, it is: nothing waits to be
    sent, the module works its reductions off, and slow start ends after all, with 8 to 12 % of loss and CUBIC ahead.
    With 64 MiB the window and the starvation agree with the report, and about 30 % of what is sent behind PIE is sent
    again. A window of 2700 segments per 160 ms is 16 900 packets/s, of which the link takes 4129. Loss can therefore be
    above 76 % only while the link idles, as it does behind a short queue: it is 86 % behind `pfifo limit 50`, and over
    90 % behind `pfifo limit 10`.
    """
    sysctl = ACCECN | {"net.ipv4.tcp_wmem": "4096 16384 67108864"}
    network = dumbbell("160ms", "pie@5.4")
    for seed in SEEDS:
        april = ran(network, pair("cubic@5.4", "prague@2020-04"), seconds=60, seed=seed, sysctl=sysctl)
        assert april.of("prague", "ssthresh").is_empty()
        assert 3 * 1024**2 < april.of("prague", "in_flight")["value"].max() * 1448 < 5 * 1024**2
        assert april.rate("cubic", 30, 58) < 0.02 * april.rate("prague", 30, 58)
        assert 0.15 < lost(april) < 0.76
        august = ran(network, pair("cubic@5.4", "prague@2020-08"), seconds=60, seed=seed, sysctl=sysctl)
        assert not august.of("prague", "ssthresh").is_empty()
        assert lost(august) < 0.02
        assert august.rate("cubic", 30, 58) > august.rate("prague", 30, 58)
    for limit, least in ((50, 0.80), (10, 0.90)):
        for version, bounds in (("2020-04", (least, 1.0)), ("2020-08", (0.0, 0.02))):
            flows = pair("cubic@5.4", f"prague@{version}")
            short = dumbbell("160ms", f"pfifo limit {limit}")
            result = ran(short, flows, seconds=60, seed=1, sysctl=sysctl)
            assert bounds[0] < lost(result) < bounds[1]


def lost(result: Ran) -> float:
    """The part of Prague's packets that was sent again."""
    counted = result.counters["flows"]["prague"]
    return counted["retransmits"] / counted["sent_packets"]


# The classic-ECN detector of April 2020


def classic(result: Ran, after: float = 0) -> tuple[float, int]:
    """For which part of the ACKs the score says classic (above 8), and how often it comes to say so."""
    assert result.trace is not None
    score = result.trace.filter(pl.col("time") > after, name="prague", metric="cc.classic_ecn").sort("time")["value"]
    above = score > 8
    return above.mean(), (above & ~above.shift(1, fill_value=False)).sum()


@pytest.mark.parametrize(("rtt", "seconds"), [("80ms", 60), ("160ms", 120)])
def test_at_5_mbit_the_detector_takes_dualpi2_for_classic(rtt, seconds):
    """Scenario 1 of the ECT(1) report: "5 Mbit/s at 80 or 160 ms triggers false positives" (lines 20 and 39, figure 4).

    A packet takes 2.42 ms at 5 Mbit/s and 0.24 ms at 50 Mbit/s. The score rises from a deviation of 0.75 ms on: one
    packet more or less in the queue is three times that at the low rate, and a third of it at the high one.
    """
    for seed in SEEDS:
        for rate, least, most in (("5mbit", 0.25, 1.0), ("50mbit", 0.0, 0.0)):
            flows = [{"name": "prague", "cc": "prague@2020-04"}]
            result = ran(dumbbell(rtt, "dualpi2@2020", rate), flows, seconds=seconds, seed=seed, trace=True)
            assert least <= classic(result)[0] <= most, (seed, rate)


@pytest.mark.parametrize(("jitter", "verdict"), [(0.1, False), (0.5, False), (1, False), (4, True), (10, True)])
def test_jitter_makes_dualpi2_look_classic(jitter, verdict):
    """Scenario 6 of the ECT(1) report, with `netem delay J J/2 10%` both ways at 80 ms.

    The report states: "jitter from about 2 ms on triggers false positives" (line 20).

    Two uniform delays of +- J/2, of which the correlation takes a tenth, deviate by 0.6 J/2 in the mean. What is above
    the least delay is J and the queue's 1 ms. Per round the score moves by half of log2(0.3 J / 0.75 ms) and, if that
    is positive, by half of log2((J + 1 ms) / 2 ms): by -0.66 at 1 ms, +0.92 at 4 ms and +2.2 at 10 ms.

    At 2 ms it would move by -0.16 + 0.29, less what integer logarithms lose and what selects the samples: packets
    overtake each other, an RTT is taken of the newest packet that an ACK reports, and an ACK that was overtaken reports
    none. The report calls 2 ms positive. In the simulator, whose path has no other jitter, 2 and 2.5 ms are negative,
    and 3 ms is positive for some seeds.
    """
    for seed in SEEDS:
        network = dumbbell("80ms", "dualpi2@2020", child=f"netem delay {jitter}ms {jitter / 2}ms 10%")
        flows = [{"name": "prague", "cc": "prague@2020-04"}]
        part, _ = classic(ran(network, flows, seconds=60, seed=seed, trace=True))
        assert part > 0.5 if verdict else part == 0.0, (seed, part)


@pytest.mark.parametrize("rtt", ["20ms", "80ms"])
@pytest.mark.parametrize("qdisc", ["fq_codel flows 1", "pie@5.4 ecn"])
def test_at_their_defaults_classic_queues_are_found_and_shared(qdisc, rtt):
    """Scenario 2 of the ECT(1) report: "single-queue Codel or PIE at defaults: fallback works, fair" (line 31,
    figure 1).

    The fallback raises a reduction to at least 31 % of the window, which is near CUBIC's 30 %. The test takes a factor
    of 2 for fair. The code of August 2020 has no fallback and is far from that: a factor of 6 to 20 at 20 ms, both in
    the suite of November 2020 and in the simulator.
    """
    for seed in SEEDS:
        flows = pair("cubic@5.4", "prague@2020-04")
        result = ran(dumbbell(rtt, qdisc), flows, seconds=60, seed=seed, trace=True)
        assert classic(result, after=25)[0] > 0.9
        assert 0.5 < result.rate("prague", 30, 58) / result.rate("cubic", 30, 58) < 2
    without = ran(dumbbell(rtt, qdisc), pair("cubic@5.4", "prague@2020-08"), seconds=60, seed=1)
    assert without.rate("prague", 30, 58) / without.rate("cubic", 30, 58) > 4


@pytest.mark.parametrize("rtt", ["20ms", "80ms"])
def test_a_tightened_codel_is_not_found(rtt):
    """Scenario 2 of the ECT(1) report: "Codel and PIE tuned tighter: false negatives" (lines 34 and 35, figure 3).

    A target of 1 ms keeps the deviation below 0.75 ms, and a queue of 1 ms adds nothing by its depth. Prague then has
    15 times what CUBIC has and more. PIE with a target of 5 ms is not tested, because the detector finds it late with
    some seeds of the simulator.
    """
    qdisc = "fq_codel flows 1 target 1ms interval 20ms"
    for seed in SEEDS:
        flows = pair("cubic@5.4", "prague@2020-04")
        result = ran(dumbbell(rtt, qdisc), flows, seconds=60, seed=seed, trace=True)
        assert classic(result)[0] == 0.0
        assert result.rate("prague", 30, 58) > 10 * result.rate("cubic", 30, 58)


def test_behind_a_short_red_the_verdict_goes_to_and_fro():
    """Scenario 2 of the ECT(1) report, 180 s at 80 ms: "red(150000): the detector oscillates" (line 34, figure 2)."""
    qdisc = "red limit 150000 avpkt 1000 adaptive bandwidth 50mbit ecn"
    for seed in SEEDS:
        flows = pair("cubic@5.4", "prague@2020-04")
        result = ran(dumbbell("80ms", qdisc), flows, seconds=180, seed=seed, trace=True)
        part, times = classic(result, after=20)
        assert 0.1 < part < 0.9
        assert times >= 3


# Convergence


def alike(result: Ran, within: float = 1.5) -> pl.DataFrame:
    """From a second after the second flow's start (10 s): whether neither's rate, in a second's mean, is above `within`
    times the other's."""
    one, two = (result.of(name, "received").select("time", **{name: "value"}) for name in ("1", "2"))
    rates = one.join(two, on="time").with_columns(pl.col("1", "2").diff(20)).filter(pl.col("time") >= 11)
    return rates.select("time", alike=pl.min_horizontal("1", "2") >= pl.max_horizontal("1", "2") / within)


def converged(result: Ran, within: float = 1.5) -> float:
    """Seconds from the second flow's start until two rates have met, which is to be alike for 5 s; inf if never."""
    near = alike(result, within)
    lasting = near["time"].filter(near["alike"].cast(pl.Float64).rolling_min(100).fill_null(0) > 0)
    return math.inf if lasting.is_empty() else lasting[0] - 4.95 - 10


def pairs(rtt: str, qdisc: str, cc: str, sysctl: dict, *, seconds: int = 60, starts: int = 5, apart: float = 0) -> list:
    """A run per start of the second flow, each `apart` ms after the one before, with seeds of their own."""
    flows = [pair(cc, cc, late=apart * n) for n in range(starts)]
    return [ran(dumbbell(rtt, qdisc), f, seconds=seconds, seed=n, sysctl=sysctl) for n, f in enumerate(flows, 1)]


def median(runs: list[Ran], within: float = 1.5) -> float:
    """Of the times that convergence takes."""
    times = sorted(converged(run, within) for run in runs)
    return times[len(times) // 2]


def test_a_reno_sce_pair_converges_in_seconds_in_cake():
    """Scenario 1 of the bake-off, CAKE with SCE and a single queue.

    The bake-off states: "reno-sce pair about 20 s at 80 ms (30 s in an earlier revision), 1-2 s at 10 ms" (lines 279 to
    281). That was read by eye. The test calls two rates met when they stay within a factor of each other. 30 runs of
    each kind, with ten starts of the second flow in a round trip and three seeds, gave:

    | | within 1.5 | within 1.3 |
    |---|---|---|
    | 80 ms | 4 to 8 s in ten runs, 20 to 30 s in the others | 9 to 53 s, median 39 s |
    | 80 ms, `@2019`, five runs | 23 to 27 s | 39 to 45 s |
    | 10 ms | 1.2 to 3.2 s, in three runs 5 to 32 s; median 2 s | median 2.5 s, six runs never |
    | 10 ms, `@2019` | 2.0 to 2.8 s | 2.4 to 11 s, median 2.9 s |

    What the bake-off calls "about" lies between the two factors. After the second flow's slow start, which SCE does not
    end, the two flows of the later form have 54 and 168 packets at 80 ms (in ten runs 54 and 90). In the form of 2019
    the first mark ends it. Both grow by one packet per round trip until the link is full.

    From there on, marks on a fraction f of both flows' packets would change a window W by (1 - f) - f sqrt(W) per round
    trip, in 2019 by half of that root. Near the equilibrium a difference of two windows then shrinks by (1 - f) / (2 W)
    of itself per round trip: to 1/e in 28 s with W = 165 at 80 ms, and in 0.5 s with W = 21 at 10 ms.

    It takes longer where the roots, which are whole numbers, are equal: 169 to 195 packets all have 13. It also takes
    longer where the ACK clock keeps each flow's packets together, so that each flow finds marks of its own. A flow's
    share of 10 ms of packets deviates by 0.4, where a random order would make it 0.08, and it is the same a round trip
    later (correlation 0.95). With bursts of four segments (`tcp_pacing_ca_ratio` 120) the first flow stayed at 120
    packets with 8.2 % of them marked and the second at 220 with 6.8 %, which are 1/(1 + 11) and 1/(1 + 14).

    The suite set ratios of 100 and 40, which only size bursts with the other sysctls that it lists. With
    `tcp_sce_pacing` 40 % of a window is sent per round trip. The window then never limits the flow, so that the later
    form of reno-sce does not grow, and the pair stays at 14 Mbit/s.
    """
    for cc in ("reno-sce", "reno-sce@2019"):
        assert 0.5 < median(pairs("10ms", CAKE, cc, SCE, apart=2)) < 4
        slow = pairs("80ms", CAKE, cc, SCE, seconds=80, starts=10, apart=8)
        assert median(slow) < 40
        assert median(slow, within=1.3) > 10


@pytest.mark.parametrize("rtt", ["0ms", "10ms"])
def test_in_one_codel_queue_a_reno_sce_pair_of_2019_is_fair_from_the_start(rtt):
    """Scenario 3 of the bake-off: "reno-sce pair fair, converges below 1 s at 0 and 10 ms" (lines 342 to 344).

    CoDel marks CE only, one flow's packet at a time. In the form of 2019 that flow goes on with 3/4 of its window. From
    the second flow's first second on the rates are within a factor of 1.5 for 96 to 100 % of the time at 0 ms, and for
    83 to 95 % at 10 ms; from 15 s on they differ by up to 8 %.

    In the later form the flow goes on with 3/8, because PRR takes it to a half and the control takes a quarter off. The
    rates are within that factor for 83 to 97 % of the time at 0 ms, and for 38 to 59 % at 10 ms. Over the whole run
    that pair is fair, too.
    """

    def part(cc: str) -> float:
        runs = pairs(rtt, CODEL, cc, SCE, apart=2)
        assert all(0.7 < run.rate("2", 15, 59) / run.rate("1", 15, 59) < 1.4 for run in runs)
        return min(alike(run)["alike"].mean() for run in runs)

    assert part("reno-sce@2019") > 0.8
    if rtt == "10ms":
        assert part("reno-sce") < 0.6


def beside_cubic(rtt: str, qdisc: str, cc: str) -> list[float]:
    """How many times CUBIC's rate `cc` has, in order, for five starts of `cc`."""
    runs = (
        ran(dumbbell(rtt, qdisc), pair("cubic@5.4", cc, late=3 * n), seconds=60, seed=1, sysctl=SCE) for n in range(5)
    )
    return sorted(run.rate("reno-sce", 15, 59) / run.rate("cubic", 15, 59) for run in runs)


def test_in_one_codel_queue_reno_sce_of_2019_has_more_than_cubic():
    """Scenario 3 of the bake-off at 10 ms: "reno-sce about 1.5x" CUBIC's rate (lines 329 to 331).

    A window that grows by a packets per round trip and loses the part b of itself to a mark is in the mean
    sqrt(a (2 - b) / (2 b p)) packets at p marks per packet. CUBIC has a = 8/15 and b = 0.3 at these windows. With a = 1
    the form of 2019, which loses a quarter, comes to 1.52 times CUBIC's window, and the later form, which loses 5/8, to
    0.85 times. The simulator gives 1.7 to 2.2 and 0.66 to 0.97.
    """

    def mean(a: float, b: float) -> float:
        return math.sqrt(a * (2 - b) / b)

    for cc, cut in (("reno-sce@2019", 1 / 4), ("reno-sce", 5 / 8)):
        expected = mean(1, cut) / mean(8 / 15, 0.3)
        assert expected / 1.5 < beside_cubic("10ms", CODEL, cc)[2] < 1.5 * expected, cc
    assert beside_cubic("10ms", CODEL, "reno-sce@2019")[0] > 1.2
    assert beside_cubic("10ms", CODEL, "reno-sce")[-1] < 1.2


def test_in_one_cake_queue_cubic_dominates_reno_sce():
    """Scenario 1 of the bake-off.

    The bake-off states: "cubic dominates reno-sce in the single queue at 0 and 10 ms, about fair at 80 ms sometimes"
    (lines 267 to 272).

    CUBIC does not react to SCE. It holds the queue near COBALT's target of 5 ms, above which every packet gets an SCE
    mark. The form of 2019 then ends its slow start with the first mark, and has 0.07 to 0.13 of CUBIC's rate at 80 ms.
    "About fair sometimes" is not seen: an open deviation (docs/validation/open.md).
    """
    assert beside_cubic("0ms", CAKE, "reno-sce@2019")[-1] < 1 / 3
    assert beside_cubic("10ms", CAKE, "reno-sce@2019")[-1] < 1 / 3
    assert beside_cubic("80ms", CAKE, "reno-sce@2019")[-1] < 1 / 3


@pytest.mark.parametrize(
    ("rtt", "qdisc", "least", "most"),
    [
        ("80ms", "dualpi2@2020", 15, 45),
        ("10ms", CODEL, 2.5, 10),
        ("80ms", CODEL, 30, math.inf),
    ],
)
def test_a_prague_pair_converges_slowly(rtt, qdisc, least, most):
    """Scenarios 1 and 3 of the bake-off.

    In DualPI2 the bake-off saw "prague pair about 30-40 s at 80 ms" (line 282), and in one CoDel queue "at 80 ms not
    converged within the 50 s, at 10 ms about 5 s" (lines 344 to 348).

    The median of five seeds has to lie within a factor of 2 of what was read by eye. The simulator takes 15 to 24 s in
    DualPI2, 3 to 4 s in CoDel at 10 ms, and 32 to 39 s at 80 ms; rates that stay within a factor of 1.5 count as
    converged, which asks for less than equal rates.
    """
    assert least < median(pairs(rtt, qdisc, "prague@2019-11", ACCECN)) < most


# Present-day Prague


def test_present_day_prague_goes_on_below_two_packets_where_that_of_2020_fills_the_queue():
    """draft-briscoe-iccrg-prague-congestion-control: below a window of 2 a flow paces fractions of it.

    Twelve flows share 2 Mbit/s at 5 ms, and every packet that waits for more than 1 ms is marked. The windows of 2020
    cannot go below two packets, so that 24 frames are in flight: 24 * 1514 * 8 / 2e6 = 0.145 s. The path holds 5 ms of
    that. Every second frame, the first of a paced pair, waits at most half a round for the other one and its ACK, which
    is a quarter of a round in the mean. The rest is queue: 0.104 to 0.140 s. A rate of 2/12 Mbit/s is 0.07 packets of
    1500 bytes per 5 ms, and lies above the least rate, 100 kbit/s.
    """
    network = dumbbell("5ms", "fq_codel flows 1 ce_threshold 1ms", rate="2mbit")
    out = 24 * FRAME / 2e6
    floor = out - 0.005 - out / 4
    sojourn = {}
    for cc in ("prague", "prague@2020-08"):
        flows = [{"name": f"f{n}", "cc": cc} for n in range(12)]
        result = ran(network, flows, seconds=40, seed=1)
        queue = result.of("mid>srv", "sojourn")
        sojourn[cc] = queue.filter(pl.col("time") > 20)["value"].mean()
        rates = [result.rate(f"f{n}", 20, 40) for n in range(12)]
        # nobody is starved: all within a factor of three (2.8 is the largest of four seeds)
        assert min(rates) > max(rates) / 3
    assert floor < sojourn["prague@2020-08"] < out
    assert sojourn["prague"] < floor / 3
