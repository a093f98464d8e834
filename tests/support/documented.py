"""The lines of docs/operate/rights.md, so that the tests run on exactly these."""

import re
from pathlib import Path

_SECURITY = Path(__file__).resolve().parents[2] / "docs/operate/rights.md"


def rights(role: str) -> list[list[str]]:
    """The documented commands for `role`: the Redis of the keys or of the cache, or Sentinels."""
    (block,) = re.findall(rf'^```text title="{role}"\n(.*?)^```', _SECURITY.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [line.split() for line in block.splitlines()]
