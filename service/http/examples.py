"""Bodies in the OpenAPI description, besides those of the areas."""

from datetime import UTC, datetime
from typing import Any

from service.http.areas import AREAS
from service.http.corrections import NEXT_PAGE
from service.http.index import AskingKey, Index, ReleaseSummary
from service.request.errors import CODES, title_of

INDEX = Index(
    version="v1",
    release=ReleaseSummary("20261105T120000Z-0123456789ab", datetime(2026, 11, 5, 12, tzinfo=UTC), illustrative=False),
    attribution=("Population and housing: U.S. Census Bureau",),
    areas=tuple(area.listed(("San Francisco, CA",) if area.name == "projects" else None) for area in AREAS),
    releases="/v1/releases",
    key=AskingKey("0B1zQmX4ktLw", ("forecast", "bulk"), "500/s", "5000000/month", datetime(2027, 11, 30, tzinfo=UTC)),
    usage="/v1/usage",
    openapi="/v1/openapi.json",
    documentation="/docs/",
)

# the wrong parameter, and the detail of the error
_AT_FAULT = {
    "missing_parameter": ("state_code", "city_name needs state_code. Add state_code=AL, for example."),
    "invalid_parameter": ("zip_code", "zip_code is not a five-digit ZIP code. Did you mean zip_code=00501?"),
    "duplicate_parameter": ("zip_code", "zip_code was given twice. Did you mean zip_code=00501?"),
    "unknown_parameter": ("page", f"There is no parameter page. {NEXT_PAGE}"),
    "invalid_cursor": ("cursor", CODES["invalid_cursor"][1]),
}


def example_problem(code: str) -> dict[str, Any]:
    status, advice = CODES[code]
    example = {
        "type": "about:blank",
        "title": title_of(status),
        "status": status,
        "detail": advice,
        "code": code,
        "request_id": "4f1c2d7e9a5b4c3d8e6f7a8b9c0d1e2f",
    }
    if code not in _AT_FAULT:
        return example
    parameter, detail = _AT_FAULT[code]
    return {**example, "detail": detail, "parameter": parameter}
