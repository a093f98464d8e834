"""Finds the endpoint at a path, and refuses unknown paths."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from service.request import suggestions
from service.request.errors import CODES, ApiError, problem
from service.request.parameters import echoed
from service.request.request import METHODS, NO_AREA, Request
from service.request.response import Response
from service.request.targets import Route
from warehouse.following import OpenRelease

_LONGEST_QUERY = 500  # characters, as an error repeats it


class Router:
    """The paths of one worker, which owns it.

    `routes` are by path; `find_other` finds the others, by path and query string. `offers` returns whether the current
    `release` has an area. `suggested` are further paths that a wrong one may stand for. Test keys find only
    `test_paths`.
    """

    def __init__(
        self,
        routes: Mapping[str, Route],
        *,
        find_other: Callable[[str, bytes], Route | None] = lambda _, __: None,
        offers: Callable[[str], bool] = lambda _: True,
        release: Callable[[], OpenRelease | None] = lambda: None,
        suggested: Iterable[str] = (),
        test_paths: frozenset[str] = frozenset(),
    ) -> None:
        self._routes = routes
        self._find_other = find_other
        self._offers = offers
        self._release = release
        self._suggested = tuple(suggested)
        self._test_paths = test_paths
        self._public = tuple(path for path, route in routes.items() if route.public)

    def place(self, request: Request) -> None:
        """Sets the request's route and area. The first step: any outcome is counted there."""
        path = request.path
        route = self._routes.get(path) or self._find_other(path, request.query)
        if route is not None:
            request.route, request.area = route, route.area

    def route(self, request: Request) -> Response | None:
        """Returns the 404 or 405 that ends the request."""
        if request.target is None and not self._is_there(request):
            return problem("not_found", self._suggest(request))
        if request.method not in METHODS:
            return problem("method_not_allowed", advise_get(request, request.query.decode("latin-1")))
        return None

    def _is_there(self, request: Request) -> bool:
        path, route = request.path, request.route
        # the server as a whole, or another one: the method must be changed
        if not path.startswith("/") or (route is not None and route.public):
            return True
        if request.is_test:  # a path that test keys do not have must not reach live data
            return path in self._test_paths
        return request.area != NO_AREA and self._offers(request.area)

    def _suggest(self, request: Request) -> str | None:
        """Returns what is at a path that is nearly the one of the request, with its query; or the guide."""
        path = request.path
        offered = (known for known, route in self._routes.items() if not route.public and self._offers(route.area))
        near = suggestions.nearest_path(path, (*offered, *self._suggested, *self._public[:1]))
        guide = " The guide is at /docs/." if self._public else ""
        if near is None:
            return CODES["not_found"][1] + guide if guide else None
        if near[0] == path:  # it exists, but not for this key
            return f"Test keys do not get this: it is live data.{guide}"
        sent = echoed(request.query.decode("latin-1"), _LONGEST_QUERY)
        targets = (f"{near[0]}?{query}" for query in (near[1], sent) if query)
        shown = next((target for target in targets if request.is_test or self._is_answered(target)), near[0])
        return f"There is nothing at this path. Did you mean {shown}?{guide}"

    def _is_answered(self, target: str) -> bool:
        """Returns whether the current release answers the request of a live key; True if it is no look-up."""
        path, _, query = target.partition("?")
        route, release = self._routes.get(path), self._release()
        with suppress(ApiError):
            return not route or not route.resolve or not release or bool(route.resolve(release, query.encode()))
        return False


def advise_get(request: Request, query: str, below: str = "") -> str | None:
    """Returns the advice for another method: the GET with this query, `below` the path; None if it has none."""
    shown = f"{request.path.removesuffix(below)}{below}?{echoed(query, _LONGEST_QUERY)}"
    return f"{CODES['method_not_allowed'][1]} Send GET {shown}" if query and request.route is not None else None
