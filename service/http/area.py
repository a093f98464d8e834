"""What a data area is to partners: its path, its route, its part of the description. areas.py lists them."""

from collections.abc import Callable
from typing import Any

import msgspec
from litestar.handlers import ASGIRouteHandler

from service.http.answering import Answers
from service.http.errors import ApiError
from warehouse.following import OpenRelease
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


# Of plain ASGI: the framework reads no parameters and makes no response here, and would take longer than the answer.
RouteFactory = Callable[[Answers], ASGIRouteHandler]


class PartnerArea(msgspec.Struct, frozen=True, kw_only=True):
    """A data area as partners meet it. `name` is the warehouse's name of it."""

    name: str
    path: str
    description: str
    operation: Operation
    route: RouteFactory
    query_forms: tuple[tuple[str, ...], ...] = LOCATION_FORMS

    @property
    def listed(self) -> AreaDescription:
        return AreaDescription(self.name, self.path, self.description, self.query_forms)


def keys_of(release: OpenRelease, area: str) -> KeySet:
    """Raises ApiError (404) if the release lacks the area."""
    keys = release.keys.get(area)
    if keys is None:
        raise ApiError("not_found")
    return keys


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
