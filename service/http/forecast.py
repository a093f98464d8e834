"""GET /v1/population-housing-forecast."""

from typing import Any

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from service.cache.key import cache_key
from service.cache.read_through import ReadThrough
from service.http.areas import FORECAST
from service.http.caching import CachePolicy
from service.http.errors import ApiError
from service.http.head import head_of
from service.http.query import parse_location
from service.http.reply import Reply
from warehouse.areas import forecast
from warehouse.errors import LookupFailure
from warehouse.follow import OpenRelease, ReleaseFollower
from warehouse.keyset import Match, NoMatch, OtherCity, UnknownCity, UnknownZip

AnyRequest = Request[Any, Any, Any]


def current_release(follower: ReleaseFollower) -> OpenRelease:
    """The release that this request is answered from. Raises ApiError (503) before the first."""
    release = follower.current
    if release is None:
        raise ApiError("unavailable", "No data has been published yet. Try again as Retry-After says.")
    return release


def forecast_route(follower: ReleaseFollower, cache: ReadThrough, policy: CachePolicy) -> HTTPRouteHandler:
    @get(FORECAST.path)
    async def population_housing_forecast(request: AnyRequest) -> ASGIApp:
        release = current_release(follower)
        query = parse_location(request.scope["query_string"])
        match = release.keys.resolve(query.zip_code, query.city_name, query.state_code)
        if not isinstance(match, Match):
            raise ApiError("no_matching_records", explain(match), headers=policy.headers(release.id))
        return await _answer(request, release, match)

    async def _answer(request: AnyRequest, release: OpenRelease, match: Match) -> Reply:
        async def fill() -> bytes:
            return forecast.body(await release.engine.entries(match.zip_codes))

        try:
            fetched = await cache.get(cache_key(release.id, FORECAST.name, match.query), fill)
        except LookupFailure as error:
            raise ApiError("unavailable") from error
        outcome = "answered" if release.keys.has_figures(match.zip_codes) else "answered_empty"
        return policy.answer(head_of(request.scope), fetched, release.id, outcome)

    return population_housing_forecast


def explain(miss: NoMatch) -> str:
    """Why nothing matches, and what would."""
    match miss:
        case UnknownZip(zip_code):
            return f"There are no records of ZIP code {zip_code}."
        case OtherCity(zip_code, city):
            return f"ZIP code {zip_code} is in {city}. Leave city_name and state_code out, or correct them."
        case UnknownCity(city_name, state_code, similar, states):
            if similar:
                return f"There is no city {city_name} in {state_code}. Did you mean {' or '.join(similar)}?"
            if states:
                return f"There is no city {city_name} in {state_code}; there is one in {', '.join(states)}."
            return f"There is no city {city_name} in {state_code}. Check its spelling, or query by zip_code."
