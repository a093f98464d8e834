"""forecast cache explain"""

from collections.abc import Iterator
from urllib.parse import urlsplit

import click
import msgspec

from config.settings import Settings
from config.text import in_words
from service.cli.cache.explanation import Explanation, explain
from service.cli.cache.stats import other_caches
from service.cli.output import Output, data_folder_member, load_settings, print_warnings, stdout, with_json
from service.cli.words import many
from service.http.area import BatchEndpoint, Endpoint, PartnerArea
from service.http.areas import AREAS
from service.reports.text_table import facts_table
from warehouse.releases.instances import InstanceRecord, live_instances

_SHOWN_ENTRIES = 8
_BY_NAME = {area.name: area for area in AREAS}
_BY_PATH = {endpoint.path: (area, endpoint) for area in AREAS for endpoint in area.endpoints}


@click.command(name="explain")
@click.argument("query")
@click.option("--area", type=click.Choice(list(_BY_NAME)), help="The data area. Default: forecast, or QUERY's path.")
@with_json
def explain_query(query: str, area: str | None) -> Output:
    """Explain which tier answers a query, and why.

    QUERY is a query string, or a whole path or URL. It is parsed like a partner's request. Shows its canonical form,
    the release, the cache key, whether the shared cache has the answer, the file that a look-up reads, and the
    resulting headers. Looks up and stores no data. The check of the shared cache does not count as a use of the entry
    (before Redis 7.2 it does). Near caches are not visible from outside.

    Exit codes: 0 explained, whatever the answer is, 1 failed or no release, 2 wrong usage.

    \b
    Examples:
      forecast cache explain 'zip_code=90210'
      forecast cache explain 'city_name=St. Louis&state_code=MO' --json
      forecast cache explain '/v1/development-projects?zip_code=94103'
    """
    chosen, endpoint, query_string = _asked(query, area)
    settings = load_settings().settings
    found = explain(settings, chosen, endpoint, query_string)
    instances = live_instances(settings.data_path)
    print_warnings([*_behind(found.release, instances), *other_caches(settings, instances)])
    value = msgspec.structs.asdict(found) | data_folder_member(settings)
    return Output(value, lambda: _print(found, settings, instances))


def _asked(query: str, area: str | None) -> tuple[PartnerArea, Endpoint, bytes]:
    """Returns the area, its endpoint, and the raw query string of the argument."""
    text = query.strip()
    path = ""
    if text.startswith(("/", "http://", "https://")):
        parts = urlsplit(text)
        path, text = parts.path.rstrip("/"), parts.query
    if path and path not in _BY_PATH:
        raise click.UsageError(f"{path} is not a data area; the areas are at {', '.join(_BY_PATH)}")
    chosen = _BY_NAME[area or AREAS[0].name]
    named, endpoint = _BY_PATH.get(path, (chosen, chosen.endpoints[0]))
    if area not in (None, named.name):
        raise click.UsageError(f"{path} is the area {named.name}: leave out --area or the path")
    if isinstance(endpoint.resolve, BatchEndpoint):
        raise click.UsageError(
            f"a batch is answered like single requests for its ZIP codes: explain '{named.path}?zip_code=...'"
        )
    return named, endpoint, text.removeprefix("?").encode(errors="surrogateescape")


def _print(found: Explanation, settings: Settings, instances: list[InstanceRecord]) -> None:
    stdout().print(facts_table((*_answer(found), *_tiers(found, settings, instances), *_headers(found))))


def _answer(found: Explanation) -> Iterator[tuple[str, str]]:
    yield "area", found.area
    yield "release", found.release
    if found.query is None:
        yield "answer", f"{found.status} {found.outcome}: {found.detail}"
        return
    yield "answer", f"{found.status} {found.outcome}{' (no figures)' if found.outcome == 'answered_empty' else ''}"
    yield "canonical", found.query.replace("\n", " / ")
    yield "cache key", found.cache_key or ""


def _tiers(found: Explanation, settings: Settings, instances: list[InstanceRecord]) -> Iterator[tuple[str, str]]:
    if found.tier == "key set":
        yield "from", "the release's key set, in each worker's memory: no cache and no file is read"
    elif found.tier is None:
        yield "from", "no look-up: the request is refused during parsing"
    if found.query is None:
        return
    near = _near(settings, instances)
    yield "near caches", near or "none: no instance runs on this data folder, or FORECAST_NEAR_CACHE_BYTES is 0"
    yield "shared cache", _shared(found)
    listed = ", ".join(found.entries[:_SHOWN_ENTRIES]) + (", …" if len(found.entries) > _SHOWN_ENTRIES else "")
    yield "warehouse", f"{many(len(found.entries), 'entry', 'entries')} ({listed}) of {found.file}"
    first = "the worker's near cache, if it has the answer; else " if near else ""
    tier = "the shared cache" if found.tier == "shared" else "the warehouse; both caches store the answer"
    yield "from", f"{first}{tier}"


def _near(settings: Settings, instances: list[InstanceRecord]) -> str:
    """Describes the near caches; empty if there are none."""
    if settings.near_cache_bytes == 0 or not any(one.releases for one in instances):
        return ""
    return f"unknown from outside: a worker that answered this in the last {in_words(settings.near_cache_ttl)} has it"


def _shared(found: Explanation) -> str:
    if found.shared == "away":
        return f"unreachable: {found.problem}"
    if found.shared == "miss":
        return "miss: a look-up stores the answer"
    if found.shared == "damaged":
        return f"damaged: {found.entry_bytes:,} bytes that are not this entry count as a miss and are replaced"
    ends = "" if found.expires_in is None else f", for {in_words(found.expires_in)} more"
    note = "; this check counted as a use" if found.counted else ""
    return f"hit: {found.entry_bytes:,} bytes, {found.body_bytes:,} of them the body{ends}{note}"


def _headers(found: Explanation) -> Iterator[tuple[str, str]]:
    for number, (name, value) in enumerate(found.headers.items()):
        yield "" if number else "headers", f"{name}: {value}"


def _behind(release: str, instances: list[InstanceRecord]) -> list[str]:
    """Returns a warning for each instance that answers from another release."""
    behind = [one for one in instances if one.releases and not one.serves(release)]
    return [f"{one.name} does not serve {release} yet" for one in behind]
