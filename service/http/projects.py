"""GET /v1/development-projects."""

from typing import Any

from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from service.http.answering import Answers, ResolvedRequest
from service.http.area import Operation, Parameter, PartnerArea, explain_no_match, keys_of
from service.http.errors import ApiError
from service.http.query import PageQuery, parse_paged_location
from warehouse.areas import paging, projects
from warehouse.areas.paging import CursorError, Cursors, Page
from warehouse.following import OpenRelease
from warehouse.places.keyset import Match

PATH = "/v1/development-projects"
NAME = projects.PROJECTS_AREA.name
_NOTHING = ("There are no development projects in ZIP code {}", "There are no development projects in {}, {}")


def projects_route(answers: Answers) -> ASGIRouteHandler:
    cursors = answers.cursors

    @asgi(PATH, copy_scope=False)
    async def development_projects(scope: Scope, receive: Receive, send: Send) -> None:
        def ask(release: OpenRelease) -> ResolvedRequest:
            keys = keys_of(release, NAME)
            query, wanted = parse_paged_location(scope["query_string"])
            match = keys.resolve(query.zip_code, query.city_name, query.state_code)
            if not isinstance(match, Match):
                headers = answers.policy.headers(release.id)
                raise ApiError("no_matching_records", explain_no_match(match, *_NOTHING), headers=headers)
            page = _page(match.query, wanted, cursors)
            name = cursors.name(match.query, page)
            return ResolvedRequest(name, lambda: projects.look_up_projects(release.engine, keys, match, page, cursors))

        reply = await answers.answer(NAME, scope, ask)
        await reply(scope, receive, send)

    return development_projects


def _page(query: str, asked: PageQuery, cursors: Cursors) -> Page:
    if asked.cursor is None:
        return Page(asked.limit)
    try:
        return Page(asked.limit, cursors.decode(projects.cursor_scope(query), asked.cursor))
    except CursorError:
        raise ApiError("invalid_cursor", parameter="cursor") from None


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

AREA = PartnerArea(
    name=NAME,
    path=PATH,
    description="Housing development projects, by ZIP code or city, with their status and units.",
    operation=Operation(
        id="getDevelopmentProjects",
        description="A city is what the projects' sources call it, else the postal city of their ZIP codes. Ask for "
        "more with next_cursor, unchanged, beside the same query, until it is null; limit may differ from page to "
        "page. Pages stay right when new data goes live in between.",
        body=projects.ProjectsBody,
        matched="A page of matches, ascending by project_id; total_matching counts all pages.",
        examples={"page": EXAMPLE},
        asked=("94103", "San Francisco", "CA"),
        parameters=(
            Parameter(
                "limit",
                "The most projects in one answer.",
                {"type": "integer", "minimum": 1, "maximum": paging.MAX_PAGE_SIZE, "default": paging.DEFAULT_PAGE_SIZE},
                paging.DEFAULT_PAGE_SIZE,
            ),
            Parameter(
                "cursor",
                "next_cursor of the answer before, for the same query.",
                {"type": "string", "maxLength": paging.MAX_CURSOR_CHARACTERS},
                EXAMPLE["next_cursor"],
            ),
        ),
        errors=("invalid_cursor",),
    ),
    route=projects_route,
)
