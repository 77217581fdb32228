"""Questions in the studio: a click answers one, and a run waits for all of them."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from browser import axe, journey
from browser.visits import Studio, visiting
from studio.questions import policy_with_questions


def test_a_click_answers_a_question(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    project = tmp_path / "project.toml"
    project.write_text(policy_with_questions(), encoding="utf-8")
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_demo(tab)
        journey.unfold(tab, "Project")
        tab.locator("label.file input").set_input_files(project)
        section = tab.locator("section[aria-labelledby=s-questions]")
        expect(section.get_by_role("status")).to_have_text("2 questions are open.")
        tab.evaluate("scrollTo(0, 0)")  # no row is half under the line of navigation
        assert "\n".join(axe.violations(tab, axe.source())) == ""
        expect(section.get_by_role("region", name="Rows that show why").first).to_be_visible()  # of the first question
        journey.go(tab, "Protect")
        expect(tab.locator("#run")).to_be_disabled()
        expect(tab.locator("#run-off")).to_contain_text("Runs are off: 2 questions are open.")
        expect(tab.locator(".verdict .headline")).to_have_text("2 questions to answer before a run.")
        journey.go(tab, "Open")
        unit = section.get_by_role("group", name="Is each name one person?")
        unit.get_by_role("button", name="none (proposed)").click()
        expect(section.get_by_role("status")).to_have_text("1 question is open.")
        expect(unit.get_by_role("button", name="none (proposed)")).to_have_attribute("aria-pressed", "true")
        education = section.get_by_role("group", name="May others know the education of a person?")
        education.get_by_role("button", name="confidential").click()
        expect(section.get_by_role("status")).to_have_text("All questions are answered.")
        expect(journey.column(tab, "education").get_by_role("combobox", name="Role of")).to_have_value("confidential")
        tab.get_by_label("Reviewer").fill("Dr. Ada Example")
        tab.get_by_label("Reviewer").press("Tab")
        journey.go(tab, "Protect")
        expect(tab.locator("#run")).to_be_enabled()
        assert 'reviewer = "Dr. Ada Example"' in journey.policy_text(tab)
        assert seen.said == []
