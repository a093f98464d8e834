"""One overview on a screen of 24 lines: the verdict, hit rates, traffic and latencies, the parts. The verdict follows
again, because a terminal scrolls the first lines away.
"""

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urljoin

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from config.text import in_words, printable
from service.cli.words import UNKNOWN, latency, many, percent, rate, since, size, span, time_of_day
from service.operators.overview import HitRate, Overview, Reason, Release, Store, Traffic, Verdict
from service.reports.text_table import TextTable, facts_table

STYLES = {"ok": "bold green", "degraded": "bold yellow", "unavailable": "bold red"}
_STATUSES = 8  # most statuses on the screen, by frequency


def screen(seen: Overview, listener: str) -> Group:
    """Returns the whole screen of the instance with the `listener` at this URL."""
    first, last = verdict_text(seen.verdict, seen.at), verdict_text(seen.verdict, seen.at, listener)
    # one column if the instance has run for less than a minute
    hits = {span(one.seconds): one for one in (seen.hit_rate_now, seen.hit_rate_hour)}
    traffic = {span(one.seconds): one for one in (seen.traffic_now, seen.traffic_hour)}
    return Group(first, facts_table(identity(seen)), "", figures(hits, traffic), "", facts_table(parts(seen)), last)


def verdict_text(found: Verdict, now: float, listener: str | None = None) -> Text:
    """Returns the sentence, and below it the reasons that it does not contain, with their start times. With the URL of
    the `listener`, each reason has its next step.
    """
    text = Text(printable(found.sentence), STYLES[found.level])
    contained = [reason for reason in found.reasons if reason.text in found.sentence]
    first = contained[0] if contained else Reason("", found.since)
    text.append(f" ({_times(first, now)})", "dim not bold")
    for reason in found.reasons:
        if reason not in contained:
            text.append(f"\n- {printable(reason.text)}", "not bold")
            text.append(f" ({_times(reason, now)})", "dim not bold")
        if listener is not None and reason.next is not None:
            if reason.next.command is not None:
                text.append("\n  begin with: ", "dim not bold").append(printable(reason.next.command), "not bold")
            text.append(f"\n{urljoin(f'{listener}/', reason.next.runbook)}", "dim not bold")
    return text


def _times(reason: Reason, now: float) -> str:
    return since(reason.since, now) + ("" if reason.ended is None else f", ended {time_of_day(reason.ended)}")


def figures(hit_rates: Mapping[str, HitRate], traffic: Mapping[str, Traffic]) -> Table:
    """Returns hit rates on the left and traffic on the right, with a column for each span, by its name."""
    both = TextTable.grid(padding=(0, 2, 0, 0))
    both.add_row(_hit_rates(hit_rates), _traffic(traffic))
    return both


def _hit_rates(spans: Mapping[str, HitRate]) -> Table:
    table, columns = _columns(spans), spans.values()
    table.add_row(Text("hit rate", "bold"), *(Text(percent(one.rate), "bold") for one in columns))
    table.add_row("  near", *(percent(_part(one, one.near)) for one in columns))
    table.add_row("  shared", *(percent(_part(one, one.shared)) for one in columns))
    table.add_row("  warehouse", *(percent(_part(one, one.warehouse)) for one in columns))
    if any(one.previous for one in columns):
        table.add_row("  previous", *(rate(one.previous / (one.seconds or 1.0)) for one in columns))
    table.add_row("not found", *(rate(one.not_found / (one.seconds or 1.0)) for one in columns))
    return table


def _traffic(spans: Mapping[str, Traffic]) -> Table:
    table, columns = _columns(spans), spans.values()
    table.add_row("requests", *(rate(one.requests) for one in columns))
    table.add_row("5xx", *(Text(rate(one.errors), "bold red" if one.errors else "") for one in columns))
    table.add_row("p50", *(latency(one.p50) for one in columns))
    table.add_row("p99", *(latency(one.p99) for one in columns))
    table.add_row("p99.9", *(latency(one.p999) for one in columns))
    return table


def identity(seen: Overview) -> Iterator[tuple[str, RenderableType]]:
    one = seen.instance
    name = f"{one.id} on {one.host}, version {one.version}"
    replaced = f", {many(one.restarts, 'worker')} replaced" if one.restarts else ""
    yield (
        "instance",
        f"{name}, up {in_words(seen.at - one.started_at)}, {many(one.connections, 'connection')}{replaced}",
    )
    yield "release", _release(seen)
    switch = seen.switch
    if switch is not None:
        before, after = percent(switch.rate_before), percent(switch.rate_after)
        ago = in_words(max(0.0, seen.at - switch.at))
        yield "switch", f"{ago} ago, from {switch.before}: hit rate {before} before, {after} after"


