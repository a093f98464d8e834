"""What there is at a path, and what a request for it stands for in one release."""

from collections.abc import Callable

import msgspec

from service.cache.key import CacheKey
from service.cache.read_through import Fill
from service.request.response import Header, Response
from warehouse.following import OpenRelease


class ResolvedQuery(msgspec.Struct, frozen=True):
    """What a query string asks of one release: its canonical form, how to look it up, and what that counts as."""

    query: str
    fill: Fill
    outcome: str = "answered"
    headers: tuple[Header, ...] = ()  # of this answer alone


# Reads a raw query string. Raises ApiError (400, 404).
Resolve = Callable[[OpenRelease, bytes], ResolvedQuery]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """What there is at a path. Its requests count under `area`.

    `resolve` reads query strings of a look-up endpoint; other endpoints are the application's. `weigh` returns as how
    many requests a query string counts; None: as one. A `public` path needs no key.
    """

    area: str
    resolve: Resolve | None = None
    weigh: Callable[[bytes], int] | None = None
    public: bool = False


class Target(msgspec.Struct, frozen=True, gc=False):
    """What a request line stands for in one release: the entry with a digest, or an error."""

    route: Route
    area: str
    sent_path: str
    query: str  # canonical
    release: str  # id
    digest: bytes  # of the cache key
    outcome: str
    headers: tuple[Header, ...] = ()
    error: Response | None = None

    @property
    def key(self) -> CacheKey:
        return CacheKey(self.digest, self.release)


class Resolution(msgspec.Struct, frozen=True):
    """A request in one release, and how to look it up there."""

    release: OpenRelease
    query: ResolvedQuery
    key: CacheKey
    target: Target
