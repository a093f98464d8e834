"""Warms the shared cache before a release goes live; warns if the running instances use another cache, or none."""

import socket
from collections.abc import Callable, Iterable
from pathlib import Path

from config.settings import Settings, SettingsError
from config.urls import address, same_store
from service.cache.warm import Plan, WarmError, warm
from service.embedded import owner
from service.embedded.runtime import EmbeddedError
from service.keys import pepper
from warehouse.areas.paging import Cursors
from warehouse.areas.registry import DATA_AREAS
from warehouse.releases.catalog import Manifest
from warehouse.releases.instances import InstanceRecord, live_instances
from warehouse.rules.all_rules import make_finding
from warehouse.schema.findings import Finding
from warehouse.schema.printable import printable

_WARM_SECONDS = 60.0
_SHOWN = 5  # instances named in one warning


def warm_release(
    settings: Settings, folder: Path, manifest: Manifest, progress: Callable[[str], None]
) -> list[Finding]:
    """Puts the release's answers into the cache as `settings.warm` says; returns warnings for the data engineer."""
    instances = live_instances(settings.data_path)
    if settings.warm == "off":
        return [make_finding("warming-off", f"FORECAST_WARM is off here; {_slow(instances)}")] if instances else []
    try:
        url = owner.running_url(settings, "cache")
    except EmbeddedError as error:
        return [make_finding("not-warmed", str(error))]
    if url is None:  # if nobody serves, the cache starts empty with the next instance
        return [_nothing_warmed(instances)] if instances else []
    try:
        secret = pepper.obtain(settings.keys_pepper, settings.data_path, create=False)
    except SettingsError as error:
        return [make_finding("not-warmed", str(error))]
    trouble = _warm(url, settings, folder, manifest, progress, Cursors(pepper.cursor_secret(secret)))
    warnings = [make_finding("not-warmed", trouble)] if trouble is not None else []
    return warnings + _warmed_elsewhere(address(settings.cache_url), instances)


def _warm(
    url: str,
    settings: Settings,
    folder: Path,
    manifest: Manifest,
    progress: Callable[[str], None],
    cursors: Cursors,
) -> str | None:
    """Why warming is incomplete; None if it is complete."""
    plan = Plan(release=manifest.id, ttl=settings.cache_ttl, seconds=_WARM_SECONDS)
    answers = (
        (area.name, query, body)
        for area in DATA_AREAS
        if area.name in manifest.areas
        for query, body in area.answers_to_warm(folder, cursors)
    )
    try:
        warm(url, plan, answers, lambda stored: progress(f"warming the cache: {stored:,} answers"))
    except WarmError as error:
        return str(error)
    return None


def _nothing_warmed(instances: list[InstanceRecord]) -> Finding:
    message = (
        f"nothing was warmed: no embedded cache runs here, and FORECAST_CACHE_URL names no other; {_slow(instances)}"
    )
    return make_finding("not-warmed", message, samples=_caches(instances), remedy=_remedy())


def _warmed_elsewhere(ours: str, instances: list[InstanceRecord]) -> list[Finding]:
    host = socket.gethostname()
    others = [one for one in instances if one.cache is not None and not same_store(one.cache, one.host, ours, host)]
    if not others:
        return []
    message = f"{ours} was warmed, but not every running instance uses that cache; {_slow(others)}"
    return [make_finding("warmed-elsewhere", message, count=len(others), samples=_caches(others), remedy=_remedy())]


def _slow(instances: list[InstanceRecord]) -> str:
    many = f"{len(instances)} running instance{'s' if len(instances) > 1 else ''}"
    return f"the first requests to {many} are slower until the cache fills"


def _caches(instances: Iterable[InstanceRecord]) -> tuple[str, ...]:
    """Which cache each instance uses."""
    said = (f"instance {one.pid} on {one.host}: {one.cache or 'unknown'}" for one in instances)
    return tuple(printable(line) for line in said)[:_SHOWN]


def _remedy() -> str:
    return "publish with the FORECAST_CACHE_URL of the instances, on their host or in their container"
