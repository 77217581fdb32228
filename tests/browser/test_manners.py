"""How the page behaves: names are never markup, a reload loses nothing, decisions are undone, long tables scroll."""

import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser import journey
from browser.visits import Studio, serving, visiting
from kinfold.demo import write_demo_table

pytestmark = pytest.mark.timeout(900)  # on a busy machine

LONG = "a whole question of the survey, pasted into the name of its column, " * 4 + "x" * 200
NAMES = ("<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "a.b/c #1", "javascript:alert(3)", LONG)
VALUES = ("<svg onload=alert(4)>", "</textarea><script>alert(5)</script>", "{{ 7 * 7 }}", "plain")


ROLES = ("quasi-identifier", "quasi-identifier", "confidential", "other", "quasi-identifier")
WIDER = "document.documentElement.scrollWidth - innerWidth"


def hostile() -> str:
    rows = (
        f'{20 + row % 9},"{VALUES[row % 4]}","{VALUES[(row // 4) % 4]}",{row % 5},{"y" * 180}{row % 3}'
        for row in range(80)
    )
    return "\n".join((",".join(f'"{name}"' for name in NAMES), *rows, ""))


def test_names_and_categories_are_never_markup(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    table = tmp_path / "<img src=x onerror=alert(6)>.csv"
    table.write_text(hostile(), "utf-8")
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_file(tab, table)
        for name, role in zip(NAMES, ROLES, strict=True):
            journey.give_role(tab, name, role)
        expect(tab.locator(".long")).to_contain_text("<svg onload")
        journey.go(tab, "Generalize")
        for name in NAMES[:3]:
            journey.choose(tab, name)
        journey.choose(tab, NAMES[1])
        tab.get_by_role("checkbox", name=re.compile("svg onload")).check()
        tab.get_by_role("checkbox", name=re.compile("plain")).check()
        tab.locator("#merge-name").fill("<b onmouseover=alert(7)>both</b>")
        tab.locator("#merge-name").press("Enter")
        expect(tab.get_by_role("group", name="<b onmouseover=alert(7)>both</b>")).to_be_visible()
        journey.go(tab, "Protect")
        journey.run(tab)
        journey.go(tab, "Explore")
        expect(journey.look(tab, "Columns").locator("article svg").first).to_be_visible()
        journey.go(tab, "Release")
        expect(tab.locator(".kept").first).to_be_visible()
        tab.set_viewport_size({"width": 400, "height": 800})
        for step in journey.STEPS:  # however long a name or a value is
            journey.go(tab, step)
            assert tab.evaluate(WIDER) <= 0, step
        assert tab.evaluate("document.querySelectorAll('script').length") == 2  # the page's module and the charts'
        assert tab.evaluate("document.querySelectorAll('main b, main svg[onload], [onerror]').length") == 0
        assert seen.said == []
        assert seen.abroad(studio.root) == []


def test_a_reload_comes_back_to_the_same_place(browser: Browser, studio: Studio) -> None:
    with visiting(browser, studio.address) as (tab, _):
        journey.open_demo(tab)
        journey.give_role(tab, "zip", "other")
        journey.go(tab, "Generalize")
        journey.choose(tab, "income")
        tab.reload()
        expect(tab.get_by_role("heading", name="income")).to_be_visible()
        tab.go_back()
        expect(tab.get_by_role("heading", name="age", exact=True)).to_be_visible()
        tab.goto(studio.root + "/")  # the address alone: the step is remembered
        expect(tab.locator("main .kicker")).to_contain_text("Generalize")
        journey.go(tab, "Open")
        expect(journey.column(tab, "zip")).to_have_class(re.compile("role-other"))


def test_decisions_are_taken_back_and_made_again(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_demo(tab)
        journey.go(tab, "Protect")
        field = tab.get_by_label(re.compile("^k: "))
        for value in ("7", "9"):
            field.fill(value)
            field.press("Tab")
            expect(tab.locator("#policy")).to_have_value(re.compile(f"\\nk = {value}"))
        tab.get_by_role("button", name=re.compile("^Undo")).click()
        expect(field).to_have_value("7")
        tab.get_by_role("button", name=re.compile("^Redo")).click()
        expect(field).to_have_value("9")
        tab.get_by_role("button", name=re.compile("^Undo")).click()
        tab.get_by_role("button", name=re.compile("^Undo")).click()
        expect(field).to_have_value("5")
        open_the_project_again(tab, field, tmp_path)
        assert seen.said == []


def open_the_project_again(tab: Page, field: Locator, folder: Path) -> None:
    journey.go(tab, "Open")
    journey.unfold(tab, "Project")
    with tab.expect_download() as waiting:
        tab.get_by_role("link", name="Save the project").click()
    project = folder / waiting.value.suggested_filename
    waiting.value.save_as(project)
    journey.go(tab, "Protect")
    journey.set_field(tab, re.compile("^k: "), "6")
    expect(tab.locator("#policy")).to_have_value(re.compile("\nk = 6"))
    journey.go(tab, "Open")
    journey.unfold(tab, "Project")
    tab.get_by_label("Open a project").set_input_files(project)
    journey.go(tab, "Protect")
    expect(field).to_have_value("5")


def test_a_server_that_has_gone_is_noticed(browser: Browser, tmp_path: Path) -> None:
    with ExitStack() as stack:
        studio = stack.enter_context(serving(folder=tmp_path))
        with visiting(browser, studio.address) as (tab, _):
            expect(tab.get_by_role("button", name="Start with the demo")).to_be_visible()
            stack.close()
            expect(tab.get_by_role("alert")).to_contain_text("does not answer")
            tab.get_by_role("button", name="Start with the demo").click()
            expect(tab.get_by_role("alert")).to_have_count(1)  # said once, whatever is clicked


def test_the_policy_and_the_form_are_in_step_and_errors_are_at_their_line(browser: Browser, studio: Studio) -> None:
    with visiting(browser, studio.address) as (tab, _):
        journey.open_demo(tab)
        journey.go(tab, "Protect")
        text = journey.policy_text(tab)
        tab.locator("#policy").fill(text.replace("k = 5", "k = 8"))
        expect(tab.get_by_label(re.compile("^k: "))).to_have_value("8")
        tab.locator("#policy").fill(text.replace("k = 5", "k = 1"))
        line = text[: text.index("k = 5")].count("\n") + 1
        expect(tab.locator("#policy-problems")).to_contain_text(f"Line {line}")
        expect(tab.locator(".mirror .wrong")).to_have_text(f"✕ {line}")
        expect(tab.get_by_label(re.compile("^k: "))).to_have_value("8")
        run = tab.locator("#run")
        expect(run).to_be_disabled()
        expect(tab.get_by_role("button", name="Try", exact=True)).to_be_disabled()
        expect(tab.locator("#run-off")).to_contain_text(f"the policy text is not valid (line {line})")
        tab.reload()
        expect(tab.locator("#policy")).to_have_value(re.compile("\nk = 1 "))
        expect(run).to_be_disabled()
        tab.get_by_role("button", name="Go back to it").click()
        expect(tab.locator("#policy")).to_have_value(re.compile("\nk = 8"))
        expect(run).to_be_enabled()
        tab.locator("#policy").fill(text.replace("k = 5", "k = 50x"))
        tab.reload()  # before it is sent
        expect(tab.locator("#policy")).to_have_value(re.compile("\nk = 50x"))
        expect(run).to_be_disabled()
        tab.locator("#policy").fill(text.replace("k = 5", "k = 7"))
        run.evaluate("button => { button.disabled = false; button.click(); }")  # before it is checked
        expect(tab.locator(".run .name")).to_contain_text("k = 7")
        tab.locator(".run").get_by_role("button", name="Cancel").click()
        field = tab.get_by_label(re.compile("^k: "))
        field.fill("0")
        field.press("Tab")
        expect(tab.locator(".field .wrong")).to_be_visible()
        expect(tab.locator("#policy")).to_have_value(re.compile("\nk = 7"))
        expect(run).to_be_disabled()
        expect(tab.locator("#run-off")).to_contain_text("privacy.k was refused")
        tab.get_by_role("button", name="Go back to the last valid policy").click()
        expect(field).to_have_value("7")
        expect(run).to_be_enabled()


def test_a_population_is_set_in_the_form(browser: Browser, studio: Studio) -> None:
    with visiting(browser, studio.address) as (tab, _):
        journey.open_demo(tab)
        journey.go(tab, "Protect")
        journey.unfold(tab, "More promises")
        table, headline = tab.get_by_label("Table of the population"), tab.locator(".verdict")
        table.fill("people.csv")
        table.blur()
        expect(tab.locator("#f-privacy-population-table-wrong")).to_contain_text("or there is none")
        write_demo_table(studio.folder / "people.csv")
        table.fill("./people.csv")
        table.blur()
        expect(headline).to_contain_text("5 people of the population in every class")
        presence = tab.get_by_label("Share of these people who are in the table")
        presence.fill("0 to 0.4")
        presence.blur()
        expect(headline).to_contain_text("presence from 0 to 0.4")
        uniques = tab.get_by_label("Share of the people who may be unique")
        uniques.fill("0.01 of 9,000")
        uniques.blur()
        expect(headline).to_contain_text("at most 1% of the population unique")
        tab.get_by_label("Estimator").select_option("pitman")
        expect(tab.locator("textarea")).to_have_value(re.compile('size = 9000, uniques = 0.01, estimator = "pitman"'))
        estimate = tab.get_by_label("People of the population in each class")
        estimate.fill("4 of 9,000 at 0.05")
        estimate.blur()
        expect(headline).to_contain_text("4 of 9,000 people in every class (estimated, risk 0.05)")
        uniques.fill("")
        uniques.blur()
        expect(headline).not_to_contain_text("unique")
        risk = tab.get_by_label("Individual risk by sampling weights")
        risk.fill("0.1")
        risk.blur()
        expect(headline).to_contain_text("an individual risk of at most 10%")


def test_many_tabs_share_one_stream_of_events(browser: Browser, studio: Studio) -> None:
    """A browser opens six connections to a server: a stream for each tab would leave none for anything else."""
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_demo(tab)
        tabs = [tab, *(tab.context.new_page() for _ in range(7))]
        for other in tabs[1:]:
            other.goto(f"{studio.root}/#protect")
            expect(other.get_by_label(re.compile("^k: "))).to_have_value("5")
        assert sum(url.endswith("/api/events") for url in seen.asked) == 1
        tab.close()  # the one that listened
        journey.set_field(tabs[1], re.compile("^k: "), "6")
        for other in tabs[2:]:
            expect(other.get_by_label(re.compile("^k: "))).to_have_value("6")
        assert sum(url.endswith("/api/events") for url in seen.asked) == 2
        assert seen.said == []


@pytest.mark.parametrize(
    "rows", [20_000, pytest.param(1_000_000, marks=(pytest.mark.long, pytest.mark.trust("pages")))]
)
def test_very_many_rows_scroll(browser: Browser, studio: Studio, tmp_path: Path, rows: int) -> None:
    table = tmp_path / "long.csv"
    table.write_text("n,sex\n" + "\n".join(f"{n},{'fm'[n % 2]}" for n in range(rows)) + "\n", "utf-8")
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_file(tab, table)
        expect(tab.locator(".verdict .headline")).to_contain_text(f"{rows:,} records")
        box = tab.locator(".long")
        box.scroll_into_view_if_needed()
        for share in (0.25, 0.5, 0.999):
            began = time.monotonic()
            box.evaluate("(e, share) => { e.scrollTop = (e.scrollHeight - e.clientHeight) * share; }", share)
            expect(box.locator(".row:not(.waiting)").first).to_be_visible()
            assert time.monotonic() - began < 60
        box.evaluate("e => { e.scrollTop = e.scrollHeight; }")
        expect(box.get_by_text(f"{rows:,}", exact=True)).to_be_visible()
        expect(box.locator(".row").last).to_contain_text(str(rows - 1))
        assert box.locator(".row").count() < 60
        assert seen.said == []
