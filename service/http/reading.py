"""What a request means in one release, as both ways read it."""

from types import TracebackType

import msgspec

from service.cache.key import CacheKey
from service.cache.read_through import Fill
from service.http.errors import ApiError
from service.http.reply import Header, Kept
from warehouse.following import OpenRelease


class ResolvedRequest(msgspec.Struct, frozen=True):
    """What a request means in one release: its canonical query, how to answer it, and what that counts as."""

    query: str
    fill: Fill
    outcome: str = "answered"
    headers: tuple[Header, ...] = ()  # of this request alone: an answer with any is not given again directly


class Reading(msgspec.Struct, frozen=True):
    """The same, with the release, and where the answer is kept."""

    release: OpenRelease
    area: str
    asked: ResolvedRequest
    key: CacheKey

    @property
    def kept(self) -> Kept | None:
        """None if the answer is not given again directly."""
        return Kept(self.key, self.asked.outcome) if not self.asked.headers else None


class ReadError(msgspec.Struct, frozen=True):
    """The error that a request ends with in a release."""

    release: OpenRelease
    area: str
    error: ApiError


# How a look-up ended, with its traceback as it was then: each caller that raises the error makes it longer.
Failure = tuple[Exception, TracebackType | None]
