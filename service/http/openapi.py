"""The OpenAPI 3.1 description, built from the structs that are encoded and the codes that are raised."""

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from service.http import examples
from service.http.area import Endpoint
from service.http.areas import AREAS
from service.http.errors import CODES, NO_STORE, Problem, title_of
from service.http.index import Index
from service.http.releases.description import SCHEMAS as RELEASE_SCHEMAS
from service.http.releases.description import Described, described
from service.http.reply import JSON, Reply
from service.http.usage import PATH as USAGE_PATH
from service.http.usage import Usage, usage_operation

Document = dict[str, Any]
_ENDPOINTS = [endpoint for area in AREAS for endpoint in area.endpoints]

_REF = "#/components/schemas/{name}"
# Any request can end so, whatever it asks for.
_COMMON = (
    "bad_request",
    "body_not_allowed",
    "missing_api_key",
    "invalid_api_key",
    "expired_api_key",
    "revoked_api_key",
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
    "count as absent, unknown ones are ignored, one given twice is an error. A trailing slash answers the same; HEAD "
    "answers as GET, without the body."
)
_STRICT = "An unknown parameter is an error. A trailing slash answers the same; HEAD answers as GET, without the body."
# Of the data areas alone: what a key's terms refuse.
_TERMS = ("not_entitled", "rate_limited", "quota_exhausted")


def openapi_route() -> HTTPRouteHandler:
    body = msgspec.json.encode(describe_api())

    @get("/v1/openapi.json")
    async def openapi() -> ASGIApp:
        return Reply(200, (JSON, NO_STORE), body, "answered")

    return openapi


def describe_api() -> Document:
    _, schemas = msgspec.json.schema_components(
        (*(endpoint.operation.body for endpoint in _ENDPOINTS), *RELEASE_SCHEMAS, Usage, Index, Problem),
        ref_template=_REF,
    )
    schemas["Problem"]["properties"]["code"] = {"type": "string", "enum": list(CODES)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Population and housing forecasts",
            "version": "1",
            "description": "Read-only. Every request needs the header x-api-key. The forecast body never changes in "
            "v1; in all other bodies, ignore members that you do not know.",
        },
        "security": [{"apiKey": []}],
        "paths": {
            **{endpoint.path: {"get": _of_area(endpoint)} for endpoint in _ENDPOINTS},
            USAGE_PATH: {"get": _usage()},
            **{one.path: {"get": _of_release(one)} for one in described()},
            "/v1/": {"get": _plain("getIndex", "Release, sources and data areas", "Index", examples.INDEX)},
            "/v1/openapi.json": {"get": _plain("getOpenApi", "This description", None, None)},
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"}},
            "headers": _HEADERS,
        },
    }


def _of_area(endpoint: Endpoint) -> Document:
    operation = endpoint.operation
    zip_code, city_name, state_code = operation.asked
    errors = _errors((*_COMMON, *_TERMS, *operation.query_errors, *operation.errors), ("not_found",))
    location = [
        _parameter("zip_code", "Five digits, leading zeros included; of ZIP+4 the first five count.", zip_code),
        _parameter("city_name", "Needs state_code.", city_name),
        _parameter("state_code", "Two letters, in any case.", state_code),
    ]
    extra = [
        {"name": one.name, "in": "query", "required": one.required, "description": one.description}
        | {"schema": one.schema, "example": one.example}
        for one in operation.parameters
    ]
    return {
        "operationId": operation.id,
        "summary": endpoint.description,
        "description": f"{_QUERYING if operation.by_location else _STRICT} {operation.description}",
        "parameters": [
            *(location if operation.by_location else ()),
            *extra,
            {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}, "description": "An ETag."},
            {"name": "X-Request-Id", "in": "header", "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}},
        ],
        "responses": {
            "200": {
                "description": operation.matched,
                "headers": _header_refs((*_KEPT, "Content-Encoding")),
                "content": _content(operation.body.__name__, operation.examples),
            },
            "304": {"description": "The bytes named by If-None-Match are current.", "headers": _header_refs(_KEPT)},
            **errors,
        },
    }


def _usage() -> Document:
    operation = usage_operation()
    operation["responses"]["200"]["headers"] = _header_refs(("Cache-Control", "X-Request-Id"))
    operation["responses"] |= _errors((*_COMMON, "invalid_parameter", "duplicate_parameter", "rate_limited"), ())
    return operation


