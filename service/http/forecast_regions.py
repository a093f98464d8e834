"""GET /v1/population-housing-forecast/by-county and /by-state: every ZIP code of a region, in pages."""

import re
from collections.abc import Callable

from service.http.area import Endpoint, Operation, Parameter, Resolved
from service.http.corrections import COUNTY
from service.http.forecast_examples import DICKINSON
from service.http.pages import PageQuery, page_of, page_parameters, read_page
from service.http.query import read_state, read_strictly
from service.request.errors import ApiError
from warehouse.areas import forecast
from warehouse.areas.paging import Cursors
from warehouse.places.keyset import KeySet
from warehouse.places.regions import Region

STATE = "state_code"
_COUNTY = re.compile(r"[0-9]{5}")
_DESCRIPTION = (
    "Every ZIP code {where}, ascending. Ask for more with next_cursor, unchanged, beside the same query, until it is "
    "null; limit may differ from page to page. Pages stay right when new data goes live in between. A page counts as "
    "one request."
)


def resolve_county(keys: KeySet, query_string: bytes, cursors: Cursors) -> Resolved:
    """Resolves a partner's query string. Raises ApiError (400, 404)."""
    code, wanted = _read(query_string, COUNTY, "01025")
    if not _COUNTY.fullmatch(code):
        remedy = "Give two digits for the state and three for the county, like 01025: answers name it county_fips_code."
        raise ApiError("invalid_parameter", f"{COUNTY} is not five digits.", COUNTY, remedy=remedy)
    if not keys.regions.has_counties:
        raise ApiError("not_found", "The current release does not say which county a ZIP code is in.")
    found = keys.regions.county(code)
    if found is not None:
        return _page_of(keys, found, wanted, cursors)
    name = keys.regions.name_of(code)
    problem = f"There are no ZIP codes in a county {code}{f' ({name})' if name else ''}."
    remedy = "Answers name the county_fips_code of their ZIP codes. It begins with the state's digits: 01 is Alabama."
    raise ApiError("no_matching_records", problem, remedy=remedy)


def resolve_state(keys: KeySet, query_string: bytes, cursors: Cursors) -> Resolved:
    """Resolves a partner's query string. Raises ApiError (400, 404)."""
    given, wanted = _read(query_string, STATE, "AL")
    code = read_state(given)
    found = keys.regions.state(code)
    if found is not None:
        return _page_of(keys, found, wanted, cursors)
    problem = f"There are no ZIP codes in a state {code}."
    raise ApiError("no_matching_records", problem, remedy="Give the two letters of one, like AL.")


def _read(query_string: bytes, name: str, example: str) -> tuple[str, PageQuery]:
    known = (name, "limit", "cursor")
    values = read_strictly(query_string, known)
    if name not in values:
        raise ApiError("missing_parameter", f"{name} is missing.", name, remedy=f"Give {name}={example}, for example.")
    return values[name], read_page(values)


def _page_of(keys: KeySet, region: Region, wanted: PageQuery, cursors: Cursors) -> Resolved:
    page = page_of(forecast.cursor_scope(region.query), wanted, cursors)
    shown = forecast.on_page(region, page)
    outcome = "answered" if keys.has_figures(shown) else "answered_empty"
    return Resolved(
        cursors.name(region.query, page),
        shown,
        lambda engine: forecast.look_up_page(engine, region, page, cursors),
        outcome,
    )


def _endpoint(
    path: str,
    what: str,
    operation_id: str,
    resolve: Callable[[KeySet, bytes, Cursors], Resolved],
    parameter: Parameter,
    query: str,
) -> Endpoint:
    example = forecast.ForecastPage(
        total_results=1,
        total_matching=2,
        next_cursor=Cursors(b"example").encode(forecast.cursor_scope(query), "36436"),
        zip_codes=(DICKINSON,),
    )
    return Endpoint(
        path=path,
        description=f"Population and housing of every ZIP code of a {what}, in pages.",
        operation=Operation(
            id=operation_id,
            description=_DESCRIPTION.format(where=f"whose answer names this {parameter.name}"),
            body=forecast.ForecastPage,
            matched="A page of matches, ascending by ZIP code; total_matching counts all pages.",
            examples={"page": example},
            by_location=False,
            parameters=(parameter, *page_parameters("ZIP codes")),
            query_errors=(
                *("missing_parameter", "invalid_parameter", "duplicate_parameter", "unknown_parameter"),
                "no_matching_records",
            ),
            errors=("invalid_cursor",),
        ),
        resolve=resolve,
        query_forms=((parameter.name,),),
    )


BY_COUNTY = _endpoint(
    "/v1/population-housing-forecast/by-county",
    "county",
    "getForecastByCounty",
    resolve_county,
    Parameter(
        COUNTY,
        "Five digits, leading zeros included: two of the state, three of the county.",
        {"type": "string", "pattern": "^[0-9]{5}$"},
        "01025",
        required=True,
    ),
    "county:01025",
)
BY_STATE = _endpoint(
    "/v1/population-housing-forecast/by-state",
    "state",
    "getForecastByState",
    resolve_state,
    Parameter(STATE, "Two letters, in any case.", {"type": "string", "pattern": "^[A-Za-z]{2}$"}, "AL", required=True),
    "state:AL",
)
