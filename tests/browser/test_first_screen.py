"""The first screen, every day: it comes without errors, asks nobody else, and a step without a table says so."""

from playwright.sync_api import Browser, expect

from browser import journey
from browser.visits import Studio, visiting


def test_the_first_screen(browser: Browser, studio: Studio) -> None:
    with visiting(browser, studio.address) as (tab, seen):
        expect(tab.get_by_role("button", name="Start with the demo")).to_be_visible()
        assert "token" not in tab.url
        assert not any("vega" in url for url in seen.asked)  # fetched when the first chart is wanted
        for step in journey.STEPS[1:]:
            journey.go(tab, step)
            expect(tab.locator(".empty")).to_contain_text("No table is open")
        assert seen.said == []
        assert seen.abroad(studio.root) == []


def test_a_browser_without_the_token_is_told_what_to_do(browser: Browser, studio: Studio) -> None:
    with visiting(browser, studio.root + "/") as (tab, _):
        assert "address that the terminal shows" in tab.locator("body").inner_text()
        assert not tab.locator("main .kicker", has_text="Step").count()
