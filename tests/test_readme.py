"""The README and the settings say the same."""

import re
from pathlib import Path

from config.loading import load
from config.settings import names

README = Path(__file__).parent.parent / "README.md"


def test_every_setting_is_in_the_readme_and_no_other() -> None:
    """The table of settings lists what there is, no more and no less."""
    section = README.read_text().partition("<!-- settings:")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `FORECAST_")]
    documented = {name for row in rows for name in re.findall(r"`FORECAST_([A-Z_]+)`", row)}
    assert documented == {name.upper() for name in names()}


def test_defaults_in_the_readme_are_the_defaults() -> None:
    """A default that is a plain value in the code stands so in the table."""
    text = README.read_text()
    defaults = load({"HOME": "/nowhere"}).settings
    for name in ("cache_ttl", "cache_timeout", "keys_timeout", "lookup_timeout", "max_age", "keep_alive", "drain"):
        assert f"| `FORECAST_{name.upper()}` | `{getattr(defaults, name)}` |" in text
