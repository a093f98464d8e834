"""Strictness: every 400 names its code, the wrong parameter, and what to do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.text import visible
from service.http.query import LOCATION_PARAMETERS, read_location, read_parameters
from service.request.errors import ApiError

TOO_LONG = "x" * 101

Location = tuple[str | None, str | None, str | None]


def parse_location(query: bytes) -> Location:
    return read_location(*read_parameters(query, LOCATION_PARAMETERS))


def refusal(query: str | bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parse_location(query if isinstance(query, bytes) else query.encode())
    return caught.value


def outcome(query: bytes) -> tuple[Location | None, ApiError | None]:
    try:
        return parse_location(query), None
    except ApiError as error:
        return None, error


@pytest.mark.parametrize(
    ("query", "code", "parameter", "says"),
    [
        ("", "missing_parameter", None, "zip_code"),
        ("zip_code=", "missing_parameter", None, "zip_code"),
        ("zip_code=+%20", "missing_parameter", None, "zip_code"),
        ("city_name=Dickinson", "missing_parameter", "state_code", "state_code=AL"),
        ("city_name=Dickinson&zip_code=36436", "missing_parameter", "state_code", "state_code=AL"),
        ("state_code=AL", "missing_parameter", "city_name", "city_name"),
        ("zip_code=501", "invalid_parameter", "zip_code", "five digits"),
        ("zip_code=364361", "invalid_parameter", "zip_code", "five digits"),
        ("zip_code=36436-12", "invalid_parameter", "zip_code", "five digits"),
        ("zip_code=36436&state_code=A", "invalid_parameter", "state_code", "two letters"),
        ("zip_code=36436&state_code=%C3%A9%C3%A9", "invalid_parameter", "state_code", "two letters"),
        ("zip_code=36436&zip_code=36436", "duplicate_parameter", "zip_code", "twice"),
        ("city_name=a&city%5Fname=b", "duplicate_parameter", "city_name", "twice"),
        ("zip_code=%FF", "invalid_parameter", "zip_code", "UTF-8"),
        ("city_name=a%00&state_code=AL", "invalid_parameter", "city_name", "control"),
        ("city_name=a%C2%85b&state_code=AL", "invalid_parameter", "city_name", "control"),
        (f"city_name={TOO_LONG}&state_code=AL", "invalid_parameter", "city_name", "100"),
    ],
)
def test_what_is_not_safe_to_guess_is_a_400(query: str, code: str, parameter: str | None, says: str) -> None:
    error = refusal(query)
    assert (error.code, error.parameter) == (code, parameter)
    assert says in (error.detail or "zip_code, or city_name and state_code")


def test_a_hint_shows_nothing_unprintable() -> None:
    """It is the caller's text, and may end up on a terminal."""
    for query in ("zip%1B%0Acode=1", "city_name=x&state_code=%1B%0A", "zip_code=1&zip%1B_code=phf"):
        detail = refusal(query).detail
        assert detail is None or detail.isprintable()


@pytest.mark.parametrize(
    ("query", "parsed"),
    [
        ("zip_code=36436", ("36436", None, None)),
        ("zip_code=00501-0001", ("00501", None, None)),
        ("zip_code=+36436+", ("36436", None, None)),
        ("zip_code=%C2%A036436", ("36436", None, None)),
        ("zip%5Fcode=36436&city_name=&state_code=", ("36436", None, None)),
        ("city_name=Los+Angeles&state_code=ca", (None, "Los Angeles", "CA")),
        ("city_name=%20Los%20Angeles%20&state_code=+cA", (None, "Los Angeles", "CA")),
        ("x=1&zip_code=36436&x=2&y", ("36436", None, None)),
        (f"zip_code=36436&x={TOO_LONG}", ("36436", None, None)),
        (f"city_name={'x' * 100}&state_code=AL", (None, "x" * 100, "AL")),
        ("city_name=a%26b%3Dc&state_code=ZZ", (None, "a&b=c", "ZZ")),
    ],
)
def test_what_is_safe_is_forgiven(query: str, parsed: Location) -> None:
    assert parse_location(query.encode()) == parsed


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(query: bytes) -> None:
    parsed, error = outcome(query)
    if error is not None:
        assert error.code in ("missing_parameter", "invalid_parameter", "duplicate_parameter")
    if parsed is not None:
        zip_code, city_name, state_code = parsed
        assert zip_code or (city_name and state_code)


@given(st.text(min_size=1, max_size=100).filter(lambda text: text.strip() == text))
def test_any_text_survives_encoding_or_is_refused(text: str) -> None:
    """Percent-encoding is undone exactly once. Invisible characters are left out."""
    query = "city_name=" + "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass")) + "&state_code=AL"
    parsed, error = outcome(query.encode())
    if error is not None:
        assert error.parameter == "city_name"
    if parsed is not None:
        assert parsed[1] == visible(text).strip()
