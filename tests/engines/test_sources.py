"""Short flows, video and paced flows: drawn, run on the simulator and in a real kernel, measured, shown."""

import json
import math
from itertools import pairwise
from statistics import NormalDist

import msgspec
import polars as pl
import pytest

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.engines.lab import plan
from bakeoff.errors import BakeoffError
from bakeoff.measure import Samples, completion, video
from bakeoff.results import parts
from bakeoff.scenario import Run, catalog, short
from bakeoff.scenario.language import ShortSource
from bakeoff.tables import results_table, rows

HEAD = """
scenario: sources
duration: 30s
start_jitter: 0s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  bottleneck: {rate: 20mbit, qdisc: fq_codel}
measure: {steady_state: {window: 30s, ends: at end}}
"""
WEB = "{short: {count: 100, mean_gap: 200ms, size_p5: 1KiB, size_p95: 300KiB}}"
VIDEO = "{video: {rates: [1mbit, 2mbit, 4mbit, 16mbit], segment: 2s, buffer: 12s}}"


def scenario(folder, flows: str) -> Run:
    (folder / "sources.yaml").write_text(HEAD + f"flows: {flows}\n")
    [run] = catalog.select([str(folder / "sources.yaml")])
    return run


def done(run: Run, folder, engine: str = "sim") -> results.Result:
    [report] = campaign.run([run], folder, Execution(engine=engine, jobs=1)).runs
    assert report.error is None, report.error
    return results.read(report.path)


# Draws


def test_gaps_are_exponential_and_sizes_lognormal():
    n = 100_000
    source = ShortSource.model_validate({"count": 65_534, "mean_gap": "200ms", "size_p5": "64KiB", "size_p95": "2MiB"})
    drawn = short.objects(1, "web", source) + short.objects(2, "web", source)
    drawn, second = drawn[:65_534], drawn[65_534:n]
    gaps = [b - a for part in (drawn, second) for (a, _), (b, _) in zip([(0.0, 0), *part], part, strict=False)]
    sizes = sorted(size for part in (drawn, second) for _, size in part)
    assert len(sizes) == n
    # The mean of n exponentials has the standard error mean / sqrt(n): 0.63 ms; their standard deviation is their mean.
    mean = sum(gaps) / n
    assert abs(mean - 0.2) < 3 * 0.2 / math.sqrt(n)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / n)
    assert deviation == pytest.approx(0.2, rel=3 * math.sqrt(2 / n))
    # Quantile q of n draws has the standard error sqrt(q (1 - q) / n) / f; of the normal logarithm f is phi(z) / sigma.
    sigma = math.log(32) / 2 / NormalDist().inv_cdf(0.95)
    for q, expected in ((0.05, 65_536), (0.95, 2_097_152)):
        error = math.sqrt(q * (1 - q) / n) / NormalDist().pdf(NormalDist().inv_cdf(q)) * sigma
        assert abs(math.log(sizes[int(q * n)] / expected)) < 3 * error
    # ccafct's sample mean of 645 683 bytes, of 900 draws; the distribution's is exp(mu + sigma^2 / 2).
    mu = (math.log(65_536) + math.log(2_097_152)) / 2
    assert sum(sizes) / n == pytest.approx(math.exp(mu + sigma**2 / 2), rel=0.02)


def test_draws_depend_on_seed_and_name_only():
    def source(count):
        return ShortSource.model_validate({"count": count, "mean_gap": "1s", "size_p5": "1kB", "size_p95": "2kB"})

    few, many = short.objects(1, "web", source(10)), short.objects(1, "web", source(50))
    assert many[:10] == few
    assert short.objects(2, "web", source(10)) != few != short.objects(1, "wob", source(10))
    assert all(a[0] < b[0] for a, b in pairwise(many))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{short: {count: 1, mean_gap: 1s, size_p5: 2kB, size_p95: 1kB}}", "size_p5 of 2000 bytes is above size_p95"),
        ("{short: {count: 65535, mean_gap: 1s, size_p5: 1kB, size_p95: 1kB}}", "65534"),
        ("{video: {rates: [1mbit], segment: 4s, buffer: 2s}}", "a buffer of 2 s is smaller than a segment of 4 s"),
    ],
)
def test_what_cannot_be_offered_is_refused(tmp_path, source, message):
    with pytest.raises(BakeoffError, match=message):
        scenario(tmp_path, f"[{{name: a, source: {source}}}]")


