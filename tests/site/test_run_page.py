"""The page of a run without a browser: its samples packed, its words, its network, its downloads."""

import base64
import gzip
import io
import json
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import synthetic
from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.measure import summarise
from bakeoff.plots.plotted_run import PlottedRun
from bakeoff.scenario import catalog
from bakeoff.site import chart_data, charts, configuration, contrast, network_drawing, run_page
from bakeoff.site.site_contents import gather
from bakeoff.site.site_folder import site_of, write

SCENARIO = {
    "scenario": "s",
    "title": "A title & <i>more</i>",
    "duration": "2s",
    "network": {"path": ["cli", "mid", "srv"], "rtt": "10ms", "bottleneck": {"rate": "10mbit", "qdisc": "dualpi2"}},
    "flows": [{"name": "f", "cc": "reno"}, {"name": "g", "cc": "prague"}],
    "probes": [{"name": "ping", "type": "icmp", "every": "50ms"}],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """One run of 2 s with two seeds, and its site: (the campaign's folder, the site's)."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "mine.yaml").write_text(json.dumps(SCENARIO))
    campaign.run(catalog.select(str(folder / "mine.yaml"), seeds=2), folder / "c", Execution(jobs=1))
    [run] = (folder / "c").rglob("s~seed2") or [None]
    (run / "setup.log").write_text("one\n\x1b[31m<b>two</b>\n")
    (run / "elsewhere").write_text("not ours")
    (run / "x-to-y.pcapng").symlink_to("/etc/hostname")
    write(gather(folder / "c", results.survey(folder / "c").results), folder / "site")
    return folder / "c", folder / "site"


def made(**words):
    run = synthetic.made(**words)
    return PlottedRun(run), summarise(run)


def unpack(script):
    """The content of a page's script and its arrays, as charts.js reads them."""
    content = json.loads(script.removeprefix("bakeoffCharts(").removesuffix(");\n"))
    block = zlib.decompress(base64.b64decode(content["bytes"]))
    arrays = []
    for start, count, size in content["arrays"]:
        planes = np.frombuffer(block[start : start + count * size], "u1").reshape(size, count)
        plain = np.ascontiguousarray(planes.T).tobytes()
        arrays.append(np.cumsum(np.frombuffer(plain, "<f8")) / 1e6 if size == 8 else np.frombuffer(plain, "<f4"))
    return content, arrays


def test_packed_samples_are_the_samples_to_a_microsecond_and_seven_digits():
    shown, summary = made(noise=0.3)
    content, arrays = unpack(chart_data.script(charts.charts(shown, summary), {"end": 60.0}))
    [goodput] = [chart for chart in content["charts"] if chart["id"] == "goodput"]
    time, value = (arrays[at] for at in goodput["lines"][0]["samples"])
    wanted = shown.samples.of("flow", "prague", "goodput")
    np.testing.assert_allclose(time, wanted[0], rtol=0, atol=0.5e-6)
    np.testing.assert_allclose(value, wanted[1] / 1e6, rtol=2**-24)
    # All series of the run were taken by one clock: it is packed once. Means and steps have two more.
    assert sum(size == 8 for _, _, size in content["arrays"]) == 3


def test_a_script_holds_no_tag_and_no_line_end_of_another_language():
    text = chart_data.as_script({"</script><!--": "a\u2028b&'\x00"})
    assert not set("<>&\u2028\x00") & set(text)
    assert json.loads(text) == {"</script><!--": "a\u2028b&'\x00"}


def test_means_in_words_are_the_measures():
    shown, summary = made()
    by_id = {chart.id: chart for chart in charts.charts(shown, summary)}
    # The rates of the synthetic run are 45.7 and 1.9 Mbit/s, its RTTs 25 and 26 ms, the probe's 25.5 ms.
    assert by_id["goodput"].says == (
        "In the steady state, 18 s to 58 s, the mean is 45.7 Mbit/s for prague, 1.9 Mbit/s for cubic."
    )
    of_summary = [summary.flows[name].steady_state.goodput_bps / 1e6 for name in ("prague", "cubic")]
    assert [trace.mean for trace in by_id["goodput"].traces[:2]] == pytest.approx(of_summary, rel=1e-12)
    assert "25 ms for prague, 26 ms for cubic, 25.5 ms for probe ping" in by_id["round-trip-time"].says
    # 10 marks a second; 2 drops at the first sample and none later; retransmissions likewise.
    assert by_id["marks"].says.endswith("10 packets/s for mid>srv.")
    assert by_id["drops"].says.endswith("0 packets/s for mid>srv.")


def test_a_counter_that_begins_again_counts_from_nothing():
    time, rate = charts._per_second((np.array([1.0, 2.0, 4.0]), np.array([5.0, 9.0, 6.0])))
    # 5 in the first second, 4 in the next; then 6 in two seconds, after the qdisc was replaced.
    assert time.tolist() == [1.0, 2.0, 4.0]
    assert rate.tolist() == [5.0, 4.0, 3.0]


def test_a_line_of_too_many_samples_keeps_its_peaks():
    value = np.zeros(300_000)
    value[[17, 54_321]] = 3.0, -2.0
    time, thinned = charts._thinned(np.arange(300_000) / 1e3, value, 100_000)
    assert len(time) <= charts._MOST_POINTS
    assert (np.diff(time) > 0).all()
    assert (time[thinned.argmax()], thinned.max()) == (0.017, 3.0)
    assert (time[thinned.argmin()], thinned.min()) == (54.321, -2.0)


def test_many_flows_share_a_line_that_has_each_of_them_behind_it():
    flows = tuple((f"{cc}{i}", cc) for cc in ("cubic", "prague") for i in range(5))
    shown, summary = made(flows=flows, rates=(4e6,) * 5 + (6e6,) * 5)
    [goodput] = [chart for chart in charts.charts(shown, summary) if chart.id == "goodput"]
    lines = {trace.label: trace for trace in goodput.traces}
    assert {label: len(trace.members) for label, trace in lines.items()} == {"cubic: 5 flows": 5, "prague: 5 flows": 5}
    assert lines["cubic: 5 flows"].mean == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize("colour", ["#0072B2", "#222222", "#000000", "#0B5D44", "teal", "#FFFFFF"])
def test_lines_stand_out_on_a_dark_ground(colour):
    light, dark = contrast.light_and_dark(colour)
    rgb = [int(dark[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    assert contrast.contrast(rgb, contrast._DARK) > 4.4
    assert colour not in ("#0072B2", "#222222") or light == colour.lower()


def test_the_contrast_of_black_and_white_is_21():
    assert contrast.contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)


def test_the_network_has_every_word_of_the_interfaces():
    drawing = network_drawing.drawing(synthetic.made().run)
    # cli, mid and srv stand below each other, and two cables lead straight down.
    assert [box.name for box in sorted(drawing.boxes, key=lambda box: box.y)] == ["cli", "mid", "srv"]
    assert len({box.x for box in drawing.boxes}) == 1
    assert len(drawing.cables) == 2
    text = " ".join(line.text for line in drawing.words)
    assert text.count("netem delay 10ms") == 2
    assert text.count("rate 50mbit") == text.count("pie ecn") == 2
    for line in drawing.words:
        assert 0 <= line.y <= drawing.height


def test_what_hangs_beside_the_path_stands_at_the_height_of_what_it_hangs_on():
    run = synthetic.resolved()
    for name, delay in (("sender", 0.005), ("second", 0.006), ("idle", 0.007)):
        run["nodes"].append({**run["nodes"][0], "name": name})
        run["links"].append({"ends": [name, "mid"], "rate_bps": 10**7, "delay_s": delay, "mtu": 1500})
    run["nodes"].append({**run["nodes"][0], "name": "outer"})
    run["links"].append({"ends": ["idle", "outer"], "rate_bps": None, "delay_s": 0.0, "mtu": 1500})
    run["flows"] += [{**run["flows"][0], "name": name, "from": name} for name in ("sender", "second")]
    drawing = network_drawing.drawing(synthetic.as_run(run))
    boxes = {box.name: box for box in drawing.boxes}
    # What sends is on the left, one below the other; what does not is on the right, and what hangs on that further out.
    assert boxes["sender"].x == boxes["second"].x < boxes["mid"].x - network_drawing._BOX_WIDTH
    assert boxes["sender"].y == boxes["idle"].y == boxes["mid"].y < boxes["second"].y
    assert (
        boxes["outer"].x
        > boxes["idle"].x + network_drawing._BOX_WIDTH
        > boxes["mid"].x + 2 * network_drawing._BOX_WIDTH
    )
    texts = [line.text for line in drawing.words]
    assert [f"{ms} ms each way" in texts for ms in (5, 6, 7)] == [True] * 3
    # Every box lies in the picture, and no two of them on each other.
    for one in drawing.boxes:
        assert 0 <= one.x <= drawing.width - network_drawing._BOX_WIDTH
        assert 0 <= one.y <= drawing.height - network_drawing._BOX_HEIGHT
        for other in drawing.boxes:
            apart = (
                abs(one.x - other.x) >= network_drawing._BOX_WIDTH
                or abs(one.y - other.y) >= network_drawing._BOX_HEIGHT
            )
            assert one is other or apart, (one.name, other.name)


def test_every_stored_kind_of_rule_and_source_has_words():
    run = synthetic.made()
    run.resolved["interfaces"][0]["mangle"] = [
        {"match": {"proto": "tcp", "dscp": 35}, "set_dscp": 0, "set_ecn": "not-ect"},
        {"match": {"syn": True}, "clear_syn_ecn": True},
        {"match": {}, "set_ecn": "ce"},
    ]
    run.resolved["flows"][0]["source"] = {"kind": "periodic", "size": 160, "count": 1, "every_s": 0.02}
    tables = {table.caption.split(",")[0]: table for table in configuration.of(PlottedRun(run))}
    rules = tables["Interfaces and cables"].rows[1][4]
    assert rules == "tcp, DSCP 35: set DSCP 0, set ECN not-ect; SYN: clear ECN in SYN; all packets: set ECN ce"
    assert tables["Flows"].rows[0][4] == "1 × 160 bytes every 20 ms, DSCP 19"


def test_downloads_are_the_run_and_nothing_else(site):
    stored, pages = site
    [folder] = (pages / "runs").rglob("s~seed2/files")
    [run] = stored.rglob("s~seed2")
    names = {path.name for path in folder.iterdir()}
    ours = {"run.json", "series.parquet", "counters.json", "summary.json", "setup.log", "teardown.log"}
    assert names == ours | {"series.csv.gz"}
    for name in ours:
        assert (folder / name).read_bytes() == (run / name).read_bytes()
    table = pl.read_csv(io.BytesIO(gzip.decompress((folder / "series.csv.gz").read_bytes())))
    assert table.equals(results.read(run).series)


def test_the_command_on_the_page_does_the_run_again(site, cli, monkeypatch):
    _, pages = site
    [page] = [path for path in pages.rglob("index.html") if path.parent.name == "s~seed2"]
    place = page.parent.relative_to(pages)
    command = f"bakeoff reproduce '{place}/files'" if "~" in str(place) else f"bakeoff reproduce {place}/files"
    assert f'<pre id="command">{command.replace(chr(39), "&#39;")}</pre>' in page.read_text()
    monkeypatch.chdir(pages)
    code, out, _ = cli("reproduce", f"{place}/files")
    assert (code, out.splitlines()[-1]) == (0, "local/s/s~seed2: identical")


def test_a_page_without_downloads_and_one_that_is_served_name_the_results(site, tmp_path):
    from dataclasses import replace

    stored, _ = site
    contents = gather(stored, results.survey(stored).results)
    [page] = [page for page in contents.pages if page.place.endswith("~seed2")]
    plain = site_of(contents)
    wanted = {
        "RESULTS/local/s/s~seed2": replace(plain, downloads=False),
        str(page.result.path): replace(plain, live=True),
    }
    for number, (place, kind) in enumerate(wanted.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        run_page.write(page, folder, kind)
        command = f"bakeoff reproduce '{place}'" if "~" in place else f"bakeoff reproduce {place}"
        assert command.replace("'", "&#39;") in (folder / "index.html").read_text(encoding="utf-8")
        assert (folder / "files").exists() == kind.downloads


def test_the_page_has_intervals_over_seeds_and_logs_as_text(site):
    _, pages = site
    [page] = [path for path in pages.rglob("index.html") if path.parent.name == "s~seed2"]
    text = page.read_text(encoding="utf-8")
    assert "mean of 2 seeds" in text
    assert "one\n\\x1b[31m&lt;b&gt;two&lt;/b&gt;" in text
    assert "A title &amp; &lt;i&gt;more&lt;/i&gt;" in text
    assert "its L queue" in text
    assert "uPlot 1." in text


def test_a_long_log_shows_its_end(tmp_path):
    class Stored:
        path = tmp_path

    (tmp_path / "setup.log").write_text("x" * run_page._MOST_LOG + "\nthe reason\n")
    [log] = run_page._logs(Stored())
    assert log.cut
    assert len(log.text) == run_page._MOST_LOG
    assert log.text.endswith("\nthe reason")


def test_the_scripts_are_of_the_package():
    assert run_page.uplot_version().startswith("1.")
    assets = Path(chart_data.__file__).parent / "assets"
    assert (assets / "charts.js").is_file()
    # Whoever gets a site gets uPlot, and so its licence.
    assert "Copyright (c) 2022 Leon Sorokin" in (assets / "uPlot.LICENSE.txt").read_text(encoding="utf-8")


def test_a_run_of_which_measures_alone_were_kept_has_a_page_without_charts(site, tmp_path):
    from dataclasses import replace

    stored, _ = site
    contents = gather(stored, results.survey(stored).results)
    page = contents.pages[0]
    run = tmp_path / "run"
    run.mkdir()
    for name in ("run.json", "summary.json"):
        (run / name).write_bytes((page.result.path / name).read_bytes())
    record = json.loads((run / "run.json").read_text()) | {"kept": "measures"}
    (run / "run.json").write_text(json.dumps(record))
    (tmp_path / "out").mkdir()
    run_page.write(replace(page, result=results.read(run)), tmp_path / "out", site_of(contents))
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "Only the measures of this run were kept" in text
    assert "f: reno, " in text
    assert {path.name for path in (tmp_path / "out" / "files").iterdir()} == {"run.json", "summary.json"}
