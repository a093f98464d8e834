"""Follows the pointer of a data folder: always the current release, opened, checked and ready to answer."""

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
from warehouse.lookup.lookup_statement import LookupStatement
from warehouse.places.keyset import KeySet
from warehouse.releases.catalog import Catalog, Manifest, Pointer
from warehouse.schema.errors import CatalogError, WarehouseError

log = logging.getLogger("forecast.warehouse")

POLL_SECONDS = 0.5
# A whole country takes a second or two; what takes much longer is told, and goes on.
_OPEN_SECONDS = 10.0
# Every request is answered within 5 s, so nobody uses an engine any more this long after the switch.
_RETIRE_AFTER = 10.0

OpenEngine = Callable[[Path, Mapping[str, LookupStatement]], Engine]


class OpenRelease(msgspec.Struct, frozen=True, eq=False):
    """A release that can answer. A request takes it once and uses nothing else. `keys` is by area."""

    manifest: Manifest
    keys: Mapping[str, KeySet]
    engine: Engine

    @property
    def id(self) -> str:
        return self.manifest.id


class PreviousRelease(msgspec.Struct, frozen=True, eq=False):
    """The release that answered before the current one; `since` is when it stopped doing so, by `time.monotonic`."""

    release: OpenRelease
    since: float


class ReleaseFollower:
    """`current` is None until the first release was `opened`. A release that cannot be opened changes nothing.

    With `keep_previous` the release before is open too, and stands in at the start for one that cannot be opened: then
    `stands_in_since` says when it stopped being the current one, by `time.monotonic`.
    """

    def __init__(
        self,
        data: Path,
        open_engine: OpenEngine,
        on_switch: Callable[[OpenRelease], None] = lambda _: None,
        on_retire: Callable[[str], None] = lambda _: None,
        *,
        keep_previous: bool = False,
    ) -> None:
        """`on_retire` is told the id of a release that no request uses any more; it may have come back since."""
        self.current: OpenRelease | None = None
        self.previous: PreviousRelease | None = None
        self.stands_in_since: float | None = None
        self.problem: str | None = None
        self._keep_previous = keep_previous
        self._catalog = Catalog(data)
        self._open_engine = open_engine
        self._on_switch = on_switch
        self._on_retire = on_retire
        self._files = FileAccess()
        self.opened = asyncio.Event()
        self._looked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._retired: set[OpenRelease] = set()

    @property
    def hang(self) -> Hang | None:
        """What hangs on the data folder's file system: a look-up, or following."""
        engines = [release.engine for release in (self.current, self.previous and self.previous.release) if release]
        hangs = [hang for hang in (*(engine.hang for engine in engines), self._files.hang) if hang is not None]
        return max(hangs, key=lambda hang: hang.seconds, default=None)

    async def start(self) -> None:
        """Returns when the current release is open or cannot be opened, or when that takes unusually long."""
        self._task = asyncio.create_task(self._follow(), name="follow releases")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._looked.wait(), _OPEN_SECONDS)

    async def stop(self) -> None:
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
            self._looked.set()
            await asyncio.sleep(POLL_SECONDS)

    async def _check(self) -> None:
        try:
            pointer = await self._pointer()
            if pointer is None and self.current:
                raise CatalogError(
                    f"{self._catalog.pointer_file} is gone: `forecast extracts rollback RELEASE` writes it anew"
                )
            if pointer is None or (self.current and self.current.id == pointer.release):
                self.problem = self.stands_in_since = None
                return
            opened = await self._opened(pointer.release)
        except Exception as error:  # whatever is wrong with a release, the one that answers goes on answering
            if self.problem != str(error):
                expected = isinstance(error, WarehouseError)
                trace = None if expected else error
                log.error("cannot open the current release: %s", error, exc_info=trace)
            self.problem = str(error)
            if self.current is None and self._keep_previous:
                await self._stand_in()
            return
        self.problem = None
        self._switch(opened, None)
        if self._keep_previous and self.previous is None:  # just started
            self.previous = await self._open_before()

    async def _stand_in(self) -> None:
        """The release before the current one answers, until that can be opened."""
        before = await self._open_before()
        if before is not None:
            self._switch(before.release, before.since)

    async def _open_before(self) -> PreviousRelease | None:
        """The release before the current one, if there is one that can be opened."""
        try:
            pointer = await self._pointer()
            if pointer is None or pointer.previous is None:
                return None
            opened = await self._opened(pointer.previous)
        except Exception as error:  # it is not what was asked for, and `problem` says what is
            log.error("the release before cannot be opened: %s", error)
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
        except Exception:  # whoever is told must not end the following
            log.exception("not everything was told of release %s", opened.id)

    def _end(self, release: OpenRelease, since: float) -> None:
        """It answers no new requests from now on, and was the current one until `since`."""
        leaving: OpenRelease | None = release
        if self._keep_previous:
            leaving = self.previous.release if self.previous else None
            self.previous = PreviousRelease(release, since)
        if leaving is not None:
            self._retired.add(leaving)
            asyncio.get_running_loop().call_later(_RETIRE_AFTER, self._retire, leaving)

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
        # one that only a later version knows is not served by this one
        areas = [area for area in DATA_AREAS if area.name in manifest.areas]
        keys = {}
        for area in areas:
            try:
                keys[area.name] = area.keys_in(folder)
            except msgspec.DecodeError as error:
                raise WarehouseError(f"{folder / area.key_set} cannot be read: {error}") from None
        lookups = {area.name: area.lookup_in(folder) for area in areas}
        return OpenRelease(manifest, keys, self._open_engine(folder, lookups))
