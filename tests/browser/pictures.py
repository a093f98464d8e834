"""Pictures of pages for docs/: ``python -m tests.browser.pictures`` takes them, with figures made up for tests."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import CHROMIUM
from tests.browser.double import Double
from tests.support.markdown import ROOT
from warehouse.publishing.illustrative import make_drops


def main() -> None:
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        _operators_page(page)
        _report(page, Path(folder))
        browser.close()


def _operators_page(page: Page) -> None:
    double = Double().start()
    page.goto(double.url)
    page.wait_for_selector("canvas")
    page.screenshot(path=ROOT / "docs/operate/page.png")
    double.stop()


def _report(page: Page, folder: Path) -> None:
    report = folder / "report.html"
    make_drops(folder / "drops")
    _forecast(folder, "publish", "drops/first")
    _forecast(folder, "check", "drops/bad", "--html", report)
    page.goto(report.as_uri())
    page.screenshot(path=ROOT / "docs/publish/report.png")


def _forecast(folder: Path, *arguments: str | Path) -> None:
    environment = {**os.environ, "FORECAST_DATA_DIR": str(folder / "data")}
    program = Path(sys.executable).parent / "forecast"
    subprocess.run([program, "extracts", *arguments], cwd=folder, env=environment, check=False)


if __name__ == "__main__":
    main()
