"""forecast cache stats"""

from collections.abc import Iterator, Sequence

import click

from config.settings import Settings
from config.text import in_words
from config.urls import address
from service.cache.contents import Contents, survey
from service.cli.instances.chosen import InstanceReply, call_all, targets
from service.cli.output import Output, data_folder_member, load_settings, print_warnings, stderr, stdout, with_json
from service.cli.stores import with_cache
from service.cli.words import many, size
from service.operators.overview import Overview
from service.publishing.warming import find_other_caches
from service.reports import terminal
from service.reports.text_table import facts_table, plain, text_table
from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceRecord, live_instances
from warehouse.schema.errors import CatalogError


@click.command()
@click.option("--seconds", type=click.FloatRange(min=0.1), default=10.0, show_default=True, help="Count for this long.")
@with_json
def stats(seconds: float) -> Output:
    """Show the entries of the caches, by release, and their memory.

    Entries of the shared cache are counted by SCAN, in steps between which Redis serves other clients; their bytes are
    estimated from a sample. The memory is the whole server's, other data included. Each worker of the instances on the
    data folder reports its own near cache. Unreachable nodes of a cluster are skipped and listed.

    Exit codes: 0 shown, 1 the shared cache is unreachable, 2 wrong usage.

    \b
    Examples:
      forecast cache stats
      forecast cache stats --seconds 60 --json
    """
    settings = load_settings().settings
    with terminal.progress(stderr()) as progress:
        found = with_cache(
            settings, lambda store: survey(store, seconds, lambda names: progress(f"counting: {names:,} entries"))
        )
    near = call_all(settings, targets(settings, None), lambda client: client.get("/overview", Overview))
    print_warnings(other_caches(settings, live_instances(settings.data_path)))
    states, problem = _states(settings, found)
    value = _as_json(settings, found, states, near) | data_folder_member(settings)
    return Output(value, lambda: _print(settings, found, states, near), problem)


def _print(settings: Settings, found: Contents, states: Sequence[str], near: Sequence[InstanceReply[Overview]]) -> None:
    console = stdout()
    console.print(facts_table((("shared cache", address(settings.cache_url)), *_server(found), *_near(near))))
    console.print()
    for why in found.away:
        console.print(f"Not counted: {plain(why)}", style="yellow")
    if not found.releases:
        console.print(f"The {'reachable servers have' if found.away else 'shared cache has'} no entries.")
        return
    listed = text_table("release", "state", "entries", "about", numeric=("entries", "about"))
    for one, state in zip(found.releases, states, strict=True):
        name = one.release or "(another version's)"
        listed.add_row(name, state, f"{one.entries:,}", size(one.bytes))
    console.print(listed)
    if not found.complete:
        console.print("Not all entries were counted in time. Count for longer with --seconds.", style="yellow")


def _server(found: Contents) -> Iterator[tuple[str, str]]:
    server = found.server
    limit = "no limit" if server.limit is None else f"of {size(server.limit)}"
    yield "memory", f"{size(server.used)}, {limit}, maxmemory-policy {server.policy}"
    up = in_words(server.uptime)
    yield "evicted", f"{server.evicted:,}, and {server.expired:,} expired, since it started {up} ago"


def _near(asked: Sequence[InstanceReply[Overview]]) -> Iterator[tuple[str, str]]:
    if not asked:
        yield "near caches", "none: no instance runs on this data folder"
    for one in asked:
        if one.answer is None:
            yield "near caches", f"unknown: {one.name}: {one.error}"
            continue
        for worker in one.answer.workers:
            content = f"{many(worker.near_entries, 'entry', 'entries')}, {size(worker.near_bytes)}"
            yield "near cache", f"{content}, in worker {worker.pid} of {one.name}"


def _states(settings: Settings, found: Contents) -> tuple[list[str], str | None]:
    """Returns the state of each release, and why they are unknown."""
    catalog = Catalog(settings.data_path)
    try:
        pointer = catalog.pointer()
    except CatalogError as error:
        return ["unknown"] * len(found.releases), str(error)
    states = dict.fromkeys([None, *catalog.names()], "kept")
    if pointer is not None:
        states |= {pointer.previous: "previous", pointer.release: "current"}
    states[None] = "gone"  # entries of another version's format
    return [states.get(one.release, "gone") for one in found.releases], None


def _as_json(
    settings: Settings, found: Contents, states: Sequence[str], near: Sequence[InstanceReply[Overview]]
) -> dict[str, object]:
    return {
        "cache": address(settings.cache_url),
        "server": found.server,
        "complete": found.complete,
        "away": found.away,
        "releases": [
            {"release": one.release, "state": state, "entries": one.entries, "bytes": one.bytes}
            for one, state in zip(found.releases, states, strict=True)
        ],
        "near_caches": [_near_as_json(one) for one in near],
    }


def _near_as_json(one: InstanceReply[Overview]) -> dict[str, object]:
    workers = () if one.answer is None else one.answer.workers
    caches = [{"pid": each.pid, "entries": each.near_entries, "bytes": each.near_bytes} for each in workers]
    return {"url": one.url, "error": one.error, "workers": caches}


def other_caches(settings: Settings, instances: list[InstanceRecord]) -> list[str]:
    """Returns a warning for each of the `instances` that uses another cache than this command."""
    others = find_other_caches(address(settings.cache_url), instances)
    return [f"{one.name} uses another cache, {one.cache}: set FORECAST_CACHE_URL to the same URL" for one in others]
