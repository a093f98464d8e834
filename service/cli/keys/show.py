"""forecast keys list and show. Secrets are never shown."""

import sys
from typing import Any

import click
import msgspec
from rich.table import Table
from rich.text import Text

from service.cli.durations import duration
from service.cli.keys.opened import (
    ROWS,
    JsonArray,
    day,
    end,
    format_terms,
    key_argument,
    limit_option,
    minute,
    report_loss,
    with_store,
)
from service.cli.keys.terms import one_area
from service.cli.output import FAILED, Output, print_error, stdout, wants_json, with_json
from service.keys.listing import KeyFilter, Newest, key_views
from service.keys.record import DamagedKey, KeyView, Suspension
from service.keys.store import KeyStore
from service.quota.report import last_used
from service.reports.text_table import NARROW, plain, text_table

_COLUMNS = ("key id", "partner", "label", "status", "created", "last used", "expires", "terms")
_NARROW_LABEL = 70  # below this width, labels are left out too
_WHOLE_TERMS = 180  # from this width on, terms have burst and warning
_COLOURS = {
    "active": "green",
    "pending": "cyan",
    "suspended": "yellow",
    "expired": "yellow",
    "revoked": "red",
    "void": "magenta",
}


@click.command(name="list")
@click.option("--partner", help="Only keys of this partner.")
@click.option("--plan", help="Only keys with this plan.")
@click.option("--status", type=click.Choice(list(_COLOURS)), help="Only keys with this status.")
@click.option("--area", callback=one_area, help="Only keys whose own terms open this area.")
@click.option("--label", help="Only keys whose label contains this text (case-insensitive).")
@click.option("--expires-within", type=duration, help="Only active keys that end within this time: 30d, 12h.")
@click.option("--unused", type=duration, help="Only keys issued that long ago and not used since: 90d. Not test keys.")
@limit_option
@with_json
def list_keys(limit: int | None, **wanted: Any) -> None:
    """List keys, newest first.

    Secrets are not stored and cannot be shown. A void key was made with another pepper and never works again. With
    --json and without --limit, all keys are printed as they are read, in no particular order.

    Exit codes: 0 listed, 1 failed, records are damaged (and listed), or the key store lost its keys, 2 wrong usage.

    \b
    Examples:
      forecast keys list --partner acme --status active
      forecast keys list --expires-within 30d
      forecast keys list --status active --unused 90d
    """
    damaged, loss = with_store(lambda store: _list(store, KeyFilter(**wanted), limit))
    report_loss(loss)
    if damaged:
        many = f"{damaged:,} record{'s are' if damaged > 1 else ' is'} damaged"
        print_error(f"{many}; `forecast keys import` restores them from a backup")
        sys.exit(FAILED)


async def _list(store: KeyStore, wanted: KeyFilter, limit: int | None) -> tuple[int, str | None]:
    """Prints the keys; returns the number of damaged records, and how the store lost its keys, or None."""
    loss = await store.loss()
    newest, damaged = Newest(limit or ROWS), 0
    array = JsonArray() if wants_json() else None
    async for entry in key_views(store, await last_used(store.redis)):
        if isinstance(entry, DamagedKey):
            damaged += 1
            _print_damaged(entry, array)
        elif not wanted.matches(entry):
            continue
        elif array is not None and limit is None:
            array.add(entry)
        else:
            newest.add(entry)
    if array is None:
        if newest.seen or not loss:
            _print_table(newest)
        return damaged, loss
    for view in newest.views():
        array.add(view)
    array.end()
    return damaged, loss


def _print_damaged(entry: DamagedKey, array: JsonArray | None) -> None:
    if array is not None:
        array.add(entry)
        return
    stdout().print(f"[red]damaged[/] {plain(entry.key_id)}: {plain(entry.reason)}", soft_wrap=True)


def _print_table(newest: Newest) -> None:
    console, views = stdout(wide=True), newest.views()
    if not views:
        console.print("No keys.")
        return
    console.print(keys_table(views, console.width))
    if newest.seen > len(views):
        console.print(f"{newest.seen - len(views):,} more: filter the list, or give --limit {newest.seen}")


def keys_table(views: list[KeyView], width: int) -> Table:
    """Returns a table for a terminal of `width` columns. A narrow one leaves out details; ids are never broken."""
    wide = width >= NARROW
    hidden = () if wide else ("created", "last used") if width >= _NARROW_LABEL else ("created", "last used", "label")
    names = [name for name in _COLUMNS if name not in hidden]
    shown = text_table(*names, whole=("key id", "status", "created", "last used", "expires"))
    for view in views:
        cells: dict[str, str | Text] = {
            "key id": view.key_id,
            "partner": view.partner,
            "label": view.label,
            "status": _status(view),
            "created": day(view.created_at),
            "last used": day(view.last_used or None),
            "expires": end(view.expires_at) if wide else day(view.expires_at),
            "terms": format_terms(view.terms, view.plan, brief=width < _WHOLE_TERMS),
        }
        shown.add_row(*(cells[name] for name in names))
    return shown


@click.command()
@key_argument
@with_json
def show(key_id: str) -> Output:
    """Show one key: status, terms, expiry, rotation.

    The secret is not stored and cannot be shown.

    Exit codes: 0 shown, 1 the key does not exist or its record is damaged, 2 wrong usage.

    \b
    Examples:
      forecast keys show 0B1zQmX4ktLw
    """

    async def look(store: KeyStore) -> KeyView:
        _, key = await store.read(key_id)
        _, identity = await store.raw_identity()
        return KeyView.of(key, identity, await last_used(store.redis))

    view = with_store(look)
    return Output(view, lambda: _print_key(view))


def _print_key(view: KeyView) -> None:
    shown = text_table("key", view.key_id)
    for name, text in (
        ("partner", view.partner),
        ("label", view.label or "-"),
        ("status", _status(view)),
        ("created", minute(view.created_at)),
        ("expires", minute(view.expires_at)),
        ("last used", "not counted" if view.test else minute(view.last_used or None)),
        ("begins", minute(view.not_before) if view.not_before else "when issued"),
        ("suspended", _suspension(view.suspended) if view.suspended else "-"),
        ("revoked", minute(view.revoked_at) if view.revoked_at else "-"),
        ("plan", view.plan or "-"),
        (
            "areas",
            ("all, or the plan's" if view.plan else "all") if view.terms.areas is None else ", ".join(view.terms.areas),
        ),
        ("limits", format_terms(msgspec.structs.replace(view.terms, areas=None))),
        ("rotated from", view.rotated_from or "-"),
        ("rotated to", view.rotated_to or "-"),
    ):
        shown.add_row(name, text)
    stdout().print(shown)


def _suspension(suspended: Suspension) -> str:
    return f"{minute(suspended.at)} by {plain(suspended.by)}: {plain(suspended.reason)}"


def _status(view: KeyView) -> Text:
    return Text(view.status, _COLOURS[view.status]).append(", test" if view.test else "", "default")
