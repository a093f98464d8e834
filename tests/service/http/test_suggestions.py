"""What a wrong parameter was probably meant to be: the right one is named, and its value is one that works."""

from contextlib import suppress
from urllib.parse import urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.http import suggestions
from service.http.area import BatchEndpoint, Endpoint, Resolved, resolve_in
from service.http.areas import AREAS
from service.http.query import LOCATION_PARAMETERS as PLACE
from service.request.errors import ApiError
from service.request.parameters import as_header, echoed, nearest_parameter
from warehouse.areas.paging import Cursors
from warehouse.places.keyset_builder import KeySetBuilder


@pytest.mark.parametrize(
    ("text", "zip_code"),
    [
        ("02139", "02139"),
        ("2139", "02139"),
        ("501", "00501"),
        ("2139.0", "02139"),
        ("9.0210E4", "90210"),
        ("90,210", "90210"),
        ('"02139"', "02139"),
        ("MA 02139", "02139"),
        ("02139-4307", "02139"),
        ("02139 4307", "02139"),
        ("021394307", "02139"),
        ("O2139", "02139"),
        ("02 139", "02139"),
        ("٠٢١٣٩", "02139"),
        ("%2202139%22", "02139"),
        ("Boston", None),
        ("1234567", None),
        ("02139,02140", None),
        ("K1A 0B1", None),
        ("", None),
    ],
)
def test_a_zip_code_is_seen_in_what_people_make_of_it(text: str, zip_code: str | None) -> None:
    assert suggestions.zip_in(text) == zip_code


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("zip", "zip_code"),
        ("postal-code", "zip_code"),
        ("zipcdoe", "zip_code"),
        ("town", "city_name"),
        ("cityName", "city_name"),
        ("st", "state_code"),
        ("colour", None),
        ("x", None),
    ],
)
def test_a_parameter_is_known_by_its_other_names(name: str, parameter: str | None) -> None:
    assert nearest_parameter(name, PLACE) == parameter


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("01/31/2024", "Did you mean 2024-01-31?"),
        ("1-5-2024", "Did you mean 2024-01-05 or 2024-05-01?"),
        ("2024/01/31", "Did you mean 2024-01-31?"),
        ("20240131", "Did you mean 2024-01-31?"),
        ("2024-1-5", "Did you mean 2024-01-05?"),
        ("2024-01-31T00:00:00Z", "Did you mean 2024-01-31?"),
        ("31/01/2024", "Did you mean 2024-01-31?"),
        ("2026-11", "Did you mean 2026-11-01?"),
        ("202611", "Did you mean 2026-11-01?"),
        ("2026-111", "Give one like 2026-11-01."),
        ("2024-02-30", "Give one like 2026-11-01."),
        ("yesterday", "Give one like 2026-11-01."),
    ],
)
def test_a_day_written_otherwise_is_put_right(text: str, advice: str) -> None:
    assert suggestions.suggest_day("from", text) == advice


def test_a_month_where_a_period_ends_is_its_last_day() -> None:
    for name in ("to", "status_date_to"):
        assert suggestions.suggest_day(name, "2024-02") == "Did you mean 2024-02-29?"


def test_what_is_shown_of_a_text_is_short_and_printable() -> None:
    assert echoed("a\x1b\nb" + "c" * 100) == "ab" + "c" * 46


def test_names_in_a_header_are_few_and_harmless() -> None:
    assert as_header(["zip", "page", "zip"]) == b"zip, page"
    assert as_header(["a\r\nb: c", "ü", "phf_live_" + "a" * 40]) == b"ab%3A%20c, %C3%BC, phf_live_********"
    assert len(as_header([f"{number}" + "ü" * 100 for number in range(100)]).split(b", ")) == 10


_PIECES = ["CA", "New York", "06", "1", "12345", "-1234", ",", " ", "US", "'", "ö", "２", "&city_name=", ".0", "/"]
_WRITTEN = st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), max_size=9).map("".join)
_NAMES = st.sampled_from(["zip_code", "city_name", "state_code", "county", "q", "page", "zip", "x"])


@given(st.lists(st.tuples(_NAMES, _WRITTEN), max_size=4), st.sampled_from(AREAS[0].endpoints + AREAS[1].endpoints))
@example([("zip_code", "1 1 '")], AREAS[0].endpoints[0])
def test_nothing_that_is_written_ends_in_an_error(pairs: list[tuple[str, str]], endpoint: Endpoint) -> None:
    area = next(area for area in AREAS if endpoint in area.endpoints)
    builder = KeySetBuilder()
    builder.add("12345", "New York, NY", "NY", has_figures=True, county="36061")
    query = urlencode(pairs, errors="surrogatepass").encode()
    if not isinstance(endpoint.resolve, BatchEndpoint):
        with suppress(ApiError):
            assert isinstance(resolve_in(area, endpoint, builder.build(), query, Cursors(b"")), Resolved)


def test_only_the_beginning_of_a_text_is_looked_at() -> None:
    """Nothing else bounds the value of a parameter that is not known: a pattern that looks back would take a second."""
    long = "a" * 8_000
    assert suggestions.zip_in(f"{long} 90210") is None
    assert suggestions.zips_in(f"{long} 90210") == []
    assert suggestions.city_in(f"{long} CA") is None
    assert suggestions.unset_in("zip_code", "{" * 8_000) is None
