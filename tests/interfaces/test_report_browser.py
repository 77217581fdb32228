"""The report page in a real browser: no errors, no requests, nothing wider than the window, and it can be printed."""

from itertools import combinations
from pathlib import Path

import pytest

from kinfold.release.report.chart import draw
from kinfold.release.report.page import write_page
from kinfold.release.report.risk_utility_map import Trial, boxes_overlap, chart_trials
from report_facts import hospital, hostile, many

pytestmark = pytest.mark.slow

PAGES = {"internal": hospital, "public": lambda: hospital().public(), "hostile": hostile, "many": lambda: many(40)}


@pytest.fixture(scope="module", params=PAGES)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("report") / f"{request.param}.html"
    file.write_text(write_page(PAGES[request.param]()), "utf-8")
    return file


@pytest.mark.parametrize("width", [380, 1280])
def test_a_page_opens_without_errors_requests_or_overflow(browser, path: Path, width: int) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 800})
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    wide = tab.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
        ".filter(e => !e.closest('svg') || e.tagName === 'svg').map(e => e.outerHTML.slice(0, 200))"
    )
    overflow = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
    drawn = tab.evaluate("[...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect().height)")
    family = tab.evaluate("getComputedStyle(document.querySelector('.headline')).fontFamily")
    tab.close()
    assert said == []
    assert asked == [path.as_uri()]
    assert wide == []
    assert overflow <= 0
    assert drawn
    assert min(drawn) > 20
    assert "serif" in family  # the one style sheet passed the policy


def test_labels_and_bars_stay_inside_their_charts(browser, path: Path) -> None:
    tab = browser.new_page(viewport={"width": 1280, "height": 800})
    tab.goto(path.as_uri())
    outside = tab.evaluate(
        """[...document.querySelectorAll('svg')].flatMap(svg => {
            const frame = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text, path')].filter(e => {
                const box = e.getBoundingClientRect();
                return box.width && (box.left < frame.left - 2 || box.right > frame.right + 2 ||
                                     box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
            }).map(e => svg.id + ': ' + e.textContent);
        })"""
    )
    tab.close()
    assert outside == []


def test_every_printed_sheet_of_the_internal_page_is_made(browser, tmp_path: Path) -> None:
    file = tmp_path / "internal.html"
    file.write_text(write_page(hospital()), "utf-8")
    tab = browser.new_page()
    tab.goto(file.as_uri())
    pdf = tab.pdf(prefer_css_page_size=True)
    tab.close()
    assert pdf.startswith(b"%PDF")
    assert 2 <= pdf.count(b"/Type /Page\n") <= 8


def test_the_names_on_a_full_map_do_not_overlap_as_a_browser_draws_them(browser, tmp_path: Path) -> None:
    methods = ("mdav", "v-mdav", "approximate", "t-merge", "mingen-cell", "datafly", "mu-argus", "local-suppression")
    trials = [
        Trial(method, k, 1 / k, 0.012 * k + 0.004 * i) for i, method in enumerate(methods) for k in (3, 5, 10, 20)
    ]
    (tmp_path / "map.html").write_text(f"<meta charset=utf-8>{draw(chart_trials(trials), 'map')}", "utf-8")
    tab = browser.new_page(viewport={"width": 560, "height": 700})
    tab.goto((tmp_path / "map.html").as_uri())
    boxes = tab.evaluate(
        "[...document.querySelectorAll('text')].filter(e => /^[a-z-]+ [0-9]+$/.test(e.textContent))"
        ".map(e => e.getBoundingClientRect()).map(b => [b.left, b.top + 2, b.right, b.bottom - 2])"
    )
    tab.close()
    assert len(boxes) >= 0.8 * len(trials)
    assert not [1 for one, other in combinations(boxes, 2) if boxes_overlap(one, other)]
