"""The key store, usage and last errors behind the endpoints for keys; its errors as answers."""

import asyncio
import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from functools import partial

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from config.settings import Settings
from service.base.terms import MOST
from service.http.own_usage.errors import ErrorReader
from service.http.own_usage.usage import OwnUsage
from service.keys import form
from service.keys.errors import (
    BusyRecordError,
    ForeignStoreError,
    KeyStoreError,
    LinkUsedError,
    NoSuchKeyError,
    NoSuchPartnerError,
    NoSuchPlanError,
    OtherRequestError,
    OtherRevisionError,
)
from service.keys.store import KeyStore, open_key_store
from service.operators.guards import AnyRequest, caller_of
from service.quota.last_errors import LastErrors, OwnError
from service.quota.report import UsageReport
from service.quota.usage_store import UsageStore
from service.redis.errors import StoreUnavailable
from service.redis.opening import opened
from service.redis.primary import Primary
from service.request.errors import ApiError

_TAG = re.compile('"[0-9]{1,16}"')
_ERRORS_SECONDS = 2.0  # for reading the last errors of a key
# The code for each error of the key store; the first that fits.
_CODES: tuple[tuple[type[Exception], str], ...] = (
    (NoSuchKeyError, "no_such_key"),
    (NoSuchPlanError, "unknown_plan"),
    (NoSuchPartnerError, "no_such_partner"),
    (OtherRevisionError, "precondition_failed"),
    (OtherRequestError, "idempotency_key_reused"),
    (LinkUsedError, "link_used"),
    (BusyRecordError, "busy"),
    (ForeignStoreError, "unavailable"),
    (StoreUnavailable, "unavailable"),
    (KeyStoreError, "change_refused"),
)


class KeyBackend:
    """Opens the stores for operators' requests. The `OperatorsListener` of an instance stops it.

    `keys_url` and `secret` (the pepper) open the key store at the first request that needs it: most instances get none.
    `cache_url` is where the last errors of keys are. A change returns once the replicas that `settings` name have it.
    """

    def __init__(self, settings: Settings, keys_url: str, cache_url: str, secret: bytes) -> None:
        self.settings = settings
        self._primary = Primary(keys_url)
        self._secret = secret
        self._store: KeyStore | None = None
        # A listing reads every record. One at a time, so that many cannot keep the supervisor from its other work.
        self.listing = asyncio.Lock()
        self.errors = ErrorReader(partial(_errors_of, cache_url))

    async def stop(self) -> None:
        if self._store is not None:
            await self._store.redis.stop()
        await self._primary.stop()

    async def store(self) -> KeyStore:
        if self._store is None:
            settings = self.settings
            self._store = open_key_store(self._primary, self._secret, settings.data_path, settings.keys_replicas)
            self.usage = OwnUsage(UsageReport(self._store.redis), UsageStore(self._store.redis))
            await self._primary.start()
            await self._store.redis.start()
        return self._store

    async def owned(self) -> KeyStore:
        """Returns the store, for a listing. Raises ForeignStoreError if it is not the one that our keys are in."""
        store = await self.store()
        loss = await store.loss()
        if loss is not None:
            raise ForeignStoreError(loss)
        return store

    async def acting(self, request: AnyRequest) -> KeyStore:
        """Returns the store for the change in `request`, with its author and preconditions. Raises ApiError."""
        return (await self.store()).acting_for(caller_of(request), _expected(request))


Backend = NamedDependency[SkipValidation[KeyBackend]]


@contextmanager
def api_errors() -> Iterator[None]:
    """Raises ApiError for an error of the key store."""
    try:
        yield
    except (KeyStoreError, StoreUnavailable) as error:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        text = str(error)
        raise ApiError(code, f"{text[:1].upper()}{text[1:]}.") from None


def check_id(key_id: str) -> None:
    """Raises ApiError if `key_id` is not an id. The message does not repeat `key_id`: it may be a valid key."""
    whole = form.parse(key_id)
    if whole is not None:
        raise ApiError(
            "invalid_key_id",
            f"This is a whole key, and logs may contain it now. Revoke it by its id, {whole.key_id}.",
        )
    if not form.is_key_id(key_id):
        raise ApiError("invalid_key_id")


def _expected(request: AnyRequest) -> Container[int] | None:
    """Returns the revisions that If-Match and If-None-Match (RFC 9110, 13.1) allow a record; None for any.

    A tag is a revision; 0 means that there is no record.
    """
    match, none_match = (_tags(request, name) for name in ("if-match", "if-none-match"))
    if "*" in none_match:
        return frozenset({0} if request.method == "PUT" else ())  # only a PUT can create
    if "if-match" not in request.headers:
        return None
    if "*" in match:
        return range(1, MOST + 1) if request.method == "PUT" else None  # the others need a record in any case
    return frozenset(int(tag[1:-1]) for tag in match if _TAG.fullmatch(tag))


def _tags(request: AnyRequest, name: str) -> list[str]:
    return [tag.strip() for tag in ",".join(request.headers.getall(name, [])).split(",")]


async def _errors_of(cache_url: str, key_id: str) -> tuple[OwnError, ...]:
    async with opened("store of errors", cache_url, _ERRORS_SECONDS) as store:
        return await LastErrors(store).of_key(key_id)
