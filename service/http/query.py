"""The query parameters that every data area shares, read from the raw query string.

Frameworks take the last of two values and replace bytes that are not UTF-8; contract 5 refuses both.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from urllib.parse import unquote_to_bytes

from config.text import invisible_in, visible
from service.base.masking import masked
from service.http.corrections import NEXT_PAGE, OF_PLACES, warn_of_key
from service.http.suggestions import encoded_in, suggest_day, unset_in
from service.request.errors import CODES, ApiError
from service.request.parameters import MOST_NAMES, as_query, echoed, nearest_parameter

LOCATION_PARAMETERS = ("zip_code", "city_name", "state_code")
_FREE_TEXT = ("city_name", "project_type")  # matched without invisible characters, or as sources write them
_MOST_CHARACTERS = 100
_ZIP = re.compile(r"([0-9]{5})(?:-[0-9]{4})?")
_STATE = re.compile(r"[A-Za-z]{2}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


# A parameter that an endpoint does not know, with its value.
UnknownParameter = tuple[str, str]


def read_location(
    values: Mapping[str, str], unknown: Sequence[UnknownParameter] = ()
) -> tuple[str | None, str | None, str | None]:
    """Returns ZIP code, city name and state code among a query's values: the first, the others, or all three; the state
    in upper case. Raises ApiError (400), naming the parameter, for queries outside contracts 2, 3 and 5.
    """
    zip_code, city_name, state_code = (values.get(name) for name in LOCATION_PARAMETERS)
    if (city_name is None) != (state_code is None) and (zip_code is None or state_code is None):
        missing, problem, remedy = "city_name", "state_code alone is not enough.", "Add city_name, or give zip_code."
        if state_code is None:
            missing, problem, remedy = "state_code", "city_name needs state_code.", "Add state_code=AL, for example."
        raise ApiError("missing_parameter", _with_misnamed(problem, unknown), missing, remedy=remedy)
    if zip_code is None and city_name is None:
        raise ApiError("missing_parameter", _with_misnamed("", unknown), remedy=CODES["missing_parameter"][1])
    return zip_code and read_zip(zip_code), city_name, state_code and read_state(state_code)


def _with_misnamed(problem: str, unknown: Sequence[UnknownParameter]) -> str:
    misnamed = [pair for pair in unknown[:MOST_NAMES] if nearest_parameter(pair[0], OF_PLACES) is not None]
    return f"{problem} {_name_unknown(misnamed)}".strip() if misnamed else problem


def read_parameters(query: bytes, known: Sequence[str]) -> tuple[dict[str, str], list[UnknownParameter]]:
    """Returns the trimmed, non-empty values of the known parameters by name, and the unknown ones."""
    values: dict[str, str] = {}
    seen: set[str] = set()
    unknown: list[UnknownParameter] = []
    for name, raw_value in _pairs_in(query):
        if name not in known:
            if name:
                unknown.append((name, _decoded(raw_value)))
            continue
        if name in seen:
            raise ApiError("duplicate_parameter", f"{name} was given twice.", name, remedy="Give it once.")
        seen.add(name)
        value = read_value(name, raw_value)
        if value:
            values[name] = value
    return values, unknown


def read_value(name: str, raw: bytes) -> str:
    """Returns a parameter's decoded, trimmed value. Raises ApiError (400)."""
    try:
        text = unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        detail = f"{name} is not valid UTF-8. Percent-encode it as UTF-8."
        raise ApiError("invalid_parameter", detail, name) from None
    if _CONTROL.search(text):
        raise ApiError("invalid_parameter", f"{name} contains control characters.", name, remedy="Remove them.")
    text = (visible(masked(text)) if name == "city_name" else text).strip()
    remedy = unset_in(name, text) if text and name not in (*_FREE_TEXT, "status") else None
    if remedy is not None and not _STATE.fullmatch(text):
        raise ApiError("invalid_cursor" if name == "cursor" else "invalid_parameter", parameter=name, remedy=remedy)
    if name == "cursor":  # checked elsewhere, whatever its length
        return text
    if len(text) > _MOST_CHARACTERS:
        raise ApiError("invalid_parameter", f"{name} is longer than {_MOST_CHARACTERS} characters.", name)
    if name not in _FREE_TEXT and not (text.isascii() and text.isalnum()):
        _refuse_encoded(name, text)
    return text


