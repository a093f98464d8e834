"""Changes through the operators' listener: roll back a release, purge the caches."""

import logging
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from msgspec import Meta

from config.settings import Settings
from service.keys.audit import PURGED, Change, note_or_log
from service.operators.keys.backend import KeyBackend
from service.operators.overview import EventKind
from service.publishing.releases import RolledBack, open_releases, roll_back_and_wait
from service.redis.errors import StoreUnavailable
from service.request.errors import ApiError
from warehouse.files.file_access import FileAccess
from warehouse.schema.errors import BusyError, CatalogError, FilesHang, NoSuchReleaseError

log = logging.getLogger("forecast.operators")

# A rollback reads whole files. If it takes longer than this, the file system hangs.
_ROLL_BACK_SECONDS = 30.0


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
    """Carries out operators' changes to one instance. Its `OperatorsListener` owns it, and stops `backend`.

    `purge` empties the caches; it raises StoreUnavailable if it could empty only the near caches. `happened` reports
    changes that neither the data folder nor the audit trail shows. `by` is who wants a change.
    """

    def __init__(
        self,
        settings: Settings,
        backend: KeyBackend,
        purge: Callable[[], Awaitable[Purged]],
        happened: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> None:
        self._purge = purge
        self._happened = happened
        self.backend = backend
        self._releases = open_releases(settings)

    async def roll_back(self, release: str | None, by: str) -> RolledBack:
        """Makes `release` current (None: the one before the current).

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
                by,
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
        log.info("release %s was made current by %s", done.release, by, extra={"release": done.release})
        return done

    async def purge(self, by: str) -> Purged:
        """Empties the shared cache and the near caches of all instances on this key store.

        Raises:
            ApiError: if the shared cache or the key store does not answer.
        """
        await note_or_log((await self.backend.store()).redis, Change(what=PURGED, by=by))
        try:
            done = await self._purge()
        except StoreUnavailable as error:
            self._happened("purge", f"the near caches were purged by {by}; a store did not answer: {error}")
            raise ApiError("unavailable", f"{error}. The near caches of this instance are empty; try again") from None
        self._happened("purge", f"the caches were purged by {by}: {done.near} near, {done.shared} shared")
        if done.behind:
            log.error("instances that did not confirm the purge: %s", ", ".join(done.behind))
        log.info("caches were purged by %s: %d near, %d shared", by, done.near, done.shared)
        return done
