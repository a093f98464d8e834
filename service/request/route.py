"""Finds the endpoint at a path, and refuses unknown paths."""

from collections.abc import Callable, Iterable, Mapping

from service.request import suggestions
from service.request.errors import problem
from service.request.request import METHODS, NO_AREA, Request
from service.request.response import Response
from service.request.targets import Route


class Router:
    """The paths of one worker, which owns it.

    `routes` are by path; `find_other` finds the others, by path and query string. `offers` returns whether the current
    release has an area. `suggested` are further paths that a wrong one may stand for. Test keys find only `test_paths`.
    """

    def __init__(
        self,
        routes: Mapping[str, Route],
        *,
        find_other: Callable[[str, bytes], Route | None] = lambda _, __: None,
        offers: Callable[[str], bool] = lambda _: True,
        suggested: Iterable[str] = (),
        test_paths: frozenset[str] = frozenset(),
    ) -> None:
        self._routes = routes
        self._find_other = find_other
        self._offers = offers
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
            return problem("not_found", self._nearest(request.path))
        if request.method not in METHODS:
            return problem("method_not_allowed")
        return None

    def _is_there(self, request: Request) -> bool:
        path, route = request.path, request.route
        # the server as a whole, or another one: the method must be changed
        if not path.startswith("/") or (route is not None and route.public):
            return True
        if request.is_test:  # a path that test keys do not have must not reach live data
            return path in self._test_paths
        return request.area != NO_AREA and self._offers(request.area)

    def _nearest(self, path: str) -> str | None:
        offered = (known for known, route in self._routes.items() if not route.public and self._offers(route.area))
        return suggestions.suggest_path(path, (*offered, *self._suggested, *self._public[:1]), guide=bool(self._public))
