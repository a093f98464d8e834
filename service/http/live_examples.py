"""Examples of the OpenAPI description as the current release answers them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from service.http.area import Endpoint, answer_of
from service.http.areas import AREAS
from service.http.forecast_examples import WITHOUT_FIGURES
from service.request.errors import ApiError
from service.request.pipeline import Answers
from service.request.request import Request
from warehouse.following import OpenRelease
from warehouse.places.keyset import KeySet, Place

# An answer in pages is shown with one entry.
_SHOWN_ENTRIES = 1


class LiveExample(msgspec.Struct, frozen=True):
    """The example of one operation: parameters by name, and answers by name."""

    parameters: Mapping[str, Any]
    bodies: Mapping[str, Any]


async def live_examples(answers: Answers, release: OpenRelease) -> dict[str, LiveExample]:
    """Returns examples by operation id, for every area of `release`, the current one. Raises ApiError (503)."""
    found: dict[str, LiveExample] = {}
    for area in AREAS:
        keys = release.keys.get(area.name)
        if keys is None:
            continue
        for endpoint in area.endpoints:
            example = await _of(endpoint, keys, answers)
            if example.bodies:
                found[endpoint.operation.id] = example
    return found


async def _of(endpoint: Endpoint, keys: KeySet, answers: Answers) -> LiveExample:
    parameters: dict[str, Any] = {}
    bodies: dict[str, Any] = {}
    for name in endpoint.operation.examples:
        place = keys.place(endpoint.operation.asked, has_figures=name != WITHOUT_FIGURES)
        asked = _asked(endpoint, place) if place is not None else None
        if place is None or asked is None:
            continue
        query = urlencode(asked | ({"limit": _SHOWN_ENTRIES} if endpoint.has_pages else {}), doseq=True)
        request = Request(0.0, b"", sent_path=endpoint.path, sent_query=query.encode())
        answers.place(request)
        response = await answer_of(endpoint, answers, request)
        if response.status != 200:
            raise ApiError(response.outcome)
        bodies[name] = msgspec.json.decode(response.body)
        if not parameters:
            parameters = _values(place) | asked
    return LiveExample(parameters, bodies)


def _values(place: Place) -> dict[str, str | None]:
    return {
        "zip_code": place.zip_code,
        "city_name": place.city_name,
        "state_code": place.state_code,
        "county_fips_code": place.county,
    }


def _asked(endpoint: Endpoint, place: Place) -> dict[str, Any] | None:
    """Returns the first query form of the endpoint, filled in. None if the place lacks a value for it."""
    values = _values(place)
    lists = {one.name: one.example for one in endpoint.operation.parameters if isinstance(one.example, list)}
    asked: dict[str, Any] = {}
    for name in endpoint.query_forms[0]:
        value = values[name]
        if value is None:
            return None
        # the first of several: the others show other outcomes
        asked[name] = [value, *lists[name][1:]] if name in lists else value
    return asked
