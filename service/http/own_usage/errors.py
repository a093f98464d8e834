"""The last errors of a key, as its owner reads them: each with its request's id."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from service.base.single_flight import SingleFlight
from service.http.pages import read_limit
from service.http.query import read_strictly
from service.quota.last_errors import MOST_KEPT, OwnError
from service.redis.errors import StoreUnavailable
from service.request.errors import ApiError

DEFAULT_LIMIT = 20
# With half a second until a worker stores an error, and the time of a read, it is seen within about a second.
REUSE_SECONDS = 0.4
_MOST_REUSED = 256  # lists of errors; at most some 10 MB
_UNREADABLE = (
    "Your last errors cannot be read at the moment. Other requests are answered. Try again as Retry-After says."
)

# The answer to test keys, and the example of the description.
EXAMPLES = (
    OwnError(
        *("2026-11-20T09:14:03.215Z", "7a2b20d6f4e1ee5a60420fd0af726001", "GET", 400, "invalid_parameter"),
        "/v1/population-housing-forecast?zip_code=501",
    ),
    OwnError(
        *("2026-11-20T09:12:41.006Z", "b1946ac92492d2347c6235b4d2611184", "GET", 429, "rate_limited"),
        "/v1/population-housing-forecast?zip_code=36436",
    ),
)

# The errors of a key id, newest first. May raise StoreUnavailable.
ReadErrors = Callable[[str], Awaitable[tuple[OwnError, ...]]]


class OwnErrors(msgspec.Struct, frozen=True):
    """The last errors of a key, and of no other."""

    key_id: Annotated[str, Meta(description="Identifies the key; not a secret.")]
    total_results: Annotated[int, Meta(description="The length of the list.")]
    errors: Annotated[tuple[OwnError, ...], Meta(description="Newest first.")]


class ErrorReader:
    """Reads the errors of keys for their owners.

    The limits of a key's plan do not apply here. To bound a key's load on the store, a read is reused for
    REUSE_SECONDS.
    """

    def __init__(self, read: ReadErrors) -> None:
        self._read = read
        self._reads: SingleFlight[tuple[OwnError, ...]] = SingleFlight(REUSE_SECONDS, most=_MOST_REUSED)

    async def newest(self, key_id: str, query: bytes) -> bytes:
        """Returns an encoded list of errors. Raises ApiError (400, 503)."""
        limit = read_limit(read_strictly(query, ("limit",)).get("limit"), MOST_KEPT, DEFAULT_LIMIT)
        try:
            found = (await self._reads.run(key_id, partial(self._read, key_id)))[:limit]
        except StoreUnavailable as error:
            raise ApiError("unavailable", _UNREADABLE) from error
        return msgspec.json.encode(OwnErrors(key_id, len(found), found))


async def errors_for_tests(_: str) -> tuple[OwnError, ...]:
    """Returns no errors: none of test keys are stored."""
    return EXAMPLES