def served_release(seen: Overview) -> Release | None:
    """Returns the release that all workers serve; None while they differ, as during a switch, or serve none."""
    return next((one for one in seen.releases if one.current), None)


def _release(seen: Overview) -> str:
    if not seen.releases:
        return "none: nothing has been published yet"
    current = served_release(seen)
    if current is None:
        served = sorted({worker.release for worker in seen.workers if worker.release is not None})
        return f"workers differ: {', '.join(served)}" if served else "none is served"
    # others may be newer, after a rollback
    others = [one for one in seen.releases if one.id < current.id]
    age = f"published {in_words(max(0.0, seen.at - current.published_at))} ago"
    made_up = ", illustrative figures" if current.illustrative else ""
    # the line on the switch names the previous release
    earlier = f"; before: {others[0].id}" if others and seen.switch is None else ""
    return f"{current.id}, {age}{made_up}{earlier}"


def parts(seen: Overview) -> Iterator[tuple[str, RenderableType]]:
    statuses = sorted(seen.traffic_now.by_status.items(), key=lambda item: -item[1])[:_STATUSES]
    yield (
        "statuses",
        "  ".join(f"{status} {rate(number)}" for status, number in sorted(statuses)) or "no requests",
    )
    yield "workers", _workers(seen)
    for store in seen.stores:
        yield {"keys": "key store", "cache": "shared cache"}[store.name], _store(store, len(seen.workers))
    lookups = seen.warehouse
    times = f"p50 {latency(lookups.p50)}, p99 {latency(lookups.p99)}" if lookups.p50 is not None else "none lately"
    yield "warehouse", f"{many(lookups.waiting, 'look-up')} waiting, {rate(lookups.queries)}, {times}"
    yield "inbox", _inbox(seen)
    yield "keys", _keys(seen)
    one = seen.instance
    if one.disk_free is not None:
        yield "disk", f"{size(one.disk_free)} of {size(one.disk_size)} free, {one.data_folder}"


def _workers(seen: Overview) -> Text:
    text = Text()
    for state in ("serving", "starting", "hanging", "leaving"):
        pids = [str(worker.pid) for worker in seen.workers if worker.state == state]
        if pids:
            style = "bold red" if state == "hanging" else ""
            text.append(", " if text else "").append(f"{len(pids)} {state} ({', '.join(pids)})", style)
    if not seen.workers:
        return Text("none", "bold red")
    text.append(f", {size(sum(worker.memory for worker in seen.workers))}")
    slowest = max(seen.workers, key=lambda worker: worker.p99 or 0.0)
    if slowest.p99 is not None and len(seen.workers) > 1:
        text.append(f"; slowest: {slowest.pid}, p99 {latency(slowest.p99)}")
    return text


def _store(store: Store, workers: int) -> Text:
    if not store.up:
        return Text("unreachable", "bold red")
    limit = "" if store.memory_limit is None else f" of {size(store.memory_limit)}"
    parts = [f"up, {latency(store.latency)}, {size(store.memory)}{limit}"]
    parts += [] if store.evicted is None or store.name == "keys" else [f"{store.evicted:,} evicted"]
    text = Text(", ".join(parts))
    if store.pushed is not None:
        text.append(f", revocations pushed to {store.pushed} of {workers}", "" if store.pushed >= workers else "yellow")
    return text


def _inbox(seen: Overview) -> Text:
    inbox = seen.inbox
    text = Text("watched" if inbox.watched else "not watched by this instance")
    if inbox.watched or inbox.published or inbox.refused or inbox.waiting:
        text.append(f": {inbox.published:,} published, {inbox.refused:,} refused, {inbox.waiting:,} waiting")
    for number, word in ((inbox.ignored, "that cannot be a drop"), (inbox.held, "held"), (inbox.failing, "failing")):
        if number:
            text.append(f", {number:,} {word}", "yellow")
    if inbox.last_drop_at is not None:
        text.append(f"; last drop {in_words(max(0.0, seen.at - inbox.last_drop_at))} ago")
    if inbox.overdue:
        text.append(f"; the next is overdue by {in_words(inbox.overdue)}", "yellow")
    return text


def _keys(seen: Overview) -> Text:
    soon, later = seen.keys.expire_within_7_days, seen.keys.expire_within_30_days
    if soon is None or later is None:
        return Text(UNKNOWN)
    return Text(f"{soon:,} expire within 7 days", "yellow" if soon else "").append(f", {later:,} within 30")


def _columns(names: Iterable[str]) -> Table:
    table = TextTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _part(whole: HitRate, number: int) -> float | None:
    answers = whole.near + whole.shared + whole.warehouse
    return number / answers if answers else None