# Measures


def tidy(rows_: dict[str, list[tuple[float, float]]]) -> Samples:
    flat = [(time, "flow", "a", metric, value) for metric, part in rows_.items() for time, value in part]
    return Samples(parts(pl.DataFrame(flat, schema=["time", "kind", "name", "metric", "value"], orient="row")))


def test_completion_times_by_hand():
    size = [(1.0, 5000.0), (2.0, 5000.0), (3.0, 2e6), (4.0, 99_999.0), (9.0, 1.0)]
    fct = [(1.0, 0.1), (2.0, 0.4), (3.0, 2.0), (9.0, 7.0)]
    measured = completion(tidy({"size": size, "fct": fct}), "a", (1.0, 5.0))
    assert (measured.begun, measured.ended) == (4, 3)
    times = measured.fct_s
    assert (times.n, times.p50, times.max) == (3, 0.4, 2.0)
    assert times.mean == pytest.approx(2.5 / 3)
    assert times.geometric_mean == pytest.approx(0.08 ** (1 / 3))
    # Linear between order statistics: 0.95 x 2 = 1.9 of the way.
    assert times.p95 == pytest.approx(0.4 + 0.9 * 1.6)
    classes = [(part.from_bytes, part.to_bytes, part.n) for part in measured.sizes]
    assert classes == [(0, 10_000, 2), (1_000_000, None, 1)]
    cut_off = completion(tidy({"size": size}), "a", (1.0, 5.0))
    assert (cut_off.ended, cut_off.fct_s, cut_off.sizes) == (0, None, [])


def test_a_video_by_hand():
    rates = [(0.0, 1e6), (1.0, 2e6), (3.0, 2e6), (5.0, 1e6)]
    seen = video(tidy({"segment_rate": rates, "stall": [(2.0, 0.5), (4.0, 1.0)], "startup": [(0.0, 0.3)]}), "a")
    assert msgspec.to_builtins(seen) == {
        "segments": 4, "startup_s": 0.3, "mean_rate_bps": 1.5e6, "switches": 2, "stalls": 2, "stalled_s": 1.5,
    }  # fmt: skip


# Runs


FLOWS = f"[{{name: web, source: {WEB}}}, {{name: tv, source: {VIDEO}}}, {{name: bulk, cc: reno}}]"


def test_both_sources_beside_a_bulk_flow_in_the_simulator(tmp_path):
    run = scenario(tmp_path, FLOWS)
    result = done(run, tmp_path / "out")
    summary = result.summary
    web, tv = summary.flows["web"], summary.flows["tv"]
    offered = [object_ for object_ in run.flows[0].source.objects if object_[0] < 30]
    assert web.fct.begun == len(offered)
    assert sum(part.n for part in web.fct.sizes) == web.fct.ended
    assert (web.steady_state.delivery_rate_bps, web.srtt_s) == (None, None)
    # fq_codel gives each a third of 19 Mbit/s: 4 Mbit/s is the highest rate below 0.9 times that.
    rates = result.series.filter(name="tv", metric="segment_rate")["value"].to_list()
    assert set(rates[5:]) == {4e6}
    assert (tv.video.stalls, tv.video.segments) == (0, len(rates))
    # The sizes are those of the resolved run, each at its time.
    sizes = result.series.filter(name="web", metric="size").select("time", "value").rows()
    assert sizes == [(pytest.approx(at), size) for at, size in offered]
    assert result.all_counters()["flows"]["web"]["received_bytes"] >= sum(
        size for at, size in offered if at in dict(result.series.filter(metric="fct").select("time", "value").rows())
    )
    assert not [line for line in summary.missing if "web" in line or "tv" in line]
    assert summary.jain is not None  # of tv and bulk


