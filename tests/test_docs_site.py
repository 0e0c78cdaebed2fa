"""The site that `make docs` builds: every page, every command, every link, and nothing from elsewhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from bakeoff.cli.app import app

ROOT = Path(__file__).parents[1]
pytest.importorskip("zensical", reason="the extra `docs` is not installed", exc_type=ImportError)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site. The build is strict: a link, an anchor or a page that leads nowhere fails it."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "docs/build_site.py", folder]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "docs"


def test_every_page_is_there_and_leads_nowhere_else_by_itself(site):
    start = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        html = str(page.relative_to(ROOT / "docs").with_suffix(".html"))
        assert (site / html).is_file()
        assert html == "index.html" or f'<a href="./{html}" class="md-nav__link">' in start, (
            f"{html} is not in the menu"
        )
    commands = (site / "commands.html").read_text(encoding="utf-8")
    for name in typer.main.get_command(app).commands:
        assert f"Usage: bakeoff {name}" in commands
    assert 'id="bakeoff.Results.table"' in (site / "api.html").read_text(encoding="utf-8")
    for page in site.rglob("*.html"):
        fetched = re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(https?://[^\" >]+)", page.read_text())
        assert not fetched, page


def test_the_search_finds_a_page_that_was_opened_from_a_file(site):
    browser = shutil.which("chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if browser is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as start:
        chromium = start.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page()
        wrong = []
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None)
        page.goto((site / "index.html").as_uri())
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("packetdrill")
        results = page.get_by_role("dialog", name="Search")
        results.locator("a[href*='/packetdrill.html']").first.wait_for()
        assert not wrong
        chromium.close()
