"""A site in a real browser, Debian's Chromium: what a reader with a mouse, a keyboard or a phone meets."""

import json
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.scenario import catalog
from bakeoff.site import claims_page
from bakeoff.site.contrast import light_and_dark
from bakeoff.site.site_contents import gather
from bakeoff.site.site_folder import write

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("chromium is not installed: apt install chromium", allow_module_level=True)
sync = pytest.importorskip("playwright.sync_api")

HTML = "<b>x&\"'"
SCENARIO = {
    "scenario": "s",
    "title": f"A title {HTML}",
    "duration": "3s",
    "network": {"path": ["cli", "mid", "srv"], "rtt": "10ms", "bottleneck": {"rate": "10mbit", "qdisc": "{qdisc}"}},
    "flows": [{"name": "f", "cc": "reno"}, {"name": "g", "cc": "cubic"}],
    "probes": [{"name": "ping", "type": "icmp", "every": "50ms"}],
    "changes": [{"at": "2s", "node": "mid", "rate": "5mbit"}],
    "vary": {"qdisc": {HTML: "pfifo limit 20", "fq_codel": "fq_codel"}},
}
RENO, CUBIC = "#009e73", "#0072b2"
CLAIMED = "sce-l4s-bakeoff/sce-s1-basics/reno-sce-50Mbit-80ms"
READY = ".chart:last-child[data-drawn]"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two queues with two seeds each, of which one run failed, and one run that another engine has too."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "mine.yaml").write_text(json.dumps(SCENARIO))
    stored = folder / "c" / "sim"
    report = campaign.run(catalog.select(str(folder / "mine.yaml"), seeds=2), stored, Execution(jobs=1))
    assert not report.failed
    twin = folder / "c" / "kernel" / "local" / "s" / "fq_codel"
    shutil.copytree(stored / "local" / "s" / "fq_codel", twin)
    (twin / "run.json").write_text(json.dumps(json.loads((twin / "run.json").read_text()) | {"engine": "kernel"}))
    run = stored / "local" / "s" / "fq_codel~seed2"
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(record | {"status": "failed", "error": f"no {HTML}", "digest": None}))
    for name in ("series.parquet", "counters.json", "summary.json"):
        (run / name).unlink()
    write(gather(folder / "c", results.survey(folder / "c").results), folder / "site")
    # Claims are about runs of the catalog: their page stands in a site of its own, in a folder of the first one.
    assert not campaign.run(catalog.select(CLAIMED), folder / "d", Execution(jobs=1)).failed
    contents = gather(folder / "d", results.survey(folder / "d").results)
    write(contents, folder / "site" / "claimed", claims_page.gather(contents, 1))
    return folder / "site"


