"""Explains errors in the form of an API key."""

import re
from urllib.parse import unquote

from config.text import as_utf8, invisible_in, visible
from service.keys import form

_MOST_CHARACTERS = 400  # of a key that is percent-encoded, three for each
_MOST_LAYERS = 4  # of encoding around a key
_BEFORE = re.compile(r"\b(bearer|basic|token|authorization|x-api-key|api[-_]?key|key)\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\$\w+|\$?\{+.*\}+|<.*>|%\w+%|your[_ -]?(api[_ -]?)?key([_ -]here)?", re.IGNORECASE)
_LINE_BREAKS = re.compile(r"(?:\\[rn]|[\r\n])+")
_QUOTES = "\"'`´“”„‟‘’‚«»\x91\x92\x93\x94"  # in Windows-1252 too
_AROUND = f"{_QUOTES}\\<>[]{{}}(),;:= "


def hint_for_malformed_key(presented: str) -> str | None:
    """Returns a hint for its sender; None if the form is valid. The hint has no part of the key."""
    if form.parse(presented) is not None:
        return None
    sent = as_utf8(presented[:_MOST_CHARACTERS].strip(" \t"))
    text, beside = _decoded(sent)
    before, key, behind = form.split(text)
    if key:
        beside += _named(f"{before} {behind}")
        return f"The API key in x-api-key comes with {', '.join(beside)}. Send the key alone."
    if _PLACEHOLDER.fullmatch(sent.strip(_QUOTES)):
        return "The header x-api-key holds a placeholder that your program did not replace by the key."
    bare = text.strip(_AROUND)
    if form.is_key_id(bare):
        return "This is the id of an API key. The key begins with phf_, and was shown once, when it was issued."
    if bare[:4].lower() == "phf_" != bare[:4]:
        return "The API key is in another letter case than it was issued in. Copy it as it was shown."
    if form.parse("".join(bare.split())) is not None:
        return "The API key has spaces in it. Copy it whole, and nothing else."
    start = bare.find("phf_")
    if start < 0:
        return "The API key is not one of ours: they begin with phf_live_ or phf_test_."
    length = len(bare) - start
    if length != form.LENGTH:
        return f"The API key has {length} characters instead of {form.LENGTH}. Copy it whole, and nothing else."
    return "The API key is mistyped: its checksum is wrong. Copy it again."


def _decoded(text: str) -> tuple[str, list[str]]:
    """Returns `text` without what encodes a key or hides in it, and the names of that."""
    names: dict[str, None] = {}
    for _ in range(_MOST_LAYERS):
        layers = {
            invisible_in(text) or "": visible(text),
            "a line break": _LINE_BREAKS.sub("", text),
            "percent-encoding": unquote(text),
        }
        name = next((name for name, decoded in layers.items() if decoded != text), None)
        if name is None:
            break
        text, names[name] = layers[name], None
    return text, list(names)


def _named(around: str) -> list[str]:
    """Returns the names of the characters around a key."""
    words = dict.fromkeys(word.lower() for word in _BEFORE.findall(around))
    found = [f'"{word}"' for word in words]
    if any(sign in around for sign in _QUOTES):
        found.append("quotation marks")
    if form.split(around)[1]:
        found.append("another key")
    elif not found or any(map(str.isalnum, _BEFORE.sub("", around))):
        found += ["other text"] if around.strip() else []
    return found
