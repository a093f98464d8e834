"""GET /v1/usage, /v1/usage/hours and /v1/usage/errors."""

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import SkipValidation

from service.http.app import Checked
from service.http.own_usage.errors import ErrorReader
from service.http.own_usage.usage import OwnUsage
from service.request.request import key_of
from service.request.response import JSON, NO_STORE, Response

PATH, HOURS_PATH, ERRORS_PATH = "/v1/usage", "/v1/usage/hours", "/v1/usage/errors"
# Counted under this name, and neither limited nor billed.
USAGE = "usage"
PATHS = dict.fromkeys((PATH, HOURS_PATH, ERRORS_PATH), USAGE)


class OwnUsageController(Controller):
    """The usage of the request's key, and its last errors."""

    path = PATH

    @get()
    async def by_day(self, checked: Checked, own_usage: NamedDependency[SkipValidation[OwnUsage]]) -> Response:
        """Returns usage by UTC day and area, and what is left of the quota."""
        return _answer(await own_usage.by_day(key_of(checked), checked.query))

    @get("/hours")
    async def by_hour(self, checked: Checked, own_usage: NamedDependency[SkipValidation[OwnUsage]]) -> Response:
        """Returns usage by UTC hour and area."""
        return _answer(await own_usage.by_hour(key_of(checked), checked.query))

    @get("/errors")
    async def errors(self, checked: Checked, own_errors: NamedDependency[SkipValidation[ErrorReader]]) -> Response:
        """Returns the key's last errors, newest first."""
        return _answer(await own_errors.newest(key_of(checked).key_id, checked.query))


def _answer(body: bytes) -> Response:
    return Response.of(200, (JSON, NO_STORE), body, "answered")
