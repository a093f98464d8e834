"""Several instances on one screen: an overall line, a row for each, and what is wrong with them."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.console import Group
from rich.text import Text

from config.text import printable
from service.cli.instances.chosen import Asked
from service.cli.instances.client import OperatorsClient
from service.cli.status.screen import STYLES, current_release, verdict
from service.cli.words import UNKNOWN, latency, percent, rate
from service.operators.overview import Level, Overview
from service.reports.text_table import text_table

AskedOverview = Asked[Overview]


def ask_overview(client: OperatorsClient) -> Overview:
    return client.get("/overview", Overview)


class Overall(msgspec.Struct, frozen=True):
    """How all instances together are. `level` is None if none of them could be asked."""

    level: Level | None
    sentence: str


def overall(asked: Sequence[AskedOverview]) -> Overall:
    """Partners are served as long as one instance serves them: then another one's failure is a degradation."""
    levels = [one.answer.verdict.level for one in asked if one.answer is not None]
    if len(asked) == 1:
        only = asked[0]
        said = only.answer.verdict.sentence if only.answer else f"{only.name} cannot be asked: {only.error}"
        return Overall(levels[0] if levels else None, said)
    if not levels:
        return Overall(None, f"None of {len(asked)} instances can be asked.")
    if levels.count("ok") == len(asked):
        return Overall("ok", f"All is well with {len(asked)} instances.")
    counted = [(levels.count("unavailable"), "unavailable"), (levels.count("degraded"), "degraded")]
    counted.append((len(asked) - len(levels), "not to be asked"))
    bad = ", ".join(f"{number} {word}" for number, word in counted if number)
    serving = levels.count("ok") + levels.count("degraded")
    return Overall("degraded" if serving else "unavailable", f"Of {len(asked)} instances: {bad}.")


def as_json_of(asked: Sequence[AskedOverview]) -> dict[str, object]:
    said = overall(asked)
    return {"level": said.level, "sentence": said.sentence, "instances": [_as_json(one) for one in asked]}


def screen_of_several(asked: Sequence[AskedOverview]) -> Group:
    said = overall(asked)
    columns = ("instance", "requests", "5xx", "hit rate", "p99", "workers")
    table = text_table(*columns, "listener", numeric=columns[1:])
    for one in asked:
        table.add_row(one.name.removeprefix("instance "), *_row(one.answer), one.url)
    note = Text("Of the last minute. --url LISTENER shows one instance whole.", "dim")
    head = Text(said.sentence, STYLES[said.level or "unavailable"])
    return Group(head, *_reasons(asked), Text(), table, Text(), *_releases(asked), note)


def _as_json(one: AskedOverview) -> dict[str, object]:
    return {"url": one.url, "error": one.problem, "overview": one.answer}


def _row(seen: Overview | None) -> Iterable[str]:
    if seen is None:
        return (UNKNOWN,) * 5
    serving = sum(worker.state == "serving" for worker in seen.workers)
    now = seen.traffic_now
    figures = (rate(now.requests), rate(now.errors), percent(seen.hit_rate_now.rate), latency(now.p99))
    return (*figures, f"{serving}/{len(seen.workers)}")


def _reasons(asked: Iterable[AskedOverview]) -> Iterator[Text]:
    for one in asked:
        if one.answer is None:
            yield Text(printable(f"{one.name} cannot be asked: {one.error}"), "red")
        elif one.answer.verdict.level != "ok":
            yield Text(printable(f"{one.name}: ")).append(verdict(one.answer.verdict, one.answer.at))


def _releases(asked: Iterable[AskedOverview]) -> Iterator[Text]:
    """The release of all, or of each if they differ."""
    seen = [one.answer for one in asked if one.answer is not None]
    current = {answer.instance.id: _named(answer) for answer in seen}
    if len(set(current.values())) > 1:
        listed = ", ".join(f"{one} has {name}" for one, name in current.items())
        yield Text(printable(f"Releases differ: {listed}."), "yellow")
    else:
        yield from (Text(f"Release {name}.") for name in set(current.values()))


def _named(seen: Overview) -> str:
    release = current_release(seen)
    if release is not None:
        return printable(release.id)
    return "several" if any(worker.release is not None for worker in seen.workers) else "none"
