"""Warms the shared cache, before a release goes live or later; warns if the instances use another cache, or none."""

import asyncio
import math
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from config.settings import Settings, SettingsError
from config.text import printable
from config.urls import address, same_store
from service.cache.fitting import fit_to_memory
from service.cache.warm import Answer, Plan, WarmError, warm
from service.embedded import owner
from service.embedded.runtime import EmbeddedError
from service.keys import pepper
from warehouse.areas.paging import Cursors
from warehouse.areas.registry import DATA_AREAS
from warehouse.releases.catalog import Manifest
from warehouse.releases.instances import InstanceRecord, live_instances
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding

_WARM_SECONDS = 60.0
_SHOWN = 5  # most instances in one warning
_REMEDY = "publish with the FORECAST_CACHE_URL of the instances, on their host or in their container"


def warm_release(
    settings: Settings, folder: Path, manifest: Manifest, progress: Callable[[str], None]
) -> list[Finding]:
    """Stores the release's answers in the cache as set by `settings.warm`; returns warnings for the data engineer."""
    instances = live_instances(settings.data_path)
    if settings.warm == "off":
        return [make_finding("warming-off", f"FORECAST_WARM is off here; {_slow(instances)}")] if instances else []
    try:
        url = owner.running_url(settings, "cache")
    except EmbeddedError as error:
        return [make_finding("not-warmed", str(error))]
    if url is None:  # without an instance, no warning: the cache starts empty with the next one
        return [_cache_missing(instances)] if instances else []
    try:
        secret = pepper.obtain(settings.keys_pepper, settings.data_path, create=False)
    except SettingsError as error:
        return [make_finding("not-warmed", str(error))]
    try:
        warnings = _warm(url, settings, folder, manifest, progress, secret, _WARM_SECONDS).warnings
    except WarmError as error:
        warnings = [make_finding("not-warmed", str(error))]
    return warnings + _warmed_elsewhere(address(settings.cache_url), instances)


class Warmed(msgspec.Struct, frozen=True):
    """The result of warming."""

    stored: int  # answers
    warnings: list[Finding]


def warm_again(settings: Settings, folder: Path, manifest: Manifest, progress: Callable[[str], None]) -> Warmed:
    """Stores all answers of a release in the cache again, without a time limit; ignores `settings.warm`.

    Raises:
        WarmError: if there is no cache, or it did not store all.
        EmbeddedError, SettingsError: if cache or pepper cannot be opened.
    """
    url = owner.running_url(settings, "cache")
    if url is None:
        raise WarmError("no embedded cache answers here: start an instance, which runs one, and try again")
    secret = pepper.obtain(settings.keys_pepper, settings.data_path, create=False)
    warmed = _warm(url, settings, folder, manifest, progress, secret, math.inf)
    elsewhere = _warmed_elsewhere(address(settings.cache_url), live_instances(settings.data_path))
    return Warmed(warmed.stored, warmed.warnings + elsewhere)


def _warm(
    url: str,
    settings: Settings,
    folder: Path,
    manifest: Manifest,
    progress: Callable[[str], None],
    secret: bytes,
    seconds: float,
) -> Warmed:
    """Stores answers within `seconds`: all, or the most used if the cache is too small. Raises WarmError if some of
    these are missing.
    """
    cursors = Cursors(pepper.cursor_secret(secret))
    plan = Plan(release=manifest.id, ttl=settings.cache_ttl, seconds=seconds)

    def answers() -> Iterator[Answer]:
        for area in DATA_AREAS:
            if area.name in manifest.areas:
                for query, body in area.answers_to_warm(folder, cursors):
                    yield area.name, query, body

    fit = asyncio.run(fit_to_memory(url, [*filter(None, [manifest.previous]), manifest.id], answers()))
    chosen = answers() if fit is None else (answer for answer in answers() if answer[:2] in fit.chosen)
    stored = asyncio.run(warm(url, plan, chosen, lambda stored: progress(f"warming the cache: {stored:,} answers")))
    if fit is None:
        return Warmed(stored, [])
    message = f"{fit}: only {stored:,} answers were warmed, the most used first"
    return Warmed(stored, [make_finding("not-warmed", message, remedy="raise the maxmemory of the shared cache")])


def _cache_missing(instances: list[InstanceRecord]) -> Finding:
    message = (
        f"no cache was warmed: no embedded cache runs here, and FORECAST_CACHE_URL names no other; {_slow(instances)}"
    )
    return make_finding("not-warmed", message, samples=_caches(instances), remedy=_REMEDY)


def _warmed_elsewhere(ours: str, instances: list[InstanceRecord]) -> list[Finding]:
    others = find_other_caches(ours, instances)
    if not others:
        return []
    message = f"{ours} was warmed, but not every running instance uses that cache; {_slow(others)}"
    return [make_finding("warmed-elsewhere", message, count=len(others), samples=_caches(others), remedy=_REMEDY)]


def find_other_caches(ours: str, instances: Iterable[InstanceRecord]) -> list[InstanceRecord]:
    """Returns the `instances` whose shared cache is not the one at the address `ours`, as seen from this host."""
    host = socket.gethostname()
    return [one for one in instances if one.cache is not None and not same_store(one.cache, one.host, ours, host)]


def _slow(instances: list[InstanceRecord]) -> str:
    many = f"{len(instances)} running instance{'s' if len(instances) > 1 else ''}"
    return f"the first requests to {many} are slower until the cache fills"


def _caches(instances: Iterable[InstanceRecord]) -> tuple[str, ...]:
    """Returns a line with the cache of each instance."""
    lines = (f"{one.name}: {one.cache or 'unknown'}" for one in instances)
    return tuple(printable(line) for line in lines)[:_SHOWN]
