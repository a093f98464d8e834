"""GET /v1/development-projects."""

from typing import Any

from service.http.area import QUERY_ERRORS, Endpoint, Operation, PartnerArea, Resolved
from service.http.pages import page_of, page_parameters
from service.http.project_filters import FILTERS, filter_parameters, read_filters
from service.http.query import (
    LOCATION_PARAMETERS,
    PageQuery,
    read_limit,
    read_location,
    read_strictly,
)
from warehouse.areas import projects
from warehouse.areas.paging import Cursors
from warehouse.lookup.engine import Engine
from warehouse.places.keyset import KeySet, Match, NoMatch

PATH = "/v1/development-projects"
NAME = projects.PROJECTS_AREA.name
_PARAMETERS = (*LOCATION_PARAMETERS, *FILTERS, "limit", "cursor")


def resolve(keys: KeySet, query_string: bytes, cursors: Cursors) -> Resolved | NoMatch:
    """What a partner's query string asks for. Raises ApiError (400)."""
    values = read_strictly(query_string, _PARAMETERS)
    filters = read_filters(values, keys.types)
    wanted = PageQuery(read_limit(values.get("limit")), values.get("cursor"))
    query = read_location(values, (), keys.states_with, of_forecast=False)
    match = keys.resolve(query.zip_code, query.city_name, query.state_code)
    if not isinstance(match, Match):
        return match
    asked = filters.of(match.query)
    page = page_of(projects.cursor_scope(asked), wanted, cursors)

    async def look_up(engine: Engine) -> bytes:
        if asked == match.query:
            return await projects.look_up_projects(engine, keys, match, page, cursors)
        return await projects.look_up_filtered_projects(engine, match, filters, page, cursors)

    return Resolved(cursors.name(asked, page), match.keys, look_up, cities=match.cities)


EXAMPLE: dict[str, Any] = {
    "total_results": 1,
    "total_matching": 2,
    "next_cursor": Cursors(b"example").encode(
        projects.cursor_scope("zip:94103+city:CA:sanfrancisco"), "SF-PIPE-2019Q1-00017"
    ),
    "development_projects": [
        {
            "project_id": "SF-PIPE-2019Q1-00017",
            "project_name": "1 MILL ST",
            "project_type": "Mixres",
            "status": "permitted",
            "status_source": "BP ISSUED",
            "status_date": "2018-12-20",
            "start_date": None,
            "completion_date": None,
            "tot_units": 24,
            "affordable_units": None,
            "street_address": "1 MILL ST",
            "location": {
                "zip_code": "94103",
                "county_name": "San Francisco County",
                "county_fips_code": "06075",
                "city": "San Francisco, CA",
                "state_code": "CA",
                "latitude": 37.7725,
                "longitude": -122.4147,
            },
        }
    ],
}

PROJECTS = Endpoint(
    path=PATH,
    description="Housing development projects, by ZIP code or city, with their status and units.",
    operation=Operation(
        id="getDevelopmentProjects",
        description="A city is what the projects' sources call it, else the postal city of their ZIP codes. Ask for "
        "more with next_cursor, unchanged, beside the same query, until it is null; limit may differ from page to "
        "page. Pages stay right when new data goes live in between. A project has to pass every filter; "
        "if none of the place does, the page is empty.",
        body=projects.ProjectsBody,
        matched="A page of matches, ascending by project_id; total_matching counts all pages.",
        examples={"page": EXAMPLE},
        asked=("94103", "San Francisco", "CA"),
        query_errors=(*QUERY_ERRORS, "unknown_parameter"),
        parameters=(*filter_parameters(), *page_parameters("projects")),
        errors=("invalid_cursor",),
    ),
    resolve=resolve,
)

AREA = PartnerArea(
    name=NAME,
    endpoints=(PROJECTS,),
    nothing=("There are no development projects in ZIP code {}", "There are no development projects in {}, {}"),
    coverage="Only some cities have them: GET /v1/ lists which.",
)
