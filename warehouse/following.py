"""Follows the pointer of a data folder, and keeps the current release open, checked and ready to answer."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from warehouse.areas.registry import DATA_AREAS
from warehouse.files.file_access import FileAccess, Hang
from warehouse.lookup.engine import Engine
from warehouse.lookup.query import LookupStatement
from warehouse.places.keyset import KeySet
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.pointer import Pointer, explain_missing_pointer, unreadable_current
from warehouse.schema.errors import CatalogError, DamagedError, NoSuchReleaseError, WarehouseError

log = logging.getLogger("forecast.warehouse")

POLL_SECONDS = 0.5
# Opening a national release takes a second or two. One that takes longer than this is reported, and opening continues.
_OPEN_SECONDS = 10.0
# Every request is answered within 5 s, so this long after a switch no request uses the old engine.
_RETIRE_AFTER_SECONDS = 10.0

OpenEngine = Callable[[Path, Mapping[str, LookupStatement]], Engine]


class OpenRelease(msgspec.Struct, frozen=True, eq=False):
    """An open release that can answer. A request reads it once and uses no other.

    The follower opens it, owns it, and closes its engine some seconds after it was replaced.
    """

    manifest: Manifest
    keys: Mapping[str, KeySet]  # by area
    engine: Engine

    @property
    def id(self) -> str:
        return self.manifest.id


class PreviousRelease(msgspec.Struct, frozen=True, eq=False):
    """The release that answered before the current one. The follower holds it until the next switch."""

    release: OpenRelease
    since: float  # when it stopped being current, by `time.monotonic`


class ReleaseFollower:
    """Keeps the current release open. One per worker, for the worker's whole life; used from one event loop.

    If a new release cannot be opened, the one that answers stays. With `keep_previous`, the previous release stays open
    too; if the current one cannot be opened at the start, the previous one stands in for it.
    """

    def __init__(
        self,
        data: Path,
        open_engine: OpenEngine,
        on_switch: Callable[[OpenRelease], None] = lambda _: None,
        on_retire: Callable[[str], None] = lambda _: None,
        *,
        keep_previous: bool = False,
        mirrored: bool = False,
    ) -> None:
        """`on_switch` is called with each release that starts to answer.

        `on_retire` is called with the id of a release that no request uses any more. That release may be current again
        by then. `mirrored`: the data folder follows a store of releases, so it may lack published ones.
        """
        self.current: OpenRelease | None = None  # None until the first release is open
        self.previous: PreviousRelease | None = None
        # if the previous release stands in: when it stopped being current, by `time.monotonic`
        self.stands_in_since: float | None = None
        self.problem: str | None = None  # why the pointer's release is not open
        self.unpublished = False  # the data folder was read, and has never had a release
        self._keep_previous = keep_previous
        self._mirrored = mirrored
        self._catalog = Catalog(data)
        self._open_engine = open_engine
        self._on_switch = on_switch
        self._on_retire = on_retire
        self._files = FileAccess()
        self.opened = asyncio.Event()  # set once `current` is open
        self._checked_once = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._retired: set[OpenRelease] = set()

    @property
    def hang(self) -> Hang | None:
        """The longest hang on the data folder's file system, of a look-up or the follower."""
        engines = [release.engine for release in (self.current, self.previous and self.previous.release) if release]
        hangs = [hang for hang in (*(engine.hang for engine in engines), self._files.hang) if hang is not None]
        return max(hangs, key=lambda hang: hang.seconds, default=None)

    async def start(self) -> None:
        """Starts following. Returns once the current release is open, or cannot be opened, or takes unusually long."""
        self._task = asyncio.create_task(self._follow(), name="follow releases")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._checked_once.wait(), _OPEN_SECONDS)

    async def stop(self) -> None:
        """Stops following and closes all releases."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        kept = (self.current, self.previous.release if self.previous else None, *self._retired)
        for release in kept:
            if release is not None:
                release.engine.close()

    async def _follow(self) -> None:
        while True:
            await self._check()
            self._checked_once.set()
            await asyncio.sleep(POLL_SECONDS)

    async def _check(self) -> None:
        try:
            pointer = await self._pointer()
            lost = None
            if pointer is None and not self._mirrored:
                lost = await self._files.run(f"reading {self._catalog.releases}", lambda: self._catalog.lost)
            if pointer is None and (lost or self.current):
                raise CatalogError(lost or explain_missing_pointer(self._catalog.pointer_file))
            self.unpublished = pointer is None and not self._mirrored
            if pointer is None or (self.current and self.current.id == pointer.release):
                self.problem = self.stands_in_since = None
                return
            try:
                opened = await self._opened(pointer.release)
            except (DamagedError, NoSuchReleaseError) as error:
                whole = await self._files.run(f"reading {self._catalog.releases}", self._catalog.all)
                others = [one for one in whole if one.id != pointer.release]
                raise unreadable_current(error, None if others else self._catalog.pointer_file) from None
        except Exception as error:  # whatever is wrong with a release, the one that answers stays
            if self.problem != str(error):
                expected = isinstance(error, WarehouseError)
                trace = None if expected else error
                log.error("cannot open the current release: %s", error, exc_info=trace)
            self.problem, self.unpublished = str(error), False
            if self.current is None and self._keep_previous:
                await self._stand_in()
            return
        self.problem = None
        self._switch(opened, None)
        if self._keep_previous and self.previous is None:  # we just started
            self.previous = await self._open_before()

    async def _stand_in(self) -> None:
        """Lets the previous release answer until the current one can be opened."""
        before = await self._open_before()
        if before is not None:
            self._switch(before.release, before.since)

    async def _open_before(self) -> PreviousRelease | None:
        """Returns the previous release, opened. None if there is none, or it cannot be opened."""
        try:
            pointer = await self._pointer()
            if pointer is None or pointer.previous is None:
                return None
            opened = await self._opened(pointer.previous)
        except Exception as error:  # `problem` is about the current release only
            log.error("cannot open the previous release: %s", error)
            return None
        age = (datetime.now(UTC) - pointer.switched_at).total_seconds()
        return PreviousRelease(opened, time.monotonic() - max(0.0, age))

    def _switch(self, opened: OpenRelease, stands_in_since: float | None) -> None:
        before, self.current = self.current, opened
        self.opened.set()
        since, self.stands_in_since = self.stands_in_since, stands_in_since
        log.info("serving release %s", opened.id, extra={"release": opened.id})
        if before is not None:
            self._end(before, time.monotonic() if since is None else since)
        try:
            self._on_switch(opened)
        except Exception:  # a callback must not end the follower
            log.exception("a callback failed for release %s", opened.id)

    def _end(self, release: OpenRelease, since: float) -> None:
        """Takes a release out of service: it gets no new requests. It was current until `since`."""
        leaving: OpenRelease | None = release
        if self._keep_previous:
            leaving = self.previous.release if self.previous else None
            self.previous = PreviousRelease(release, since)
        if leaving is not None:
            self._retired.add(leaving)
            asyncio.get_running_loop().call_later(_RETIRE_AFTER_SECONDS, self._retire, leaving)

    def _retire(self, release: OpenRelease) -> None:
        self._retired.discard(release)
        release.engine.close()
        self._on_retire(release.id)

    async def _pointer(self) -> Pointer | None:
        return await self._files.run(f"reading {self._catalog.pointer_file}", self._catalog.pointer)

    async def _opened(self, release: str) -> OpenRelease:
        what = f"opening {self._catalog.folder(release)}"
        return await self._files.run(what, self._open, release, usual=_OPEN_SECONDS)

    def _open(self, release: str) -> OpenRelease:
        manifest = self._catalog.manifest(release)
        self._catalog.verify(manifest)
        folder = self._catalog.folder(release)
        # an area of a later version is not served
        areas = [area for area in DATA_AREAS if area.name in manifest.areas]
        keys = {}
        for area in areas:
            try:
                keys[area.name] = area.keys_in(folder)
            except msgspec.DecodeError as error:
                raise WarehouseError(f"{folder / area.key_set} cannot be read: {error}") from None
        lookups = {name: lookup for area in areas for name, lookup in area.lookups_in(folder).items()}
        return OpenRelease(manifest, keys, self._open_engine(folder, lookups))