def test_tables_show_what_applications_saw(tmp_path):
    result = done(scenario(tmp_path, FLOWS), tmp_path / "out")
    text = results_table.render([result], format="markdown", kind="runs")
    heads, _, cells = (line.split(" | ") for line in text.splitlines() if line.startswith("|"))
    shown = dict(zip(heads, cells, strict=True))
    quantiles = result.summary.flows["web"].fct.fct_s
    assert shown["FCT ms 50/95/99 %"] == "/".join(f"{1000 * getattr(quantiles, q):.1f}" for q in ("p50", "p95", "p99"))
    # Below the 4 Mbit/s at which nearly all segments come, in Mbit/s and not another unit.
    assert 3 < float(shown["video Mbit/s"]) < 4
    assert shown["video Mbit/s"] == f"{result.summary.flows['tv'].video.mean_rate_bps / 1e6:.2f}"
    [flat] = json.loads(results_table.render([result], format="json"))["rows"]
    assert flat["flow1_fct_p95_s"] == quantiles.p95
    assert flat["flow2_video_stalled_s"] == 0
    assert "flow3_fct_p95_s" not in flat
    [row] = rows.rows([result])
    assert row.flows[2].fct_s is None


def test_the_plan_of_short_flows_and_video(tmp_path):
    made = plan(scenario(tmp_path, FLOWS)).roles
    answers = {role["name"]: role.get("answers") for role in made if role["role"] == "tcp-sink"}
    assert answers == {"web": "objects", "tv": "segments", "bulk": None}
    source = next(role["source"] for role in made if role["role"] == "tcp-source" and role["name"] == "web")
    assert list(source) == ["kind", "objects"]
    assert len(source["objects"]) == 100


def test_short_flows_in_a_real_kernel_as_in_the_simulator(kernel, tmp_path):
    run = scenario(tmp_path, f"[{{name: web, source: {WEB}}}]")
    ours, real = done(run, tmp_path / "sim"), done(run, tmp_path / "kernel", kernel)

    def by_time(result, metric):
        return dict(result.series.filter(name="web", metric=metric).select("time", "value").rows())

    assert by_time(ours, "size") == by_time(real, "size")
    mine, other = (of.all_counters()["flows"]["web"] for of in (ours, real))
    assert (mine["objects"], mine["received_bytes"]) == (other["objects"], other["received_bytes"])
    fct, theirs = by_time(ours, "fct"), by_time(real, "fct")
    assert fct.keys() == theirs.keys()
    # The same slow starts through the same queue: half of them within 2 %, all medians and means within 10 %.
    ratios = sorted(abs(math.log(fct[at] / theirs[at])) for at in fct)
    assert ratios[len(ratios) // 2] < 0.02
    assert sum(fct.values()) == pytest.approx(sum(theirs.values()), rel=0.1)


def test_a_hundred_connections_at_a_time_fit_into_a_guest(kernel, tmp_path):
    flows = "{short: {count: 600, mean_gap: 50ms, size_p5: 20KiB, size_p95: 1MiB}}"
    run = scenario(tmp_path, f"[{{name: web, source: {flows}}}]")
    counted = done(run, tmp_path / "kernel", kernel).all_counters()["flows"]["web"]
    # More is asked for than 20 Mbit/s carry, so that connections end and are made while others stay open. Each may
    # receive 16 MiB at once, which is 1.6 GB for a hundred, where the guest has less than 1.
    assert counted["objects"]["begun"] - counted["objects"]["ended"] > 100
    assert 0.9 < counted["received_bytes"] * 8 / (20e6 * 30 * 1448 / 1514) < 1


def test_a_video_in_a_real_kernel_as_in_the_simulator(kernel, tmp_path):
    run = scenario(tmp_path, f"[{{name: tv, source: {VIDEO}}}]")
    seen = [done(run, tmp_path / engine, engine).summary.flows["tv"].video for engine in ("sim", kernel)]
    assert seen[0].startup_s == pytest.approx(seen[1].startup_s, rel=0.05)
    for key in ("segments", "mean_rate_bps", "switches", "stalls"):
        assert getattr(seen[0], key) == getattr(seen[1], key), key


def test_a_pacing_rate_in_a_real_kernel(kernel, tmp_path):
    run = scenario(tmp_path, "[{name: paced, cc: reno, max_pacing_rate: 5mbit}]")
    for engine in ("sim", kernel):
        goodput = done(run, tmp_path / engine, engine).summary.flows["paced"].steady_state.goodput_bps
        # The payload is what is paced.
        assert goodput == pytest.approx(5e6, rel=0.01), engine
