"""forecast plans: terms that many keys share."""

import re
from typing import Any

import click

from service.base.masking import has_key
from service.cli.keys.opened import changing, done, format_terms, print_listed, repeatable, with_store
from service.cli.keys.terms import Given, terms_options
from service.cli.output import Output, stdout, with_json
from service.keys import named
from service.keys.listing import NamedView, named_views, view_of
from service.keys.record import Plan
from service.keys.store import KeyStore
from service.reports.text_table import text_table

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@click.group()
def plans() -> None:
    """Set, list and remove plans: terms that many keys share.

    A key with a plan has the plan's terms, except for those of its own. A changed plan reaches all its keys within 5 s.

    \b
    Examples:
      forecast plans set basic --rate 50/s --burst 100 --quota 1000000/month --areas forecast
      forecast keys issue --partner acme --plan basic
    """


def _name(_: click.Context, __: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value) or has_key(value):
        raise click.BadParameter("the name of a plan has letters, digits, ., _ and -, at most 64")
    return value


named_plan = click.argument("name", callback=_name)


@plans.command(name="set")
@named_plan
@terms_options
@with_json
def set_(name: str, **terms: Any) -> Output:
    """Create a plan, or replace all of its terms.

    Without --areas the plan opens every area. Without --rate and --quota it has no limit. To change one term of a plan,
    give the others again. The audit trail has each version.

    Exit codes: 0 set, 1 failed, 2 wrong usage.

    \b
    Examples:
      forecast plans set basic --rate 50/s --burst 100 --quota 1000000/month --areas forecast
    """
    wanted = Given(**terms).terms()
    (before, plan), warnings = changing(lambda store: named.set_plan(store, name, wanted), begins=True)
    was = "" if before is None or before.removed else f"{format_terms(before.terms)} → "
    return done(_members(plan), warnings, lambda: _print(f"Plan {name}: {was}{format_terms(plan.terms)}"))


@plans.command(name="list")
@with_json
def list_plans() -> None:
    """List plans, with the number of their keys that are not revoked.

    Exit codes: 0 listed, 1 failed or records are damaged, 2 wrong usage.

    \b
    Examples:
      forecast plans list
    """
    views, damaged = with_store(lambda store: named_views(store, Plan))
    print_listed(Output(views, lambda: _print_table(views)), damaged)


@plans.command()
@named_plan
@with_json
def show(name: str) -> Output:
    """Show one plan.

    Shows its terms, and the number of its keys that are not revoked.

    Exit codes: 0 shown, 1 failed or there is no such plan, 2 wrong usage.

    \b
    Examples:
      forecast plans show basic
    """

    async def view(store: KeyStore) -> NamedView:
        return await view_of(store, (await named.plan_of(store, name))[1])

    shown = with_store(view)
    return Output(shown, lambda: _print_table([shown]))


@plans.command()
@named_plan
@with_json
def remove(name: str) -> Output:
    """Remove a plan that no key uses. Revoked keys do not count.

    Exit codes: 0 removed, 1 failed, there is no such plan, or a key uses it, 2 wrong usage.

    \b
    Examples:
      forecast plans remove basic
    """
    plan, warnings = repeatable(lambda store: named.remove_plan(store, name))
    return done({**_members(plan), "removed": True}, warnings, lambda: _print(f"Removed plan {name}."))


def _members(plan: Plan) -> dict[str, Any]:
    return {"name": plan.name, "terms": plan.terms}


def _print_table(views: list[NamedView]) -> None:
    if not views:
        _print("No plans.")
        return
    shown = text_table("plan", "terms", "keys")
    for view in views:
        shown.add_row(view.name, format_terms(view.terms), f"{view.keys:,}")
    stdout().print(shown)


def _print(text: str) -> None:
    stdout().print(text, markup=False, soft_wrap=True)
