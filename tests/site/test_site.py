"""`bakeoff site`: a folder of pages that hold together by themselves, whatever the runs are called."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from bakeoff import campaign
from bakeoff.campaign import Execution
from bakeoff.scenario import catalog

HTML = "<b>x&\"'"
SCENARIO = {
    "scenario": "s",
    "title": "t",
    "duration": "2s",
    "network": {"path": ["cli", "mid", "srv"], "rtt": "10ms", "bottleneck": {"rate": "10mbit", "qdisc": "{qdisc}"}},
    "flows": [{"name": "f", "cc": "reno"}, {"name": "g", "cc": "cubic"}],
    "vary": {"qdisc": {HTML: "pfifo", "fq_codel": "fq_codel"}},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A campaign of two queues with two seeds each; one of its four runs failed."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "mine.yaml").write_text(json.dumps(SCENARIO))
    report = campaign.run(catalog.select(str(folder / "mine.yaml"), seeds=2), folder / "c", Execution(jobs=1))
    assert not report.failed
    run = folder / "c" / "local" / "s" / "fq_codel~seed2"
    record = json.loads((run / "run.json").read_text())
    record |= {"status": "failed", "error": f"no tc {HTML}\x1b[31m", "digest": None}
    (run / "run.json").write_text(json.dumps(record))
    for name in ("series.parquet", "counters.json", "summary.json"):
        (run / name).unlink(missing_ok=True)
    return folder / "c"


@pytest.fixture(scope="module")
def site(done, tmp_path_factory):
    from bakeoff import results
    from bakeoff.site.site_contents import gather
    from bakeoff.site.site_folder import write

    out = tmp_path_factory.mktemp("site") / "out"
    write(gather(done, results.survey(done).results), out)
    return out


class Read(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def pages(site):
    return {path: Read(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_run_has_a_page_and_every_link_leads_to_a_file(site):
    found = pages(site)
    assert len([path for path in found if "runs" in path.relative_to(site).parts]) == 4
    for path, page in found.items():
        for _, attributes in page.elements:
            for name in ("href", "src"):
                if name not in attributes:
                    continue
                parts = urlsplit(attributes[name])
                assert not parts.scheme, attributes[name]
                assert not parts.netloc, attributes[name]
                if parts.path:
                    target = (path.parent / unquote(parts.path)).resolve()
                    assert target.is_file(), f"{path}: {attributes[name]}"
                    assert target.is_relative_to(site.resolve())


def test_nothing_asks_for_another_address(site):
    for path in site.rglob("*"):
        if path.suffix in (".html", ".js", ".css", ".svg") and not path.name.startswith("uPlot"):
            text = path.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
            text = text.replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"""["'(]\s*(https?:)?//|@import|url\((?!#)""", text), path


def test_a_policy_forbids_scripts_in_the_page_and_there_are_none(site):
    for path, page in pages(site).items():
        [policy] = [a["content"] for tag, a in page.elements if tag == "meta" and "http-equiv" in a]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        for tag, attributes in page.elements:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], path
            assert tag != "script" or "src" in attributes, path


def test_names_and_reasons_show_as_text(site):
    for path, page in pages(site).items():
        assert "b" not in {tag for tag, _ in page.elements}, path
        assert "\x1b" not in path.read_text(encoding="utf-8")
    [failed] = [page for path, page in pages(site).items() if path.parent.name == "fq_codel~seed2"]
    assert f"no tc {HTML}\\x1b[31m" in failed.text


def test_files_have_names_that_every_file_system_takes(site):
    for path in site.rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9._~+=,@()-]+", path.name), path


