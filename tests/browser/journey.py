"""What a data steward does in the studio, as functions: each is one thing done by hand, and seen to be done."""

import re
import zipfile
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

STEPS = ("Open", "Generalize", "Protect", "Explore", "Release")


def go(tab: Page, step: str) -> None:
    """Follow the line of navigation."""
    tab.get_by_role("link", name=re.compile(rf"Step \d {step}")).click()
    expect(tab.locator("main .kicker")).to_contain_text(step)


def open_demo(tab: Page) -> None:
    tab.get_by_role("button", name="Start with the demo").click()
    ready(tab)


def open_file(tab: Page, path: Path) -> None:
    tab.locator("#file").set_input_files(path)
    ready(tab)


def ready(tab: Page) -> None:
    expect(tab.get_by_role("heading", name="Columns", exact=True)).to_be_visible()


def column(tab: Page, name: str) -> Locator:
    return tab.locator("tr.column").filter(has=tab.get_by_role("rowheader", name=name, exact=True))


def give_role(tab: Page, name: str, role: str) -> None:
    """One choice."""
    row = column(tab, name)
    row.get_by_role("combobox", name="Role of").select_option(role)
    expect(row).to_have_class(re.compile(rf"role-{role}"))


def look(tab: Page, name: str) -> Locator:
    """Choose a tab of the step Explore, and return its panel."""
    tab.get_by_role("tab", name=name, exact=True).click()
    return tab.get_by_role("tabpanel", name=name)


def unfold(tab: Page, name: str) -> None:
    """Open a part that is closed at first."""
    part = tab.locator("details.part").filter(has=tab.locator("summary", has_text=name))
    if part.get_attribute("open") is None:
        part.locator("summary").first.click()
    expect(part.locator(".matter").first).to_be_visible()


def choose(tab: Page, name: str) -> None:
    """Choose a column to generalize."""
    tab.get_by_role("navigation", name="Columns").get_by_role("link", name=name).click()
    expect(tab.get_by_role("heading", name=name, exact=True)).to_be_visible()


def run(tab: Page) -> None:
    """Run, and wait until it is done."""
    tab.locator("#run").click()
    expect(tab.locator(".run .state")).to_have_text("running")
    expect(tab.locator(".run .state")).to_have_text("done")


def try_also(tab: Page, k: str) -> None:
    """Try other values of k, which decides nothing."""
    tab.locator("#tries").fill(k)
    tab.get_by_role("button", name="Try", exact=True).click()


def set_field(tab: Page, label: str | re.Pattern[str], value: str) -> None:
    box = tab.get_by_label(label)
    box.fill(value)
    box.press("Tab")


def policy_text(tab: Page) -> str:
    return tab.locator("#policy").input_value()


def download(tab: Page, where: str, folder: Path) -> Path:
    """Download a folder of the release and unpack it."""
    with tab.expect_download() as waiting:
        tab.locator(where).click()
    archive = folder / waiting.value.suggested_filename
    waiting.value.save_as(archive)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder / archive.stem)
    return folder / archive.stem


def save(tab: Page, part: str, name: str) -> Path:
    """Save a folder of the release where the studio was started."""
    tab.locator(f"#folder-{part}").fill(name)
    tab.locator(".saver").filter(has=tab.locator(f"#folder-{part}")).get_by_role("button", name="Save").click()
    told = tab.locator(".saver").filter(has=tab.locator(f"#folder-{part}")).get_by_role("status")
    expect(told).to_contain_text("Saved: ")
    return Path(told.inner_text().removeprefix("Saved: "))
