"""GET /v1/population-housing-forecast/batch: up to a hundred ZIP codes, each like a request of its own.

Every ZIP code is answered from the cache entry of its own request, and counts as one. So the batch itself is not
cached, and an error of one ZIP code does not affect the others.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Annotated, Any
from urllib.parse import unquote_plus

import msgspec
from msgspec import Meta

from service.base.masking import masked
from service.cache.entry import CacheEntry, Found, Tier
from service.http.area import BatchEndpoint, Endpoint, Operation, Parameter, keys_of
from service.http.forecast_examples import DICKINSON
from service.http.query import read_repeated, read_value, read_zip, refuse_unknown
from service.http.suggestions import zips_in
from service.request.errors import ApiError
from service.request.parameters import nearest_parameter
from service.request.pipeline import Answers
from service.request.request import Counted, Request
from service.request.respond import accepts_gzip
from service.request.response import JSON, NO_STORE, Response
from service.request.targets import ResolvedQuery
from warehouse.areas import forecast
from warehouse.areas.forecast import ForecastEntry
from warehouse.following import OpenRelease
from warehouse.places.match import Match
from warehouse.schema.errors import LookupFailure

MOST = 100
_NAME = forecast.FORECAST_AREA.name
_PARAMETER = "zip_code"
_MOST_SHOWN = 100  # characters
_TIERS: tuple[Tier, ...] = ("near", "shared", "warehouse")  # the slowest last


class BatchResult(msgspec.Struct, frozen=True):
    """The answer to the request for one ZIP code alone."""

    zip_code: Annotated[str, Meta(description="As it was sent.")]
    status: Annotated[int, Meta(description="200, 400, 404 or 503.")]
    result: Annotated[ForecastEntry | None, Meta(description="The entry of zip_codes; null unless status is 200.")]
    code: Annotated[str | None, Meta(description="The code of the error; null if status is 200.")]


class BatchBody(msgspec.Struct, frozen=True):
    """A result for each ZIP code, in the order of the query."""

    total_results: Annotated[int, Meta(description="The length of results, equal to the number of ZIP codes sent.")]
    total_found: Annotated[int, Meta(description="The number of results with status 200.")]
    results: Annotated[Sequence[BatchResult], Meta(description="In the order of the query.")]


class _Asked(msgspec.Struct, frozen=True):
    """One value of the query."""

    shown: str
    zip_code: str | None  # None: invalid


class _LookedUp(msgspec.Struct, frozen=True):
    """The result in one release. `requests` are by ZIP code, `entries` by canonical query."""

    requests: dict[str, ResolvedQuery]
    entries: dict[str, Found | LookupFailure]


_encoder = msgspec.json.Encoder()


def weigh(query: bytes) -> int:
    """Returns how many requests a query string counts as: one for each parameter.

    Unknown parameters get a 400, and so do too many.
    """
    number = sum(1 for pair in query.split(b"&") if pair)
    return number if 1 <= number <= MOST else 1


async def answer(answers: Answers, request: Request) -> Response:
    """Returns the answer to a batch. Raises ApiError."""
    asked = read_batch(request.query)

    async def make(release: OpenRelease) -> _LookedUp:
        requests = _requests(release, asked)
        return _LookedUp(requests, await answers.look_ups.fetch_all(release, _NAME, list(requests.values())))

    found, release, age = await answers.look_ups.in_one_release(make)
    results, counted = _results(asked, found, is_stale=age is not None)
    body = _encoder.encode(BatchBody(len(results), sum(one.status == 200 for one in results), results))
    request.shown_query = f"batch:{len(asked)}"
    is_whole = all(one.status != 503 for one in results)
    parts = [one for one in found.entries.values() if isinstance(one, Found)]
    if parts:
        entry = await _entry(body, gzip=is_whole and accepts_gzip(request.accept_encoding or b""))
        slowest = max((one.tier for one in parts), key=_TIERS.index)
        tier, bypassed = slowest if age is None else "previous", any(one.bypassed for one in parts)
        request.found = Found(entry, tier, release.id, bypassed=bypassed, stale_for=age)
    if request.found is not None and is_whole:
        response = answers.policy.found_response(request, request.found)
    else:
        headers = (JSON, NO_STORE, (b"x-data-release", release.id.encode()))
        response = Response.of(200, headers, body, "answered")
    request.counted = tuple(_unchanged(one) for one in counted) if response.status == 304 else counted
    return response


def read_batch(query: bytes) -> list[_Asked]:
    """Returns the values of the query, in their order. Raises ApiError (400) for errors of the batch as a whole."""
    values, unknown = read_repeated(query, _PARAMETER)
    meant = [text for name, text in unknown if nearest_parameter(name, (_PARAMETER,)) is not None]
    listed = [zip_code for text in meant for zip_code in zips_in(text)]
    refuse_unknown(unknown, (_PARAMETER,), _repeat(listed) if listed else "")
    if not values:
        raise ApiError("missing_parameter", "Give zip_code once for each: zip_code=36436&zip_code=90210.", _PARAMETER)
    if len(values) > MOST:
        detail = f"{len(values)} ZIP codes are too many. Ask for at most {MOST} at a time."
        raise ApiError("invalid_parameter", detail, _PARAMETER)
    asked = [_asked(value) for value in values]
    only = asked[0].shown if len(asked) == 1 and asked[0].zip_code is None else ""
    listed = zips_in(only)
    if len(listed) > 1 or "," in only:
        raise ApiError("invalid_parameter", "zip_code is a list.", _PARAMETER, remedy=_repeat(listed))
    return asked


def _repeat(zip_codes: Sequence[str]) -> str:
    repeated = "&".join(f"{_PARAMETER}={zip_code}" for zip_code in zip_codes or ("36436", "90210"))
    return f"Did you mean {repeated}?" if zip_codes else f"Repeat the parameter instead: {repeated}."


def _asked(raw: bytes) -> _Asked:
    if len(raw) == 5 and raw.isdigit():  # as most are
        text = raw.decode()
        return _Asked(text, text)
    text = unquote_plus(raw.decode("latin-1"), errors="replace").strip()
    shown = masked(text)[:_MOST_SHOWN]
    try:
        return _Asked(shown, read_zip(read_value(_PARAMETER, raw)))
    except ApiError:
        return _Asked(shown, None)


def _requests(release: OpenRelease, asked: Sequence[_Asked]) -> dict[str, ResolvedQuery]:
    """Returns the requests for places that the release has."""
    keys = keys_of(release, _NAME)
    requests = {}
    for zip_code in {one.zip_code for one in asked if one.zip_code is not None}:
        match = keys.resolve(zip_code, None, None)
        if isinstance(match, Match):
            outcome = "answered" if keys.has_figures(match.keys) else "answered_empty"
            fill = partial(forecast.look_up_forecast, release.engine, match)
            requests[zip_code] = ResolvedQuery(match.query, fill, outcome)
    return requests


def _results(
    asked: Sequence[_Asked], found: _LookedUp, *, is_stale: bool
) -> tuple[list[BatchResult], tuple[Counted, ...]]:
    results: list[BatchResult] = []
    counts: Counter[tuple[int, str, Any]] = Counter()
    for one in asked:
        request = found.requests.get(one.zip_code) if one.zip_code is not None else None
        fetched = found.entries[request.query] if request is not None else None
        if request is not None and isinstance(fetched, Found):
            entry: Any = msgspec.Raw(forecast.entry_of(fetched.entry.body))  # encoded already
            results.append(BatchResult(one.shown, 200, entry, None))
            counts[200, request.outcome, "previous" if is_stale else fetched.tier] += 1
            continue
        if one.zip_code is None:
            status, code = 400, "invalid_parameter"
        elif request is None and not is_stale:
            status, code = 404, "no_matching_records"
        else:  # the current release may have what the previous one lacks
            status, code = 503, "unavailable"
        results.append(BatchResult(one.shown, status, None, code))
        counts[status, code, None] += 1
    return results, tuple(Counted(number, *kind) for kind, number in counts.items())


def _unchanged(one: Counted) -> Counted:
    return msgspec.structs.replace(one, status=304, outcome="not_modified") if one.status == 200 else one


async def _entry(body: bytes, *, gzip: bool) -> CacheEntry:
    """Encodes the answer.

    It is not cached, so it is compressed only if requested; in a thread, because that takes milliseconds.
    """
    if gzip:
        return await asyncio.to_thread(CacheEntry.of, body)
    return CacheEntry(body, b"", blake2b(body, digest_size=16).digest())


BATCH = Endpoint(
    path="/v1/population-housing-forecast/batch",
    description=f"Population and housing of up to {MOST} ZIP codes in one request.",
    operation=Operation(
        id="getForecastBatch",
        description="Each ZIP code is answered like a request of its own, in the order of the query, and counts as one "
        "request against the rate. Against the quota, only those with status 200 count. One that is not valid (400), "
        "not known (404) or not available at the moment (503) has its own status and code and changes nothing for the "
        "others. If fewer requests are left than there are ZIP codes, none is answered: the whole batch is a 429. Only "
        "answers with status 200 are billable.",
        body=BatchBody,
        matched="A result for each ZIP code. Without an ETag if none was found, or one has status 503.",
        examples={
            "batch": BatchBody(
                total_results=3,
                total_found=1,
                results=(
                    BatchResult("36436", 200, DICKINSON, None),
                    BatchResult("99999", 404, None, "no_matching_records"),
                    BatchResult("501", 400, None, "invalid_parameter"),
                ),
            )
        },
        by_location=False,
        parameters=(
            Parameter(
                _PARAMETER,
                "Once for each ZIP code: five digits, leading zeros included; of ZIP+4 the first five count.",
                {"type": "array", "items": {"type": "string", "maxLength": 100}, "minItems": 1, "maxItems": MOST},
                ["36436", "99999", "501"],
                required=True,
            ),
        ),
        query_errors=("missing_parameter", "invalid_parameter", "unknown_parameter"),
    ),
    resolve=BatchEndpoint(weigh=weigh, answer=answer),
    query_forms=((_PARAMETER,),),
)
