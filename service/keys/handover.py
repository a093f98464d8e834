"""Keys on their way to their owners: a request that is repeated gets the same key, and a link shows a key once.

For that, the store has records that end after a day, `k:once:<hash>`. They have a random seed, never a secret: the
secret is an HMAC of the seed with the pepper. So neither the store alone nor the pepper alone reveals a key.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from hashlib import sha256

import msgspec

from service.keys import form
from service.keys.draft import KeyDraft, derived
from service.keys.errors import LinkUsedError, OtherRequestError
from service.keys.record import KEY_RECORD_PREFIX, ApiKey, decode_record
from service.keys.store import KeyStore

KEPT = timedelta(hours=24)

_PREFIX = f"{KEY_RECORD_PREFIX}once:"
_OPENED = b'"opened"'


async def repeatable_draft(
    store: KeyStore, idempotency_key: str, draft: KeyDraft, refuse: Callable[[], Awaitable[None]]
) -> KeyDraft:
    """Returns `draft`, or that of the first request with this `idempotency_key` in the last 24 hours.

    Only a first request is checked by `refuse`. One that it refuses leaves the `idempotency_key` unused.

    Raises:
        OtherRequestError: if that was another request.
        StoreUnavailable: if the store does not answer.
    """
    name = _record_of("request", idempotency_key)
    (raw,) = await store.raw_records([name])
    if raw is None:
        await refuse()
        await _keep(store, name, msgspec.json.encode(draft))
        (raw,) = await store.raw_records([name])
    first = decode_record(raw, KeyDraft, name) or draft
    if first.request != draft.request:
        raise OtherRequestError("another request had this Idempotency-Key in the last 24 hours; nothing was changed")
    return first


async def make_link(store: KeyStore, draft: KeyDraft) -> str:
    """Returns the token of a link that shows the key of `draft` once, for 24 hours. Raises StoreUnavailable."""
    token = form.base62(int.from_bytes(derived(store.pepper, b"link", draft.seed)))
    await _keep(store, _record_of("link", token), msgspec.json.encode(draft))
    return token


async def open_link(store: KeyStore, token: str) -> tuple[str, ApiKey]:
    """Returns the key of a link as its owner gets it, and as it is stored. The link shows nothing from now on.

    Raises:
        LinkUsedError: if the link was opened before, has ended, or never existed; or its key does not work.
        ForeignStoreError: if this is not the store that our keys are in.
        StoreUnavailable: if the store does not answer.
    """
    store.check_identity(await store.identity())
    name = _record_of("link", token)
    (raw,) = await store.raw_records([name])
    used = LinkUsedError("the link was opened before, or has ended")
    if raw is None or raw == _OPENED:
        raise used
    draft = decode_record(raw, KeyDraft, name)
    key = None if draft is None else await store.issued(draft.key_id)
    if draft is None or key is None:
        raise LinkUsedError("the key of this link does not exist")
    presented, parts = draft.parts(store.pepper)
    if form.digest(parts.secret, store.pepper) != key.digest or key.status() not in ("active", "pending"):
        raise LinkUsedError("the key of this link does not work now")  # the link stays: the key may be resumed
    # one command, so that of two callers one gets it
    before = await store.redis.call(lambda client: client.set(name, _OPENED, xx=True, get=True, keepttl=True))
    if before != raw:
        raise used
    return presented, key


async def _keep(store: KeyStore, name: str, text: bytes) -> None:
    """Writes the record unless there is one."""
    await store.redis.call(lambda client: client.set(name, text, nx=True, ex=KEPT))


def _record_of(kind: str, word: str) -> str:
    return f"{_PREFIX}{sha256(f'{kind} {word}'.encode()).hexdigest()}"
