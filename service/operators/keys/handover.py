"""The page behind a link, which shows a key once. It needs no token: the link is the secret."""

from base64 import b64encode
from hashlib import sha256
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Controller, Response, post, route
from litestar.params import FromPath

from service.keys.audit import Change, note_or_log
from service.keys.errors import KeyStoreError
from service.keys.handover import open_link
from service.operators.guards import READ, AnyRequest, address_of, headers_of
from service.operators.keys.backend import Backend, api_error
from service.operators.page_files import wants_page
from service.operators.problems import OPERATOR_CODES
from service.redis.errors import StoreUnavailable

_STYLE = (
    "body{font:1.1rem/1.5 system-ui,sans-serif;margin:2rem auto;max-width:44rem;padding:0 1rem}"
    "input{font:1rem ui-monospace,monospace;max-width:100%;box-sizing:border-box;padding:.5rem}"
    "button{font:inherit;padding:.5rem 1rem}"
)
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; "
        f"style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_LOADER = PackageLoader("service.operators", "keys")
_PAGE = Environment(loader=_LOADER, autoescape=True, undefined=StrictUndefined).get_template("handover.html")


class HandedOver(msgspec.Struct, frozen=True):
    """A key, for programs that open its link."""

    key: str
    key_id: str
    partner: str
    label: str


class HandoverController(Controller):
    """Shows each key once, to the first caller with its link."""

    path = "/handover/{token:str}"
    include_in_schema = False

    # Messengers and mail scanners open links by themselves, with a GET: it shows nothing.
    @route("/", http_method=READ)
    async def ask(self, token: FromPath[str]) -> Response[str]:  # noqa: ARG002 - any link has this page
        return _page(200, title="Your API key")

    @post("/", status_code=200)
    async def show(self, request: AnyRequest, token: FromPath[str], backend: Backend) -> Response[Any]:
        in_browser = wants_page(headers_of(request))
        store = await backend.store()
        try:
            presented, key = await open_link(store, token)
        except (KeyStoreError, StoreUnavailable) as error:
            if not in_browser:
                raise
            status, advice = OPERATOR_CODES[api_error(error).code]
            return _page(status, title="No key here", problem=advice)
        by = f"link ({address_of(request)})"  # anybody may send an X-Actor here
        change = Change(what="delivered", by=by, key_id=key.key_id, partner=key.partner, test=key.test)
        await note_or_log(store.redis, change)  # a failure must not lose the key
        if not in_browser:
            return Response(HandedOver(presented, key.key_id, key.partner, key.label))
        ends = f"{key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
        members = {"partner": key.partner, "label": key.label, "key_id": key.key_id, "ends": ends}
        return _page(200, title="Your API key", key=presented, **members)


def _page(status: int, **members: str) -> Response[str]:
    text = _PAGE.render(style=_STYLE, **members)
    return Response(text, status_code=status, media_type="text/html", headers=_HEADERS)
