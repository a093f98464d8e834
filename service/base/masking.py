"""Masks keys wherever text is shown or logged: somebody may paste one by mistake."""

import re

KEY_PREFIX = "phf_live"
_LIKE_ONE = re.compile(f"{KEY_PREFIX}_[0-9A-Za-z_]+")
_MASKED = f"{KEY_PREFIX}_********"


def masked(text: str) -> str:
    """`text` without anything that looks like a key or a part of one."""
    return _LIKE_ONE.sub(_MASKED, text)
