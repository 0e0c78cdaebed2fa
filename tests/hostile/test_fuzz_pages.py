"""Drawn files of a results folder: its site is written and served, each page tells, and no text of a file is markup."""

import json
import shutil
from pathlib import Path

import pytest
from fuzzing import ANY, CHANGES, DAMAGE, changed, damaged, drawn, refused
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bakeoff import results
from bakeoff.results import dataset, layout
from bakeoff.site import site_contents, site_folder
from bakeoff.site.live import Live
from bakeoff.site.server import parts_of

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

MARKUP = "\"'></script><script>alert(1)</script>"
JSON = [layout.CAMPAIGN, layout.RUN, layout.SUMMARY, layout.COUNTERS, layout.MEASURED]
NAMES = ["runs", "data", "assets", "style.css", "..", ".", "", "%2e%2e", "%00", "c", "?", "#"]
PLACES = st.integers(0, 10_000)
MARKED = st.lists(st.tuples(PLACES, st.just("value"), st.just(MARKUP)), min_size=1, max_size=3)
LOGS = st.one_of(st.text(max_size=300), st.just(MARKUP), st.just("\x1b[2J\0\r\n" * 50)).map(
    lambda text: text.encode(errors="surrogatepass")
)
FEWER = settings(drawn, max_examples=max(3, drawn.max_examples // 20))
"""A site takes half a second."""


@pytest.fixture(scope="module")
def folder(done, tmp_path_factory):
    [path] = done.rglob(layout.RUN)
    (path.parent / layout.MEASURED).write_text('{"jain": 0.9, "share(\'reno\')": null}')
    return tmp_path_factory.mktemp("pages")


def fresh(done: Path, folder: Path) -> Path:
    """A copy of the results."""
    shutil.rmtree(folder, ignore_errors=True)
    return shutil.copytree(done, folder / "c")


def served_at(live: Live, address: str) -> bytes | Path | None:
    """What an address shows; None for nothing, and for a page that cannot be made."""
    parts = parts_of(address)
    return None if parts is None else refused(lambda: live.content(parts))


def use(root: Path, folder: Path) -> None:
    """Write the site of the results, serve them, and put their measures into a data set."""
    site = folder / "site"
    refused(lambda: site_folder.write(site_contents.gather(root, results.survey(root).results), site))
    live = Live(root, folder / "private", least_s=0.0)
    served = [served_at(live, address) for address in ("/", "/data/runs.js", "/live.json")]
    for path in site.rglob("*.html"):
        assert MARKUP not in path.read_text(), path
        served.append(served_at(live, f"/{path.relative_to(site)}"))
    for content in served:
        text = content.read_bytes() if isinstance(content, Path) else content or b""
        assert MARKUP.encode() not in text
    refused(lambda: dataset.write(root, [path.parent for path in root.rglob(layout.RUN)]))


@FEWER
@given(name=st.sampled_from(JSON), changes=st.one_of(CHANGES, MARKED))
@example(name=layout.CAMPAIGN, changes=[(2, "value", 10**400)])
def test_a_site_of_changed_json_is_written_and_served(done, folder, name, changes):
    root = fresh(done, folder)
    [path] = root.rglob(name)
    path.write_text(json.dumps(changed(json.loads(path.read_text()), changes)), errors="surrogatepass")
    use(root, folder)


@FEWER
@given(name=st.sampled_from([*JSON, layout.SERIES]), damage=DAMAGE)
def test_a_site_of_damaged_files_is_written_and_served(done, folder, name, damage):
    root = fresh(done, folder)
    [path] = root.rglob(name)
    path.write_bytes(damaged(path.read_bytes(), damage))
    use(root, folder)


@FEWER
@given(name=st.sampled_from([layout.SETUP_LOG, layout.TEARDOWN_LOG]), text=LOGS)
def test_a_site_of_other_logs_is_written_and_served(done, folder, name, text):
    root = fresh(done, folder)
    [path] = root.rglob(name)
    path.write_bytes(text)
    use(root, folder)


@pytest.fixture(scope="module")
def live(done, folder):
    return Live(done, folder.parent / "served", least_s=0.0)


@drawn
@given(parts=st.lists(st.one_of(st.sampled_from(NAMES), ANY), max_size=6))
def test_an_address_shows_a_page_or_nothing(live, parts):
    found = served_at(live, "/" + "/".join(map(str, parts)))
    assert not isinstance(found, Path) or found.resolve().is_relative_to(live.private.resolve())
