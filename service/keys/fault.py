"""What is wrong with the form of a key that somebody presents."""

import re
from urllib.parse import unquote

from config.invisible import as_utf8, invisible_in, visible
from service.keys import form

_MOST_CHARACTERS = 600  # of a key that is percent-encoded, three for each
_MOST_LAYERS = 8  # of what stands around a key
_WORD = re.compile(r"(bearer|basic|token|authorization|x-api-key|api-?key|key)(?:\s*[:=]+\s*|\s+)", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\$\w+|\$?\{+.*\}+|<.*>|%\w+%|your[_ -]?(api[_ -]?)?key([_ -]here)?", re.IGNORECASE)
_LINE_BREAKS = re.compile(r"(?:\\[rn]|[\r\n])+")
_QUOTES = "\"'`´“”„‟‘’‚«»\x91\x92\x93\x94\\"  # in Windows-1252 too, and escaped
_SIGNS = "<>[]{}(),;:= "


def fault_of(presented: str) -> str | None:
    """Says it to its sender; None if nothing is. It has no part of the key."""
    if form.parse(presented) is not None:
        return None
    text = as_utf8(presented[:_MOST_CHARACTERS].strip())
    bare, around = _peeled(text)
    if form.parse(bare) is not None:
        return f"The API key in x-api-key comes with {' and '.join(around)}. Send the key alone."
    if _PLACEHOLDER.fullmatch(text.strip(_QUOTES)):
        return "The header x-api-key holds a placeholder that your program did not replace by the key."
    if form.is_key_id(bare):
        return "This is the id of an API key. The key begins with phf_, and was shown once, when it was issued."
    if bare[:4].lower() == "phf_" != bare[:4]:
        return "The API key is in another letter case than it was issued in. Copy it as it was shown."
    if not bare.startswith("phf_"):
        return "The API key is not one of ours: they begin with phf_live_ or phf_test_."
    if len(bare) != form.LENGTH:
        return f"The API key has {len(bare)} characters instead of {form.LENGTH}. Copy it whole, and nothing else."
    return "The API key is mistyped: its checksum is wrong. Copy it again."


def _peeled(text: str) -> tuple[str, list[str]]:
    """`text` without what stands around a key, or encodes it, and the names of that."""
    names: dict[str, None] = {}
    for _ in range(_MOST_LAYERS):
        hidden, word = invisible_in(text), _WORD.match(text)
        peeled = visible(text)
        if hidden is not None:
            names[hidden] = None
        elif word is not None:
            peeled, names[f'"{word[1].lower()}"'] = text[word.end() :], None
        elif (peeled := _LINE_BREAKS.sub("", text)) != text:
            names["a line break"] = None
        elif (peeled := text.strip(_QUOTES)) != text:
            names["quotation marks"] = None
        elif (peeled := text.strip(_SIGNS)) != text:
            names["other signs"] = None
        elif (peeled := unquote(text)) != text:
            names["percent-encoding"] = None
        else:
            break
        text = peeled.strip(" \t")
    return text, list(names)
