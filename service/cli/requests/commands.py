"""forecast requests: finds one request in the log of the running instances, and sets the share that is logged."""

from collections.abc import Sequence
from urllib.parse import quote

import click
import msgspec

from service.base.ipc import AccessLogEntry
from service.cli.instances.chosen import InstanceReply, call_all, print_failed_calls, targets_or_fail, url_option
from service.cli.instances.client import CallError, OperatorsClient
from service.cli.output import Output, fail, load_settings, print_lines, stdout, with_json
from service.cli.words import percent
from service.operators.live import Sampling
from service.reports.text_table import facts_table, plain
from service.request.request import MOST_REQUEST_ID, valid_request_id

Found = InstanceReply[list[AccessLogEntry]]


def _share(text: str) -> float:
    """The type of an argument that takes `0.01` or `1%`."""
    try:
        share = float(text.strip().removesuffix("%")) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise click.BadParameter(f"{text!r} is not a share; give 0.01 or 1%, at most 1")
    return share


@click.group()
def requests() -> None:
    """Find a request in the log, and set how many are logged.

    Errors and slow requests are always logged, others at the sampling rate. Each instance keeps its newest lines in
    memory.

    \b
    Examples:
      forecast requests find 9f2c71aa03b54e6fd0181a2b3c4d5e6f
      forecast requests sample 10%
    """


@requests.command()
@click.argument("request_id")
@url_option
@with_json
def find(request_id: str, url: str | None) -> Output:
    """Show the log lines of one request.

    REQUEST_ID is the X-Request-Id of an answer, or the request_id of an error. Queries the instances on the data
    folder and on the key store.

    Exit codes: 0 found; 1 no instance has the request, or one did not answer: the message says which; 2 wrong usage.

    \b
    Examples:
      forecast requests find 9f2c71aa03b54e6fd0181a2b3c4d5e6f
      forecast requests find 9f2c71aa03b54e6fd0181a2b3c4d5e6f --json
    """
    if not valid_request_id(request_id.encode(errors="surrogateescape")):
        fail(f"{request_id!r} is not a request id: at most {MOST_REQUEST_ID} of A-Z a-z 0-9 . _ -")
    settings = load_settings().settings
    asked = call_all(settings, targets_or_fail(settings, url), lambda client: _find(client, request_id))
    found = [(one, line) for one in asked for line in one.answer or ()]
    unasked = "; ".join(f"{one.name}: {one.error}" for one in asked if one.error is not None)
    if not found:
        why = (
            f"; {unasked}" if unasked else ", which is sampled: `forecast requests sample 100%` logs every new request"
        )
        fail(f"request {request_id} is not in the log{why}")
    value = [{"instance": one.url, **msgspec.to_builtins(line)} for one, line in found]
    return Output(value, lambda: _print(found), code=print_failed_calls(asked))


@requests.command()
@click.argument("rate", type=_share)
@url_option
@with_json
def sample(rate: float, url: str | None) -> Output:
    """Set the share of requests that are logged, until the restart.

    RATE is a share like 0.01 or 1%. 0 logs only errors and slow requests. Applies to the instances on the data folder
    and on the key store. The token is FORECAST_OPERATOR_WRITE_TOKEN.

    Exit codes: 0 set, 1 failed, 2 wrong usage.

    \b
    Examples:
      forecast requests sample 10%
      forecast requests sample 0 --url http://10.0.0.7:8001
    """
    settings = load_settings().settings
    found = targets_or_fail(settings, url)
    asked = call_all(settings, found, lambda client: client.post("/log/sampling", Sampling(rate), Sampling))
    value = [{"url": one.url, "rate": one.answer and one.answer.rate, "error": one.error} for one in asked]
    rates = ((plain(one.name), one.answer.rate) for one in asked if one.answer is not None)
    lines = [f"{name} now logs {percent(rate)} of its requests." for name, rate in rates]
    return Output(value, lambda: print_lines(lines), code=print_failed_calls(asked))


def _find(client: OperatorsClient, request_id: str) -> list[AccessLogEntry]:
    try:
        return client.get(f"/requests/{quote(request_id)}", list[AccessLogEntry])
    except CallError as error:
        if error.code == "no_such_request":
            return []
        raise


def _print(found: Sequence[tuple[Found, AccessLogEntry]]) -> None:
    for number, (one, line) in enumerate(found):
        if number:
            stdout().print()
        members = ((name.replace("_", " "), str(value)) for name, value in msgspec.to_builtins(line).items())
        stdout().print(facts_table((("instance", one.name), *members)))
