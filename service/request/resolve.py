"""Resolves a request to the entry of a release that answers it. Caches the result by request line.

Most requests repeat a line that was resolved since the last release switch. Such a line is looked up in a bounded
cache, and is not parsed again. Errors of a line are kept there too (a negative cache).
"""

from collections import OrderedDict
from collections.abc import Callable

from service.cache.key import cache_key
from service.request.errors import ApiError, problem, problem_of
from service.request.request import Request
from service.request.response import Response
from service.request.targets import Resolution, Target
from warehouse.following import OpenRelease, ReleaseFollower

# Room for all ZIP codes and cities of the country: a second walk through all of them only hits.
MOST_TARGETS = 100_000
MOST_TARGET_BYTES = 64 << 20
# Memory of a target, besides its request line and query. Measured: a process grew by 0.95 to 1.02 of the whole.
_OVERHEAD_BYTES = 420
# Error codes of a release that lacks the requested data.
LACKING = ("no_matching_records", "not_found")
_NOTHING_PUBLISHED = "No data has been published yet. Try again as Retry-After says."
_NO_RELEASE = "The data is unavailable at the moment. Try again as Retry-After says."


# Returned instead of a response: the application answers the request.
DISPATCH = Response(0, b"", b"", "")


class Resolver:
    """Resolves the requests of one worker, which owns it. It keeps only targets of the current release."""

    def __init__(self, follower: ReleaseFollower) -> None:
        self._follower = follower
        self._release: str | None = None
        self._targets: OrderedDict[bytes, Target] = OrderedDict()  # by request line
        self._size = 0  # bytes of them
        self.find: Callable[[bytes], Target | None] = self._targets.get

    def switch(self, release: str) -> None:
        """Resolves requests in `release` from now on."""
        self._release = release

    def resolve(self, request: Request) -> Response | None:
        """Sets the request's target. Returns the error if there is none, or if the target is an error; DISPATCH for
        checked requests that are no look-ups in live data.
        """
        target, route = request.target, request.route
        if target is not None and target.release == self._release:
            return target.error
        if not request.is_checked and (route is None or route.resolve is None or request.is_test):
            request.is_checked = True
            return DISPATCH
        release = self._follower.current
        if release is None:
            return problem_of(no_release(self._follower))
        stands_in = self._follower.stands_in_since is not None
        try:
            target = self.in_release(request, release).target
        except ApiError as error:
            if stands_in and error.code in LACKING:
                return problem("unavailable")  # the current release may have it
            target = request.target = self._failed(request, release, problem_of(error))
        if request.line and not stands_in:
            self._keep(request.line, target)
        return target.error

    def in_release(self, request: Request, release: OpenRelease) -> Resolution:
        """Resolves the request in one release, and sets its target there. Raises ApiError.

        A release that stands in has no near entries: its answers must be marked as stale.
        """
        route = request.route
        if route is None or route.resolve is None:
            raise LookupError("this is not a look-up endpoint")
        query = route.resolve(release, request.query)
        key = cache_key(release.id, route.area, query.query)
        digest = key.digest if self._follower.stands_in_since is None else b""
        target = request.target = Target(
            route, route.area, request.sent_path, query.query, release.id, digest, query.outcome, query.headers
        )
        request.resolution = Resolution(release, query, key, target)
        return request.resolution

    def _failed(self, request: Request, release: OpenRelease, error: Response) -> Target:
        route = request.route
        assert route is not None  # noqa: S101 - as above
        query = request.query.decode("latin-1")
        return Target(route, route.area, request.sent_path, query, release.id, b"", error.outcome, error=error)

    def _keep(self, line: bytes, target: Target) -> None:
        """Keeps a target; drops the oldest ones for lack of room. Resolving a line again takes microseconds."""
        if target.release != self._release:
            return
        before = self._targets.pop(line, None)
        if before is not None:
            self._size -= _size_of(line, before)
        self._targets[line] = target
        self._size += _size_of(line, target)
        while self._size > MOST_TARGET_BYTES or len(self._targets) > MOST_TARGETS:
            self._size -= _size_of(*self._targets.popitem(last=False))


def _size_of(line: bytes, target: Target) -> int:
    """Returns the bytes of memory that a target takes."""
    error = target.error
    size = 0 if error is None else len(error.lines) + len(error.body) + len(error.rest)
    headers = sum(len(name) + len(value) for name, value in target.headers)
    return len(line) + len(target.query) + len(target.sent_path) + size + headers + _OVERHEAD_BYTES


def no_release(follower: ReleaseFollower) -> ApiError:
    """Returns the error while no release is open."""
    return ApiError("unavailable", _NOTHING_PUBLISHED if follower.unpublished else _NO_RELEASE)