def _of_release(one: Described) -> Document:
    operation = one.operation
    names = (*one.headers, *_LIMITS, "X-Quota-Warning") if one.limited else one.headers
    for status, answer in operation["responses"].items():
        answer["headers"] = _header_refs((*names, "Content-Range") if status == "206" else names)
    terms = _TERMS if one.limited else ()
    unchanged = {"description": "The bytes named by If-None-Match are current.", "headers": _header_refs(names)}
    operation["responses"] |= {"304": unchanged, **_errors((*_COMMON, *terms, *one.errors), ())}
    validator = {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}, "description": "An ETag."}
    operation["parameters"].append(validator)
    return operation


def _plain(operation: str, summary: str, schema: str | None, example: Any) -> Document:
    headers = ("Cache-Control", "X-Request-Id", *(("X-Data-Release",) if schema else ()))
    content = _content(schema, {"index": example}) if schema else {"application/json": {"schema": {"type": "object"}}}
    return {
        "operationId": operation,
        "summary": summary,
        "responses": {
            "200": {"description": summary, "headers": _header_refs(headers), "content": content},
            **_errors(_COMMON, ()),
        },
    }


def _errors(codes: Sequence[str], extra: Sequence[str]) -> Document:
    by_status: dict[int, list[str]] = {}
    for code in (*codes, *extra, "method_not_allowed"):
        by_status.setdefault(CODES[code][0], []).append(code)
    return {str(status): _error(status, some) for status, some in sorted(by_status.items())}


def _error(status: int, codes: list[str]) -> Document:
    kept = ("Vary", "X-Data-Release") if "no_matching_records" in codes else ()
    names = ["X-Request-Id", "Cache-Control", *kept, *_ERROR_HEADERS.get(status, ())]
    return {
        "description": f"{title_of(status)}: {', '.join(codes)}",
        "headers": _header_refs(tuple(names)),
        "content": _content("Problem", {code: examples.example_problem(code) for code in codes}),
    }


def _content(schema: str, samples: dict[str, Any]) -> Document:
    return {
        "application/json": {
            "schema": {"$ref": _REF.format(name=schema)},
            "examples": {name: {"value": value} for name, value in samples.items()},
        }
    }


def _parameter(name: str, description: str, example: str) -> Document:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": description,
        "schema": {"type": "string", "maxLength": 100},
        "example": example,
    }


def _header_refs(names: tuple[str, ...]) -> Document:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _header(description: str, example: str) -> Document:
    return {"description": description, "schema": {"type": "string"}, "example": example}


_LIMITS = ("RateLimit", "RateLimit-Policy")
_KEPT = ("ETag", "Cache-Control", "Vary", "Cache-Status", "X-Data-Release", "X-Request-Id", *_LIMITS, "X-Quota-Warning")
_ERROR_HEADERS: dict[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    416: ("Content-Range", "Accept-Ranges"),
    429: ("Retry-After", *_LIMITS),
    503: ("Retry-After",),
}
_HEADERS = {
    "ETag": _header(
        "Strong validator of the bytes; a release that did not change them keeps it.", '"9f86d081884c7d65"'
    ),
    "Cache-Control": _header("How long your own cache may keep the answer.", "private, max-age=60"),
    "Vary": _header("What else the answer depends on.", "accept, accept-encoding, x-api-key"),
    "Cache-Status": _header("Where the answer came from (RFC 9211).", "forecast; hit; detail=shared"),
    "X-Data-Release": _header("The release that answered.", "20261105T120000Z-0123456789ab"),
    "X-Request-Id": _header("Yours if you sent a usable one; name it when you ask us about a request.", "a1b2c3"),
    "RateLimit": _header(
        "What is left, and the seconds that it has to do for (draft-ietf-httpapi-ratelimit-headers-11), where your key "
        "has a limit.",
        '"rate";r=99;t=1, "quota";r=4999577;t=864000',
    ),
    "RateLimit-Policy": _header(
        "The limits of your key: requests in so many seconds.", '"rate";q=500;w=1, "quota";q=5000000;w=2592000'
    ),
    "X-Quota-Warning": _header("Your quota is nearly used up.", "4150000 of 5000000 used this month"),
    "Accept-Ranges": _header("Parts of the file can be asked for.", "bytes"),
    "Content-Range": _header("Which part of how many bytes this is.", "bytes 0-65535/3123300"),
    "Content-Disposition": _header("A name for the file, with its release.", 'attachment; filename="forecast.parquet"'),
    "Content-Encoding": _header("gzip, where you accept it and it is worth it.", "gzip"),
    "WWW-Authenticate": _header("The scheme that is missing.", "ApiKey"),
    "Allow": _header("The methods that there are.", "GET, HEAD"),
    "Retry-After": _header("Seconds to wait before the next try.", "1"),
}
