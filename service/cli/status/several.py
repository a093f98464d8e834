"""Several instances on one screen: an overall verdict, a row for each instance, and their problems."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.console import Group
from rich.text import Text

from config.text import printable
from service.cli.instances.chosen import InstanceReply
from service.cli.instances.client import OperatorsClient
from service.cli.status.screen import STYLES, served_release, verdict_text
from service.cli.words import UNKNOWN, latency, percent, rate
from service.operators.overview import Level, Overview
from service.reports.text_table import text_table

OverviewResult = InstanceReply[Overview]


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
    instances = [{"url": one.url, "error": one.problem, "overview": one.answer} for one in results]
    return {"level": together.level, "sentence": together.sentence, "instances": instances}


def screen_of_several(results: Sequence[OverviewResult]) -> Group:
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
