"""What a request means in one release. It is read once, on whichever way it is answered."""

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
    """The same, with the release, and where the answer is kept; or the error that the request ends with."""

    release: OpenRelease
    area: str
    asked: ResolvedRequest | None
    key: CacheKey | None
    error: ApiError | None = None

    @property
    def kept(self) -> Kept | None:
        """None if the answer is not given again directly."""
        if self.asked is None or self.key is None or self.asked.headers:
            return None
        return Kept(self.key, self.asked.outcome)
