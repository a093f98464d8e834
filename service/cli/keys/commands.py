"""forecast keys: what changes keys. What shows them is in show.py and log.py, backups in backup.py."""

import sys
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec
from rich.markup import escape

from service.base.masking import masked
from service.cli.durations import NEVER, FutureTime, Span
from service.cli.keys.backup import export, import_
from service.cli.keys.log import log
from service.cli.keys.opened import changing, checked_id, described, minute, print_done, repeatable
from service.cli.keys.show import list_keys, show
from service.cli.keys.terms import Dropped, Given, editor, terms_options
from service.cli.output import fail, json_option, reports_errors, stderr, stdout
from service.keys import changes
from service.keys.adopting import adopt
from service.keys.record import KeyView


@click.group()
def keys() -> None:
    """Issue, change, rotate and revoke the API keys of partners.

    \b
    forecast keys issue --partner acme --expires 90d
    forecast keys list
    forecast keys revoke 0B1zQmX4ktLw

    Keys are never deleted. Every change is in the audit trail: forecast keys log.
    """


for _command in (list_keys, show, log, export, import_):
    keys.add_command(_command)


@keys.command()
@click.option("--partner", required=True, help="Who the key is for.")
@click.option("--label", default="", help="What tells this key from the partner's others.")
@click.option("--expires", type=FutureTime(), help="When it stops working: 90d, 12h, 2027-01-31. Default: never.")
@terms_options
@json_option
@reports_errors
def issue(partner: str, label: str, expires: datetime | None, as_json: bool, **terms: Any) -> None:
    """Issue a key. It is shown this once, and durable by then; a warning says where the key store may lose it.

    Without --areas it opens all areas, those to come included; without --rate and --quota it has no limit.

    \b
    forecast keys issue --partner acme
    forecast keys issue --partner acme --areas forecast --rate 500/s --burst 100 --quota 5000000/month
    KEY=$(forecast keys issue --partner acme --json | jq -r .key)
    """
    partner, label = (_text(name, value) for name, value in (("--partner", partner), ("--label", label)))
    if not partner:
        raise click.UsageError("--partner is empty")
    wanted = Given(**terms).terms()
    (presented, key), warnings = changing(lambda store: store.issue(partner, label, expires, wanted), begins=True)
    _hand_over(presented, KeyView.of(key), warnings, as_json=as_json)


@keys.command()
@click.argument("key_id")
@click.option(
    "--overlap", type=Span(), required=True, help="How long the old key goes on: 7d, 12h; 0s ends it at once."
)
@click.option("--expires", type=FutureTime(), help="When the new key stops working. Default: when the old one would.")
@json_option
@reports_errors
def rotate(key_id: str, overlap: timedelta, expires: datetime | None, as_json: bool) -> None:
    """Issue a new key in place of an old one, with the same partner, label and terms.

    The old key works on until the end of the overlap, never longer than it would have.

    \b
    forecast keys rotate 0B1zQmX4ktLw --overlap 7d
    """
    checked_id(key_id, as_json=as_json)
    (presented, key, old), warnings = changing(lambda store: changes.rotate(store, key_id, overlap, expires))
    if not as_json:
        stderr().print(f"Key {old.key_id} ends {minute(old.expires_at)}.")
    _hand_over(presented, KeyView.of(key), warnings, as_json=as_json, old=KeyView.of(old))


@keys.command()
@click.argument("key_id")
@click.option(
    "--expires", type=FutureTime(or_never=True), required=True, help="The new end: 90d from now, 2027-01-31, never."
)
@json_option
@reports_errors
def extend(key_id: str, expires: datetime, as_json: bool) -> None:
    """Set when a key stops working; an expired one works again, a revoked one cannot be extended.

    \b
    forecast keys extend 0B1zQmX4ktLw --expires 2027-01-31
    forecast keys extend 0B1zQmX4ktLw --expires never
    """
    checked_id(key_id, as_json=as_json)
    until = None if expires == NEVER else expires
    (before, key), warnings = repeatable(lambda store: changes.extend(store, key_id, until))
    if as_json:
        print_done(KeyView.of(key), warnings)
        return
    ends = f"{minute(before.expires_at)} → {minute(key.expires_at)}"
    stdout().print(f"Key {key.key_id} of {escape(key.partner)} ends: {ends}")


