"""Changes through the operators' listener: revoke a key, roll back a release, purge the caches."""

import logging
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from config.settings import Settings
from service.base.whoami import caller
from service.keys import form
from service.keys.audit import PURGED, Change, describe_change, note
from service.keys.errors import ForeignStoreError, KeyStoreError, NoSuchKeyError
from service.keys.record import KeyView
from service.keys.store import KeyStore, open_key_store
from service.operators.overview import EventKind
from service.publishing.releases import RolledBack, open_releases, roll_back_and_wait
from service.redis.errors import StoreUnavailable
from service.redis.primary import Primary
from service.request.errors import ApiError
from warehouse.files.file_access import FileAccess
from warehouse.schema.errors import BusyError, CatalogError, FilesHang, NoSuchReleaseError

log = logging.getLogger("forecast.operators")

# A rollback reads whole files. If it takes longer than this, the file system hangs.
_ROLL_BACK_SECONDS = 30.0


class NoOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that takes no parameters."""


class RollbackOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to roll back."""

    # the release to make current; None: the previous one
    release: Annotated[str, Meta(min_length=1, max_length=100)] | None = None


class Purged(msgspec.Struct, frozen=True):
    """How many answers one purge removed."""

    near: int  # in the near caches of this instance's workers
    shared: int  # in the shared cache
    reached: tuple[str, ...] = ()  # ids of the other instances that confirmed the purge
    behind: tuple[str, ...] = ()  # ids of those that did not confirm it yet


class Actions:
    """Carries out operators' changes to one instance. Its `OperatorsListener` owns and stops it.

    `keys_url` and `secret` (the pepper) open the key store at the first change that needs it: most instances see none.
    `purge` empties the caches; it raises StoreUnavailable if it could empty only the near caches. `happened` reports
    changes that neither the data folder nor the audit trail shows. A revocation returns once the replicas that
    `settings` name have it.
    """

    def __init__(
        self,
        settings: Settings,
        keys_url: str,
        secret: bytes,
        purge: Callable[[], Awaitable[Purged]],
        happened: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> None:
        self._purge = purge
        self._happened = happened
        self._primary = Primary(keys_url)
        self._replicas = settings.keys_replicas
        self._secret = secret
        self._data = settings.data_path
        self._releases = open_releases(settings)
        self._keys: KeyStore | None = None

    async def stop(self) -> None:
        if self._keys is not None:
            await self._keys.redis.stop()
        await self._primary.stop()

    async def revoke(self, key_id: str, remote: str) -> KeyView:
        """Revokes a key and returns it once the revocation is on disk. `remote` is the caller's address.

        Raises:
            ApiError: if `key_id` is no id, the key does not exist, or the key store is unreachable or lost its keys.
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
            raise ApiError("unavailable", f"{error}; try again: revoking a key twice is harmless") from None

    async def roll_back(self, release: str | None, remote: str) -> RolledBack:
        """Makes `release` current (None: the one before the current). `remote` is the caller's address.

        Raises:
            ApiError: if the release does not exist or is damaged, or another publish runs.
        """
        try:
            # in a thread: it reads whole files, and waits for all instances including this one
            done = await FileAccess().run(
                f"rolling back in {self._releases.place}",
                roll_back_and_wait,
                self._releases,
                release,
                _who(remote),
                wait=_ROLL_BACK_SECONDS,
            )
        except NoSuchReleaseError as error:
            raise ApiError("no_such_release", str(error)) from None
        except BusyError as error:
            raise ApiError("busy", str(error)) from None
        except FilesHang as error:
            raise ApiError("unavailable", f"{error}; the rollback may still happen once it answers") from None
        except CatalogError as error:
            raise ApiError("rollback_refused", str(error)) from None
        log.info("release %s was made current by %s", done.release, _who(remote), extra={"release": done.release})
        return done

    async def purge(self, remote: str) -> Purged:
        """Empties the shared cache and the near caches of all instances on this key store.

        `remote` is the caller's address.

        Raises:
            ApiError: if the shared cache or the key store does not answer.
        """
        await self._note_purge(Change(what=PURGED, by=_who(remote)))
        try:
            done = await self._purge()
        except StoreUnavailable as error:
            self._happened("purge", f"the near caches were purged by {_who(remote)}; a store did not answer: {error}")
            raise ApiError("unavailable", f"{error}. The near caches of this instance are empty; try again") from None
        self._happened("purge", f"the caches were purged by {_who(remote)}: {done.near} near, {done.shared} shared")
        if done.behind:
            log.error("instances that did not confirm the purge: %s", ", ".join(done.behind))
        log.info("caches were purged by %s: %d near, %d shared", _who(remote), done.near, done.shared)
        return done

    async def _note_purge(self, change: Change) -> None:
        """Writes `change` to the audit trail. A failure to write does not stop the purge."""
        try:
            await note((await self._opened()).redis, change)
        except StoreUnavailable as error:
            log.error("%s (not in the audit trail: %s)", describe_change(change), error)

    async def _opened(self) -> KeyStore:
        if self._keys is None:
            self._keys = open_key_store(self._primary, self._secret, self._data, self._replicas)
            await self._primary.start()
            await self._keys.redis.start()
        return self._keys


def _check_id(key_id: str) -> None:
    """Raises ApiError if `key_id` is not an id. The message does not repeat `key_id`: it may be a valid key."""
    whole = form.parse(key_id)
    if whole is not None:
        raise ApiError(
            "invalid_key_id",
            f"This is a whole key, and logs may contain it now. Revoke it by its id, {whole.key_id}.",
        )
    if not form.is_key_id(key_id):
        raise ApiError("invalid_key_id")


def _who(remote: str) -> str:
    return caller(remote)
