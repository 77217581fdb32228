"""The release is shown: original and released cells side by side, filtered, sorted, and by class."""

import re

from playwright.sync_api import Browser, expect

from browser import axe, journey
from browser.visits import Studio, visiting


def test_the_release_is_shown_record_by_record(browser: Browser, studio: Studio) -> None:
    with visiting(browser, studio.address) as (tab, seen):
        journey.open_demo(tab)
        journey.go(tab, "Protect")
        journey.run(tab)
        journey.go(tab, "Explore")
        expect(tab.locator(".empty")).to_contain_text("needs two runs")  # one point is no map
        panel = journey.look(tab, "Rows")
        row = panel.locator(".long .row:not(.waiting)")
        expect(row.first).to_be_visible()
        expect(row.first.locator(".changed").first).to_contain_text("→")
        expect(panel.get_by_role("status")).to_contain_text("1,000 shown")
        assert "\n".join(axe.violations(tab, axe.source())) == ""
        panel.get_by_label("Show", exact=True).select_option("changed")
        panel.get_by_label("Column", exact=True).select_option("sex")
        expect(panel.get_by_role("status")).not_to_contain_text("1,000 shown")
        panel.get_by_role("button", name="risk").click()
        expect(panel.get_by_role("columnheader", name="risk")).to_have_attribute("aria-sort", "descending")
        shown = row.first.get_by_role("button", name=re.compile("^Show the . records"))
        number = shown.inner_text()
        shown.click()
        expect(panel.get_by_role("button", name=re.compile("Show all classes"))).to_contain_text(f"Class {number}")
        expect(row).to_have_count(5)
        panel.get_by_role("button", name=re.compile("Show all classes")).click()
        panel.get_by_label("Show", exact=True).select_option("suppressed")
        expect(panel.get_by_role("status")).to_contain_text("0 shown")
        classes = journey.look(tab, "Classes")
        first = classes.locator(".long .row:not(.waiting)").first.get_by_role("button")
        expect(first).to_be_visible()
        assert "\n".join(axe.violations(tab, axe.source())) == ""
        first.click()
        expect(tab.get_by_role("tabpanel", name="Rows").locator(".long .row:not(.waiting)")).to_have_count(5)
        dates = journey.look(tab, "Columns").get_by_role("img", name=re.compile("^admission before and after"))
        expect(dates.locator(".mark-rect path").first).to_be_attached()
        widths = "bars => bars.map(bar => bar.getBoundingClientRect().width)"
        assert min(dates.locator(".mark-rect path").evaluate_all(widths)) > 1  # each date has a place on the axis
        pairs = journey.look(tab, "Pairs")
        pairs.get_by_label("First column").select_option("sex")
        pairs.get_by_label("Second column").select_option("disease")
        crossed = pairs.get_by_role("region", name=re.compile("^(before|after): 1,000 records by sex and disease"))
        expect(crossed).to_have_count(2)
        pairs.get_by_label("First column").select_option("age")
        expect(pairs.get_by_role("region", name="Quantiles of age")).to_be_visible()
        assert "\n".join(axe.violations(tab, axe.source())) == ""
        journey.set_field(tab, "Formula", "charge ~ age + sex")
        journey.go(tab, "Protect")
        expect(tab.locator("#policy")).to_have_value(re.compile('task = "charge ~ age [+] sex"'))
        journey.run(tab)
        journey.go(tab, "Explore")
        expect(journey.look(tab, "Pairs").get_by_text("coefficient of age")).to_be_visible()
        tab.evaluate("location.hash = '#explore/%zz'")  # no run, and not even an encoded name
        expect(tab.locator("main .alarm").first).to_contain_text("There is no run '%zz'")
        assert seen.said == []
        assert seen.abroad(studio.root) == []
