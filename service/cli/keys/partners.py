"""forecast partners: limits that all keys of a partner share."""

from collections import Counter
from typing import Any

import click
import msgspec

from service.base.terms import Terms
from service.cli.keys.opened import changing, checked_text, done, format_terms, print_listed, with_store
from service.cli.keys.terms import Given, limit_options
from service.cli.output import Output, fail, stdout, with_json
from service.keys import named
from service.keys.reader import every_key
from service.keys.record import DamagedKey, Partner
from service.keys.store import KeyStore
from service.reports.text_table import plain, text_table


class PartnerView(msgspec.Struct, frozen=True):
    """The limits of a partner (`terms`), and the number of its keys that are not revoked."""

    name: str
    terms: Terms
    contact: str
    keys: int


@click.group()
def partners() -> None:
    """Set and list limits that all keys of a partner share.

    Each key keeps its own limits inside them. A change reaches all keys within 5 s.

    \b
    Examples:
      forecast partners set acme --rate 100/s --quota 5000000/month --contact data@acme.example
      forecast partners list
    """


@partners.command(name="set")
@click.argument("name")
@limit_options
@click.option("--contact", default="", help="Whom to ask, for operators.")
@with_json
def set_(name: str, contact: str, **terms: Any) -> Output:
    """Set, or replace, the limits and the contact of a partner.

    Without --rate and --quota its keys share no limit. NAME is the name that its keys were issued with. The quota
    counts from when the partner was first given one. A limit below that of one of its keys is refused; those of plans
    are not compared.

    Exit codes: 0 set, 1 failed or a key has a higher limit, 2 wrong usage.

    \b
    Examples:
      forecast partners set acme --rate 100/s --quota 5000000/month --contact data@acme.example
    """
    name, contact = checked_text("NAME", name), checked_text("--contact", contact)
    if not name:
        raise click.UsageError("NAME is empty")
    wanted = Given(areas=None, **terms).terms()
    (before, partner), warnings = changing(lambda store: named.set_partner(store, name, wanted, contact), begins=True)
    was = "" if before is None else f"{format_terms(before.terms)} → "
    members = {"name": partner.name, "terms": partner.terms, "contact": partner.contact}
    text = f"All keys of {plain(name)}: {was}{format_terms(partner.terms)}"
    return done(members, warnings, lambda: stdout().print(text, soft_wrap=True))


@partners.command(name="list")
@with_json
def list_partners() -> None:
    """List partners with limits or a contact.

    Exit codes: 0 listed, 1 failed or records are damaged, 2 wrong usage.

    \b
    Examples:
      forecast partners list
    """
    views, damaged = with_store(_views)
    print_listed(Output(views, lambda: _print_table(views)), damaged)


@partners.command()
@click.argument("name")
@with_json
def show(name: str) -> Output:
    """Show the limits and the contact of one partner.

    Exit codes: 0 shown, 1 failed or the partner has none, 2 wrong usage.

    \b
    Examples:
      forecast partners show acme
    """
    name = checked_text("NAME", name)
    view = next((view for view in with_store(_views)[0] if view.name == name), None)
    if view is None:
        fail(f"no limits of partner {name}; `forecast partners list` shows those there are")
    return Output(view, lambda: _print_table([view]))


async def _views(store: KeyStore) -> tuple[list[PartnerView], list[DamagedKey]]:
    keys = every_key(store)
    uses = Counter([key.partner async for key in keys if not isinstance(key, DamagedKey) and not key.revoked_at])
    views, damaged = [], []
    async for partner in named.every(store, Partner):
        if isinstance(partner, DamagedKey):
            damaged.append(partner)
        else:
            views.append(PartnerView(partner.name, partner.terms, partner.contact, uses[partner.name]))
    return sorted(views, key=lambda view: view.name), damaged


def _print_table(views: list[PartnerView]) -> None:
    if not views:
        stdout().print("No partners.")
        return
    shown = text_table("partner", "limits of all keys", "contact", "keys")
    for view in views:
        shown.add_row(view.name, format_terms(view.terms), view.contact or "-", f"{view.keys:,}")
    stdout().print(shown)
