"""The OpenAPI description of these endpoints; http/openapi.py adds common errors and headers."""

from datetime import UTC, datetime

import msgspec

from service.http.openapi_headers import REF, Document, header, json_body, parameter
from service.http.pages import page_parameters
from service.http.releases.changes import AREA_NAMES, ForecastChanges, ProjectChanges
from service.http.releases.files import CONTENT_TYPES, FILES
from service.http.releases.listing import FEED_PATH, PATH, ListedRelease, ReleaseArea, ReleaseFile, Releases

SCHEMAS = (Releases, ForecastChanges, ProjectChanges)
_ID = "20261105T120000Z-0123456789ab"
_BEFORE = "20261005T120000Z-ba9876543210"
_RELEASE = parameter(
    *("release", "The id of a release that GET /v1/releases lists, or current.", {"type": "string"}, "current"),
    place="path",
    required=True,
)
_FILE = ReleaseFile(f"{PATH}/{_ID}/forecast.parquet", 3123300)
_AREA = ReleaseArea("forecast", rows=42094, changed=33772, files=(_FILE,))
_PUBLISHED = datetime(2026, 11, 5, 12, tzinfo=UTC)
_LISTED = Releases((ListedRelease(_ID, _PUBLISHED, current=True, illustrative=False, areas=(_AREA,)),))
_CHANGED = ForecastChanges(
    release=_ID,
    previous=_BEFORE,
    total_results=3,
    total_matching=33772,
    next_cursor="AqkkJbMfDYy5MjQ",
    zip_codes=("00601", "00602", "00603"),
)
_KEPT = ("ETag", "Cache-Control", "Vary", "X-Data-Release", "X-Request-Id")


class Described(msgspec.Struct, frozen=True):
    """One operation: its own part of the description, the codes of its errors, and the headers of its 200."""

    path: str
    operation: Document
    errors: tuple[str, ...]
    headers: tuple[str, ...] = _KEPT
    limited: bool = False  # the terms of a key apply


def describe_releases() -> tuple[Described, ...]:
    return (_list(), _feed(), _changes(), _files())


def _list() -> Described:
    operation = {
        "operationId": "getReleases",
        "summary": "The current release and those before it that are kept",
        "description": "Newest first. Neither counted nor limited.",
        "parameters": [],
        "responses": {"200": {"description": "The releases.", "content": json_body("Releases", {"example": _LISTED})}},
    }
    return Described(PATH, operation, ("unknown_parameter",))


def _feed() -> Described:
    operation = {
        "operationId": "getReleasesFeed",
        "summary": "The same as an Atom feed (RFC 4287)",
        "description": "Neither counted nor limited.",
        "parameters": [],
        "responses": {
            "200": {"description": "The feed.", "content": {"application/atom+xml": {"schema": {"type": "string"}}}}
        },
    }
    return Described(FEED_PATH, operation, ("unknown_parameter",))


def _changes() -> Described:
    schema = {"type": "string", "enum": list(AREA_NAMES)}
    area = parameter("area", "Whose changes.", schema, "forecast", required=True)
    pages = (parameter(one.name, one.description, one.schema, one.example) for one in page_parameters("ids"))
    bodies: Document = {"oneOf": [{"$ref": REF.format(name=name)} for name in ("ForecastChanges", "ProjectChanges")]}
    operation = {
        "operationId": "getReleaseChanges",
        "summary": "Changes of a release",
        "description": "The ZIP codes (or projects) whose answer differs from that of the release that was current "
        "before, those that came or went included. Counted and limited as a request in that area.",
        "parameters": [_RELEASE, area, *pages],
        "responses": {
            "200": {"description": "One page, ascending.", "content": json_body(bodies, {"example": _CHANGED})}
        },
    }
    errors = ("missing_parameter", "invalid_parameter", "duplicate_parameter", "unknown_parameter", "invalid_cursor")
    return Described(f"{PATH}/{{release}}/changes", operation, (*errors, "not_found"), limited=True)


def _files() -> Described:
    binary = {kind.decode(): {"schema": {"type": "string", "format": "binary"}} for kind in CONTENT_TYPES.values()}
    name = {"type": "string", "enum": list(FILES)}
    operation = {
        "operationId": "getReleaseFile",
        "summary": "A whole area of a release, as a file",
        "description": "A row for each ZIP code, or each project. Needs the area bulk beside the area of the file. "
        "Each request counts once, whatever its size.",
        "parameters": [
            _RELEASE,
            parameter(
                "file", "An area, and the form of the file.", name, "forecast.parquet", place="path", required=True
            ),
            header("Range", "One range of bytes, on GET; of several, the whole file is sent."),
            header("If-Range", "An ETag, or a Last-Modified: if the file has another one, all of it is sent."),
            header("If-Unmodified-Since", "A Last-Modified: if the file changed since then, the status is 412."),
            header("If-Modified-Since", "A Last-Modified: if the file did not change since then, the status is 304."),
        ],
        "responses": {
            "200": {"description": "The file.", "content": binary},
            "206": {"description": "The part that Range names.", "content": binary},
        },
    }
    headers = (*_KEPT, "Accept-Ranges", "Content-Disposition", "Last-Modified")
    errors = ("unknown_parameter", "range_not_satisfiable", "not_found")
    return Described(f"{PATH}/{{release}}/{{file}}", operation, errors, headers, limited=True)
