"""How the five steps look and read: for everybody (axe-core), light and dark, 360 pixels to 4K, nothing cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from browser import axe, journey
from browser.visits import Seen, Studio, visiting

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # on a busy machine

WIDE = """() => [...document.querySelectorAll('body *')].filter(e => {
    const box = e.getBoundingClientRect();
    if (box.right <= innerWidth + 1 || !box.width || e.closest('.aside')) return false;
    for (let up = e.parentElement; up; up = up.parentElement)  // what scrolls by itself may be wide
        if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(up).overflowX)) return false;
    return true;
}).map(e => e.outerHTML.slice(0, 160))"""
CUT = """() => [...document.querySelectorAll('main h1, main h2, main h3, main p, .button, label, dt, dd, th, nav a')]
    .filter(e => e.offsetParent && !e.closest('.aside, .long') && e.scrollWidth > e.clientWidth + 1
                 && getComputedStyle(e).overflowX !== 'visible' && e.clientWidth)
    .map(e => e.outerHTML.slice(0, 160))"""
OVERLAP = """() => {
    const texts = [...document.querySelectorAll('.map svg text')].filter(e => e.textContent.trim());
    const boxes = texts.map(e => [e.textContent, e.getBoundingClientRect()]);
    return boxes.flatMap(([one, a], i) => boxes.slice(i + 1).filter(([, b]) =>
        a.left < b.right - 1 && b.left < a.right - 1 && a.top + 2 < b.bottom - 2 && b.top + 2 < a.bottom - 2)
        .map(([other]) => one + ' on ' + other));
}"""


HIDDEN = "Math.max(0, ...[...document.querySelectorAll('.map .scrolls')].map(e => e.scrollWidth - e.clientWidth))"


@pytest.fixture(scope="module")
def worked(browser: Browser, studio: Studio) -> Iterator[tuple[Page, Seen, Studio]]:
    """A session in which something was done: every step has something to show."""
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_demo(tab)
        journey.go(tab, "Protect")
        journey.run(tab)
        journey.try_also(tab, "10")
        journey.go(tab, "Explore")
        expect(tab.locator("table.runs").get_by_role("link")).to_have_count(2)
        tab.locator("table.runs").get_by_role("checkbox").first.check()
        tab.get_by_role("button", name="Draw the lattice").click()
        expect(tab.locator("circle.best")).to_be_visible()
        tab.get_by_role("button", name="Look for outliers").click()
        expect(tab.locator("section[aria-labelledby=s-outliers] table")).to_be_visible()
        yield tab, seen, studio


def settled(tab: Page, step: str) -> None:
    """Go to a step and wait until its slower parts are there."""
    journey.go(tab, step)
    told = {"Open": ".long .row:not(.waiting)", "Generalize": ".tree .node", "Protect": "#policy"}
    expect(tab.locator(told.get(step, ".numbers, .kept")).first).to_be_visible()
    if step == "Explore":
        expect(tab.locator(".map svg")).to_be_visible()
        expect(tab.locator("article svg").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("step", journey.STEPS)
def test_axe_finds_nothing(worked: tuple[Page, Seen, Studio], step: str, scheme: str) -> None:
    script, tab = axe.source(), worked[0]
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": 1280, "height": 900})
    settled(tab, step)
    assert "\n".join(axe.violations(tab, script)) == ""


def test_axe_finds_nothing_before_a_table_is_open(browser: Browser, studio: Studio) -> None:
    script = axe.source()
    with visiting(browser, studio.address) as (tab, _):
        expect(tab.get_by_role("button", name="Start with the demo")).to_be_visible()
        assert "\n".join(axe.violations(tab, script)) == ""


@pytest.mark.parametrize("width", [360, 400, 768, 1280, 3840])
@pytest.mark.parametrize("step", journey.STEPS)
def test_nothing_is_wider_than_the_window_and_nothing_is_cut(
    worked: tuple[Page, Seen, Studio], step: str, width: int
) -> None:
    tab = worked[0]
    tab.set_viewport_size({"width": width, "height": 900})
    settled(tab, step)
    assert tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert tab.evaluate(WIDE) == []
    assert tab.evaluate(CUT) == []
    assert tab.evaluate(OVERLAP) == []
    assert tab.evaluate(HIDDEN) == 0


def test_the_line_of_navigation_is_one_line(worked: tuple[Page, Seen, Studio]) -> None:
    tab = worked[0]
    for width in (360, 1280):
        tab.set_viewport_size({"width": width, "height": 900})
        tops = tab.evaluate("[...document.querySelectorAll('.steps li')].map(e => e.getBoundingClientRect().top)")
        assert len(tops) == 5
        assert len(set(tops)) == 1


def test_charts_follow_the_theme(worked: tuple[Page, Seen, Studio]) -> None:
    tab = worked[0]
    tab.set_viewport_size({"width": 1280, "height": 900})
    tab.emulate_media(color_scheme="light")
    settled(tab, "Explore")
    ink = tab.locator(".map svg text").first
    expect(ink).to_have_attribute("fill", "rgb(77, 88, 96)")
    tab.emulate_media(color_scheme="dark")
    expect(ink).not_to_have_attribute("fill", "rgb(77, 88, 96)")
    tab.emulate_media(color_scheme="light")


def test_everything_is_reached_by_the_tabulator(worked: tuple[Page, Seen, Studio]) -> None:
    """Whatever can be clicked is a link, a button or a field (nodes of the lattice: by their levels)."""
    tab = worked[0]
    for step in journey.STEPS:
        settled(tab, step)
        lost = tab.evaluate(
            "[...document.querySelectorAll('main *')].filter(e => e.heard?.click)"
            ".filter(e => !e.matches('a, button, input, label, circle, [tabindex]')).map(e => e.outerHTML.slice(0, 99))"
        )
        assert lost == []


def test_no_request_left_the_machine_and_nothing_went_wrong(worked: tuple[Page, Seen, Studio]) -> None:
    _, seen, studio = worked
    assert seen.abroad(studio.root) == []
    assert seen.said == []
    assert any(re.search("/vega.js$", url) for url in seen.asked)
