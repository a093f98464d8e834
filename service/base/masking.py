"""Masks keys wherever text is shown or logged: somebody may paste one by mistake."""

import re
from urllib.parse import unquote_plus

# Keys begin with one of these.
LIVE_PREFIX, TEST_PREFIX = "phf_live", "phf_test"
_BOTH = "phf_"
_LIKE_ONE = re.compile(f"({LIVE_PREFIX}|{TEST_PREFIX})_[0-9A-Za-z_]+")
_MASKED = r"\1_********"


def masked_query(query: str) -> str:
    """`query`, as it was sent, without any key: if one only shows when it is decoded, the decoded text."""
    decoded = unquote_plus(query, errors="replace")
    return masked(query) if masked(decoded) == decoded else masked(decoded)


def masked(text: str) -> str:
    """`text` without anything that looks like a key or a part of one."""
    return _LIKE_ONE.sub(_MASKED, text) if _BOTH in text else text
