"""Suggests how to correct a request that the pipeline refuses: where its key is, and the likely path.

Each text is cut to a length first, so that a hint costs the same for any request.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

from rapidfuzz import process
from rapidfuzz.distance import Indel

from service.base.masking import has_key, is_key_name
from service.request.parameters import as_query, nearest_parameter
from warehouse.places.similar import nearest

NO_TARGET = "The address must begin with a slash, as in GET /v1/."
# By the start of the parser's error. If no version follows the address, the address usually has a space.
_PARSER_ERRORS = {
    "Expected HTTP/": "The address has a space in it. Percent-encode it: %20, or + in the query.",
    "Invalid char in url": "The address has a character in it that must be percent-encoded, as UTF-8: %C3%BC for ü.",
    "(Request has i|I)nvalid `Transfer-Encoding`": "Transfer-Encoding has to be chunked, once, at its end. Send the "
    "GET without a body.",
    "(Missing expected (LF|CR)|Unexpected whitespace) after header value|Invalid header value char": "A header has a "
    "line break or a control character in its value, often at the end of an API key. Remove it.",
    "Invalid header token": "A header's name has a character in it that names cannot have, perhaps an invisible one.",
    "Unexpected (start char in url|char in url schema)": NO_TARGET,
}
# The first byte of connections in other protocols, or the first that is not a method's, because a network may cut
# anywhere. Version 2 of PROXY begins with empty lines, which are skipped.
_OTHER_PROTOCOLS = {
    rb"PROXY [TU]": "The PROXY protocol (version 1) arrived, which is not supported. Turn it off at "
    "the balancer: send-proxy in HAProxy, proxy_protocol in nginx, ProxyProtocol in an AWS Classic Load Balancer.",
    rb"\0": "The PROXY protocol (version 2) arrived, which is not supported. Turn it off at the balancer: "
    "send-proxy-v2 in HAProxy, proxy_protocol_v2.enabled in an AWS target group, proxy_protocol in an Envoy cluster.",
    rb"[\x15\x16]": "TLS arrived, but this port speaks plain HTTP. Use http:// here, or end TLS at the balancer: no "
    "ssl on a HAProxy server, http:// in proxy_pass of nginx, protocol HTTP of an AWS target group.",
    rb"PRI \*": "HTTP/2 arrived, but this port speaks HTTP/1.1. Use that in the client, or at the balancer: no "
    "proto h2 on a HAProxy server, no http2_protocol_options in an Envoy cluster, HTTP1 in an AWS target group.",
}

_MOST_CHARACTERS = 200
_MOST_QUERY = 2_000
_MOST_TYPOS = 3
_ALIKE = 0.75  # share of the letters that two longer paths have in common, in the same order
_SHORTEST_PART = 5  # characters that paths must share, to exclude chance
_NAMES = ("zip_code", "city_name", "state_code", "county_fips_code")
_PARTS = re.compile(r"[/?&;=:]")
_WORDS = re.compile(r"[^A-Za-z0-9]+")
_VALUE = re.compile(r"[0-9]{5}(?:-[0-9]{4})?|[A-Za-z]{2}")
_IN_HEADER = "Send it in the header x-api-key."
# Versions and prefixes that people put before a path.
_PREFIX = re.compile(r"^(api|rest|v[0-9]+)+")


def hint_for_missing_key(headers: Iterable[tuple[bytes, bytes]], query: bytes) -> str | None:
    """Returns where the key of a request without one is; None if it is nowhere. `headers` are lower-case."""
    for name, value in headers:
        if name == b"x-api-key":
            return "The header x-api-key is empty: a variable of your program is probably not set."
        if name == b"authorization":
            return f"The Authorization header is ignored. {_IN_HEADER}"
        text = name.decode("latin-1")[:_MOST_CHARACTERS]
        if value and (is_key_name(text) or has_key(_text(value))):
            return f"A key in {text} is ignored. {_IN_HEADER}"
    pairs = parse_qsl(query[:_MOST_QUERY].decode("latin-1"), keep_blank_values=True)
    if any(is_key_name(name) or has_key(value) for name, value in pairs):
        return f"A key in the address is ignored, and logs keep it. {_IN_HEADER} Ask for a new key."
    return None


_INACTIVE = {
    "expired": "The API key expired on {since}. Ask for a new one.",
    "revoked": "The API key was revoked on {since}. Ask for a new one.",
    "suspended": "The API key was suspended on {since}. Ask us to resume it; you keep the key.",
    "pending": "The API key is valid from {since}. Wait until then.",
}


def hint_for_inactive_key(reason: str, since: datetime | None) -> str | None:
    """Returns what to do about such a key, and since or until when it is inactive."""
    return None if since is None else _INACTIVE[reason].format(since=f"{since:%Y-%m-%d} at {since:%H:%M} UTC")


@lru_cache(maxsize=256)
def nearest_path(path: str, known: tuple[str, ...]) -> tuple[str, str] | None:
    """Returns the one of the `known` paths most like `path`, and the query that its rest stands for."""
    parts = [part for part in _PARTS.split(unquote(path[:_MOST_CHARACTERS])) if part]
    by_folded = {text: one for one in known if (text := _folded(one))}
    for length in range(len(parts), 0, -1):
        folded, last = _folded("/".join(parts[:length])), parts[length - 1]
        near = by_folded.get(nearest(folded, by_folded, min(_MOST_TYPOS, len(folded) // 3, (len(last) + 1) // 3)) or "")
        words = _WORDS.split(last)
        alike = (
            one for one in known if len(words) > 1 and all(f"-{word}" in f"-{one.rpartition('/')[2]}" for word in words)
        )
        near = near or next(alike, None) or _within(folded, by_folded, is_file=length == len(parts) and "." in last)
        if near is not None:
            return near, _query_in(parts[length:], near)
    folded = _folded(path)
    shorter = [text for text in sorted(by_folded, key=len) if text in folded and len(folded) >= _SHORTEST_PART]
    return (by_folded[shorter[-1]], "") if shorter else None


def _within(folded: str, known: Mapping[str, str], *, is_file: bool) -> str | None:
    """Returns the known path that has most letters of a file in common, or that `folded` is a part of."""
    if is_file:
        alike = process.extractOne(folded, list(known), scorer=Indel.normalized_similarity, score_cutoff=_ALIKE)
        return known[alike[0]] if alike is not None else None
    stem = folded.removesuffix("s")
    longer = (known[text] for text in sorted(known) if stem in text and len(folded) >= _SHORTEST_PART)
    return next(longer, None)


def _query_in(parts: Sequence[str], path: str) -> str:
    """Returns the query that the rest of a path stands for: names and values, or a value alone."""
    parameters: dict[str, str] = {}
    name = None
    for text in parts:
        parameter = nearest_parameter(text, _NAMES)
        if name is not None:
            parameters[name], name = text, None
        elif parameter is not None:
            name = parameter
        elif _VALUE.fullmatch(text):
            digits = "county_fips_code" if path.endswith("/by-county") else "zip_code"
            parameters[digits if text[:1].isdigit() else "state_code"] = text
    return as_query(parameters)


def hint_for_parser_error(text: str) -> str | None:
    """Returns what to do about a request that the parser refused with this error."""
    return next((advice for error, advice in _PARSER_ERRORS.items() if re.match(error, text)), None)


def hint_for_other_protocol(data: bytes) -> str | None:
    """Returns which protocol `data` begins, and which setting of a balancer sends it; None if it may be HTTP/1."""
    return next((advice for begin, advice in _OTHER_PROTOCOLS.items() if re.match(begin, data)), None)


def _folded(path: str) -> str:
    letters = "".join(character for character in path[:_MOST_CHARACTERS].casefold() if character.isalnum())
    return _PREFIX.sub("", letters)


def _text(value: bytes) -> str:
    return value[:_MOST_CHARACTERS].decode("latin-1")
