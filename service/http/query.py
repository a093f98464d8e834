"""The query parameters that every data area shares, read from the raw query string.

Frameworks take the last of two values and replace bytes that are not UTF-8; contract 5 refuses both.
"""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from urllib.parse import unquote_to_bytes

import msgspec

from service.http.errors import ApiError
from warehouse.areas import paging

LOCATION_PARAMETERS = ("zip_code", "city_name", "state_code")
PAGED_PARAMETERS = (*LOCATION_PARAMETERS, "limit", "cursor")
_MOST_CHARACTERS = 100
# Low enough that `zip` is told from nonsense; comparing costs time, so only the first names are.
_SIMILARITY = 0.5
_MOST_COMPARED = 10
_ZIP = re.compile(r"([0-9]{5})(?:-[0-9]{4})?")
_STATE = re.compile(r"[A-Za-z]{2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class PageQuery(msgspec.Struct, frozen=True):
    """`cursor` is not decoded: it is bound to what the location turns out to match."""

    limit: int
    cursor: str | None


class LocationQuery(msgspec.Struct, frozen=True):
    """A valid query: `zip_code`, or `city_name` and `state_code`, or both; state in upper case."""

    zip_code: str | None
    city_name: str | None
    state_code: str | None


def parse_location(query: bytes) -> LocationQuery:
    """Raises ApiError (400), naming the parameter, for whatever contracts 2, 3 and 5 do not accept."""
    return _location(*read_parameters(query, LOCATION_PARAMETERS))


def parse_paged_location(query: bytes) -> tuple[LocationQuery, PageQuery]:
    """As `parse_location`, with `limit` and `cursor`."""
    values, unknown = read_parameters(query, PAGED_PARAMETERS)
    page = PageQuery(read_limit(values.get("limit")), values.get("cursor"))
    return _location(values, unknown), page


def _location(values: dict[str, str], unknown: list[str]) -> LocationQuery:
    zip_code, city_name, state_code = (values.get(name) for name in LOCATION_PARAMETERS)
    if zip_code is None and city_name is None and state_code is None:
        raise ApiError("missing_parameter", _hint(unknown))
    if city_name is not None and state_code is None:
        raise ApiError("missing_parameter", "city_name needs state_code: add state_code=AL, for example.", "state_code")
    if state_code is not None and city_name is None and zip_code is None:
        raise ApiError(
            "missing_parameter", "state_code alone is too wide: add city_name, or give zip_code.", "city_name"
        )
    return LocationQuery(
        None if zip_code is None else read_zip(zip_code),
        city_name,
        None if state_code is None else read_state(state_code),
    )


def read_parameters(query: bytes, known: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Trimmed, non-empty values of the known parameters by name, and the names of the unknown ones."""
    values: dict[str, str] = {}
    seen: set[str] = set()
    unknown: list[str] = []
    for pair in query.split(b"&"):
        raw_name, _, raw_value = pair.partition(b"=")
        name = unquote_to_bytes(raw_name.replace(b"+", b" ")).decode("utf-8", "replace")
        if name not in known:
            if name:
                unknown.append(name)
            continue
        if name in seen:
            raise ApiError("duplicate_parameter", f"{name} was given twice. Give it once.", name)
        seen.add(name)
        value = read_value(name, raw_value)
        if value:
            values[name] = value
    return values, unknown


def read_value(name: str, raw: bytes) -> str:
    """A parameter's decoded, trimmed value. Raises ApiError (400)."""
    try:
        text = unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        detail = f"{name} is not valid UTF-8. Percent-encode it as UTF-8."
        raise ApiError("invalid_parameter", detail, name) from None
    if _CONTROL.search(text):
        raise ApiError("invalid_parameter", f"{name} contains control characters. Remove them.", name)
    text = text.strip()
    if name == "cursor":  # ours to judge, however long
        return text
    if len(text) > _MOST_CHARACTERS:
        raise ApiError("invalid_parameter", f"{name} is longer than {_MOST_CHARACTERS} characters.", name)
    return text


def read_limit(text: str | None) -> int:
    """The size of a page. Raises ApiError (400)."""
    if text is None:
        return paging.DEFAULT_PAGE_SIZE
    if text.isascii() and text.isdigit() and 1 <= int(text) <= paging.MAX_PAGE_SIZE:
        return int(text)
    raise ApiError(
        "invalid_parameter",
        f"limit is not a whole number from 1 to {paging.MAX_PAGE_SIZE}. "
        f"Without it, a page has {paging.DEFAULT_PAGE_SIZE}.",
        "limit",
    )


def read_zip(text: str) -> str:
    """The five digits of a ZIP code. Raises ApiError (400)."""
    match = _ZIP.fullmatch(text)
    if match:
        return match[1]
    short = text.isascii() and text.isdigit() and len(text) < 5
    advice = f"Did you mean {text.zfill(5)}?" if short else "Give five digits, leading zeros included, like 36436."
    raise ApiError("invalid_parameter", f"zip_code is not a five-digit ZIP code. {advice}", "zip_code")


def read_state(text: str) -> str:
    """A state in upper case. Raises ApiError (400)."""
    if _STATE.fullmatch(text):
        return text.upper()
    raise ApiError("invalid_parameter", "state_code is not two letters. Give one like AL.", "state_code")


def _hint(unknown: list[str]) -> str | None:
    for name in unknown[:_MOST_COMPARED]:
        close = get_close_matches(name[:50].lower(), LOCATION_PARAMETERS, n=1, cutoff=_SIMILARITY)
        if close:
            shown = "".join(character for character in name[:50] if character.isprintable())
            return (
                f"There is no parameter {shown}: did you mean {close[0]}? Give zip_code, or city_name and state_code."
            )
    return None


def read_repeated(query: bytes, name: str) -> tuple[list[bytes], list[str]]:
    """Every raw value of the parameter `name`, in order, and the names of the other parameters."""
    values: list[bytes] = []
    unknown: list[str] = []
    for pair in query.split(b"&"):
        raw_name, _, raw_value = pair.partition(b"=")
        given = unquote_to_bytes(raw_name.replace(b"+", b" ")).decode("utf-8", "replace")
        if given == name:
            values.append(raw_value)
        elif given:
            unknown.append(given)
    return values, unknown


def read_strictly(query: bytes, known: Sequence[str]) -> dict[str, str]:
    """As `read_parameters`, for endpoints on which an unknown parameter is an error. Raises ApiError (400)."""
    values, unknown = read_parameters(query, known)
    refuse_unknown(unknown, known)
    return values


def refuse_unknown(unknown: Sequence[str], known: Sequence[str]) -> None:
    """Raises ApiError (400) for the first name, with the nearest of the `known` ones."""
    if not unknown:
        return
    shown = "".join(character for character in unknown[0][:50] if character.isprintable())
    close = get_close_matches(shown.lower(), known, n=1, cutoff=_SIMILARITY)
    names = f"Known here: {', '.join(known)}." if known else "This path takes none."
    meant = f"Did you mean {close[0]}?" if close else names
    raise ApiError("unknown_parameter", f"There is no parameter {shown}. {meant}", shown or None)
