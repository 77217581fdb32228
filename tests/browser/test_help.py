"""Help: the tour on the demo, and the glossary at each term; by mouse and by keyboard."""

import re

from playwright.sync_api import Browser, expect

from browser import axe, journey
from browser.visits import Studio, visiting


def test_the_tour_follows_the_steps_and_a_term_opens_the_glossary(browser: Browser, studio: Studio) -> None:
    with visiting(browser, studio.address) as (tab, seen):
        tab.get_by_role("button", name="Take the tour of five steps").click()
        journey.ready(tab)
        tour = tab.get_by_role("region", name="Tour")
        expect(tour).to_contain_text("Tour, 1 of 5")
        assert "\n".join(axe.violations(tab, axe.source())) == ""
        tour.get_by_role("button", name="Next: Generalize").click()
        expect(tour).to_contain_text("Tour, 2 of 5")
        journey.go(tab, "Protect")  # it follows, however the step was reached
        expect(tour).to_contain_text("Tour, 3 of 5")
        what = tab.get_by_role("button", name="What is this? l-diversity")
        what.focus()
        tab.keyboard.press("Enter")
        glossary = tab.get_by_role("dialog", name="Glossary")
        expect(glossary.locator("dt").first).to_have_text("l-diversity")
        assert "\n".join(axe.violations(tab, axe.source())) == ""
        glossary.get_by_label("Find a term").fill("quasi")
        expect(glossary.locator("dt").first).to_have_text("Quasi-identifier")
        tab.keyboard.press("Escape")
        expect(glossary).to_have_count(0)
        expect(what).to_be_focused()
        tour.get_by_role("button", name="Leave the tour").click()
        expect(tour).to_have_count(0)
        tab.get_by_role("button", name=re.compile("^Help")).click()
        glossary.get_by_role("button", name="Take the tour").click()
        expect(tour).to_contain_text("Tour, 1 of 5")
        assert seen.said == []
