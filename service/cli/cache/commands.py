"""forecast cache: the group, and purging. The other commands are in warm.py, stats.py and explain.py."""

import click

from service.cli.cache.explain import explain_query
from service.cli.cache.stats import stats
from service.cli.cache.warm import warm_cache
from service.cli.instances.chosen import ask_one, targets_or_fail, tell_unasked, url_option
from service.cli.instances.client import NO_WRITE_TOKEN, OperatorsClient
from service.cli.output import fail, json_option, load_settings, print_json, reports_errors, stdout
from service.operators.actions import Purged
from service.reports.text_table import plain

_PURGE_SECONDS = 60.0
_QUESTION = "Partners are answered from the warehouse, more slowly, until the caches fill. Go on?"


@click.group()
def cache() -> None:
    """Warm, show, explain and purge the caches.

    Each worker has a near cache in its memory; all share one in Redis (FORECAST_CACHE_URL). Entries never become wrong:
    their release is part of their key.

    \b
    Examples:
      forecast cache warm
      forecast cache stats
      forecast cache explain 'zip_code=90210'
    """


for _command in (warm_cache, stats, explain_query):
    cache.add_command(_command)


@cache.command()
@click.option("--yes", is_flag=True, help="Confirm the action without prompting.")
@url_option
@json_option
@reports_errors
def purge(yes: bool, url: str | None, as_json: bool) -> None:
    """Empty the shared cache and the near caches.

    Frees memory, and removes entries that you do not trust. Publishing needs no purge. Asks an instance, which tells
    all others on its key store; those that have not heard of it are asked, too. The token is
    FORECAST_OPERATOR_WRITE_TOKEN. It is in the audit trail (`forecast keys log`).

    Exit codes: 0 done, 1 failed or declined, 2 wrong usage.

    \b
    Examples:
      forecast cache purge
      forecast cache purge --yes --json
    """
    settings = load_settings().settings
    found = targets_or_fail(settings, url, as_json=as_json)
    if settings.operator_write_token is None:  # else it would be told after the question
        fail(NO_WRITE_TOKEN, as_json=as_json)
    if not yes:
        click.confirm(_QUESTION, abort=True, err=True)
    asked, reached = [], set[str]()
    for target in found:
        if target.instance not in reached:  # else another one has told it
            asked.append(ask_one(settings, target, _order))
            answer = asked[-1].answer
            reached |= set(answer.reached) if answer is not None else set()
    if as_json:
        done = [{"url": one.url, "purged": one.answer, "error": one.error and str(one.error)} for one in asked]
        print_json({"instances": done})
    for one in asked if not as_json else ():
        if one.answer is not None:
            stdout().print(plain(_said(one.name, one.answer)))
    tell_unasked(asked)


def _order(client: OperatorsClient) -> Purged:
    return client.post("/caches/purge", {}, Purged, _PURGE_SECONDS)


def _said(name: str, done: Purged) -> str:
    said = f"{name}: {done.near:,} near and {done.shared:,} shared answers are gone."
    if done.reached:
        said += f" Near caches of {', '.join(done.reached)} are empty, too."
    return said
