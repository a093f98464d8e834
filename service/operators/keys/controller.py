"""The endpoints for keys: search, issue, change, rotate, suspend, resume, revoke; usage and last errors."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar

import msgspec
from litestar import Controller, Response, patch, post, route
from litestar.datastructures import ResponseHeader
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter
from msgspec import UNSET

from service.http.own_usage.errors import OwnErrors
from service.http.own_usage.usage import Usage
from service.http.releases.files import AREA_NAMES
from service.keys import changes
from service.keys.draft import KeyDraft, new_draft
from service.keys.handover import KEPT, make_link, repeatable_draft
from service.keys.listing import KeyFilter, Newest, Place, key_views
from service.keys.record import NEVER_USED, ApiKey, DamagedKey, KeyView, MoreOfKey, ShownStatus
from service.keys.store import KeyStore, now
from service.operators.access import Right
from service.operators.guards import READ, AnyRequest, errors, needing
from service.operators.keys.backend import Acting, Backend, Listed
from service.operators.keys.orders import (
    ChangeOrder,
    IssuedKey,
    IssueOrder,
    RotateOrder,
    SuspendOrder,
    checked,
    refuse_past,
)
from service.quota.last_errors import MOST_KEPT
from service.quota.report import last_used
from service.request.errors import ApiError

S = TypeVar("S", bound=msgspec.Struct)

READING = errors(400, 401, 403, 404, 421, 429, 503)
CHANGING = errors(400, 401, 403, 404, 409, 412, 413, 415, 421, 422, 503)
TAGGED = (ResponseHeader(name="ETag", description="The revision, for If-Match.", value="", documentation_only=True),)
ISSUED = (
    *TAGGED,
    ResponseHeader(name="Location", description="The path of the key.", value="", documentation_only=True),
)

_MOST_LISTED, _LISTED = 1000, 100
_LONGEST_IDEMPOTENCY_KEY = 200
_Days = Annotated[int | None, QueryParameter(ge=0, le=36_500)]
_Area = Annotated[str | None, QueryParameter(pattern=f"^({'|'.join(AREA_NAMES)})$")]
_Repeated = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="A word of your own. A repeated request with it gets the same key again, for 24 hours.",
    ),
]


class KeyPage(msgspec.Struct, frozen=True):
    """Keys, newest first. `total` counts all that the filter leaves; `damaged` are records that cannot be read."""

    keys: list[KeyView]
    total: int
    next_cursor: str | None
    damaged: list[DamagedKey]


class KeysController(Controller):
    """Keys, for callers with the keys token. Their secrets are shown once."""

    path = "/keys"
    guards = (needing(Right.KEYS),)
    tags = ("keys",)

    @route("/", http_method=READ, responses=READING)
    async def search(
        self,
        listed: Listed,
        partner: FromQuery[str | None] = None,
        plan: FromQuery[str | None] = None,
        status: FromQuery[ShownStatus | None] = None,
        area: _Area = None,
        label: Annotated[str | None, QueryParameter(description="A part of the label.")] = None,
        expires_within_days: _Days = None,
        unused_days: _Days = None,
        limit: Annotated[int, QueryParameter(ge=1, le=_MOST_LISTED)] = _LISTED,
        cursor: Annotated[str | None, QueryParameter(description="next_cursor of the page before.")] = None,
    ) -> KeyPage:
        """Search keys, newest first, by partner, plan, status, area and a part of the label."""
        wanted = KeyFilter(
            partner=partner,
            plan=plan,
            status=status,
            area=area,
            label=label,
            expires_within=None if expires_within_days is None else timedelta(days=expires_within_days),
            unused=None if unused_days is None else timedelta(days=unused_days),
        )
        newest, damaged = Newest(limit, None if cursor is None else _place(cursor)), []
        async for view in key_views(listed, await last_used(listed.redis)):
            if isinstance(view, DamagedKey):
                damaged.append(view)
            elif wanted.matches(view):
                newest.add(view)
        views = newest.views()
        more = _cursor(views[-1]) if newest.left > len(views) else None
        return KeyPage(views, newest.seen, more, damaged[:_LISTED])

    @post("/", status_code=201, responses=CHANGING, response_headers=ISSUED)
    async def issue(
        self,
        request: AnyRequest,
        data: JSONBody[IssueOrder],
        backend: Backend,
        acting: Acting,
        idempotency_key: _Repeated = None,
    ) -> Response[IssuedKey]:
        """Issue a key. The answer shows it once, or has a link that does."""
        terms = data.terms.terms()
        partner, label = checked("partner", data.partner), checked("label", data.label, can_be_empty=True)
        more = MoreOfKey(plan=data.plan, not_before=data.not_before)

        async def refuse() -> None:
            refuse_past(data)
            await changes.guards_of_issue(acting, partner, terms, data.plan)

        draft = await _draft(acting, request, idempotency_key, refuse, test=data.test)
        link = await make_link(acting, draft) if data.deliver == "link" else None
        presented, key = await changes.issue(
            acting, partner, label, data.expires_at, terms, test=data.test, more=more, draft=draft
        )
        return _handed_over(request, backend, presented, key, link)

    @route("/{key_id:str}", http_method=READ, responses=READING, response_headers=TAGGED)
    async def show(self, key_id: FromPath[str], backend: Backend) -> Response[KeyView]:
        """Show a key: status, terms, end, last use. The ETag names its revision, for If-Match."""
        store = await backend.store()
        _, key = await store.read(key_id)
        _, identity = await store.raw_identity()
        return answer(KeyView.of(key, identity, await last_used(store.redis)), key.revision)

    @patch("/{key_id:str}", responses=CHANGING, response_headers=TAGGED)
    async def change(self, key_id: FromPath[str], data: JSONBody[ChangeOrder], acting: Acting) -> Response[KeyView]:
        """Change plan, terms and end of a key, all or none of them."""
        refuse_past(data)
        _, key = await changes.change_terms(acting, key_id, data.terms.edit, data.plan, data.expires_at)
        return _shown(key)

    @post("/{key_id:str}/rotate", status_code=201, responses=CHANGING, response_headers=ISSUED)
    async def rotate(
        self,
        request: AnyRequest,
        key_id: FromPath[str],
        data: JSONBody[RotateOrder],
        backend: Backend,
        acting: Acting,
        idempotency_key: _Repeated = None,
    ) -> Response[IssuedKey]:
        """Replace a key by a new one with the same terms. The old one works until the overlap ends."""
        _, old = await acting.read(key_id)

        async def refuse() -> None:
            refuse_past(data)

        draft = await _draft(acting, request, idempotency_key, refuse, test=old.test)
        link = await make_link(acting, draft) if data.deliver == "link" else None
        overlap = timedelta(seconds=data.overlap_seconds)
        presented, key, old = await changes.rotate(acting, key_id, overlap, data.expires_at, draft)
        return _handed_over(request, backend, presented, key, link, old)

    @post("/{key_id:str}/suspend", status_code=200, responses=CHANGING, response_headers=TAGGED)
    async def suspend(self, key_id: FromPath[str], data: JSONBody[SuspendOrder], acting: Acting) -> Response[KeyView]:
        """Suspend a key until it is resumed: its requests get a 403."""
        key = await changes.suspend(acting, key_id, checked("reason", data.reason))
        return _shown(key)

    @post("/{key_id:str}/resume", status_code=200, responses=CHANGING, response_headers=TAGGED)
    async def resume(self, key_id: FromPath[str], acting: Acting) -> Response[KeyView]:
        """Make a suspended key work again."""
        key = await changes.resume(acting, key_id)
        return _shown(key)

    @route("/{key_id:str}/usage", http_method=READ, responses=READING)
    async def usage(
        self,
        request: AnyRequest,
        key_id: FromPath[str],
        backend: Backend,
        first: Annotated[str | None, QueryParameter(name="from", description="The first UTC day.")] = None,  # noqa: ARG002 - read with the query
        to: Annotated[str | None, QueryParameter(description="The last UTC day.")] = None,  # noqa: ARG002
    ) -> Response[Usage]:
        """Usage by UTC day and area, and what is left of the quota, as the key's owner sees it at /v1/usage."""
        store = await backend.store()
        key = (await store.find(key_id)).key
        if key is None:
            raise await store.missing(key_id)
        return _encoded(await backend.usage.by_day(key, request.scope["query_string"]))

    @route("/{key_id:str}/errors", http_method=READ, responses=READING)
    async def last_errors(
        self,
        request: AnyRequest,
        key_id: FromPath[str],
        backend: Backend,
        limit: Annotated[int | None, QueryParameter(ge=1, le=MOST_KEPT)] = None,  # noqa: ARG002 - read with the query
    ) -> Response[OwnErrors]:
        """The last errors of a key, newest first, as its owner sees them at /v1/usage/errors."""
        await (await backend.store()).read(key_id)
        return _encoded(await backend.errors.newest(key_id, request.scope["query_string"]))


