"""Makes a built release current in the store: uploads it, announces it, waits for the instances, switches."""

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from config.urls import EMBEDDED, same_store
from warehouse.releases.catalog import Manifest
from warehouse.releases.instances import explain_unreadable
from warehouse.rules.all_rules import make_finding
from warehouse.schema.errors import CatalogError, LostRaceError
from warehouse.schema.findings import Finding
from warehouse.schema.progress import ProgressCallback
from warehouse.upstream.documents import Announcement, Beat, with_new_lineage
from warehouse.upstream.store import KnownPointer, ReleasesStore

# Limits of a report on beats: warnings, and instances in one line.
_MOST_WARNINGS, _SHOWN = 100, 5
# Wait until all instances have the release, and one for each cache has warmed it. Then it goes live without the others,
# and the report names them.
READY_SECONDS = 120.0
_POLL_SECONDS = 0.5


class GoingLive:
    """One release on its way to being current. `known` is the pointer that the drop was compared with."""

    def __init__(
        self,
        store: ReleasesStore,
        known: KnownPointer,
        by: str | None,
        progress: ProgressCallback = lambda _: None,
        *,
        leave_behind: bool = False,
        ready_seconds: float = READY_SECONDS,
    ) -> None:
        """`leave_behind`: go live even if a live instance cannot read the release."""
        self._store = store
        self.known = known
        self._by = by
        self._progress = progress
        self._leave_behind = leave_behind
        self._ready_seconds = ready_seconds

    def make_current(self, folder: Path, manifest: Manifest, named: Iterable[str]) -> list[Finding]:
        """Returns findings on late instances and cold caches. `named` are digests of files that the store has.

        Raises:
            CatalogError: if a live instance cannot read the release.
            LostRaceError: if the pointer was changed since the drop was compared with it.
            StoreError: if the store cannot be written; the pointer is then the old or the new one.
        """
        self._check_instances(manifest)
        self._store.upload(folder, manifest, set(named), self._progress)
        started_at = self._store.now()
        began = time.monotonic()
        beats = self._store.live(started_at)
        announced = Announcement(release=manifest.id, by=self._by, warm_by=tuple(_to_warm(beats)))
        changed = msgspec.structs.replace(self.known.pointer, next=announced)
        if any(beat.astray for beat in beats.values()):
            changed = with_new_lineage(changed)  # the bucket was restored: they ignore all other changes
        self.known = self._store.change(self.known, changed)
        try:
            findings = self._wait_until_ready(announced, started_at, began)
            self._progress("switching")
            self._switch(announced)
        except LostRaceError:
            raise
        except BaseException:
            self._withdraw()
            raise
        return findings

    def _check_instances(self, manifest: Manifest) -> None:
        beats = self._store.live(self._store.now()).values()
        old = [beat for beat in beats if beat.instance.formats < manifest.format]
        if old and not self._leave_behind:
            raise CatalogError(explain_unreadable(manifest.format, _named(old)))

    def _wait_until_ready(self, announced: Announcement, started_at: datetime, began: float) -> list[Finding]:
        while True:
            waited = time.monotonic() - began
            beats = self._store.live(started_at + timedelta(seconds=waited))
            unready = [beat for beat in beats.values() if announced.release not in beat.ready]
            cold = [
                beat
                for name, beat in beats.items()
                if name in announced.warm_by and announced.release not in beat.warmed and beat not in unready
            ]
            if not (unready or cold) or waited > self._ready_seconds:
                break
            self._progress(f"waiting for {len(unready)} instance(s) to fetch it, {len(cold)} to warm their cache")
            time.sleep(_POLL_SECONDS)
        findings = [_not_ready(unready)] if unready else []
        warnings = [text for beat in beats.values() for text in beat.warmed.get(announced.release, ())]
        warnings += [f"{_named([beat])} did not warm its cache in {self._ready_seconds:g} s" for beat in cold]
        return findings + [make_finding("not-warmed", text) for text in list(dict.fromkeys(warnings))[:_MOST_WARNINGS]]

    def _switch(self, announced: Announcement) -> None:
        """Makes the announced release current. Retries if only the list of releases changed since the announcement."""
        base = self.known.pointer.release
        while True:
            pointer = self.known.pointer
            changed = msgspec.structs.replace(
                pointer,
                release=announced.release,
                previous=base,
                switched_at=datetime.now(UTC),
                by=self._by,
                releases=(announced.release, *(one for one in pointer.releases if one != announced.release)),
                next=None,
            )
            try:
                self.known = self._store.change(self.known, changed)
            except LostRaceError:
                found = self._store.pointer()
                if found.pointer.next != announced or found.pointer.release != base:
                    raise
                self.known = found
            else:
                return

    def _withdraw(self) -> None:
        """Withdraws the announcement, if possible, so that no instance fetches the release in vain."""
        try:
            self._store.change(self.known, msgspec.structs.replace(self.known.pointer, next=None))
        except (CatalogError, LostRaceError):
            return  # the next publisher replaces it


def _to_warm(beats: Mapping[str, Beat]) -> list[str]:
    """Returns the ids of instances that warm, one for each shared cache."""
    chosen: dict[str, Beat] = {}
    for name, beat in sorted(beats.items()):
        if not any(_same_cache(beat, other) for other in chosen.values()):
            chosen[name] = beat
    return list(chosen)


def _same_cache(one: Beat, other: Beat) -> bool:
    here, there = one.instance, other.instance
    if here.cache is None or there.cache is None:
        return False
    if EMBEDDED in (here.cache, there.cache):
        return (here.cache, here.host, one.folder) == (there.cache, there.host, other.folder)
    return same_store(here.cache, here.host, there.cache, there.host)


def _not_ready(beats: Iterable[Beat]) -> Finding:
    late = list(beats)
    samples = tuple(f"{_named([beat])}: {beat.problem or 'still fetching'}" for beat in late)
    message = (
        f"{len(late)} running instance(s) did not have the release when it became current; they switch once they do"
    )
    return make_finding("not-ready", message, count=len(late), samples=samples[:5])


def _named(beats: Iterable[Beat]) -> str:
    names = [beat.instance.name for beat in beats]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
