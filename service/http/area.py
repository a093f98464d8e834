"""A data area as partners see it: its endpoints, their routes, its part of the description. areas.py lists them."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import SkipValidation
from msgspec import Meta

from service.http.app import Checked
from service.http.corrections import Parameters, correct
from service.request.errors import ApiError
from service.request.parameters import as_header, as_query, echoed
from service.request.pipeline import Answers
from service.request.request import Request
from service.request.respond import CachePolicy
from service.request.response import Header, Response
from service.request.targets import ResolvedQuery, Route
from warehouse.areas.paging import Cursors
from warehouse.following import OpenRelease
from warehouse.lookup.engine import Engine
from warehouse.places.keyset import KeySet
from warehouse.places.match import NoMatch, OtherCity, UnknownCity, UnknownZip
from warehouse.places.names import STATE_NAMES

_MOST_CITIES = 50  # if a borough has many
LOCATION_FORMS = (("zip_code",), ("city_name", "state_code"))


# Errors of a query, besides those of every request.
QUERY_ERRORS = ("missing_parameter", "invalid_parameter", "duplicate_parameter", "no_matching_records")


_Path = Annotated[str, Meta(description="Its path on this host.")]
_Description = Annotated[str, Meta(description="What it returns.")]
_QueryForms = Annotated[
    tuple[tuple[str, ...], ...], Meta(description="Parameters that belong together: send all of one form.")
]


class EndpointDescription(msgspec.Struct, frozen=True):
    """One path of a data area, and how to query it."""

    path: _Path
    description: _Description
    query_forms: _QueryForms


class ListedArea(msgspec.Struct, frozen=True):
    """One data area of the release: its name, its main path, all its endpoints, and its coverage."""

    name: Annotated[str, Meta(description="As keys are entitled to it.")]
    path: _Path
    description: _Description
    query_forms: _QueryForms
    endpoints: Annotated[tuple[EndpointDescription, ...], Meta(description="All its paths.")]
    cities: Annotated[tuple[str, ...] | None, Meta(description="The cities that it covers; null: the whole country.")]


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter of an endpoint besides those of the location; `schema` is JSON Schema. `example` is None if
    trial requests should start without it.
    """

    name: str
    description: str
    schema: dict[str, Any]
    example: Any
    required: bool = False


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """The OpenAPI description of an endpoint's GET. `errors` are codes besides `query_errors`.

    `by_location`: it takes ZIP code, city and state. `asked` is the ZIP code in its examples.
    """

    id: str
    description: str
    body: type
    matched: str
    examples: dict[str, Any]
    asked: str = "36436"
    by_location: bool = True
    parameters: tuple[Parameter, ...] = ()
    query_errors: tuple[str, ...] = QUERY_ERRORS
    errors: tuple[str, ...] = ()


class Resolved(msgspec.Struct, frozen=True):
    """A query string as resolved in one key set; a look-up in the release's files answers it."""

    query: str  # canonical: queries with the same one have the same answer
    keys: tuple[str, ...]  # of the entries in the answer
    look_up: Callable[[Engine], Awaitable[bytes]]
    outcome: str = "answered"
    cities: tuple[str, ...] = ()  # if a name other than their own matched
    ignored: tuple[str, ...] = ()  # names of parameters that changed nothing


# Reads a raw query string. Raises ApiError (400, 404).
Resolve = Callable[[KeySet, bytes, Cursors], Resolved | NoMatch]


class BatchEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How an endpoint answers several queries at once, each like a query of its own.

    `weigh` returns how many requests a raw query string counts as, at least 1.
    """

    weigh: Callable[[bytes], int]
    answer: Callable[[Answers, Request], Awaitable[Response]]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One path of a data area."""

    path: str
    description: str
    operation: Operation
    resolve: Resolve | BatchEndpoint
    query_forms: tuple[tuple[str, ...], ...] = LOCATION_FORMS

    @property
    def listed(self) -> EndpointDescription:
        return EndpointDescription(self.path, self.description, self.query_forms)

    @property
    def has_pages(self) -> bool:
        return any(parameter.name == "cursor" for parameter in self.operation.parameters)


class PartnerArea(msgspec.Struct, frozen=True, kw_only=True):
    """A data area as partners see it: the unit of entitlement, counting and limits. `name` is the warehouse's name of
    it.

    The first of its endpoints takes the location forms. `nothing` is the message for a ZIP code and for a city without
    records, with `{}` for where. `coverage` is the remedy if the area does not cover the whole country, and `regions`
    says how to request more than a place.
    """

    name: str
    endpoints: tuple[Endpoint, ...]
    nothing: tuple[str, str]
    coverage: str = ""
    regions: str = ""

    @property
    def path(self) -> str:
        return self.endpoints[0].path

    def listed(self, cities: tuple[str, ...] | None) -> ListedArea:
        """Returns the area as the index lists it; `cities` are those of a release."""
        first, all_of_them = self.endpoints[0], tuple(endpoint.listed for endpoint in self.endpoints)
        return ListedArea(self.name, first.path, first.description, first.query_forms, all_of_them, cities)