@keys.command()
@click.argument("key_id")
@terms_options
@click.option("--all-areas", is_flag=True, help="It opens every area, those to come included.")
@click.option("--no-rate", is_flag=True, help="It has no rate limit any more.")
@click.option("--no-quota", is_flag=True, help="It has no quota any more.")
@json_option
@reports_errors
def change(key_id: str, all_areas: bool, no_rate: bool, no_quota: bool, as_json: bool, **terms: Any) -> None:
    """Change the terms of a key; what is not named stays. Workers are told at once.

    \b
    forecast keys change 0B1zQmX4ktLw --rate 500/s --burst 100
    forecast keys change 0B1zQmX4ktLw --areas forecast --no-quota
    """
    checked_id(key_id, as_json=as_json)
    edit = editor(Given(**terms), Dropped(areas=all_areas, rate=no_rate, quota=no_quota))
    (before, key), warnings = repeatable(lambda store: changes.change_terms(store, key_id, edit))
    if as_json:
        print_done(KeyView.of(key), warnings)
        return
    stdout().print(
        f"Key {key.key_id} of {escape(key.partner)}: {described(before.terms)} → {described(key.terms)}",
        soft_wrap=True,
    )


@keys.command()
@click.argument("key_id")
@json_option
@reports_errors
def revoke(key_id: str, as_json: bool) -> None:
    """Revoke a key for good. Workers are told at once; it is durable when this returns.

    \b
    forecast keys revoke 0B1zQmX4ktLw
    """
    checked_id(key_id, as_json=as_json)
    key, warnings = repeatable(lambda store: store.revoke(key_id))
    if as_json:
        print_done(KeyView.of(key), warnings)
        return
    stdout().print(f"Revoked {key.key_id} of {escape(key.partner)}.")


@keys.command(name="adopt-store")
@click.confirmation_option(
    prompt="Keys that were made with another pepper, or were lost, stop working for good. Go on?"
)
@json_option
@reports_errors
def adopt_store(as_json: bool) -> None:
    """Accept the key store as it is, after its keys were lost or the pepper was changed on purpose.

    Where there is a backup, import it instead: forecast keys import.

    \b
    forecast keys adopt-store
    forecast keys adopt-store --yes --json
    """
    _, warnings = changing(adopt, begins=True)
    if as_json:
        print_done({"adopted": True}, warnings)
        return
    stdout().print("The key store is ours from now on.")


def _hand_over(presented: str, key: KeyView, warnings: list[str], *, as_json: bool, old: KeyView | None = None) -> None:
    """Shows the key, and makes sure that it arrived."""
    try:
        if as_json:
            more = {} if old is None else {"old": old}
            print_done({"key": presented, **msgspec.structs.asdict(key), **more}, warnings)
        else:
            stderr().print(f"Key [bold]{key.key_id}[/bold] for {escape(key.partner)}. It is not shown again:")
            click.echo(presented)
        sys.stdout.flush()
    except OSError as error:
        revoke_it = f"it works, but nobody has it: forecast keys revoke {key.key_id}"
        fail(f"key {key.key_id} could not be shown ({error.strerror}); {revoke_it}")


def _text(name: str, value: str) -> str:
    if len(value) > 200 or not value.isprintable():
        raise click.UsageError(f"{name} must be printable and at most 200 characters")
    if masked(value) != value:  # it would be kept for good, and shown
        raise click.UsageError(f"{name} holds what looks like a key; revoke it, if it is one")
    return value.strip()
