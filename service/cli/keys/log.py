"""forecast log: the audit trail."""

from datetime import datetime
from typing import Any, get_args

import click
import msgspec

from service.base.whoami import Way, way_of
from service.cli.durations import past_time
from service.cli.keys.opened import (
    ROWS,
    JsonArray,
    checked_id,
    end,
    format_terms,
    limit_option,
    report_loss,
    with_store,
)
from service.cli.output import stdout, wants_json, with_json
from service.keys import audit
from service.keys.audit import Change, TrailLine
from service.keys.record import KeyState
from service.keys.store import KeyStore
from service.reports.text_table import text_table


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of the trail to show; None or () for any."""

    key_id: str | None
    partner: str | None
    what: tuple[str, ...]
    via: str | None

    def matches(self, change: Change | None) -> bool:
        """Returns whether the line is wanted; a damaged one, whose change is None, only without a filter."""
        if change is None:
            return self.key_id is None and self.partner is None and not self.what and self.via is None
        return (
            self.key_id in (None, change.key_id)
            and self.partner in (None, change.partner)
            and (not self.what or change.what in self.what)
            and self.via in (None, way_of(change.by))
        )


@click.command()
@click.argument("key_id", required=False, callback=checked_id)
@click.option("--partner", help="Only changes of this partner and its keys.")
@click.option("--what", type=click.Choice(audit.WHATS), multiple=True, help="Only changes of this kind. Repeatable.")
@click.option("--via", type=click.Choice(get_args(Way)), help="Only changes made in this way.")
@click.option(
    "--since", type=past_time, metavar="TIME", help="Only changes in the last 30d or 12h, or since 2026-10-01."
)
@limit_option
@with_json
def log(key_id: str | None, since: datetime | None, limit: int | None, **filters: Any) -> None:
    """Show the audit trail: who changed what, when, and in which way.

    It has changes of keys, plans and partners, publishes, approvals, rollbacks and purges. KEY_ID limits it to one key.
    Newest first. The trail is never trimmed.

    The way is that of the actor: `alice@host (uid 1000)` ran a command, `operator listener (10.0.0.7)` is the address
    of an HTTP request, `inbox of forecast@host (uid 998)` published a drop of the inbox. An instance that acts by
    itself says why.

    Exit codes: 0 shown, 1 failed or the key store lost its keys, 2 wrong usage.

    \b
    Examples:
      forecast log
      forecast log 0B1zQmX4ktLw --json
      forecast log --since 30d --what published --what rolled-back
      forecast log --via http
    """
    wanted = Filter(key_id=key_id, **filters)
    report_loss(with_store(lambda store: _log(store, wanted, since, limit)))


async def _log(store: KeyStore, wanted: Filter, since: datetime | None, limit: int | None) -> str | None:
    """Prints the lines; returns how the store lost its keys, or None."""
    loss = await store.loss()
    array = JsonArray()
    shown = text_table("when (UTC)", "who", "what", "key id", "partner", "change")
    as_json = wants_json()
    most, lines = limit or (None if as_json else ROWS), 0
    async for line in audit.newest_first(store.redis, since):
        change = line.change
        if not wanted.matches(change):
            continue
        if lines == most:
            break
        lines += 1
        if as_json:
            array.add(_as_json(line))
        else:
            when = f"{line.at:%Y-%m-%d %H:%M}" if line.at else "-"
            shown.add_row(when, *(("-", "damaged", "-", "-", "") if change is None else _row(change)))
    if as_json:
        array.end()
        return loss
    if lines or not loss:
        stdout().print(shown if lines else "No changes.")
    if lines == most:
        stdout().print(f"These are the newest {most:,}; --limit and --since show others.")
    return loss


def _as_json(line: TrailLine) -> dict[str, Any]:
    if line.change is None:
        return {"id": line.id, "at": line.at, "what": "damaged"}
    return {"id": line.id, "at": line.at, "via": way_of(line.change.by), **msgspec.to_builtins(line.change)}


def _row(change: Change) -> tuple[str, ...]:
    texts = (change.by, change.what, change.key_id or "-", change.partner or "-")
    return (*texts, _difference(change))


def _difference(change: Change) -> str:
    after = change.after or KeyState()
    before = change.before or after
    parts = ["test key"] if change.test else []
    parts += [change.release] if change.release is not None else []
    parts += [f"reason: {change.reason}"] if change.reason is not None else []
    if change.rotated:
        parts.append(f"{'to' if change.what == 'rotated' else 'from'} {change.rotated}")
    if change.before is None and after.ends is not None:
        parts.append(f"expires {end(after.ends)}")
    if change.plan is not None:
        parts.append(f"plan {change.plan}")
    own = format_terms(after.terms, after.more.plan)
    if change.before is None and own != "-":
        parts.append(own)
    if before.ends != after.ends:
        parts.append(f"expires {end(before.ends)} → {end(after.ends)}")
    begins, suspended = after.more.not_before, after.more.suspended
    if change.before is None and begins is not None:
        parts.append(f"begins {end(begins)}")
    if suspended is not None and before.more.suspended != suspended:
        parts.append(f"reason: {suspended.reason}")
    if (was := format_terms(before.terms, before.more.plan)) != own:
        parts.append(f"terms {was} → {own}")
    return "; ".join(parts)
