"""The whole job by keyboard alone; and on other tables: two hundred columns, many rows, people with several visits."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser import journey
from browser.visits import Studio, visiting
from kinfold import verify

pytestmark = pytest.mark.timeout(900)  # on a busy machine

MOST_STOPS = 150  # of the tabulator, until something is reached


def reach(tab: Page, wanted: Locator) -> None:
    """Press the tabulator until something has the focus."""
    expect(wanted).to_be_visible()
    target = wanted.element_handle()
    for _ in range(MOST_STOPS):
        tab.keyboard.press("Tab")
        if target.evaluate("node => node === document.activeElement"):
            assert tab.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"not reached: {wanted}")


def test_the_whole_job_by_keyboard_alone(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    with visiting(browser, studio.address) as (tab, seen):
        reach(tab, tab.get_by_role("button", name="Start with the demo"))
        tab.keyboard.press("Enter")
        journey.ready(tab)
        reach(tab, journey.column(tab, "marital_status").get_by_role("checkbox"))
        tab.keyboard.press("o")
        expect(journey.column(tab, "marital_status")).to_have_class(re.compile("role-other"))
        tab.keyboard.press("Alt+2")
        expect(tab.locator("main h1")).to_be_focused()
        reach(tab, tab.get_by_role("navigation", name="Columns").get_by_role("link", name="zip"))
        tab.keyboard.press("Enter")
        expect(tab.get_by_role("heading", name="zip", exact=True)).to_be_visible()
        expect(tab.locator("table.effect tbody tr").first).to_contain_text("%")
        tab.keyboard.press("Alt+3")
        expect(tab.locator("main h1")).to_be_focused()
        reach(tab, tab.get_by_label(re.compile("^k: ")))
        tab.keyboard.press("Control+a")
        tab.keyboard.type("6")
        tab.keyboard.press("Tab")
        expect(tab.locator("#policy")).to_have_value(re.compile("\nk = 6"))
        tab.keyboard.press("Alt+3")
        tab.locator("main h1").focus()
        reach(tab, tab.locator("#run"))
        tab.keyboard.press("Enter")
        expect(tab.locator(".run .state")).to_have_text("done")
        tab.keyboard.press("Alt+4")
        expect(tab.locator("main h1")).to_be_focused()
        reach(tab, tab.get_by_role("tab", name="Summary"))
        tab.keyboard.press("ArrowRight")
        rows = tab.get_by_role("tabpanel", name="Rows")
        expect(rows.locator(".long .row:not(.waiting) .changed").first).to_contain_text("→")
        tab.keyboard.press("Alt+5")
        expect(tab.locator("main h1")).to_be_focused()
        reach(tab, tab.locator("#public"))
        with tab.expect_download() as waiting:
            tab.keyboard.press("Enter")
        waiting.value.save_as(tmp_path / "public.zip")
        assert (tmp_path / "public.zip").stat().st_size > 1000
        assert seen.said == []


def test_two_hundred_columns_are_filtered_and_changed_together(
    browser: Browser, studio: Studio, tmp_path: Path
) -> None:
    table = tmp_path / "wide.csv"
    names = [*(f"item{number:03d}" for number in range(198)), "age", "sex"]
    rows = ([*((row * column) % 5 for column in range(3, 201)), 20 + row % 40, "fm"[row % 2]] for row in range(200))
    table.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n", "utf-8")
    with visiting(browser, studio.address, viewport={"width": 1280, "height": 800}) as (tab, seen):
        journey.open_file(tab, table)
        expect(tab.locator("tr.column")).to_have_count(200)
        expect(tab.get_by_role("link", name="Generalize →").first).to_be_in_viewport()
        assert tab.evaluate("document.documentElement.scrollHeight") < 2_200  # the columns scroll in a box of their own
        heights = tab.locator("tr.column").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
        assert 36 <= min(heights) <= max(heights) <= 40
        tab.get_by_label("Filter columns by name").fill("item1")
        expect(tab.locator("tr.column")).to_have_count(98)
        tab.get_by_label("Tick all columns").check()
        tab.get_by_label("Role of the ticked columns").select_option("remove")
        tab.get_by_role("button", name="Set the role").click()
        expect(tab.locator("tr.column.role-remove")).to_have_count(98)
        assert seen.said == []


def test_visits_of_people_are_released_with_promises_about_people(
    browser: Browser, studio: Studio, tmp_path: Path
) -> None:
    table = tmp_path / "visits.csv"
    lines = ["patient_id,visit_date,age,sex,diagnosis"]
    for person in range(120):
        for visit in range(1 + person % 4):
            day = f"2025-{1 + (person + visit) % 12:02d}-{1 + (7 * person) % 28:02d}"
            ill = ("flu", "asthma", "ulcer")[visit % 3]
            lines.append(f"P{person:04d},{day},{20 + person % 50},{'fm'[person % 2]},{ill}")
    table.write_text("\n".join(lines) + "\n", "utf-8")
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_file(tab, table)
        role = journey.column(tab, "patient_id").get_by_role("combobox", name="Role of")
        expect(role).to_have_value("unit")
        questions = tab.locator("section[aria-labelledby=s-questions]")  # the day of a visit tells its diagnosis here
        questions.get_by_role("button", name="confidential", exact=True).click()
        expect(questions.get_by_role("status")).to_have_text("All questions are answered.")
        journey.go(tab, "Protect")
        expect(tab.locator(".verdict .headline")).to_contain_text("people")
        journey.unfold(tab, "People and households")
        told_apart = "Attributes of the person: age, sex. Attributes of the event: visit_date, diagnosis."
        expect(tab.locator("#attributes")).to_contain_text(told_apart)
        journey.run(tab)
        journey.go(tab, "Release")
        expect(tab.locator(".kept").first).to_be_visible()
        verdict = verify(journey.download(tab, "#public", tmp_path))
        assert verdict.holds
        assert seen.said == []