def routes_of(area: PartnerArea, cursors: Cursors, policy: CachePolicy) -> dict[str, Route]:
    """Returns the area's routes by path."""
    return {endpoint.path: _route(area, endpoint, cursors, policy) for endpoint in area.endpoints}


def _route(area: PartnerArea, endpoint: Endpoint, cursors: Cursors, policy: CachePolicy) -> Route:
    if isinstance(endpoint.resolve, BatchEndpoint):
        return Route(area=area.name, weigh=endpoint.resolve.weigh)

    def resolve_query(release: OpenRelease, query_string: bytes) -> ResolvedQuery:
        try:
            found = resolve_in(area, endpoint, keys_of(release, area.name), query_string, cursors)
        except ApiError as error:
            if error.code == "no_matching_records":
                error.headers = policy.headers(release.id)
            raise
        headers = [_matched(found.cities)] if found.cities else []
        headers += [(b"x-ignored-parameters", as_header(found.ignored))] if found.ignored else []
        return ResolvedQuery(found.query, partial(found.look_up, release.engine), found.outcome, tuple(headers))

    return Route(area=area.name, resolve=resolve_query)


def resolve_in(area: PartnerArea, endpoint: Endpoint, keys: KeySet, query: bytes, cursors: Cursors) -> Resolved:
    """Resolves a raw query string. Raises ApiError (400, 404), with the likely correction if the key set has it."""
    assert not isinstance(endpoint.resolve, BatchEndpoint)  # noqa: S101 - its caller has excluded it
    try:
        found = endpoint.resolve(keys, query, cursors)
        if isinstance(found, Resolved):
            return found
        error = _no_match(area, found)
    except ApiError as raised:
        if raised.code == "not_found":
            raise
        error = raised
    offers = partial(_offer, area, endpoint, keys, cursors)
    known = {*endpoint.query_forms[0], *endpoint.query_forms[-1], *(one.name for one in endpoint.operation.parameters)}
    remedy = correct(query, error, sorted(known), keys, offers, area.regions)
    usual = area.coverage if error.code == "no_matching_records" else ""
    raise ApiError(error.code, error.problem, error.parameter, remedy=remedy or usual or error.remedy)


def _offer(
    area: PartnerArea, asked: Endpoint, keys: KeySet, cursors: Cursors, place: Parameters, others: Parameters
) -> str | None:
    """Returns the request for a place as errors show it, at the endpoint that was asked if that has the form; None if
    the release does not answer it. `others` are the further parameters of the query.
    """
    if "zip_codes" in place:
        several = "&".join(f"zip_code={zip_code}" for zip_code in place["zip_codes"].split(","))
        return next((f"{one.path}?{several}" for one in area.endpoints if isinstance(one.resolve, BatchEndpoint)), None)
    for one in (asked, *area.endpoints):
        if isinstance(one.resolve, BatchEndpoint) or tuple(place) not in one.query_forms:
            continue
        query = as_query({**place, **others} if one is asked else place)
        with suppress(ApiError):
            if isinstance(one.resolve(keys, query.encode(), cursors), Resolved):
                return query if one is asked else f"{one.path}?{query}"
    return None


def handler_of(endpoint: Endpoint) -> HTTPRouteHandler:
    """Returns the endpoint's GET."""

    @get(endpoint.path, name=endpoint.operation.id)
    async def look_up(checked: Checked, answers: NamedDependency[SkipValidation[Answers]]) -> Response:
        return await answer_of(endpoint, answers, checked)

    return look_up


async def answer_of(endpoint: Endpoint, answers: Answers, request: Request) -> Response:
    """Returns the endpoint's answer to a checked request. Raises ApiError."""
    if isinstance(endpoint.resolve, BatchEndpoint):
        return await endpoint.resolve.answer(answers, request)
    return await answers.answer(request)


def _matched(cities: Sequence[str]) -> Header:
    """Returns ASCII, as headers are: other characters are percent-encoded."""
    return (b"x-matched-city", quote("; ".join(cities[:_MOST_CITIES]), safe=" ,;'.-&()/").encode())


def keys_of(release: OpenRelease, area: str) -> KeySet:
    """Returns the area's key set. Raises ApiError (404) if the release lacks the area."""
    keys = release.keys.get(area)
    if keys is None:
        raise ApiError("not_found")
    return keys


def _no_match(area: PartnerArea, miss: NoMatch) -> ApiError:
    """Returns the 404 that says why nothing matches in `area`, and what to do if nothing similar is there."""
    in_zip, in_city = area.nothing
    match miss:
        case UnknownZip(zip_code):
            problem, remedy = in_zip.format(zip_code), "Check its digits."
        case OtherCity(zip_code, city):
            problem, remedy = f"ZIP code {zip_code} is in {city}", "Send zip_code alone."
        case UnknownCity(city_name, state_code) if state_code in STATE_NAMES:
            problem = in_city.format(echoed(city_name), state_code)
            remedy = f"Check its spelling. Regions, neighborhoods and addresses match nothing.{area.regions}"
        case UnknownCity():
            problem, remedy = f"There is no state {miss.state_code}", "Give the two letters of one, like AL."
    return ApiError("no_matching_records", f"{problem}.", remedy=remedy)
