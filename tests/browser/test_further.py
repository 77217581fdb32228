"""What else is done by hand: a file dropped, databases, a project of ARX, outliers step by step, a run left alone."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect

import arx_projects
from browser import journey
from browser.visits import Studio, visiting
from postgres import PASSWORD, Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # on a busy machine

DROP = """() => {
    const files = new DataTransfer();
    const rows = Array.from({length: 60}, (_, i) => [20 + i % 7, 'fm'[i % 2], ['flu', 'colic', 'ulcer'][i % 3]].join());
    files.items.add(new File(['age,sex,illness\\n' + rows.join('\\n') + '\\n'], 'dropped.csv'));
    document.querySelector('.drop').dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true}));
}"""


def test_a_file_is_dropped_and_its_hierarchy_goes_out_and_in(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    with visiting(browser, studio.address) as (tab, seen):
        expect(tab.locator(".drop")).to_be_visible()
        titled = tmp_path / "titled.csv"
        titled.write_text("Report of 2026;\n\nage;sex\n" + "41;f\n52;m\n" * 30, "utf-8")
        tab.locator("#file").set_input_files(titled)
        expect(tab.get_by_role("alert")).to_contain_text("titled.csv could not be opened")
        tab.get_by_label("Header is line").fill("3")
        tab.get_by_label("Header is line").press("Tab")
        journey.ready(tab)
        expect(journey.column(tab, "age")).to_be_visible()
        tab.get_by_role("button", name="Close this table").click()
        expect(tab.locator(".drop")).to_be_visible()
        tab.evaluate(DROP)
        journey.ready(tab)
        expect(tab.get_by_role("heading", name="dropped.csv")).to_be_visible()
        journey.give_role(tab, "illness", "quasi-identifier")
        journey.go(tab, "Generalize")
        journey.choose(tab, "illness")
        with tab.expect_download() as waiting:
            tab.get_by_role("link", name="Export ARX's CSV").click()
        waiting.value.save_as(tmp_path / "out.csv")
        assert set((tmp_path / "out.csv").read_text("utf-8").split()) >= {"flu;*", "colic;*", "ulcer;*"}
        (tmp_path / "in.csv").write_text("flu;lung;*\ncolic;lung;*\nulcer;stomach;*\n", "utf-8")
        tab.get_by_label(re.compile("Import a hierarchy")).set_input_files(tmp_path / "in.csv")
        expect(tab.get_by_role("region", name="Tree of illness")).to_contain_text("lung")
        (tmp_path / "bad.csv").write_text("flu;lung;*\n", "utf-8")
        tab.get_by_label(re.compile("Import a hierarchy")).set_input_files(tmp_path / "bad.csv")
        expect(tab.get_by_role("alert").first).to_be_visible()  # two values have no row: said, and nothing changed
        expect(tab.get_by_role("region", name="Tree of illness")).to_contain_text("lung")
        assert [text for text in seen.said if "422" not in text] == []  # the browser notes that it was refused


def test_a_table_is_chosen_from_a_database_in_a_file(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "people.sqlite") as database:
        database.execute("CREATE TABLE people (age INTEGER, sex TEXT)")
        database.executemany("INSERT INTO people VALUES (?, ?)", [(20 + row % 9, "fm"[row % 2]) for row in range(60)])
        database.execute("CREATE TABLE visits (day TEXT)")
        database.execute("INSERT INTO visits VALUES ('2026-01-01')")
    database.close()
    with visiting(browser, studio.address) as (tab, seen):
        tab.locator("#file").set_input_files(tmp_path / "people.sqlite")
        tab.get_by_role("button", name="people", exact=True).click()
        journey.ready(tab)
        expect(journey.column(tab, "age")).to_be_visible()
        assert seen.said == []


def test_a_table_is_taken_from_a_database(browser: Browser, studio: Studio, server: Server) -> None:
    server.put("seen_in_a_browser", pa.table({"age": [20 + row % 9 for row in range(60)], "sex": ["f", "m"] * 30}))
    with visiting(browser, studio.address) as (tab, seen):
        tab.get_by_label("Address").fill(server.address())
        tab.get_by_label("Table").fill("no_such_table")
        tab.get_by_role("button", name="Read it").click()
        expect(tab.get_by_role("alert")).to_contain_text("could not be opened")
        tab.get_by_label("Table").fill("seen_in_a_browser")
        tab.get_by_role("button", name="Read it").click()
        journey.ready(tab)
        expect(journey.column(tab, "age")).to_be_visible()
        expect(tab.locator(".long .row").last).to_contain_text("m")
        assert PASSWORD not in tab.evaluate("fetch('/api/session').then(answer => answer.text())")
        assert PASSWORD not in tab.locator("body").inner_text()
        assert seen.said == []


def test_a_project_of_arx_brings_its_policy_and_hierarchies(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    project = arx_projects.project(tmp_path, arx_projects.study())
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_file(tab, project)
        journey.go(tab, "Protect")
        expect(tab.locator("#policy")).to_have_value(re.compile("\nk = 2\n"))
        journey.go(tab, "Generalize")
        journey.choose(tab, "zip")
        expect(tab.get_by_role("region", name="Tree of zip")).to_contain_text("021**")
        assert seen.said == []


def test_outliers_step_by_step_and_a_run_that_is_left_alone(browser: Browser, studio: Studio) -> None:
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_demo(tab)
        journey.go(tab, "Protect")
        journey.set_field(tab, re.compile("^Refinement"), "2")
        expect(tab.locator("#policy")).to_have_value(re.compile("refine = 2"))
        tab.locator("#run").click()
        expect(tab.locator(".curve svg")).to_be_visible()  # the loss, as it falls
        assert tab.locator(".run .state").inner_text() == "running"
        other = tab.context.new_page()
        tab.close()
        other.goto(studio.root + "/")
        expect(other.locator(".run .state")).to_have_text("done")  # the step is remembered, and the run went on
        expect(other.locator(".curve svg")).to_be_visible()
        journey.set_field(other, re.compile("^Refinement"), "0")
        expect(other.locator("#policy")).to_have_value(re.compile("refine = 0"))  # decided, and the page drawn anew
        choose_outliers(other)
        assert seen.said == []


def choose_outliers(tab: Page) -> None:
    journey.go(tab, "Explore")
    tab.get_by_role("button", name="Look for outliers").click()
    told = tab.locator("section[aria-labelledby=s-outliers]")
    expect(told).to_contain_text("still stand out")
    before = told.get_by_text("still stand out").inner_text()
    told.get_by_role("button", name="Make zip coarser").click()
    expect(told).to_contain_text("Made coarser so far: zip")
    assert number(told.get_by_text("still stand out").inner_text()) < number(before)
    told.get_by_role("button", name="Take the last back").click()
    expect(told.get_by_text("still stand out")).to_have_text(before)


def number(text: str) -> int:
    return int(text.split()[0].replace(",", ""))
