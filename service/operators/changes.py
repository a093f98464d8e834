"""What operators can change through their listener: a key revoked, a release rolled back, as the commands do it; and
caches emptied."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from service.http.errors import ApiError
from service.keys import form
from service.keys.opening import open_key_store
from service.keys.record import KeyView
from service.keys.store import ForeignStoreError, KeyStore, KeyStoreError, NoSuchKeyError
from service.publishing.rollback import RolledBack, roll_back_and_wait
from service.redis.client import StoreUnavailable
from warehouse.files.file_access import FileAccess
from warehouse.schema.errors import BusyError, CatalogError, FilesHang, NoSuchReleaseError

log = logging.getLogger("forecast.operators")

# Whole files are read; more is a file system that hangs.
_ROLL_BACK_SECONDS = 30.0


class NoOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that needs none."""


class RollbackOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`release` is to become current; None: the one that was current before."""

    release: Annotated[str, Meta(min_length=1, max_length=100)] | None = None


class Purged(msgspec.Struct, frozen=True):
    """How many answers there were: in the near caches of this instance's workers, and in the shared cache."""

    near: int
    shared: int


class Changes:
    """`keys_url` and `secret` (the pepper) open the key store, at the first revocation: most instances see none.

    `purge` empties the caches, or raises StoreUnavailable when it has emptied those of the workers alone.
    """

    def __init__(self, keys_url: str, secret: bytes, data: Path, purge: Callable[[], Awaitable[Purged]]) -> None:
        self._purge = purge
        self._keys_url = keys_url
        self._secret = secret
        self._data = data
        self._keys: KeyStore | None = None

    async def stop(self) -> None:
        if self._keys is not None:
            await self._keys.redis.stop()

    async def revoke(self, key_id: str, remote: str) -> KeyView:
        """The key, revoked and durable; `remote` is the address that asks for it.

        Raises:
            ApiError: if this is no id, there is no such key, or the key store does not answer or lost its keys.
        """
        _check_id(key_id)
        store = await self._opened()
        try:
            return KeyView.of(await store.revoke(key_id, by=_who(remote)))
        except NoSuchKeyError as error:
            raise ApiError("no_such_key", str(error)) from None
        except ForeignStoreError as error:
            raise ApiError("unavailable", str(error)) from None
        except KeyStoreError as error:
            raise ApiError("busy", str(error)) from None
        except StoreUnavailable as error:
            raise ApiError("unavailable", f"{error}; ask again: revoking a key twice does no harm") from None

    async def roll_back(self, release: str | None, remote: str) -> RolledBack:
        """Makes `release`, or the one before the current, current; `remote` is the address that asks for it.

        Raises:
            ApiError: if there is no such release, it is damaged, or a publisher is at work.
        """
        try:
            # in a thread: it reads whole files, and waits for the instances, of which this is one
            done = await FileAccess().run(
                f"rolling back in {self._data}",
                roll_back_and_wait,
                self._data,
                release,
                _who(remote),
                wait=_ROLL_BACK_SECONDS,
            )
        except NoSuchReleaseError as error:
            raise ApiError("no_such_release", str(error)) from None
        except BusyError as error:
            raise ApiError("busy", str(error)) from None
        except FilesHang as error:
            raise ApiError("unavailable", f"{error}; it may still be done when the file system answers") from None
        except CatalogError as error:
            raise ApiError("rollback_refused", str(error)) from None
        log.info("release %s was made current by %s", done.release, _who(remote), extra={"release": done.release})
        return done

    async def purge(self, remote: str) -> Purged:
        """Empties the near caches of this instance, and the shared cache; `remote` is the address that asks for it.

        Raises:
            ApiError: if the shared cache does not answer.
        """
        try:
            done = await self._purge()
        except StoreUnavailable as error:
            raise ApiError("unavailable", f"{error}. The near caches of this instance are empty; ask again") from None
        log.info("caches were purged by %s: %d near, %d shared", _who(remote), done.near, done.shared)
        return done

    async def _opened(self) -> KeyStore:
        if self._keys is None:
            self._keys = open_key_store(self._keys_url, self._secret, self._data)
            await self._keys.redis.start()
        return self._keys


def _check_id(key_id: str) -> None:
    """Nothing of what is no id is repeated: it may be a key, and good."""
    whole = form.parse(key_id)
    if whole is not None:
        raise ApiError(
            "invalid_key_id",
            f"This is a whole key, which logs on the way here may hold now: revoke it, by its id {whole.key_id}.",
        )
    if not form.is_key_id(key_id):
        raise ApiError("invalid_key_id")


def _who(remote: str) -> str:
    return f"operator listener ({remote})"
