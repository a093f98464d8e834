"""The query parameters that every data area shares, read from the raw query string.

Frameworks take the last of two values and replace bytes that are not UTF-8; contract 5 refuses both.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date
from urllib.parse import unquote_to_bytes

import msgspec

from config.text import invisible_in, visible
from service.base.masking import masked
from service.http import suggestions
from service.http.encodings import encoded_in
from service.request.errors import ApiError

LOCATION_PARAMETERS = ("zip_code", "city_name", "state_code")
_FREE_TEXT = ("city_name", "project_type")  # matched without invisible characters, or as sources write them
_MOST_CHARACTERS = 100
_ZIP = re.compile(r"([0-9]{5})(?:-[0-9]{4})?")
_STATE = re.compile(r"[A-Za-z]{2}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class LocationQuery(msgspec.Struct, frozen=True):
    """A valid query: `zip_code`, or `city_name` and `state_code`, or both; state in upper case."""

    zip_code: str | None
    city_name: str | None
    state_code: str | None


# A parameter that an endpoint does not know, with its value.
UnknownParameter = tuple[str, str]
# Returns the states that have a city of a name.
StatesWith = Callable[[str], Sequence[str]]


def parse_location(query: bytes, states_with: StatesWith) -> LocationQuery:
    """Parses a location. Raises ApiError (400), naming the parameter, for queries outside contracts 2, 3 and 5."""
    values, unknown = read_parameters(query, LOCATION_PARAMETERS)
    return read_location(values, unknown, states_with)


def read_location(
    values: dict[str, str], unknown: Sequence[UnknownParameter], states_with: StatesWith, *, of_forecast: bool = True
) -> LocationQuery:
    """Parses like `parse_location`, from the result of `read_parameters`.

    `of_forecast`: whether forecasts of regions may be named.
    """
    zip_code, city_name, state_code = (values.get(name) for name in LOCATION_PARAMETERS)
    if city_name is not None and state_code is None:
        advice = suggestions.suggest_parameters(unknown, LOCATION_PARAMETERS) or _advice_on_city(city_name, states_with)
        raise ApiError("missing_parameter", f"city_name needs state_code. {advice}", "state_code")
    if zip_code is None and city_name is None:
        raise _no_place(state_code, unknown, of_forecast=of_forecast)
    try:
        return LocationQuery(
            None if zip_code is None else read_zip(zip_code),
            city_name,
            None if state_code is None else read_state(state_code, city_name),
        )
    except ApiError as error:
        warning = suggestions.warn_of_key(unknown)
        if warning is None:
            raise
        raise ApiError(error.code, f"{error.detail} {warning}", error.parameter) from None


def _no_place(state_code: str | None, unknown: Sequence[UnknownParameter], *, of_forecast: bool) -> ApiError:
    needed = "Give zip_code, or city_name and state_code."
    if state_code is not None:
        needed = "state_code alone is not enough. Add city_name, or give zip_code."
    hint = suggestions.suggest_parameters(unknown, LOCATION_PARAMETERS)
    if hint is not None:
        detail = f"{hint} {needed}" if hint.endswith(("?", ".")) else hint
    else:
        region = suggestions.suggest_region(state_code, unknown) if of_forecast else None
        detail = f"{needed} {region or ''}".rstrip()
    return ApiError("missing_parameter", detail, None if state_code is None else "city_name")


def _advice_on_city(city_name: str, states_with: StatesWith) -> str:
    joined = suggestions.suggest_separator("city_name", city_name)
    if joined is not None:
        return joined
    place = suggestions.place_in(city_name)
    if place:
        return f"Did you mean {suggestions.as_query(place)}?"
    states = states_with(city_name)
    if len(states) == 1:
        return f"Did you mean state_code={states[0]}?"
    return f"There is a city of that name in {', '.join(states)}." if states else "Add state_code=AL, for example."


def read_parameters(query: bytes, known: Sequence[str]) -> tuple[dict[str, str], list[UnknownParameter]]:
    """Returns the trimmed, non-empty values of the known parameters by name, and the unknown ones."""
    values: dict[str, str] = {}
    seen: set[str] = set()
    unknown: list[UnknownParameter] = []
    for pair in query.split(b"&"):
        raw_name, _, raw_value = pair.partition(b"=")
        name = _decoded(raw_name)
        if name not in known:
            if name:
                unknown.append((name, _decoded(raw_value)))
            continue
        if name in seen:
            advice = suggestions.SEVERAL if name == "zip_code" else "Give it once."
            raise ApiError("duplicate_parameter", f"{name} was given twice. {advice}", name)
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
        advice = suggestions.suggest_zip(text) if name == "zip_code" else "Remove them."
        raise ApiError("invalid_parameter", f"{name} contains control characters. {advice}", name)
    text = (visible(masked(text)) if name == "city_name" else text).strip()
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
    corrected = suggestions.value_of(name, visible(masked(text if encoded is None else encoded[1])))
    advice = f"Did you mean {suggestions.as_query({name: corrected})}?" if corrected else "Remove it."
    raise ApiError(
        "invalid_parameter",
        f"{name} {f'contains {hidden}' if hidden or encoded is None else encoded[0]}. {advice}",
        name,
    )


def read_day(name: str, text: str) -> date:
    """Reads a day from the parameter `name`. Raises ApiError (400)."""
    try:
        if not _DAY.fullmatch(text):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise ApiError(
            "invalid_parameter", f"{name} is not a day. {suggestions.suggest_day(name, text)}", name
        ) from None


def read_zip(text: str) -> str:
    """Returns the five digits of a ZIP code. Raises ApiError (400)."""
    match = _ZIP.fullmatch(text)
    if match:
        return match[1]
    detail = f"zip_code is not a five-digit ZIP code. {suggestions.suggest_zip(text)}"
    raise ApiError("invalid_parameter", detail, "zip_code")


def read_state(text: str, city_name: str | None = None) -> str:
    """Returns a state in upper case; the query also has `city_name`. Raises ApiError (400)."""
    if _STATE.fullmatch(text):
        return text.upper()
    detail = f"state_code is not two letters. {suggestions.suggest_state(text, city_name)}"
    raise ApiError("invalid_parameter", detail, "state_code")


def read_repeated(query: bytes, name: str) -> tuple[list[bytes], list[UnknownParameter]]:
    """Returns every raw value of the parameter `name`, in order, and the other parameters."""
    values: list[bytes] = []
    unknown: list[UnknownParameter] = []
    for pair in query.split(b"&"):
        raw_name, _, raw_value = pair.partition(b"=")
        given = _decoded(raw_name)
        if given == name:
            values.append(raw_value)
        elif given:
            unknown.append((given, _decoded(raw_value)))
    return values, unknown


def read_strictly(query: bytes, known: Sequence[str]) -> dict[str, str]:
    """Reads like `read_parameters`, for endpoints on which an unknown parameter is an error. Raises ApiError (400)."""
    values, unknown = read_parameters(query, known)
    refuse_unknown(unknown, known)
    return values


def refuse_unknown(unknown: Sequence[UnknownParameter], known: Sequence[str]) -> None:
    """Raises ApiError (400) if there are any, with the likely correction."""
    if not unknown:
        return
    shown = suggestions.echoed(unknown[0][0])
    among = f"Known here: {', '.join(known)}." if known else "This endpoint takes none."
    detail = suggestions.suggest_parameters(unknown, known) or f"There is no parameter {shown}. {among}"
    raise ApiError("unknown_parameter", detail, shown or None)


def _decoded(raw: bytes) -> str:
    return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8", "replace")
