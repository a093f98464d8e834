"""GET /v1/development-projects, and its filters by status, type and dates."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import get_args

from service.http.area import QUERY_ERRORS, Endpoint, Operation, Parameter, PartnerArea, Resolved
from service.http.pages import page_of, page_parameters, read_page
from service.http.query import LOCATION_PARAMETERS, read_day, read_location, read_strictly
from service.request.errors import ApiError
from service.request.parameters import echoed
from warehouse.areas import projects
from warehouse.areas.paging import Cursors
from warehouse.areas.projects import ProjectFilters
from warehouse.lookup.engine import Engine
from warehouse.places.keyset import KeySet
from warehouse.places.match import Match, NoMatch
from warehouse.places.similar import nearest
from warehouse.schema.vocabulary import ProjectStatus

PATH = "/v1/development-projects"
NAME = projects.PROJECTS_AREA.name
_DATES = ("status_date", "start_date", "completion_date")
_STATUSES = sorted(get_args(ProjectStatus))
_MOST_TYPOS = 3
_SHORTEST_PART = 5  # characters that two words must share, to exclude chance
_MOST_SHOWN = 20
_SEPARATORS = str.maketrans(" -", "__")
_DAY = {"type": "string", "format": "date"}


def resolve(keys: KeySet, query_string: bytes, cursors: Cursors) -> Resolved | NoMatch:
    """Resolves a partner's query string. Raises ApiError (400)."""
    values = read_strictly(query_string, _PARAMETERS)
    filters = _read_filters(values, keys.types)
    wanted = read_page(values)
    match = keys.resolve(*read_location(values))
    if not isinstance(match, Match):
        return match
    asked = filters.of(match.query)
    page = page_of(projects.cursor_scope(asked), wanted, cursors)

    async def look_up(engine: Engine) -> bytes:
        if asked == match.query:
            return await projects.look_up_projects(engine, keys, match, page, cursors)
        return await projects.look_up_filtered_projects(engine, match, filters, page, cursors)

    return Resolved(cursors.name(asked, page), match.keys, look_up, cities=match.cities)


def _read_filters(values: Mapping[str, str], types: Sequence[str]) -> ProjectFilters:
    """Reads the filters among a query's values by name. `types` are those of the release. Raises ApiError (400)."""
    status, kind = values.get("status"), values.get("project_type")
    days: dict[str, str] = {}
    for name_of_date in _DATES:
        first, last = f"{name_of_date}_from", f"{name_of_date}_to"
        days |= {name: read_day(name, values[name]).isoformat() for name in (first, last) if name in values}
        if first in days and last in days and days[first] > days[last]:
            raise ApiError("invalid_parameter", f"{first} is after {last}. Exchange them.", first)
    return ProjectFilters(
        status=None if status is None else _read_word("status", status.translate(_SEPARATORS), _STATUSES),
        project_type=None if kind is None else _read_word("project_type", kind, [one.lower() for one in types]),
        **days,
    )


def _read_word(name: str, text: str, known: Sequence[str]) -> str:
    """Returns the known word in `text`. Raises ApiError (400), naming the most similar one, or some of them."""
    word = text.lower()
    if not known or word in known:
        return word
    within = [one for one in known if len(word) >= _SHORTEST_PART and (word in one or one in word)]
    near = nearest(word, known, min(_MOST_TYPOS, len(word) // 2)) or " or ".join(within[:3])
    some = f"{', '.join(known[:_MOST_SHOWN])}{', ...' if len(known) > _MOST_SHOWN else '.'}"
    remedy = f"Did you mean {near}?" if near else f"Give one of {some}"
    raise ApiError("invalid_parameter", f"No project has the {name} {echoed(text)}.", name, remedy=remedy)


_FILTERS = (
    Parameter("status", "Only projects with this status.", {"type": "string", "enum": _STATUSES}, None),
    Parameter(
        "project_type",
        "Only projects of this type, in any letter case. A type that no project of the release has is an error.",
        {"type": "string", "maxLength": 100},
        None,
    ),
    *(
        Parameter(f"{name}_{end}", f"The {which} {name}, included; those without one are left out.", _DAY, None)
        for name in _DATES
        for end, which in (("from", "first"), ("to", "last"))
    ),
)
_PARAMETERS = (*LOCATION_PARAMETERS, *(one.name for one in _FILTERS), "limit", "cursor")

EXAMPLE = projects.ProjectsBody(
    total_results=1,
    total_matching=2,
    next_cursor=Cursors(b"example").encode(
        projects.cursor_scope("zip:94103+city:CA:sanfrancisco"), "SF-PIPE-2019Q1-00017"
    ),
    development_projects=(
        projects.Project(
            project_id="SF-PIPE-2019Q1-00017",
            project_name="1 MILL ST",
            project_type="Mixres",
            status="permitted",
            status_source="BP ISSUED",
            status_date=date(2018, 12, 20),
            start_date=None,
            completion_date=None,
            tot_units=24,
            affordable_units=None,
            street_address="1 MILL ST",
            location=projects.ProjectLocation(
                "94103", "San Francisco County", "06075", "San Francisco, CA", "CA", 37.7725, -122.4147
            ),
        ),
    ),
)

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
        asked="94103",
        query_errors=(*QUERY_ERRORS, "unknown_parameter"),
        parameters=(*_FILTERS, *page_parameters("projects")),
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
