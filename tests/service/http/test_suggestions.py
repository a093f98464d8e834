"""What a wrong parameter was probably meant to be: the right one is named, and its value is one that works."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.http import suggestions
from service.http.query import LOCATION_PARAMETERS as PLACE
from tests.support.served import FORECAST

BATCH = ("zip_code",)
COUNTY = ("county_fips_code", "limit", "cursor")
BOTH = f"Send zip_code=36436, or all to {FORECAST}/batch?zip_code=36436&zip_code=10009"
SALEM = "did you mean city_name=Salem&state_code=OR?"


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
    assert suggestions.nearest_parameter(name, PLACE) == parameter


@pytest.mark.parametrize(
    ("unknown", "known", "said"),
    [
        ([("zip", "2139")], PLACE, "There is no parameter zip: did you mean zip_code=02139?"),
        ([("city", "Salem"), ("state", "Oregon")], PLACE, f"There are no parameters city, state: {SALEM}"),
        ([("q", "Salem, OR")], PLACE, f"There is no parameter q: {SALEM}"),
        ([("zip_codes", "36436,10009")], BATCH, f"There is no parameter zip_codes. {BOTH}"),
        ([("zip_code[]", "36436"), ("zip_code[]", "10009")], PLACE, f"There is no parameter zip_code[]. {BOTH}"),
        ([("page", "2")], COUNTY, "There is no parameter page: did you mean cursor?"),
        ([("county_name", "Baldwin")], COUNTY, "There is no parameter county_name: did you mean county_fips_code?"),
        ([("filter", "x")], COUNTY, None),
        ([], PLACE, None),
    ],
)
def test_unknown_parameters_get_a_hint(
    unknown: list[tuple[str, str]], known: tuple[str, ...], said: str | None
) -> None:
    assert suggestions.suggest_parameters(unknown, known) == said


@pytest.mark.parametrize("name", ["api_key", "X-API-Key", "token", "q"])
def test_a_key_in_the_address_is_named_and_not_repeated(name: str) -> None:
    said = suggestions.suggest_parameters([("zip", "1"), (name, "phf_live_" + "a" * 40)], PLACE)
    assert said is not None
    assert "header x-api-key" in said
    assert "phf_" not in said


@pytest.mark.parametrize(
    ("state_code", "unknown", "said"),
    [
        ("al", [], f"All of a state: {FORECAST}/by-state?state_code=AL"),
        ("Alabama", [], f"All of a state: {FORECAST}/by-state?state_code=AL"),
        ("nowhere", [], None),
        (None, [("county_fips_code", "01025")], f"All of a county: {FORECAST}/by-county?county_fips_code=01025"),
        (
            None,
            [("county", "Baldwin")],
            f"All of a county: {FORECAST}/by-county, with its five digits, which every answer names.",
        ),
        (None, [("format", "csv")], None),
    ],
)
def test_a_region_gets_its_endpoint(state_code: str | None, unknown: list[tuple[str, str]], said: str | None) -> None:
    assert suggestions.suggest_region(state_code, unknown) == said


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("02139,02140", "zip_code=02139, or for several"),
        ("02139 4307", "Did you mean 02139?"),
        ("02139?limit=3", "zip_code=02139&..."),
        ("None", "a variable of your program"),
        ("{zip}", "a placeholder"),
        ("021*", "Parts of ZIP codes are not searched for"),
        ("K1A 0B1", "Canadian"),
        ("Boston, MA", "city_name=Boston&state_code=MA"),
        ("Boston", "city_name=Boston with state_code"),
        ("1600 Pennsylvania Ave NW Washington DC", "If it is an address, send its ZIP code"),
        ("350 Fifth Ave, New York, NY", "city_name=New+York&state_code=NY"),
        ("12", "Give five digits"),
        ("612", "Did you mean 00612?"),
        ("Beverly Hills, CA 90210", "Did you mean 90210?"),
        ("12345 Main St, Beverly Hills, CA 90210-1234", "Did you mean 90210?"),
        ("90210\n10001", "forecasts at /v1/population-housing-forecast/batch"),
        ("7-77-777-7", "Give five digits"),
    ],
)
def test_a_zip_code_that_is_none_gets_advice(text: str, advice: str) -> None:
    assert advice in suggestions.suggest_zip(text)


@pytest.mark.parametrize(
    ("text", "city_name", "advice"),
    [
        ("California", "Salem", "Did you mean CA (California)?"),
        ("Kalifornia", "Salem", "Did you mean CA (California)?"),
        ("06", None, "Did you mean CA (California)?"),
        ("Chicago", "IL", "city_name=Chicago&state_code=IL"),
        ("Salem, OR", None, "city_name=Salem&state_code=OR"),
        ("CA?x=1", None, "Put & between parameters."),
        ("undefined", None, "a variable of your program"),
        ("ZZZ", None, "Give one like AL."),
    ],
)
def test_a_state_that_is_none_gets_advice(text: str, city_name: str | None, advice: str) -> None:
    assert advice in suggestions.suggest_state(text, city_name)


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
    assert suggestions.echoed("a\x1b\nb" + "c" * 100) == "ab" + "c" * 46


_PIECES = ["CA", "New York", "06", "1", "12345", "-1234", ",", " ", "US", "'", "ö", "２", "&city_name=", ".0", "/"]
_WRITTEN = st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), max_size=9).map("".join)


@given(_WRITTEN)
@example("1 1 '")
def test_nothing_that_is_written_ends_in_an_error(text: str) -> None:
    for correct in (
        *(
            suggestions.zip_in,
            suggestions.suggest_zip,
            suggestions.place_in,
            suggestions.listed_in,
            suggestions.suggest_county,
        ),
        lambda one: suggestions.suggest_day("to", one),
        lambda one: suggestions.suggest_state(one, None),
        lambda one: suggestions.suggest_separator("city_name", one),
    ):
        said = correct(text)
        assert "None" not in str(said) or said is None or "None" in text


def test_only_the_beginning_of_a_text_is_looked_at() -> None:
    """Nothing else bounds the value of a parameter that is not known: a pattern that looks back would take a second."""
    known = ("zip_code", "city_name", "state_code")
    long = "a" * 8_000
    assert suggestions.zip_in(f"{long} 90210") is None
    assert suggestions.place_in(f"{long} 90210") == {}
    assert "90210" not in (suggestions.suggest_parameters([("zip", f"{long} 90210")], known) or "")
