"""The key store, usage and last errors behind the endpoints for keys; its errors as answers."""

import asyncio
import re
from collections.abc import AsyncGenerator, Container
from functools import partial
from typing import Annotated

from litestar.di import NamedDependency
from litestar.params import HeaderParameter, SkipValidation

from config.settings import Settings
from service.base.terms import MOST
from service.http.own_usage.errors import ErrorReader
from service.http.own_usage.usage import OwnUsage
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
from service.operators.guards import AnyRequest, By
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


Backend = NamedDependency[SkipValidation[KeyBackend]]
Listed = NamedDependency[SkipValidation[KeyStore]]
Acting = NamedDependency[SkipValidation[KeyStore]]


async def provide_listed(backend: Backend) -> AsyncGenerator[KeyStore, None]:
    """Provides the store for a listing. Raises ForeignStoreError if it is not the one that our keys are in.

    No handler may take it together with `acting`: Litestar leaves a generator open if another dependency fails
    meanwhile, and the lock would stay taken.
    """
    store = await backend.store()
    loss = await store.loss()
    if loss is not None:
        raise ForeignStoreError(loss)
    async with backend.listing:
        yield store


async def provide_acting(
    request: AnyRequest,
    backend: Backend,
    by: By,
    if_match: Annotated[
        str | None,
        HeaderParameter(name="If-Match", description="Make the change only if this ETag is the current one."),
    ] = None,
    if_none_match: Annotated[
        str | None, HeaderParameter(name="If-None-Match", description="`*`: create it only if it does not exist.")
    ] = None,
) -> KeyStore:
    """Provides the store for the change in a request, with its author and preconditions."""
    expected = _expected(request.method == "PUT", if_match, if_none_match)
    return (await backend.store()).acting_for(by, expected)


def api_error(error: KeyStoreError | StoreUnavailable) -> ApiError:
    """Returns the answer to a request that the key store refused, or did not reply to."""
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    text = str(error)
    return ApiError(code, f"{text[:1].upper()}{text[1:]}.")


def _expected(is_put: bool, if_match: str | None, if_none_match: str | None) -> Container[int] | None:
    """Returns the revisions that If-Match and If-None-Match (RFC 9110, 13.1) allow a record; None for any.

    A tag is a revision; 0 means that there is no record.
    """
    match, none_match = _tags(if_match), _tags(if_none_match)
    if "*" in none_match:
        return frozenset({0} if is_put else ())  # only a PUT can create
    if if_match is None:
        return None
    if "*" in match:
        return range(1, MOST + 1) if is_put else None  # the others need a record in any case
    return frozenset(int(tag[1:-1]) for tag in match if _TAG.fullmatch(tag))


def _tags(header: str | None) -> list[str]:
    return [tag.strip() for tag in (header or "").split(",")]


async def _errors_of(cache_url: str, key_id: str) -> tuple[OwnError, ...]:
    async with opened("store of errors", cache_url, _ERRORS_SECONDS) as store:
        return await LastErrors(store).of_key(key_id)