class RevocationController(Controller):
    """The one change of keys that the write token allows too: a leaked key must be stopped at once."""

    guards = (needing(Right.WRITE | Right.KEYS),)
    tags = ("keys", "changes")

    @post("/keys/{key_id:str}/revoke", status_code=200, responses=CHANGING, response_headers=TAGGED)
    async def revoke(self, key_id: FromPath[str], acting: Acting) -> Response[KeyView]:
        """Revoke a key for good. The answer comes once the revocation is on disk."""
        return _shown(await acting.revoke(key_id))


async def _draft(
    store: KeyStore,
    request: AnyRequest,
    idempotency_key: str | None,
    refuse: Callable[[], Awaitable[None]],
    *,
    test: bool,
) -> KeyDraft:
    """Returns the draft of the key that `request` issues; a repeated request gets the same.

    Raises ApiError, OtherRequestError, StoreUnavailable; what `refuse` raises, unless the request is a repeated one.
    """
    if idempotency_key is None:
        await refuse()
        return new_draft(now(), test=test)
    if not 0 < len(idempotency_key) <= _LONGEST_IDEMPOTENCY_KEY:
        raise ApiError("bad_request", f"Idempotency-Key must have 1 to {_LONGEST_IDEMPOTENCY_KEY} characters.")
    asked = request.scope["path"].encode() + b"\n" + await request.body()
    return await repeatable_draft(store, idempotency_key, new_draft(now(), test=test, request=asked), refuse)


