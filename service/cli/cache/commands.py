"""forecast cache: the group, warming and purging. The other commands are in stats.py and explain.py."""

import os
import time

import click

from service.cache.warm import WarmError
from service.cli.cache.explain import explain_query
from service.cli.cache.stats import stats
from service.cli.instances.chosen import call_one, print_failed_calls, targets_or_fail, url_option
from service.cli.instances.client import NO_WRITE_TOKEN, OperatorsClient
from service.cli.output import (
    Output,
    data_folder_member,
    fail,
    load_settings,
    print_data_folder,
    print_lines,
    print_warnings,
    stderr,
    stdout,
    with_json,
)
from service.operators.actions import Purged
from service.publishing.warming import warm_again
from service.reports import terminal
from service.reports.text_table import plain
from warehouse.releases.catalog import Catalog

# Compressing the answers takes seconds: on a busy machine, serving comes first.
_NICENESS = 10
_PURGE_SECONDS = 60.0
_QUESTION = "DuckDB answers partners, more slowly, until the caches fill again. Continue?"


@click.group(commands=[stats, explain_query])
def cache() -> None:
    """Warm, show, explain and purge the caches.

    Each worker has a near cache in its memory; all share one in Redis (FORECAST_CACHE_URL). Entries never become stale:
    their release is part of their key.

    \b
    Examples:
      forecast cache warm
      forecast cache stats
      forecast cache explain 'zip_code=90210'
    """


@cache.command(name="warm")
@with_json
def warm_cache() -> Output:
    """Put all answers of the current release into the cache.

    Use it after the shared cache was lost or emptied, so that answers come from it again sooner; partners get answers
    meanwhile. Publishing warms the cache by itself. Running it twice is harmless. It runs at low priority, and Redis
    serves other clients between its batches.

    Exit codes: 0 done, 1 failed, or no release or no cache exists, 2 wrong usage, 130 interrupted.

    \b
    Examples:
      forecast cache warm
      forecast cache warm --json
    """
    settings = load_settings().settings
    catalog = Catalog(settings.data_path)
    manifest = catalog.current()
    os.nice(_NICENESS)
    started = time.monotonic()
    try:
        with terminal.progress(stderr()) as progress:
            warmed = warm_again(settings, catalog.folder(manifest.id), manifest, progress)
    except WarmError as error:
        fail(str(error))
    warnings = [f"{found.message}; {found.remedy}" if found.remedy else found.message for found in warmed.warnings]
    now = catalog.current().id
    if now != manifest.id:
        warnings.append(f"{now} became current meanwhile; publishing warmed it, unless it printed a warning")
    seconds = round(time.monotonic() - started, 1)
    print_warnings(warnings)

    def show() -> None:
        stdout().print(f"{warmed.stored:,} answers of release {manifest.id} are in the cache ({seconds:g} s).")
        print_data_folder(settings)

    value = {"release": manifest.id, "answers": warmed.stored, "seconds": seconds, "warnings": warnings}
    return Output(value | data_folder_member(settings), show)


@cache.command()
@click.option("--yes", is_flag=True, help="Confirm the action without prompting.")
@url_option
@with_json
def purge(yes: bool, url: str | None) -> Output:
    """Empty the shared cache and the near caches.

    Frees memory, and removes entries that you do not trust. Publishing needs no purge. One instance forwards the purge
    to all others on its key store; instances that it does not reach get their own request. The token is
    FORECAST_OPERATOR_WRITE_TOKEN. The purge is in the audit trail (`forecast log`).

    Exit codes: 0 done, 1 failed or declined, 2 wrong usage.

    \b
    Examples:
      forecast cache purge
      forecast cache purge --yes --json
    """
    settings = load_settings().settings
    found = targets_or_fail(settings, url)
    if settings.operator_write_token is None:  # checked before the question
        fail(NO_WRITE_TOKEN)
    if not yes:
        click.confirm(_QUESTION, abort=True, err=True)
    asked, reached = [], set[str]()
    for target in found:
        if target.instance not in reached:  # else another instance forwarded the purge to it
            asked.append(call_one(settings, target, _purge))
            answer = asked[-1].answer
            reached |= set(answer.reached) if answer is not None else set()
    done = [{"url": one.url, "purged": one.answer, "error": one.error} for one in asked]
    lines = [plain(_described(one.name, one.answer)) for one in asked if one.answer is not None]
    return Output({"instances": done}, lambda: print_lines(lines), code=print_failed_calls(asked))


def _purge(client: OperatorsClient) -> Purged:
    return client.post("/caches/purge", {}, Purged, _PURGE_SECONDS)


def _described(name: str, done: Purged) -> str:
    text = f"{name}: {done.near:,} near and {done.shared:,} shared answers were removed."
    if done.reached:
        text += f" The near caches of {', '.join(done.reached)} are also empty."
    return text
