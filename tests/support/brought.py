"""Browser libraries that npm brings when the service is installed (config/browser_libraries.py)."""

import pytest

from config.browser_libraries import NpmPackage
from tests.support.markdown import ROOT


def needs_brought(package: NpmPackage) -> None:
    """Skips the test where the library is not installed; the pages do without it."""
    if not (ROOT / package.place).is_dir():
        name = package.name.partition("@")[0]
        pytest.skip(f"{name} is not installed: without npm, setup does not bring it in (Debian: apt-get install npm)")
