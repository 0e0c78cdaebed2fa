"""A site's page of claims: verdicts on what the documents state, by the runs that are stored."""

import pytest

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.claims import stored
from bakeoff.scenario import catalog
from bakeoff.site import claims_page
from bakeoff.site.site_contents import gather
from bakeoff.site.site_folder import write

RUN = "sce-l4s-bakeoff/sce-s1-basics/reno-sce-50Mbit-80ms"
CLAIM = "sce-l4s-bakeoff/first-mark-ends-slow-start"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("done") / "c"
    assert not campaign.run(catalog.select(RUN), folder, Execution(jobs=1)).failed
    return folder


@pytest.fixture(scope="module")
def contents(done):
    return gather(done, results.survey(done).results)


@pytest.fixture(scope="module")
def claims(contents):
    return claims_page.gather(contents, 1)


def test_a_claim_is_decided_by_the_runs_that_are_there(contents, claims, tmp_path):
    [entry] = [entry for entry in claims.entries if entry.first.name == CLAIM]
    [verdict] = entry.verdicts
    assert (verdict.by, verdict.said.word, verdict.said.seeds) == ("sim", "holds", 1)
    assert [page.id for page in verdict.pages] == [RUN]
    # Others are about the same run and one that is not here.
    assert claims.lacking > 0
    write(contents, tmp_path / "out", claims)
    page = (tmp_path / "out" / "claims.html").read_text(encoding="utf-8")
    assert f'id="{CLAIM.replace("/", ".")}"' in page
    assert f'href="runs/{RUN}/index.html"' in page
    # With one repetition the page says that it takes more.
    assert "takes 5" in page
    assert "claims.html" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_a_run_that_is_another_than_the_claim_asks_for_decides_nothing(contents):
    [page] = contents.pages
    record = page.result.record
    longer = record.run.model_copy(update={"duration_s": 71.0})
    changed = record.model_copy(update={"run": longer})
    assert stored.decided([results.Result(page.result.path, changed)], 1).decided == []
    measures_alone = record.model_copy(update={"kept": "measures"})
    assert stored.decided([results.Result(page.result.path, measures_alone)], 1).decided == []