def _handed_over(
    request: AnyRequest, backend: Backend, presented: str, key: ApiKey, link: str | None, old: ApiKey | None = None
) -> Response[IssuedKey]:
    base = backend.settings.handover_url or f"{request.scope['scheme']}://{request.headers.get('host', 'localhost')}"
    issued = IssuedKey(
        **msgspec.structs.asdict(KeyView.of(key, last_used=NEVER_USED)),
        key=presented if link is None else UNSET,
        link=UNSET if link is None else f"{base}/handover/{link}",
        link_ends_at=UNSET if link is None else key.created_at + KEPT,
        old=UNSET if old is None else KeyView.of(old),
    )
    return answer(issued, key.revision, status=201, headers={"Location": f"/keys/{key.key_id}"})


def answer(content: S, revision: int, status: int = 200, headers: dict[str, str] | None = None) -> Response[S]:
    return Response(content, status_code=status, headers={"ETag": f'"{revision}"', **(headers or {})})


def _shown(key: ApiKey) -> Response[KeyView]:
    return answer(KeyView.of(key), key.revision)


def _encoded(body: bytes) -> Response[Any]:
    """Returns the response for an answer that is encoded already."""
    return Response(body, media_type="application/json")


def _cursor(last: KeyView) -> str:
    # without a plus sign, which is a space in a query
    return f"{last.created_at.isoformat().replace('+00:00', 'Z')}~{last.key_id}"


def _place(cursor: str) -> Place:
    created, _, key_id = cursor.partition("~")
    try:
        at = datetime.fromisoformat(created)
        return at if at.tzinfo else at.replace(tzinfo=UTC), key_id
    except ValueError:
        raise ApiError("invalid_parameter", "cursor is not a next_cursor of this endpoint.") from None
