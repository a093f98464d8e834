"""Explains how one query would be answered now. It is parsed like a partner's request, without look-ups or fills."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from config.settings import Settings, SettingsError
from service.cache.contents import read_entry
from service.cache.entry import CacheEntry, Found
from service.cache.key import CacheKey, cache_key
from service.cli.stores import with_cache
from service.http.area import Endpoint, PartnerArea, Resolved, resolve_in
from service.keys import pepper
from service.redis.errors import StoreUnavailable
from service.request.errors import CODES, ApiError
from service.request.request import Request
from service.request.respond import CachePolicy
from service.request.response import NO_STORE, Header
from warehouse.areas.data_area import DataArea
from warehouse.areas.paging import Cursors
from warehouse.areas.registry import DATA_AREAS
from warehouse.releases.catalog import Catalog, Manifest

Tier = Literal["shared", "warehouse", "key set"]

# Stands for an entry that only a look-up would return.
_UNKNOWN = CacheEntry(b"", b"", b"")


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of one query in the current release, and the tier of its answer if no near cache has it."""

    area: str
    release: str
    status: int
    outcome: str  # the outcome that would be counted: `answered`, or the error's code
    detail: str | None = None  # of an error
    tier: Tier | None = None  # None: refused before any look-up
    query: str | None = None  # canonical
    cache_key: str | None = None
    shared: Literal["hit", "miss", "damaged", "away"] | None = None
    problem: str | None = None  # why the shared cache is unreachable
    expires_in: float | None = None  # seconds
    entry_bytes: int | None = None
    body_bytes: int | None = None
    counted: bool = False  # the check counted as a use of the entry
    file: str | None = None  # the release's file that a look-up reads
    entries: tuple[str, ...] = ()  # keys of the file's entries that make up the answer
    headers: dict[str, str] = {}  # the known headers of the answer


def explain(settings: Settings, area: PartnerArea, endpoint: Endpoint, query_string: bytes) -> Explanation:
    """Explains a raw query string of a request to `endpoint` of the area, which answers no batches.

    Raises:
        NoReleaseError, CatalogError: if no release is current, or it cannot be read.
        SettingsError: if the cursors' secret, which is part of a page's key, is missing.
    """
    catalog = Catalog(settings.data_path)
    manifest = catalog.current()
    policy = CachePolicy(settings.max_age)
    try:
        found = _resolved(settings, catalog.folder(manifest.id), manifest, area, endpoint, query_string)
    except ApiError as error:
        is_no_match = error.code == "no_matching_records"
        status, advice = CODES[error.code]
        return Explanation(
            area=area.name,
            release=manifest.id,
            status=status,
            outcome=error.code,
            detail=error.detail or advice,
            tier="key set" if is_no_match else None,
            headers=_shown(policy.headers(manifest.id) if is_no_match else error.headers or (NO_STORE,)),
        )
    key = cache_key(manifest.id, area.name, found.query)
    matched = Explanation(
        area=area.name,
        release=manifest.id,
        status=200,
        outcome=found.outcome,
        query=found.query,
        cache_key=key.name,
        file=str(catalog.folder(manifest.id) / _data_area(area).entries),
        entries=found.keys,
    )
    return _with_cache(matched, settings, key, policy)


def _resolved(
    settings: Settings, folder: Path, manifest: Manifest, area: PartnerArea, endpoint: Endpoint, query_string: bytes
) -> Resolved:
    """Returns the resolved query. Raises ApiError."""
    if area.name not in manifest.areas:
        raise ApiError("not_found", f"Release {manifest.id} does not have the area {area.name}.")
    keys = _data_area(area).keys_in(folder)
    return resolve_in(area, endpoint, keys, query_string, _cursors(settings, endpoint))


def _cursors(settings: Settings, endpoint: Endpoint) -> Cursors:
    if not endpoint.has_pages:
        return Cursors(b"")
    if settings.keys_pepper is None and not pepper.file_of(settings.data_path).exists():
        raise SettingsError(
            f"a page's cache key depends on the pepper, which is not in {settings.data_path.absolute()}: "
            "set FORECAST_KEYS_PEPPER_FILE to the same file as for the instances"
        )
    return Cursors(pepper.cursor_secret(pepper.obtain(settings.keys_pepper, settings.data_path, create=False)))


def _data_area(area: PartnerArea) -> DataArea:
    return next(one for one in DATA_AREAS if one.name == area.name)


def _with_cache(matched: Explanation, settings: Settings, key: CacheKey, policy: CachePolicy) -> Explanation:
    """Adds the state of the entry in the shared cache, and the resulting headers."""
    held, problem = None, None
    try:
        held = with_cache(settings, lambda store: read_entry(store, key))
    except StoreUnavailable as error:
        problem = str(error)
    entry = held.entry if held is not None else None
    tier: Literal["shared", "warehouse"] = "warehouse" if entry is None else "shared"
    found = Found(entry or _UNKNOWN, tier, key.release, bypassed=held is None)
    response = policy.found_response(Request(0.0, b""), found)
    known = [header for header in response.headers if header[0] != b"content-length"]
    headers = _shown(header for header in known if entry is not None or header[0] != b"etag")
    explained = msgspec.structs.replace(matched, tier=tier, headers=headers, problem=problem, shared="away")
    if held is None:
        return explained
    return msgspec.structs.replace(
        explained,
        shared="damaged" if held.damaged else "miss" if entry is None else "hit",
        expires_in=held.seconds,
        entry_bytes=held.size or None,
        body_bytes=None if entry is None else len(entry.body),
        counted=held.counted and held.size > 0,
    )


def _shown(headers: Iterable[Header]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers}
