"""forecast status"""

from collections.abc import Sequence

import click

from service.cli.instances.chosen import call_all, targets_or_fail, url_option
from service.cli.output import FAILED, Output, load_settings, print_error, stdout, with_json
from service.cli.status.screen import screen
from service.cli.status.several import (
    Overall,
    OverviewResult,
    fetch_overview,
    overall,
    overall_as_json,
    screen_of_several,
)

# Exit codes in addition to 1 to 3, which all commands use.
DEGRADED = 4
UNAVAILABLE = 5
_CODES = {"ok": 0, "degraded": DEGRADED, "unavailable": UNAVAILABLE, None: FAILED}


@click.command()
@url_option
@with_json
def status(url: str | None) -> Output:
    """Show health, hit rates and latency.

    One screen: problems with their start times; hit rate by tier, requests, errors and latency of the last minute and
    hour; release, workers, both Redis, warehouse, inbox. Queries the instances on the data folder and on the key store,
    each for at most 2 s, with the token in FORECAST_OPERATOR_READ_TOKEN or FORECAST_OPERATOR_WRITE_TOKEN. Shows one
    line per instance if there are several; together they are unavailable only if no instance serves partners.

    Exit codes: 0 all is well, 1 no instance runs or none is reachable, 2 wrong usage, 4 degraded, 5 unavailable.

    \b
    Examples:
      forecast status
      forecast status --url http://10.0.0.7:8001 --json
      forecast status --json | jq -r .sentence
    """
    settings = load_settings().settings
    results = call_all(settings, targets_or_fail(settings, url), fetch_overview)
    verdict = overall(results)
    return Output(overall_as_json(results), lambda: _print(results, verdict), code=_CODES[verdict.level])


def _print(results: Sequence[OverviewResult], verdict: Overall) -> None:
    if len(results) > 1:
        stdout().print(screen_of_several(results))
    elif results[0].answer is not None:
        stdout().print(screen(results[0].answer, results[0].url))
    else:
        print_error(verdict.sentence)
