"""forecast status: the screen of one instance; of several, an overall verdict, a row for each, and their problems."""

from collections.abc import Iterable, Iterator, Sequence

import click
import msgspec
from rich.console import Group
from rich.text import Text

from config.text import printable
from service.cli.instances.chosen import InstanceReply, call_all, targets_or_fail, url_option
from service.cli.instances.client import OperatorsClient
from service.cli.output import FAILED, Output, load_settings, print_error, stdout, with_json
from service.cli.status.screen import STYLES, screen, served_release, verdict_text
from service.cli.words import UNKNOWN, latency, percent, rate
from service.operators.overview import Level, Overview
from service.reports.text_table import text_table

# Exit codes in addition to 1 to 3, which all commands use.
DEGRADED = 4
UNAVAILABLE = 5
_CODES = {"ok": 0, "degraded": DEGRADED, "unavailable": UNAVAILABLE, None: FAILED}

OverviewResult = InstanceReply[Overview]


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

    def show() -> None:
        if len(results) > 1:
            stdout().print(_screen_of_several(results))
        elif results[0].answer is not None:
            stdout().print(screen(results[0].answer, results[0].url))
        else:
            print_error(verdict.sentence)

    return Output(overall_as_json(results), show, code=_CODES[verdict.level])


def fetch_overview(client: OperatorsClient) -> Overview:
    return client.get("/overview", Overview)


class Overall(msgspec.Struct, frozen=True):
    """The verdict of all instances together. `level` is None if none is reachable."""

    level: Level | None
    sentence: str


def overall(results: Sequence[OverviewResult]) -> Overall:
    """Returns the overall verdict: degraded, not unavailable, as long as one instance serves partners."""
    levels = [one.answer.verdict.level for one in results if one.answer is not None]
    if len(results) == 1:
        only = results[0]
        sentence = only.answer.verdict.sentence if only.answer else f"{only.name} is unreachable: {only.error}"
        return Overall(levels[0] if levels else None, sentence)
    if not levels:
        return Overall(None, f"None of {len(results)} instances is reachable.")
    if levels.count("ok") == len(results):
        return Overall("ok", f"All is well with {len(results)} instances.")
    counted = [(levels.count("unavailable"), "unavailable"), (levels.count("degraded"), "degraded")]
    counted.append((len(results) - len(levels), "unreachable"))
    bad = ", ".join(f"{number} {word}" for number, word in counted if number)
    serving = levels.count("ok") + levels.count("degraded")
    return Overall("degraded" if serving else "unavailable", f"{len(results)} instances: {bad}.")


def overall_as_json(results: Sequence[OverviewResult]) -> dict[str, object]:
    together = overall(results)
    instances = [{"url": one.url, "error": one.error, "overview": one.answer} for one in results]
    return {"level": together.level, "sentence": together.sentence, "instances": instances}


def _screen_of_several(results: Sequence[OverviewResult]) -> Group:
    together = overall(results)
    columns = ("instance", "requests", "5xx", "hit rate", "p99", "workers")
    table = text_table(*columns, "listener", numeric=columns[1:], whole=columns[1:])
    for one in results:
        table.add_row(one.name.removeprefix("instance "), *_row(one.answer), one.url)
    note = Text("Figures of the last minute. --url LISTENER shows one instance in full.", "dim")
    head = Text(together.sentence, STYLES[together.level or "unavailable"])
    verdict = (head, *_reasons(results))
    return Group(*verdict, Text(), table, Text(), *_releases(results), note, *verdict)


def _row(seen: Overview | None) -> Iterable[str]:
    if seen is None:
        return (UNKNOWN,) * 5
    serving = sum(worker.state == "serving" for worker in seen.workers)
    now = seen.traffic_now
    figures = (rate(now.requests), rate(now.errors), percent(seen.hit_rate_now.rate), latency(now.p99))
    return (*figures, f"{serving}/{len(seen.workers)}")


def _reasons(results: Iterable[OverviewResult]) -> Iterator[Text]:
    for one in results:
        if one.answer is None:
            yield Text(printable(f"{one.name} is unreachable: {one.error}"), "red")
        elif one.answer.verdict.level != "ok":
            yield Text(printable(f"{one.name}: ")).append(verdict_text(one.answer.verdict, one.answer.at, one.url))


def _releases(results: Iterable[OverviewResult]) -> Iterator[Text]:
    """Yields the release of all instances, or of each if they differ."""
    seen = [one.answer for one in results if one.answer is not None]
    current = {answer.instance.id: _release_name(answer) for answer in seen}
    if len(set(current.values())) > 1:
        listed = ", ".join(f"{one} has {name}" for one, name in current.items())
        yield Text(printable(f"Releases differ: {listed}."), "yellow")
    else:
        yield from (Text(f"Release {name}.") for name in set(current.values()))


def _release_name(seen: Overview) -> str:
    release = served_release(seen)
    if release is not None:
        return printable(release.id)
    return "several" if any(worker.release is not None for worker in seen.workers) else "none"