def overview(site):
    text = (site / "data" / "runs.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("bakeoff.overview(").removesuffix(");\n"))


def test_the_overview_knows_what_runs_can_be_filtered_by(site):
    told = overview(site)
    facets = {facet["key"]: (number, facet["values"]) for number, facet in enumerate(told["facets"])}
    assert set(facets) == {"suite", "scenario", "engine", "status", "cc", "qdisc", "rate", "rtt", "vary.qdisc"}
    # Two runs, whose repetitions are taken together; one of the second's failed.
    by_name = {}
    for run in told["runs"]:
        own = {
            key: [values[code] for code in run["f"].get(str(number), [])] for key, (number, values) in facets.items()
        }
        by_name[own["vary.qdisc"][0]] = (run, own)
    assert set(by_name) == {HTML, "fq_codel"}
    run, own = by_name["fq_codel"]
    assert own["status"] == ["ok", "failed"]
    assert own["cc"] == ["reno", "cubic"]
    assert (own["qdisc"], own["rate"], own["rtt"]) == (["fq_codel"], ["10 Mbit/s"], ["10 ms"])
    assert run["n"] == 2
    [[place, seed, reason]] = run["failed"]
    assert (place, told["words"][seed]) == ("local/s/fq_codel~seed2", "seed 2")
    assert told["words"][reason] == f"no tc {HTML}\\x1b[31m"
    assert "failed" not in by_name[HTML][0]


def test_the_overview_shows_the_numbers_of_tables(site, done):
    from bakeoff import results
    from bakeoff.tables.records import records
    from bakeoff.tables.rows import rows

    table = rows([result for result in results.survey(done).results if result.run.point["qdisc"] == HTML])
    flows = [record for _, record in records(table, "flows")]
    told = overview(site)
    [run] = [run for run in told["runs"] if run["name"] == HTML.replace("/", "_")]
    [[queue, used, parts]] = run["bars"]
    assert told["words"][queue] == flows[0]["bottleneck"]
    assert used == pytest.approx(table[0].utilisation, rel=1e-3)
    assert [told["words"][part[0]] for part in parts] == ["f", "g"]
    assert [part[2] for part in parts] == pytest.approx([flow["share"] for flow in flows], rel=1e-3)
    assert sum(part[2] for part in parts) == pytest.approx(1.0, abs=1e-3)
    # In words they add up to a hundred, whatever is rounded.
    assert sum(int(told["words"][part[3]].rstrip("%")) for part in parts) == 100
    # Reno's colour and CUBIC's, as pictures have them.
    assert [told["words"][part[4]] for part in parts] == ["#009E73", "#0072B2"]
    assert run["felt"] == []
    assert run["delay"][0] == pytest.approx(table[0].queue_delay_p50_s * 1e3, rel=1e-3)


def test_a_site_is_replaced_and_anything_else_is_left(cli, done, tmp_path):
    out = tmp_path / "out"
    assert cli("site", str(done), "--out", str(out))[0] == 0
    (out / "old").touch()
    assert cli("site", str(done), "--out", str(out))[0] == 0
    assert not (out / "old").exists()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").touch()
    code, _, err = cli("site", str(done), "--out", str(foreign))
    assert code == 2
    assert "contains other files than a site" in err
    assert [path.name for path in foreign.iterdir()] == ["thesis.tex"]
    code, _, err = cli("site", str(done), "--out", str(done / "site"))
    assert code == 2
    assert "inside the results folder" in err
    assert {path.name for path in tmp_path.iterdir()} == {"out", "foreign"}


def test_what_ends_the_writing_leaves_the_old_site_and_nothing_else(done, tmp_path, monkeypatch):
    from bakeoff import results
    from bakeoff.site import run_page, site_contents, site_folder

    contents = site_contents.gather(done, results.survey(done).results)
    out = tmp_path / "out"
    site_folder.write(contents, out)
    before = (out / "index.html").read_bytes()

    def interrupted(page, folder: Path, site):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_page, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        site_folder.write(contents, out)
    assert (out / "index.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_run_whose_samples_cannot_be_read_has_a_page_that_says_so(cli, done, tmp_path, monkeypatch):
    # Two processes write the pages.
    monkeypatch.setattr("bakeoff.site.site_folder._FEW", 1)
    monkeypatch.setattr("bakeoff.site.site_folder._CHUNK", 2)
    monkeypatch.setattr("bakeoff.campaign.cores", lambda: 2)
    shutil.copytree(done, tmp_path / "c")
    run = tmp_path / "c" / "local" / "s" / "fq_codel"
    (run / "series.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    code, _, err = cli("site", str(tmp_path / "c"), "--out", str(tmp_path / "out"))
    assert code == 0
    assert err.count("unreadable run, noted on its page") == 1
    place = tmp_path / "out" / "runs" / "local" / "s"
    assert "This run cannot be read" in (place / "fq_codel" / "index.html").read_text(encoding="utf-8")
    assert sum((path / "measures.js").is_file() for path in place.iterdir()) == 4


def test_several_campaigns_stand_side_by_side(done, tmp_path):
    from bakeoff import results
    from bakeoff.site.site_contents import gather
    from bakeoff.site.site_folder import write

    for name in ("A", "a"):
        shutil.copytree(done, tmp_path / "both" / name)
    contents = gather(tmp_path / "both", results.survey(tmp_path / "both").results)
    assert len(contents.pages) == 8
    assert {page.campaign for page in contents.pages} == {"A", "a"}
    # "A" and "a" are one name to some file systems.
    assert len({page.place.casefold() for page in contents.pages}) == 8
    assert all(len(page.elsewhere) == 1 for page in contents.pages)
    assert len(contents.rows) == 4
    write(contents, tmp_path / "out")
    page = (tmp_path / "out" / "sides.html").read_text(encoding="utf-8")
    assert "sim in A beside sim in a" in page
    # The same results on both sides: no distance, and nothing beyond a bound.
    [goodput] = re.findall(r"<td>goodput</td>((?:<td.*?</td>)+)", page)
    assert re.findall(r">([^<>]+)</td>", goodput) == ["4", "0.000", "0.000", "0.000", "0 beyond 0.05"]


def test_sce_and_l4s_stand_side_by_side(tmp_path):
    from bakeoff import results
    from bakeoff.site import camps
    from bakeoff.site.site_contents import gather
    from bakeoff.site.site_folder import write

    runs = []
    for camp, control, queue in (("sce", "reno-sce", "cnq_cobalt sce"), ("l4s", "prague", "dualpi2")):
        own = {"label": control, "flows": [{"name": "own", "cc": control}]}
        scenario = SCENARIO | {
            "scenario": f"{camp}-s1",
            "flows": "{cc.flows}",
            "vary": {
                "qdisc": {queue.partition(" ")[0]: queue, "pfifo": "pfifo"},
                "cc": {
                    control: {"flows": own["flows"]},
                    "pair": {"flows": [*own["flows"], {"name": "c", "cc": "cubic"}]},
                },
            },
        }
        (tmp_path / f"{camp}.yaml").write_text(json.dumps(scenario))
        runs += catalog.select(str(tmp_path / f"{camp}.yaml"), seeds=1)
    assert not campaign.run(runs, tmp_path / "c", Execution(jobs=1)).failed
    contents = gather(tmp_path / "c", results.survey(tmp_path / "c").results)
    [matrix] = camps.gather(contents)
    assert (matrix.name, matrix.camps) == ("local/s1", ("SCE", "L4S"))
    lines = {
        group.heads: [tuple(run and run.controls for run in line) for line in group.lines] for group in matrix.groups
    }
    at = ("10 Mbit/s", "10 ms")
    assert lines == {
        (*at, who, queue): [tuple(f"{own}{rest}" for own in ("reno-sce", "prague"))]
        for who, rest in (("own", ""), ("own vs cubic", " vs cubic"))
        for queue in ("own", "pfifo")
    }
    write(contents, tmp_path / "out")
    page = Read((tmp_path / "out" / "camps.html").read_text(encoding="utf-8"))
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a" and "runs/" in attributes["href"]]
    assert len(links) == 8
    assert all((tmp_path / "out" / link).is_file() for link in links)
