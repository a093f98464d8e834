"""What judges the accessibility of a page."""

import json
from importlib import resources
from itertools import product

from playwright.sync_api import Page

from tests.browser.conftest import SCHEMES

# Rules of axe whose outcome colours can change.
_OF_COLOURS = ["color-contrast", "link-in-text-block"]
# The documentation's script lets blocks of code be focused once they scroll.
_FOCUSABLE = """() => [...document.querySelectorAll("pre code")].every(
    code => code.scrollWidth <= code.clientWidth || code.tabIndex >= 0)"""
AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


def violations(page: Page, within: str, *sizes: tuple[int, int]) -> list[str]:
    """What axe, which the page has to have, finds in both colour schemes: in the second, what it can change."""
    found = []
    for (width, height), scheme in product(sizes, SCHEMES):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(_FOCUSABLE)
        options = {"resultTypes": ["violations"]}
        if scheme != SCHEMES[0]:
            options["runOnly"] = _OF_COLOURS
        found += page.evaluate("([within, options]) => axe.run(within, options)", [within, options])["violations"]
    return [json.dumps({**rule, "nodes": [node["html"] for node in rule["nodes"]]}) for rule in found]