def _refuse_encoded(name: str, text: str) -> None:
    """Raises ApiError (400) for a value with an invisible character, or one that was encoded once too often."""
    hidden, encoded = invisible_in(text), encoded_in(text)
    if hidden is None and encoded is None:
        return
    corrected = echoed(visible(masked(text if encoded is None else encoded[1])))
    is_place = name in (*LOCATION_PARAMETERS, "county_fips_code")  # whose corrections are checked in the release
    how = f"contains {hidden}" if hidden or encoded is None else encoded[0]
    remedy = "Remove it." if is_place or not corrected else f"Did you mean {as_query({name: corrected})}?"
    raise ApiError("invalid_parameter", f"{name} {how}.", name, remedy=remedy)


def read_day(name: str, text: str) -> date:
    """Reads a day from the parameter `name`. Raises ApiError (400)."""
    try:
        if not _DAY.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise ApiError("invalid_parameter", f"{name} is not a day. {suggest_day(name, text)}", name) from None


def read_zip(text: str) -> str:
    """Returns the five digits of a ZIP code. Raises ApiError (400)."""
    match = _ZIP.fullmatch(text)
    if match:
        return match[1]
    remedy = "Give five digits, leading zeros included, like 36436."
    raise ApiError("invalid_parameter", "zip_code is not a five-digit ZIP code.", "zip_code", remedy=remedy)


def read_state(text: str) -> str:
    """Returns a state in upper case. Raises ApiError (400)."""
    if _STATE.fullmatch(text):
        return text.upper()
    raise ApiError("invalid_parameter", "state_code is not two letters.", "state_code", remedy="Give one like AL.")


def read_repeated(query: bytes, name: str) -> tuple[list[bytes], list[UnknownParameter]]:
    """Returns every raw value of the parameter `name`, in order, and the other parameters."""
    pairs = list(_pairs_in(query))
    unknown = [(given, _decoded(raw)) for given, raw in pairs if given not in ("", name)]
    return [raw for given, raw in pairs if given == name], unknown


def read_strictly(query: bytes, known: Sequence[str]) -> dict[str, str]:
    """Reads like `read_parameters`, for endpoints on which an unknown parameter is an error. Raises ApiError (400)."""
    values, unknown = read_parameters(query, known)
    refuse_unknown(unknown, known)
    return values


def refuse_unknown(unknown: Sequence[UnknownParameter], known: Sequence[str], likely: str = "") -> None:
    """Raises ApiError (400) if there are any, with the `likely` correction, or that of the first name."""
    if not unknown:
        return
    near = next((one for name, _ in unknown[:MOST_NAMES] if (one := nearest_parameter(name, known)) is not None), None)
    usual = f"Known here: {', '.join(known)}." if known else "This endpoint takes none."
    nearest = NEXT_PAGE if near == "cursor" else f"Did you mean {near}?" if near is not None else usual
    remedy = warn_of_key(unknown) or likely or nearest
    shown = echoed(unknown[0][0])
    raise ApiError("unknown_parameter", _name_unknown(unknown), shown or None, remedy=remedy)


def _name_unknown(unknown: Sequence[UnknownParameter]) -> str:
    for name, _ in unknown[:MOST_NAMES]:
        if invisible_in(name) or not name.isprintable():
            return f"A parameter's name contains {invisible_in(name) or 'an unprintable character'}."
    names = list(dict.fromkeys(echoed(name) for name, _ in unknown[:MOST_NAMES]))
    return f"There is no parameter {names[0]}." if len(names) == 1 else f"There are no parameters {', '.join(names)}."


def _decoded(raw: bytes) -> str:
    return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8", "replace")


def _pairs_in(query: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields decoded names and raw values."""
    for pair in query.split(b"&"):
        name, _, value = pair.partition(b"=")
        yield _decoded(name), value
