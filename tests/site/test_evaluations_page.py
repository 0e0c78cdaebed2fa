"""The page of evaluations of a site."""

import json
import re

import pytest

import bakeoff
from bakeoff import results
from bakeoff.site.evaluations import gather
from bakeoff.site.site_contents import gather as contents_of
from bakeoff.site.site_folder import write


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluations") / "results"
    cases = ["slow-start/growth", "attackers"]
    bakeoff.evaluate("reno", baseline="cubic", case=cases, seeds=2, store="none", jobs=1, out=folder)
    return folder


def contents(folder):
    return contents_of(folder, results.survey(folder).results)


def test_a_site_has_a_page_of_the_evaluations_below_it(campaign, tmp_path):
    found = json.loads((campaign / "evaluation.json").read_text())
    write(contents(campaign), tmp_path / "site")
    page = (tmp_path / "site" / "evaluations.html").read_text()
    [case] = [case for case in found["cases"] if case["measure"]]
    assert re.search(rf"<td>{case['clause']}</td><td>{case['case']}</td><td>{case['verdict']}", page)
    # A number of packets with three digits, as 'growth' measures a window.
    assert re.search(rf'<td class="number">{case["cc"]["mean"]:.1f} ± ', page)
    assert "Changed from cubic" in page
    assert 'href="evaluations.html"' in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda told: told["cases"][1].update(measure="<script>x</script>"), "&lt;script&gt;x&lt;/script&gt;"),
        (lambda told: told.update(seeds="many"), "seeds"),
        (lambda told: told["cases"][1].update(cc={"mean": "infinite"}), ">infinite<"),
    ],
)
def test_a_file_that_anybody_wrote_is_shown_as_text_or_named(campaign, tmp_path, change, shown):
    path = campaign / "evaluation.json"
    whole = path.read_text()
    told = json.loads(whole)
    change(told)
    try:
        path.write_text(json.dumps(told))
        write(contents(campaign), tmp_path / "site")
    finally:
        path.write_text(whole)
    page = (tmp_path / "site" / "evaluations.html").read_text()
    assert shown in page
    assert "<script>x" not in page


def test_a_campaign_without_an_evaluation_has_no_page(campaign, tmp_path):
    path = campaign / "evaluation.json"
    whole = path.read_text()
    try:
        path.unlink()
        assert gather(contents(campaign)) == []
        write(contents(campaign), tmp_path / "site")
    finally:
        path.write_text(whole)
    assert not (tmp_path / "site" / "evaluations.html").exists()
