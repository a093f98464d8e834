"""Mirrors the store of releases into a data folder: fetches releases, verifies them, and follows the pointer.

<data>/mirror/<id>/         a release that is being fetched; kept until it is whole, so that no file is fetched twice
<data>/mirror/state.json    the serial of the last pointer that was followed, and which releases were fetched
<data>/mirror.lock          held by the one mirror that writes: several instances may share a data folder

One thread calls `look` a few times a second, another `work`. So the mirror follows the pointer also during a fetch.
"""

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from warehouse.files.atomic import take_lock, write_atomically
from warehouse.files.reading import read_struct
from warehouse.files.remedies import with_remedy
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.changes import in_use, remove
from warehouse.releases.instances import InstanceRecord, live_instances
from warehouse.releases.pointer import Pointer
from warehouse.schema.errors import BusyError, CatalogError, NeedsNewerError, StoreError
from warehouse.upstream.documents import LAST_SERIAL, Beat, Followed, StoredPointer, holds
from warehouse.upstream.store import BEAT_SECONDS, KnownPointer, ReleasesStore

log = logging.getLogger("forecast.mirror")

# Pause after a failed fetch, unless the pointer changes.
_AGAIN_SECONDS = 5.0

# folder and manifest of the announced release; returns warnings for its publisher
WarmMirrored = Callable[[Path, Manifest], tuple[str, ...]]
# unused releases, whose answers may be removed from the shared cache
ForgetMirrored = Callable[[set[str]], None]


