"""The endpoint at a path, and the target of a request in one release."""

from collections.abc import Callable

import msgspec

from service.cache.key import CacheKey
from service.cache.read_through import Fill
from service.request.response import Header, Response
from warehouse.following import OpenRelease


class ResolvedQuery(msgspec.Struct, frozen=True):
    """A query string as resolved in one release: its canonical form, its look-up, and its outcome."""

    query: str
    fill: Fill
    outcome: str = "answered"
    headers: tuple[Header, ...] = ()  # only for this answer


# Reads a raw query string. Raises ApiError (400, 404).
Resolve = Callable[[OpenRelease, bytes], ResolvedQuery]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint at a path. Its requests count under `area`.

    `resolve` reads query strings of a look-up endpoint; other endpoints are the application's. `weigh` returns how many
    requests a query string counts as; None: one. A `public` path needs no key.
    """

    area: str
    resolve: Resolve | None = None
    weigh: Callable[[bytes], int] | None = None
    public: bool = False


class Target(msgspec.Struct, frozen=True, gc=False):
    """The target of a request line in one release: the entry with a digest, or an error."""

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
    """A request as resolved in one release, and its look-up there."""

    release: OpenRelease
    query: ResolvedQuery
    key: CacheKey
    target: Target
