"""How the five steps look and read: for everybody (axe-core), light and dark, 360 pixels to 4K, nothing cut off."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect

import arx_projects
from browser import axe, journey
from browser.visits import Seen, Studio, visiting
from postgres import PASSWORD, Server

pytestmark = pytest.mark.timeout(900)  # on a busy machine

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


JUMPS = """() => {
    const shown = [...document.querySelectorAll('main :is(h1, h2, h3, summary, a, button, input, select, textarea)')]
        .filter(e => e.offsetParent && !e.closest('.aside, .long, .scrolls, nav, .policy, [role=tablist]'));
    const tops = shown.map(e => e.getBoundingClientRect().top);
    return shown.filter((_, i) => i && tops[i] < tops[i - 1] - 60).map(e => e.outerHTML.slice(0, 120));
}"""
READ = {  # what a screen reader reads, in this order
    "Open": (
        'link "Generalize →"',
        'heading "Columns"',
        'table "Columns"',
        'heading "Rows"',
        'region "Rows of the table',
    ),
    "Generalize": ('link "Protect →"', 'navigation "Columns"', "radiogroup", 'heading "Tree"', "Unique records"),
    "Protect": ('button "Run"', 'heading "Promises"', 'spinbutton "k: ', 'heading "Method"', 'textbox "The policy'),
    "Explore": ('link "Release →"', 'table "Runs of this session"', 'img "Risk and loss', "tablist", "tabpanel"),
    "Release": ('link "Download public.zip"', 'heading "Promises"', 'heading "Files"', 'heading "Keep private"'),
}


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
        journey.look(tab, "Lattice").get_by_role("button", name="Draw the lattice").click()
        expect(tab.locator("circle.best")).to_be_visible()
        outliers = journey.look(tab, "Outliers")
        outliers.get_by_role("button", name="Find outliers").click()
        expect(outliers.locator("table")).to_be_visible()
        yield tab, seen, studio


def settled(tab: Page, step: str) -> None:
    """Go to a step and wait until its slower parts are there."""
    journey.go(tab, step)
    told = {"Open": ".long .row:not(.waiting)", "Generalize": ".tree .node", "Protect": "#policy"}
    expect(tab.locator(told.get(step, ".map svg, .kept")).first).to_be_visible()
    if step == "Explore":
        expect(tab.locator(".map svg")).to_be_visible()
        expect(journey.look(tab, "Columns").locator("article svg").first).to_be_visible()


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


@pytest.mark.parametrize("step", journey.STEPS)
def test_a_screen_reader_reads_in_the_order_of_the_page(worked: tuple[Page, Seen, Studio], step: str) -> None:
    tab = worked[0]
    tab.set_viewport_size({"width": 400, "height": 900})
    settled(tab, step)
    tree = tab.locator("main").aria_snapshot()
    places = [tree.index(each) for each in ('heading "patients.csv"', *READ[step])]
    assert places == sorted(places)
    assert tab.evaluate(JUMPS) == []


def test_the_line_of_navigation_is_one_line(worked: tuple[Page, Seen, Studio]) -> None:
    tab = worked[0]
    for width in (360, 1280):
        tab.set_viewport_size({"width": width, "height": 900})
        tops = tab.evaluate("[...document.querySelectorAll('.steps li')].map(e => e.getBoundingClientRect().top)")
        assert len(tops) == 5
        assert len(set(tops)) == 1


def test_the_map_tells_what_a_point_is_and_sliders_go_over_what_was_tried(worked: tuple[Page, Seen, Studio]) -> None:
    tab = worked[0]
    tab.set_viewport_size({"width": 1280, "height": 900})
    settled(tab, "Explore")
    points = tab.locator(".map .mark-symbol:not(.ring_marks) path")
    points.first.hover(force=True)
    expect(tab.locator(".tip:visible")).to_have_text(
        re.compile(r"mdav, k = \d+: risk [\d.]+%, loss [\d.]+%, \d+ classes")
    )
    current = tab.locator("table.runs a[aria-current]")
    slider = tab.get_by_role("slider", name="k tried")
    slider.focus()
    for key, k in (("End", 10), ("Home", 5)):
        tab.keyboard.press(key)
        expect(current).to_have_text(f"mdav, k = {k}")
        expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^k {k}, loss"))
    tree = tab.locator("main").aria_snapshot()
    assert 'img "Risk and loss of 2 runs; ' in tree  # each chart has its own description
    assert 'columnheader "loss":' in tree
    assert tree.index('table "Runs of this session"') < tree.index('slider "k tried"') < tree.index('img "Risk')
    assert tree.index('heading "patients.csv"') < tree.index('link "Release →"') < tree.index("tablist")
    summary = journey.look(tab, "Summary")
    expect(summary.get_by_text(re.compile("Time by stage")).first).to_be_visible()
    expect(summary.locator(".stages li").first).to_contain_text(re.compile(r"[\d.]+ s"))
    risk = journey.look(tab, "Risk")
    expect(risk.get_by_role("region", name="What contributes to the scores").first).to_contain_text("income")
    expect(
        risk.get_by_role("region", name="Records that stand out most").first.locator("tbody tr").first
    ).to_be_visible()
    assert tab.evaluate(WIDE) == []


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
            "[...document.querySelectorAll('main *')].filter(e => e.listeners?.click)"
            ".filter(e => !e.matches('a, button, input, label, circle, [tabindex]')).map(e => e.outerHTML.slice(0, 99))"
        )
        assert lost == []


def test_no_request_left_the_machine_and_nothing_went_wrong(worked: tuple[Page, Seen, Studio]) -> None:
    _, seen, studio = worked
    assert seen.abroad(studio.root) == []
    assert seen.said == []
    assert any(re.search("/vega.js$", url) for url in seen.asked)


# What else is done by hand: a file dropped, databases, a project of ARX, outliers step by step, a run left alone


DROP = """() => {
    const files = new DataTransfer();
    const rows = Array.from({length: 60}, (_, i) => [20 + i % 7, 'fm'[i % 2], ['flu', 'colic', 'ulcer'][i % 3]].join());
    files.items.add(new File(['age,sex,illness\\n' + rows.join('\\n') + '\\n'], 'dropped.csv'));
    document.querySelector('.drop').dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true}));
}"""


def test_a_file_is_dropped_and_its_hierarchy_goes_out_and_in(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    with visiting(browser, studio.address) as (tab, seen):
        expect(tab.locator(".drop")).to_be_visible()
        bare = tmp_path / "bare.csv"
        bare.write_text("41;f\n52;m\n" * 30, "utf-8")
        tab.locator("#file").set_input_files(bare)
        expect(tab.get_by_role("alert")).to_contain_text("source.header")
        tab.get_by_label("Header is line").fill("0")
        tab.get_by_label("Header is line").press("Tab")
        journey.ready(tab)
        expect(journey.column(tab, "column1")).to_be_visible()
        tab.get_by_role("button", name="Close this table").click()
        expect(tab.locator(".drop")).to_be_visible()
        tab.evaluate(DROP)
        journey.ready(tab)
        expect(tab.get_by_role("heading", name="dropped.csv")).to_be_visible()
        journey.give_role(tab, "illness", "quasi-identifier")
        journey.go(tab, "Generalize")
        journey.choose(tab, "illness")
        with tab.expect_download() as waiting:
            tab.get_by_role("link", name="Export CSV for ARX").click()
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
        with sqlite3.connect(tmp_path / "one.sqlite") as database:
            database.execute("CREATE TABLE visits (day TEXT, sex TEXT)")
            database.executemany(
                "INSERT INTO visits VALUES (?, ?)", [("2026-01-01", "fm"[row % 2]) for row in range(9)]
            )
        database.close()
        tab.get_by_role("button", name="Close this table").click()
        tab.locator("#file").set_input_files(tmp_path / "one.sqlite")
        journey.ready(tab)  # the only table opens at once
        expect(journey.column(tab, "day")).to_be_visible()
        assert seen.said == []


def test_a_table_is_taken_from_a_database(browser: Browser, studio: Studio, server: Server) -> None:
    server.put("seen_in_a_browser", pa.table({"age": [20 + row % 9 for row in range(60)], "sex": ["f", "m"] * 30}))
    with visiting(browser, studio.address) as (tab, seen):
        tab.get_by_label("Address").fill(server.address())
        tab.get_by_label("Table").fill("no_such_table")
        tab.get_by_role("button", name="Read it").click()
        expect(tab.get_by_role("alert")).to_contain_text("there is no such table")
        tab.get_by_label("Table").fill("seen_in_a_browser")
        tab.get_by_role("button", name="Read it").click()
        journey.ready(tab)
        expect(journey.column(tab, "age")).to_be_visible()
        expect(tab.locator(".long .row").nth(1)).to_contain_text("m")
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
    journey.look(tab, "Outliers").get_by_role("button", name="Find outliers").click()
    told = tab.get_by_role("tabpanel", name="Outliers")
    expect(told).to_contain_text("that is too rare")
    before = told.get_by_text("that is too rare").inner_text()
    told.get_by_role("button", name="Generalize zip").click()
    expect(told).to_contain_text("Generalized so far: zip")
    assert number(told.get_by_text("that is too rare").inner_text()) < number(before)
    told.get_by_role("button", name="Undo the last one").click()
    expect(told.get_by_text("that is too rare")).to_have_text(before)


def number(text: str) -> int:
    return int(text.split()[0].replace(",", ""))
