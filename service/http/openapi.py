"""The OpenAPI 3.1 description, built from the structs that are encoded and the codes that are raised."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from config.settings import Settings
from service.http import examples
from service.http.app import GUIDE_PATH, OPENAPI_PATH
from service.http.area import Endpoint, Parameter
from service.http.areas import AREAS
from service.http.index import Index
from service.http.live_examples import LiveExample
from service.http.openapi_headers import (
    ALWAYS,
    HEADERS,
    IGNORED,
    KEPT,
    LIMITS,
    MATCHED,
    REF,
    Document,
    error_headers,
    header,
    header_refs,
    json_body,
    parameter,
)
from service.http.own_usage.description import SCHEMAS as USAGE_SCHEMAS
from service.http.own_usage.description import describe_usage
from service.http.releases.description import SCHEMAS as RELEASE_SCHEMAS
from service.http.releases.description import Described, describe_releases
from service.request.errors import CODES, Problem, title_of

_ENDPOINTS = [(area, endpoint) for area in AREAS for endpoint in area.endpoints]

# Errors of any request.
_COMMON = (
    "bad_request",
    "body_not_allowed",
    "missing_api_key",
    "invalid_api_key",
    "expired_api_key",
    "revoked_api_key",
    "pending_api_key",
    "suspended_api_key",
    "request_timeout",
    "uri_too_long",
    "headers_too_large",
    "internal",
    "unavailable",
)
_QUERYING = (
    "Give zip_code, or city_name and state_code, or all three: then the ZIP code has to be in the city. City names "
    "match regardless of case, spaces, accents, apostrophes, periods, hyphens, of St/Saint, Ft/Fort, Mt/Mount, and of "
    "a trailing `, ST`. If no city has the name, places that the postal service accepts for it match. Empty parameters "
    "count as absent, one given twice is an error. A trailing slash answers the same; HEAD "
    "answers as GET, without the body."
)
_LOCATION = (
    Parameter(
        "zip_code",
        "Five digits, leading zeros included; of ZIP+4 the first five count.",
        {"type": "string", "pattern": "^[0-9]{5}(-[0-9]{4})?$"},
        None,
    ),
    Parameter("city_name", "Needs state_code.", {"type": "string", "maxLength": 100}, None),
    Parameter("state_code", "Two letters, in any case.", {"type": "string", "pattern": "^[A-Za-z]{2}$"}, None),
)
_FIELDS = (
    header("If-None-Match", "An ETag: if the answer still has it, the status is 304 and there is no body."),
    header("If-Match", "An ETag: if the answer has another one, the status is 412. Weak ETags (W/) never match."),
    header(
        "X-Request-Id",
        "An id of your own; it comes back with the answer, and logs have it.",
        "^[A-Za-z0-9._-]{1,64}$",
    ),
)
# For paths that test keys have, too.
_ON_PURPOSE = header("X-Test-Error", "Test keys only: the error code to return.")
_TESTED = (*_FIELDS, _ON_PURPOSE)
_STRICT = "An unknown parameter is an error. A trailing slash answers the same; HEAD answers as GET, without the body."
_INDEX = "Release, sources, data areas, and what your key may use"
_MADE_UP = "Made up."
_TAGS = {
    **{area.name: area.path for area in AREAS},
    "releases": "The releases, their changes, and whole ones as files.",
    "service": "The current release, and the usage of your key.",
}
# Only of data areas: refusals by a key's terms.
_TERMS = ("not_entitled", "rate_limited", "quota_exhausted")


class About(msgspec.Struct, frozen=True):
    """The operators' settings: the service's URL without a slash at its end, the contact for partners (an e-mail
    address or a URL), and whether there is a guide. `local_url` is shown in its samples without a `public_url`.
    """

    public_url: str = ""
    contact: str | None = None
    guide: bool = False
    local_url: str = ""


_NO_SETTINGS = About()


def about_of(settings: Settings) -> About:
    return About(settings.public_url or "", settings.contact, guide=settings.docs, local_url=_local_url(settings))


def _local_url(settings: Settings) -> str:
    """Returns the service's URL on this machine, for the guide's samples; empty if the system chose the port."""
    if not settings.listen_port:
        return ""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.listen_host, settings.listen_host)  # noqa: S104 - read
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.listen_port}"


def describe_api(about: About = _NO_SETTINGS, live: Mapping[str, LiveExample] = MappingProxyType({})) -> Document:
    """Returns the document.

    `live` are examples by operation id; other operations have made-up examples, marked as such.
    """
    _, schemas = msgspec.json.schema_components(
        (*(endpoint.operation.body for _, endpoint in _ENDPOINTS), *RELEASE_SCHEMAS, *USAGE_SCHEMAS, Index, Problem),
        ref_template=REF,
    )
    schemas["Problem"]["properties"]["code"]["enum"] = list(CODES)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Population and housing forecasts",
            "version": "1",
            "description": "Read-only. Every request needs the header x-api-key. A test key (phf_test_...) gets fixed "
            "test data from every endpoint except releases, with X-Test-Answer: true. The forecast body never changes "
            "in v1; in all other bodies, ignore members that you do not know.",
            **_contact(about.contact),
        },
        "servers": [{"url": about.public_url or "/"}],
        **_guide(about),
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [{"apiKey": []}],
        "paths": {
            **{one.path: {"get": _of_area(area.name, one, live.get(one.operation.id))} for area, one in _ENDPOINTS},
            **{path: {"get": _of_key(own, codes)} for path, own, codes in describe_usage()},
            **{one.path: {"get": _of_release(one)} for one in describe_releases()},
            "/v1": {"get": _plain("getIndex", _INDEX, "Index", examples.INDEX)},
            OPENAPI_PATH: {"get": _plain("getOpenApi", "This description", None, None)},
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"}},
            "headers": HEADERS,
        },
    }


def _guide(about: About) -> Document:
    if not about.guide:
        return {}
    return {"externalDocs": {"url": f"{about.public_url}{GUIDE_PATH}", "description": "The guide."}}


def _contact(contact: str | None) -> Document:
    if contact is None:
        return {}
    return {"contact": {"url" if "://" in contact else "email": contact}}


def _of_area(area: str, endpoint: Endpoint, live: LiveExample | None) -> Document:
    operation = endpoint.operation
    parameters = (*(_LOCATION if operation.by_location else ()), *operation.parameters)
    own = {one.name: one.example for one in parameters if one.example is not None}
    asked: dict[str, Any] = {"zip_code": operation.asked, **own, **(live.parameters if live is not None else {})}
    if operation.by_location:  # one way to name the place: who changes one of three examples gets a 404
        asked |= {"city_name": None, "state_code": None}
    codes = (*_COMMON, *_TERMS, *operation.query_errors, *operation.errors, "not_found", "precondition_failed")
    samples = (live.bodies,) if live is not None else (operation.examples, _MADE_UP)
    ignores = "unknown_parameter" not in operation.query_errors
    by_name = (MATCHED, *([IGNORED] if ignores else [])) if operation.by_location else ()
    answer = {
        "description": operation.matched,
        "headers": header_refs((*KEPT, "Content-Encoding", *by_name)),
        "content": json_body(operation.body.__name__, *samples),
        **({"links": _next_page(operation.id, parameters)} if endpoint.has_pages else {}),
    }
    return {
        "operationId": operation.id,
        "tags": [area],
        "summary": endpoint.description,
        "description": f"{_QUERYING if operation.by_location else _STRICT} {operation.description}",
        "parameters": [
            *(
                parameter(one.name, one.description, one.schema, asked.get(one.name), required=one.required)
                for one in parameters
            ),
            *_TESTED,
        ],
        "responses": {
            "200": answer,
            "304": _unchanged((*KEPT, *by_name)),
            **_errors(codes, limited=True),
        },
    }


def _next_page(operation: str, parameters: Sequence[Parameter]) -> Document:
    same = {one.name: f"$request.query.{one.name}" for one in parameters if one.name != "cursor"}
    following = {"cursor": "$response.body#/next_cursor"}
    return {
        "next": {
            "operationId": operation,
            "parameters": {f"query.{name}": value for name, value in (same | following).items()},
            "description": "The next page: the same query with next_cursor as cursor, unless it is null.",
        }
    }


def _of_key(own: Document, codes: Sequence[str]) -> Document:
    operation = {"tags": ["service"], **own}
    operation["parameters"] = [*operation["parameters"], _ON_PURPOSE]
    operation["responses"]["200"]["headers"] = header_refs(("Cache-Control", *ALWAYS))
    operation["responses"] |= _errors(
        (*_COMMON, "invalid_parameter", "duplicate_parameter", "unknown_parameter", *codes)
    )
    return operation


def _of_release(one: Described) -> Document:
    operation = {"tags": ["releases"], **one.operation}
    names = (*one.headers, *LIMITS, "X-Quota-Warning") if one.limited else one.headers
    for status, answer in operation["responses"].items():
        answer["headers"] = header_refs((*names, "Content-Range") if status == "206" else names)
    terms = _TERMS if one.limited else ()
    operation["responses"] |= {
        "304": _unchanged(names),
        **_errors((*_COMMON, *terms, *one.errors, "precondition_failed"), limited=one.limited),
    }
    operation["parameters"] += _FIELDS
    return operation


def _plain(operation: str, summary: str, schema: str | None, example: Any) -> Document:
    kept = ("ETag", "Cache-Control", "Vary", "X-Data-Release", *ALWAYS)
    content = json_body(schema, {"index": example}) if schema else {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": operation,
        "tags": ["service"],
        "summary": summary,
        "parameters": list(_TESTED),
        "responses": {
            "200": {
                "description": summary,
                "headers": header_refs((*kept, "Content-Encoding")),
                "content": content,
            },
            "304": _unchanged(kept),
            **_errors((*_COMMON, "unknown_parameter", "precondition_failed")),
        },
    }


def _unchanged(headers: tuple[str, ...]) -> Document:
    return {"description": "The bytes named by If-None-Match are current.", "headers": header_refs(headers)}


def _errors(codes: Sequence[str], *, limited: bool = False) -> Document:
    """Returns errors by status. `limited`: a key's terms apply, so that its 429s have headers with what is left."""
    by_status: dict[int, list[str]] = {}
    for code in (*codes, "method_not_allowed"):
        by_status.setdefault(CODES[code][0], []).append(code)
    return {str(status): _error(status, some, limited=limited) for status, some in sorted(by_status.items())}


def _error(status: int, codes: list[str], *, limited: bool) -> Document:
    return {
        "description": f"{title_of(status)}: {', '.join(codes)}",
        "headers": header_refs(error_headers(status, codes, limited=limited)),
        "content": json_body("Problem", {code: examples.example_problem(code) for code in codes}),
    }
