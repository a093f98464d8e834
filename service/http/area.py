"""What a data area is to partners: its path, its route, its part of the description. areas.py lists them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from service.http.answering import Answers, ResolvedRequest
from service.http.errors import ApiError
from warehouse.areas.paging import Cursors
from warehouse.following import OpenRelease
from warehouse.lookup.engine import Engine
from warehouse.places.keyset import KeySet, NoMatch, OtherCity, UnknownCity, UnknownZip

LOCATION_FORMS = (("zip_code",), ("city_name", "state_code"))


class AreaDescription(msgspec.Struct, frozen=True):
    """One data area: its name and where it is asked."""

    name: str
    path: str
    description: str
    query_forms: tuple[tuple[str, ...], ...]


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter that an area has beside those of the location; `schema` is JSON Schema."""

    name: str
    description: str
    schema: dict[str, Any]
    example: Any


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What the OpenAPI description says of an area's GET. `errors` are codes beside those that every area has.

    `asked` are a ZIP code, a city in it, and its state, that the example of `parameters` fit.
    """

    id: str
    description: str
    body: type
    matched: str
    examples: dict[str, Any]
    asked: tuple[str, str, str] = ("36436", "Dickinson", "AL")
    parameters: tuple[Parameter, ...] = ()
    errors: tuple[str, ...] = ()


class Resolved(msgspec.Struct, frozen=True):
    """What a query string means in one key set; a look-up in the release's files answers it."""

    query: str  # canonical: queries with the same one have the same answer
    keys: tuple[str, ...]  # of the entries in the answer
    look_up: Callable[[Engine], Awaitable[bytes]]
    outcome: str = "answered"


# Reads a raw query string. Raises ApiError (400).
Resolve = Callable[[KeySet, bytes, Cursors], Resolved | NoMatch]


class PartnerArea(msgspec.Struct, frozen=True, kw_only=True):
    """A data area as partners meet it. `name` is the warehouse's name of it.

    `nothing` says what there is not, in a ZIP code and in a city, with `{}` for where.
    """

    name: str
    path: str
    description: str
    operation: Operation
    resolve: Resolve
    nothing: tuple[str, str]
    query_forms: tuple[tuple[str, ...], ...] = LOCATION_FORMS

    @property
    def listed(self) -> AreaDescription:
        return AreaDescription(self.name, self.path, self.description, self.query_forms)


def route_of(area: PartnerArea, answers: Answers) -> ASGIRouteHandler:
    """The area's GET. Plain ASGI: the framework's own parameters and responses would take longer than the answer."""

    @asgi(area.path, copy_scope=False)
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        def ask(release: OpenRelease) -> ResolvedRequest:
            keys = release.keys.get(area.name)
            if keys is None:
                raise ApiError("not_found")
            found = area.resolve(keys, scope["query_string"], answers.cursors)
            if not isinstance(found, Resolved):
                headers = answers.policy.headers(release.id)
                raise ApiError("no_matching_records", explain_no_match(found, *area.nothing), headers=headers)
            return ResolvedRequest(found.query, partial(found.look_up, release.engine), found.outcome)

        reply = await answers.answer(area.name, scope, ask)
        await reply(scope, receive, send)

    return answer


def explain_no_match(miss: NoMatch, in_zip: str, in_city: str) -> str:
    """Why nothing matches, and what would; `in_zip` and `in_city` say what there is not, with `{}` for where."""
    match miss:
        case UnknownZip(zip_code):
            return f"{in_zip.format(zip_code)}."
        case OtherCity(zip_code, city):
            return f"ZIP code {zip_code} is in {city}. Leave city_name and state_code out, or correct them."
        case UnknownCity(city_name, state_code, similar, states):
            nothing = in_city.format(city_name, state_code)
            if similar:
                return f"{nothing}. Did you mean {' or '.join(similar)}?"
            if states:
                return f"{nothing}; there is one in {', '.join(states)}."
            return f"{nothing}. Check its spelling, or query by zip_code."