@pytest.fixture(scope="module")
def browser():
    with sync.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def open_page(browser, site):
    """Open a page of the site in a context of its own; gives the page and what was wrong with it so far.

    Wrong is what it writes to the console, and what it asks for outside of the folder or does not get.
    """

    def inside(url):
        return urlsplit(url).scheme == "file" and Path(unquote(urlsplit(url).path)).is_relative_to(site)

    def call(place, width=1280, scheme="light"):
        wrong = []
        page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
        page.on("console", lambda message: wrong.append(f"{place}: {message.type}: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"{place}: {error}"))
        page.on("request", lambda request: inside(request.url) or wrong.append(f"{place}: asks for {request.url}"))
        page.on("requestfailed", lambda request: wrong.append(f"{place}: has no {request.url}"))
        page.goto((site / place).as_uri())
        if page.query_selector(".chart"):
            page.wait_for_selector(READY)
        return page, wrong

    return call


@pytest.fixture
def visit(open_page):
    """Open a page of the site; the test fails if anything is wrong with it."""
    opened = []

    def call(place, **words):
        opened.append(open_page(place, **words))
        return opened[-1][0]

    yield call
    for page, _ in opened:
        page.context.close()
    assert [one for _, wrong in opened for one in wrong] == []


@pytest.fixture(scope="module")
def first_run(open_page):
    return open_page(RUN)


@pytest.fixture
def run(first_run):
    """The page of the first run, which tests share, as it is when its charts have been drawn."""
    page, wrong = first_run
    yield page
    page.mouse.move(0, 0)
    page.eval_on_selector("[data-zoom=whole]", "one => one.click()")
    assert page.locator(".legend [aria-pressed=false]").count() == 0
    assert wrong == []


RUN = "runs/sim/local/s/fq_codel/index.html"
FAILED = "runs/sim/local/s/fq_codel~seed2/index.html"
CLAIMS = "claimed/claims.html"


def every_page(site):
    return sorted(str(path.relative_to(site)) for path in site.rglob("*.html"))


def coloured(page, chart, colour):
    """How many pixels of a chart have about the colour `#rrggbb`."""
    return page.evaluate(
        """([chart, wanted]) => {
          const canvas = document.querySelector("#chart-" + chart + " canvas");
          const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
          copy.drawImage(canvas, 0, 0);
          const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
          let count = 0;
          for (let i = 0; i < data.length; i += 4)
            if (data[i + 3] > 200 && wanted.every((part, k) => Math.abs(data[i + k] - part) < 12)) count++;
          return count;
        }""",
        [chart, [int(colour[at : at + 2], 16) for at in (1, 3, 5)]],
    )


def ranges(page):
    """The time that each chart shows."""
    return page.eval_on_selector_all(".chart", "all => all.map(one => [+one.dataset.from, +one.dataset.to])")


def middle(page, chart="goodput"):
    """Left, top, width and height of the part of a chart in which lines are drawn, after scrolling to it."""
    over = page.locator(f"#chart-{chart} .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    return box["x"], box["y"] + box["height"] / 2, box["width"]


def test_every_page_is_quiet_as_wide_as_a_phone_and_has_links_that_lead_somewhere(visit, site):
    for place in every_page(site):
        page = visit(place, width=360)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, place
        assert page.locator("h1").count() == 1
        assert page.locator("b").count() == 0
        for link in page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)"):
            parts = urlsplit(link)
            target = Path(unquote(parts.path))
            assert target.is_file(), f"{place}: {link}"
            assert target.is_relative_to(site)
            if parts.fragment and target == site / place:
                assert page.locator(f'[id="{unquote(parts.fragment)}"]').count() == 1, f"{place}: {link}"


def test_charts_draw_their_lines(run):
    titles = run.eval_on_selector_all(".chart", "all => all.map(one => one.id)")
    assert {"chart-goodput", "chart-round-trip-time", "chart-queue-delay", "chart-cwnd"} <= set(titles)
    for chart in ("goodput", "round-trip-time", "cwnd"):
        assert coloured(run, chart, RENO) > 100, chart
        assert coloured(run, chart, CUBIC) > 100, chart
    for title in titles:
        says = run.locator(f"#{title} figcaption").inner_text()
        assert says.startswith("In the steady state, "), title


def test_dragging_zooms_all_charts_and_a_double_click_ends_it(run):
    assert set(map(tuple, ranges(run))) == {(0, 3)}
    left, top, width = middle(run)
    run.mouse.move(left + width / 3, top)
    run.mouse.down()
    run.mouse.move(left + width / 2, top)
    run.mouse.move(left + 2 * width / 3, top)
    run.mouse.up()
    # A third of 3 s to two thirds of them, to two pixels of some 500.
    [(start, end)] = set(map(tuple, ranges(run)))
    assert start == pytest.approx(1, abs=0.02)
    assert end == pytest.approx(2, abs=0.02)
    assert run.locator("#shown").inner_text() == f"{round(start, 3):g} s to {round(end, 3):g} s"
    run.mouse.dblclick(left + width / 2, top)
    assert set(map(tuple, ranges(run))) == {(0, 3)}


def test_buttons_zoom_too(run):
    run.get_by_role("button", name="Zoom in").press("Enter")
    assert set(map(tuple, ranges(run))) == {(0.75, 2.25)}
    run.get_by_role("button", name="Later").press("Space")
    assert set(map(tuple, ranges(run))) == {(1.5, 3)}
    run.get_by_role("button", name="Zoom out").press("Enter")
    run.get_by_role("button", name="Whole run").press("Enter")
    assert run.locator("#shown").inner_text() == "the whole run, 0 s to 3 s"


def test_the_cursor_stands_at_one_time_in_all_charts(run, site):
    left, top, width = middle(run, "round-trip-time")
    run.mouse.move(left + width / 2, top)
    at = [float(x) for x in run.eval_on_selector_all(
        ".chart", """all => all.map(one => {
          const over = one.querySelector(".u-over").getBoundingClientRect();
          return (one.querySelector(".u-cursor-x").getBoundingClientRect().right - over.left) / over.width;
        })""")]  # fmt: skip
    assert at == pytest.approx([0.5] * len(at), abs=0.01)
    # The values beside the lines are samples at that time: 1.5 s.
    series = results.read(site / "runs/sim/local/s/fq_codel/files").series
    for chart, metric, scale in (("goodput", "goodput", 1e-6), ("round-trip-time", "srtt", 1e3)):
        rows = series.filter(metric=metric, name="f")
        near = rows.filter((rows["time"] - 1.5).abs() < 0.06)["value"] * scale
        shown = float(run.locator(f"#chart-{chart} .legend li", has_text="f (reno)").locator(".value").inner_text())
        assert near.min() * 0.99 <= shown <= near.max() * 1.01
    run.mouse.move(0, 0)
    assert run.locator(".value").all_inner_texts() == [""] * run.locator(".value").count()


def test_the_legend_hides_a_line_in_every_chart(run):
    buttons = run.get_by_role("button", name="f (reno)", exact=True)
    buttons.first.press("Space")
    assert {one.get_attribute("aria-pressed") for one in buttons.all()} == {"false"}
    for chart in ("goodput", "round-trip-time", "cwnd"):
        assert coloured(run, chart, CUBIC) > 100
    assert coloured(run, "goodput", RENO) == coloured(run, "round-trip-time", RENO) == 0
    buttons.last.press("Enter")
    assert {one.get_attribute("aria-pressed") for one in buttons.all()} == {"true"}
    assert coloured(run, "goodput", RENO) > 100


@pytest.mark.parametrize("place", ["index.html", "compare.html", CLAIMS, RUN])
def test_a_keyboard_reaches_everything(visit, place):
    page = visit(place)
    wanted = page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, input, select, summary, .plot")]
          .filter(one => one.checkVisibility() && !one.disabled).map((one, i) => one.dataset.nth = i)"""
    )
    reached = set()
    for _ in range(len(wanted) + 20):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.nth"))
    assert reached >= set(map(str, wanted))


def test_arrow_keys_move_the_cursor_and_say_what_stands_there(run):
    plot = run.locator("#chart-goodput .plot")
    plot.focus()
    # From the middle, 1.5 s, four times a two-hundredth of 3 s to the right.
    for _ in range(4):
        run.keyboard.press("ArrowRight")
    assert plot.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    assert run.locator("#at").inner_text() == "cursor at 1.56 s"
    assert run.locator("#spoken").inner_text().startswith("1.56 s: f (reno) ")
    run.keyboard.press("+")
    [(start, end)] = set(map(tuple, ranges(run)))
    assert end - start == pytest.approx(1.5)
    run.keyboard.press("0")
    run.keyboard.press("Escape")
    assert run.locator("#at").inner_text() == ""


def test_dark_and_light_are_drawn_in_their_own_colours(visit):
    page = visit(RUN, scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    assert coloured(page, "goodput", light_and_dark("#0072B2")[1]) > 100
    assert coloured(page, "goodput", CUBIC) == 0
    page.locator("#theme").click()
    assert page.evaluate(ground) != dark
    page.wait_for_timeout(50)
    assert coloured(page, "goodput", CUBIC) > 100


def test_a_failed_run_has_its_reason_and_no_charts(visit):
    page = visit(FAILED)
    assert f"no {HTML}" in page.locator(".box").inner_text()
    assert page.locator(".chart").count() == 0
    assert "It has no samples" in page.inner_text("main")


def test_the_overview_filters(visit):
    page = visit("index.html")
    cells = "#scenarios a[href^='runs/']"
    both = page.locator(cells).count()
    assert both == 3
    page.locator("#text").fill("fq_codel")
    assert page.locator("#count").inner_text() == "2 of 3 runs match, 1 with failures"
    assert page.locator(cells).count() == 2
    assert page.url.endswith("#text=fq_codel")
    page.locator("#reset").click()
    assert page.locator(cells).count() == both


def test_the_page_of_claims_filters(visit):
    page = visit(CLAIMS)
    [claim] = page.locator("article.claim").all()
    assert claim.get_attribute("id") == "sce-l4s-bakeoff.first-mark-ends-slow-start"
    assert page.locator("#claim-count").inner_text() == "1 claim"
    page.get_by_label("Text holds").fill("Slow-Start")
    assert claim.is_visible()
    page.get_by_label("Text holds").fill("no such words")
    assert not claim.is_visible()
    assert page.locator("#claim-count").inner_text() == "0 of 1 claim"
    assert page.url.endswith("#text=no+such+words")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    # Styles are asked for once more else, which a page in a folder may not. Dark differs from light in colours alone.
    options = {"preload": False, "resultTypes": ["violations"]}
    if scheme == "dark":
        options["runOnly"] = ["color-contrast"]
    for place in (
        ("index.html", "compare.html", "sides.html", CLAIMS, RUN, FAILED) if scheme == "light" else ("index.html", RUN)
    ):
        page = visit(place, scheme=scheme)
        # A long table would take long, and is made as the short ones are.
        page.eval_on_selector_all(
            "details", "all => all.forEach(one => (one.open = one.querySelectorAll('tr').length < 50))"
        )
        found = axe.run(page, options=options).response["violations"]
        bad = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert bad == [], place
