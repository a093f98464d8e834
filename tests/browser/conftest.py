"""One browser for all tests here. Its tests are not coroutines: the browser's driver has an event loop of its own."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from config.browser_libraries import CHARTS, DIAGRAMS, REFERENCE
from tests.browser.double import Double
from tests.support.brought import needs_brought
from tests.support.waiting import PATIENCE

WIDE, PHONE = (1440, 900), (390, 844)
ColorScheme = Literal["light", "dark"]
SCHEMES: tuple[ColorScheme, ...] = ("light", "dark")
# The shell has no windows of its own to draw, and takes a fifth less time.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# CHROMIUM names another one, or one elsewhere.
CHROMIUM = next(filter(None, map(shutil.which, [os.environ.get("CHROMIUM", ""), *_NAMES])), None)
# It runs as root, has no screen, and asks nobody outside for anything.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",  # not one for each tab
)

# A folder for a picture of the page at the end of each test, for people.
_PICTURES = os.environ.get("PICTURES")


class Opened(Protocol):
    """Opens the page at `url` and closes it after the block, which fails if the page reported an error."""

    def __call__(
        self, url: str, size: tuple[int, int] = WIDE, scheme: ColorScheme = "light", errors: bool = False
    ) -> AbstractContextManager[Page]: ...


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on the PATH (Debian: apt-get install chromium-headless-shell)")
    for library in (CHARTS, DIAGRAMS, REFERENCE):
        needs_brought(library)
    with sync_playwright() as driver:
        folder = tmp_path_factory.mktemp("browser")
        running = driver.chromium.launch(executable_path=CHROMIUM, args=_FLAGS, downloads_path=folder)
        yield running
        running.close()


@pytest.fixture(scope="package")
def opened(browser: Browser) -> Opened:
    """Each page is a tab of a window that is there already: another window takes longer than most tests here."""

    @cache
    def window(size: tuple[int, int], scheme: ColorScheme) -> BrowserContext:
        made = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        made.set_default_timeout(PATIENCE * 1000)
        made.new_page()  # closed with its last tab
        return made

    @contextmanager
    def opening(
        url: str, size: tuple[int, int] = WIDE, scheme: ColorScheme = "light", errors: bool = False
    ) -> Iterator[Page]:
        page = window(size, scheme).new_page()
        said: list[str] = []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.goto(url)
        yield page
        if _PICTURES is not None:
            name = re.sub(r"\W+", "-", os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].partition(" ")[0])
            page.screenshot(path=Path(_PICTURES) / f"{name}{size[0]}-{scheme}.png", full_page=True)
        page.close()
        assert errors or said == []

    return opening


@pytest.fixture
def double() -> Iterator[Double]:
    """An instance without a token that is well."""
    running = Double().start()
    yield running
    running.stop()
