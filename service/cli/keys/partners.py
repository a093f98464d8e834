"""forecast partners: limits that all keys of a partner share."""

from typing import Any

import click

from service.cli.keys.opened import changing, checked_text, done, format_terms, print_listed, with_store
from service.cli.keys.terms import Given, limit_options
from service.cli.output import Output, stdout, with_json
from service.keys import named
from service.keys.listing import NamedView, named_views, view_of
from service.keys.record import Partner
from service.keys.store import KeyStore
from service.reports.text_table import plain, text_table


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
    views, damaged = with_store(lambda store: named_views(store, Partner))
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

    async def view(store: KeyStore) -> NamedView:
        return await view_of(store, await named.partner_of(store, name))

    shown = with_store(view)
    return Output(shown, lambda: _print_table([shown]))


def _print_table(views: list[NamedView]) -> None:
    if not views:
        stdout().print("No partners.")
        return
    shown = text_table("partner", "limits of all keys", "contact", "keys")
    for view in views:
        shown.add_row(view.name, format_terms(view.terms), view.contact or "-", f"{view.keys:,}")
    stdout().print(shown)
