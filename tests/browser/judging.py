"""What judges the accessibility of a page."""

import json
from importlib import resources
from itertools import product

from playwright.sync_api import Page

from tests.browser.conftest import SCHEMES

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


def violations(page: Page, within: str, *sizes: tuple[int, int]) -> list[str]:
    """What axe, which the page has to have, finds in both colour schemes."""
    found = []
    for (width, height), scheme in product(sizes, SCHEMES):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        found += page.evaluate("within => axe.run(within, {resultTypes: ['violations']})", within)["violations"]
    return [json.dumps({**rule, "nodes": [node["html"] for node in rule["nodes"]]}) for rule in found]
