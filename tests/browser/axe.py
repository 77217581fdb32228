"""axe-core, which judges whether a page can be used by everybody. It comes from npm and is never part of the project:
`make axe` puts it into build/node_modules. Where it is missing its tests are skipped, and say so; in CI they fail."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

INSTALLED = Path(__file__).parents[2] / "build/node_modules/axe-core/axe.min.js"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def source() -> str:
    """The script; else skip, or fail where CI promised it."""
    path = Path(os.environ.get("KINFOLD_AXE", INSTALLED))
    if path.exists():
        return path.read_text("utf-8")
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail("no axe-core in CI: `make axe` fetches it, for the page must be judged there", pytrace=False)
    pytest.skip("no axe-core on this machine: `make axe` fetches it from npm")


def violations(tab: Page, script: str) -> list[str]:
    """What axe finds wrong, in one line each."""
    tab.context.new_cdp_session(tab).send("Runtime.evaluate", {"expression": script})  # a page may not: its policy
    found = tab.evaluate("rules => axe.run(document, rules)", RULES)
    return [
        f"{one['id']}: {one['help']}: {node['html'][:160]} {(node['any'] or node['all'] or [{}])[0].get('message', '')}"
        for one in found["violations"]
        for node in one["nodes"][:4]
    ]
