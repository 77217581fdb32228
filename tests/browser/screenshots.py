"""Pictures of the five steps, light and dark, and of the report, for README and docs: `make screenshots`.

They are taken from the demo, in the system's Chromium. With a second folder, pictures of a small screen go there,
to be looked at.
"""

import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, expect

import chromium
from browser import journey
from browser.visits import Studio, serving, visiting

LARGE, SMALL = {"width": 1280, "height": 880}, {"width": 400, "height": 800}


def work(tab: Page) -> None:
    """Do what makes every step worth looking at."""
    journey.open_demo(tab)
    journey.go(tab, "Generalize")
    journey.choose(tab, "education")
    for label in ("primary", "secondary"):
        tab.get_by_role("checkbox", name=label).check()
    tab.locator("#merge-name").fill("school")
    tab.locator("#merge-name").press("Enter")
    expect(tab.get_by_role("group", name="school")).to_be_visible()
    journey.go(tab, "Protect")
    for count, method in ((3, "approximate"), (6, "mdav")):
        tab.get_by_role("combobox", name="Method").select_option(method)
        expect(tab.locator("#policy")).to_have_value(re.compile(f'name = "{method}"'))
        tab.get_by_role("button", name="Try", exact=True).click()
        journey.go(tab, "Explore")
        expect(tab.locator("table.runs").get_by_role("link")).to_have_count(count)
        journey.go(tab, "Protect")
    journey.set_field(tab, re.compile("^Refinement"), "3")
    journey.run(tab)


def take(tab: Page, folder: Path, size: dict[str, int], *, whole: bool) -> None:
    """Draw every step in both schemes."""
    tab.set_viewport_size(size)  # type: ignore[arg-type]
    for scheme in ("light", "dark"):
        tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for step in journey.STEPS:
            journey.go(tab, step)
            if step == "Generalize":
                journey.choose(tab, "education")
            _calm(tab, step)
            tab.screenshot(path=folder / f"studio-{step.lower()}-{scheme}.png", full_page=whole, animations="disabled")


def _calm(tab: Page, step: str) -> None:
    """Wait until nothing moves: charts are drawn, rows have come, the last notice is gone."""
    expect(tab.locator(".notice")).to_have_count(0)
    if step == "Explore":
        expect(tab.locator(".map svg")).to_be_visible()
        expect(journey.look(tab, "Columns").locator("article svg")).to_have_count(9)
    if step == "Open":
        expect(tab.locator(".long .row:not(.waiting)").first).to_be_visible()
    tab.locator("body").click(position={"x": 1, "y": 300})
    tab.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    tab.evaluate("scrollTo(0, 0)")


def take_report(tab: Page, studio: Studio, folder: Path) -> None:
    journey.go(tab, "Release")
    address = tab.get_by_role("link", name="Show the report").first.get_attribute("href")
    tab.set_viewport_size(LARGE)  # type: ignore[arg-type]
    tab.emulate_media(color_scheme="light")
    tab.goto(studio.root + str(address))
    tab.screenshot(path=folder / "report.png")


def main(folder: Path, small: Path | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (
        chromium.opened() as browser,
        tempfile.TemporaryDirectory() as scratch,
        serving(folder=Path(scratch)) as studio,
        visiting(browser, studio.address) as (tab, _),
    ):
        work(tab)
        take(tab, folder, LARGE, whole=False)
        if small:
            small.mkdir(parents=True, exist_ok=True)
            take(tab, small, SMALL, whole=True)
        take_report(tab, studio, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