class Mirror:
    """The mirror of one instance, in a process of its own.

    `name` is the instance's id. `problem` is the reason why the data folder does not follow the store, if any.
    """

    def __init__(
        self,
        store: ReleasesStore,
        catalog: Catalog,
        name: str,
        warm: WarmMirrored,
        forget: ForgetMirrored = lambda _: None,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._name = name
        self._warm = warm
        self._forget = forget
        self._forgotten_for: str | None = None  # the release that was current then
        self._folder = catalog.data / "mirror"
        self._known: KnownPointer | None = None
        self._unreachable: str | None = None
        self._astray: str | None = None
        self._stuck: str | None = None
        self._failed: dict[str, tuple[float, str]] = {}  # by release: when and why it could not be fetched
        self._warmed: dict[str, tuple[str, ...]] = {}
        self._changing_catalog = threading.Lock()
        self._lock: int | None = None
        self._sent: tuple[Beat | None, float] = (None, 0.0)
        self._state = Followed()

    @property
    def problem(self) -> str | None:
        pointer = self._pointer
        wanted = (pointer.release, pointer.next.release if pointer.next else None) if pointer else ()
        failed = (self._failed.get(release or "", (0.0, None))[1] for release in wanted)
        return next(filter(None, (self._unreachable, self._astray, self._stuck, *failed)), None)

    @property
    def _pointer(self) -> StoredPointer | None:
        return self._known.pointer if self._known is not None else None

    # --- one thread ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Reads the pointer if it has changed, follows it if its release is here, and writes a beat."""
        try:
            leads = self._lead()
            self._read_pointer()
            if leads and self._astray is None and self._pointer is not None:
                self._follow(self._pointer)
            self._stuck = None
        except BusyError:
            pass  # a command holds the publish lock: next time
        except (CatalogError, OSError) as error:
            self._stuck = with_remedy(f"the data folder cannot follow the store: {error}")
        self._beat()

    def end(self) -> None:
        """Deletes the beat of this instance."""
        with suppress(StoreError):
            self._store.end_beat(self._name)

    def _read_pointer(self) -> None:
        try:
            known = self._store.pointer_unless(self._known)
        except StoreError as error:
            self._unreachable = f"{error}; serving the releases in the data folder"
            return
        self._unreachable = None
        if known is None:
            self._astray = None
            return
        if self._state.is_after(known.pointer):
            at = f"at serial {known.pointer.serial}" if known.version else "without current.json"
            self._astray = (
                f"the store of releases went back: it is {at}, and was at {self._state.serial}; "
                "serving continues; `forecast extracts rollback RELEASE` or publishing makes a release current again"
            )
            return
        self._astray = None
        if self._pointer is None or known.pointer.release != self._pointer.release:
            self._failed.clear()
        self._known = known

    def _follow(self, pointer: StoredPointer) -> None:
        self._note(serial=pointer.serial, lineage=pointer.lineage, left=self._state.left_for(pointer))
        if pointer.release is not None and self._is_here(pointer.release):
            self._switch(pointer.release, pointer)
        self._retire(pointer)

    def _switch(self, release: str, pointer: StoredPointer) -> None:
        try:
            local = self._catalog.pointer()
        except CatalogError:  # switching repairs it
            local = None
        if local is not None and (local.release, local.previous) == (release, pointer.previous):
            return
        with self._changing():
            try:
                self._catalog.verify(self._catalog.manifest(release))
            except CatalogError as error:
                log.error("%s; fetching the release again", error)
                remove(self._catalog, [release])
                return
            since = pointer.switched_at or datetime.now(UTC)
            self._catalog.follow(Pointer(release, pointer.previous, since, pointer.by))
        log.info("%s is current in the store of releases", release, extra={"release": release})

    def _retire(self, pointer: StoredPointer) -> None:
        """Removes fetched releases that the store no longer has."""
        named = {*pointer.releases, pointer.release, pointer.next.release if pointer.next else None}
        gone = [release for release in self._state.fetched if release not in named]
        if not gone:
            return
        used = in_use(self._catalog)
        with self._changing():
            there = set(self._catalog.names())
            remove(self._catalog, [release for release in gone if release not in used and release in there])
        self._note(fetched=tuple(one for one in self._state.fetched if one in named or one in used))

    def _beat(self) -> None:
        """Writes the beat of this instance, if it changed or the last one is old."""
        try:
            record = read_struct(self._catalog.data / "instances" / f"{self._name}.json", InstanceRecord)
        except (OSError, ValueError):
            return  # it has not written its first record yet, or is ending
        beat = Beat(
            instance=record,
            serial=min(self._state.serial, LAST_SERIAL),
            ready=tuple(self._catalog.names()),
            warmed=self._warmed,
            problem=self.problem,
            folder=str(self._catalog.data.absolute()),
            astray=self._astray is not None,
        )
        before, sent = self._sent
        if beat == before and time.monotonic() - sent < BEAT_SECONDS:
            return
        try:
            self._store.beat(self._name, beat)
        except StoreError as error:
            self._unreachable = self._unreachable or f"{error}; publishers do not see this instance"
            return
        self._sent = (beat, time.monotonic())

    # --- another thread ------------------------------------------------------------------------------------------

    def work(self) -> bool:
        """Fetches the release that is most needed, or warms the announced one; False if there is nothing to do."""
        pointer = self._pointer
        if pointer is None or self._astray is not None:
            return False
        release = self._first_missing(pointer)
        if release is not None and self._lock is not None:
            try:
                return self._fetch(release)
            except (NeedsNewerError, StoreError, CatalogError, OSError) as error:
                problem = with_remedy(f"release {release} cannot be fetched: {error}")
                if self._failed.get(release, (0, ""))[1] != problem:
                    log.error("%s", problem)
                self._failed[release] = (time.monotonic(), problem)
                return True
        announced = pointer.next
        if announced is not None and self._name in announced.warm_by and announced.release not in self._warmed:
            return self._warm_announced(announced.release)
        if pointer.release != self._forgotten_for and self._serves(pointer.release):
            self._forgotten_for = pointer.release
            self._forget_unused(pointer)
            return True
        return self._clear(set(_by_need(pointer)))

    def _fetch(self, release: str) -> bool:
        """Fetches a release, file by file, until another one is needed more."""
        stored = self._store.release(release)
        staged = self._folder / release
        for name, file in stored.files.items():
            if self._pointer is None or self._first_missing(self._pointer) != release:
                return True
            target = staged / name
            if not holds(target, file):
                target.parent.mkdir(parents=True, exist_ok=True)
                self._store.fetch(file, target)
        with self._changing():
            self._catalog.adopt(staged, stored.manifest)
        self._note(fetched=(*self._state.fetched, release))
        self._failed.pop(release, None)
        log.info("release %s was fetched", release, extra={"release": release})
        return True

    def _first_missing(self, pointer: StoredPointer) -> str | None:
        return next((one for one in _by_need(pointer) if not self._is_here(one) and self._may_try(one)), None)

    def _warm_announced(self, release: str) -> bool:
        if not self._is_here(release):
            return False
        try:
            warnings = self._warm(self._catalog.folder(release), self._catalog.manifest(release))
        except CatalogError as error:
            warnings = (str(error),)
        self._warmed = {release: warnings}
        return True

    def _serves(self, release: str | None) -> bool:
        """Returns whether all instances on the data folder serve the release."""
        records = live_instances(self._catalog.data)
        return release is not None and bool(records) and all(record.serves(release) for record in records)

    def _forget_unused(self, pointer: StoredPointer) -> None:
        """Drops unused releases from the shared cache, as publishing does after a switch where there is no store."""
        if self._lock is None:
            return
        announced = {pointer.next.release} if pointer.next is not None else set()
        self._forget(set(self._catalog.names()) - in_use(self._catalog) - announced)

    def _clear(self, needed: set[str]) -> bool:
        """Removes partly fetched releases that are no longer needed."""
        if self._lock is None or not self._folder.is_dir():
            return False
        for entry in self._folder.iterdir():
            if entry.is_dir() and entry.name not in needed:
                shutil.rmtree(entry, ignore_errors=True)
        return False

    # --- both ----------------------------------------------------------------------------------------------------

    def _is_here(self, release: str) -> bool:
        return (self._catalog.folder(release) / "manifest.json").is_file()

    def _may_try(self, release: str) -> bool:
        failed = self._failed.get(release)
        return failed is None or time.monotonic() - failed[0] > _AGAIN_SECONDS

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._changing_catalog, self._catalog.changing():
            yield

    def _lead(self) -> bool:
        """Returns whether this mirror writes: the first live one on the data folder does."""
        if self._lock is not None:
            return True
        self._folder.mkdir(exist_ok=True)
        lock = take_lock(self._catalog.data / "mirror.lock")
        if lock is None:
            return False
        with suppress(OSError, ValueError):
            self._state = read_struct(self._folder / "state.json", Followed)
        self._lock = lock
        return True

    def _note(self, **changes: int | str | tuple[str, ...]) -> None:
        with self._changing_catalog:
            state = msgspec.structs.replace(self._state, **changes)
            if state != self._state:
                write_atomically(self._folder / "state.json", msgspec.json.encode(state))
                self._state = state


def _by_need(pointer: StoredPointer) -> list[str]:
    """Returns the releases to fetch, the most needed first."""
    announced = pointer.next.release if pointer.next is not None else None
    wanted = (pointer.release, announced, pointer.previous, *pointer.releases)
    return list(dict.fromkeys(one for one in wanted if one is not None))
