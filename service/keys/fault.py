"""What is wrong with the form of a key that somebody presents."""

import re

from service.keys import form

_MOST_CHARACTERS = 200
_SCHEME = re.compile(r"(bearer|basic|token|api-?key|key)[\s:=]+", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\$\w+|\$?\{+.*\}+|<.*>|%\w+%|your[_ -]?(api[_ -]?)?key([_ -]here)?", re.IGNORECASE)
_QUOTES = "\"'`“”‘’"


def fault_of(presented: str) -> str | None:
    """Says it to its sender; None if nothing is. It has no part of the key."""
    text = presented[:_MOST_CHARACTERS].strip()
    bare = _SCHEME.sub("", text.strip(_QUOTES), count=1).strip(_QUOTES + "<>[]{}(),; ")
    if form.parse(presented) is not None:
        return None
    if form.parse(bare) is not None:
        return "Something stands around the API key. Send the key alone, without quotes or Bearer."
    if _PLACEHOLDER.fullmatch(text.strip(_QUOTES)):
        return "The header x-api-key holds a placeholder that your program did not replace by the key."
    if form.is_key_id(bare):
        return "This is the id of an API key. The key begins with phf_, and was shown once, when it was issued."
    if not bare.startswith("phf_"):
        return "The API key is not one of ours: they begin with phf_live_ or phf_test_."
    if len(bare) != form.LENGTH:
        return f"The API key has {len(bare)} characters instead of {form.LENGTH}. Copy it whole, and nothing else."
    return "The API key is mistyped: its checksum is wrong. Copy it again."
