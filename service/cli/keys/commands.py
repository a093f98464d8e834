"""forecast keys: the commands that change keys. The others are in show.py, backup.py and repair.py."""

import sys
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

from config.text import printable
from service.cli.durations import NEVER, duration, future_time, future_time_or_never
from service.cli.keys.backup import export, import_
from service.cli.keys.opened import (
    changing,
    checked_text,
    done,
    format_terms,
    key_argument,
    minute,
    repeatable,
    with_store,
)
from service.cli.keys.repair import repair
from service.cli.keys.show import list_keys, show
from service.cli.keys.terms import Dropped, Given, editor, terms_options
from service.cli.output import (
    Output,
    fail,
    load_settings,
    print_output,
    stderr,
    stdout,
    wants_json,
    with_json,
)
from service.keys import changes, pepper
from service.keys.changes import adopt
from service.keys.record import NEVER_USED, ApiKey, KeyView, MoreOfKey
from service.reports.text_table import plain

_QUESTION = "Lost keys, and keys made with another pepper, will never work again. Continue?"


@click.group(commands=[list_keys, show, export, import_, repair])
def keys() -> None:
    """Issue, change, rotate, suspend and revoke partners' API keys.

    Commands take the id of a key, never the key itself. Keys are never deleted, only revoked. Every change is in the
    audit trail (`forecast log`) and reaches running workers at once.

    \b
    Examples:
      forecast keys issue --partner acme --expires 90d
      forecast keys list
      forecast keys revoke 0B1zQmX4ktLw
    """


@keys.command()
@click.option("--partner", required=True, help="Name of the partner.")
@click.option("--label", default="", help="Distinguishes this key from the partner's other keys.")
@click.option(
    "--expires", type=future_time, metavar="TIME", help="When it stops working: 90d, 12h, 2027-01-31. Default: never."
)
@click.option(
    "--not-before", type=future_time, metavar="TIME", help="When it begins to work: 7d, 2027-01-01. Default: at once."
)
@click.option("--test", is_flag=True, help="Create a test key: fixed test data, errors on purpose, no bill.")
@click.option("--plan", help="Name of its plan, whose terms it has, except for those that you give.")
@terms_options
@with_json
def issue(
    partner: str,
    label: str,
    expires: datetime | None,
    not_before: datetime | None,
    test: bool,
    plan: str | None,
    **terms: Any,
) -> None:
    """Create a key. It is shown once.

    Without --areas the key opens every area, future ones included. Without --rate and --quota it has no limit. With
    --plan, each term that you do not give is the plan's, also after the plan changes. The area partner-usage, for the
    usage of all keys of the partner, must be named.

    With --test the key begins with phf_test. It never opens live data, and its requests are never counted or billed.
    Its rate applies as for any other key; its quota is shown, but never used up.

    The key is on disk when it is shown. If the key store is configured so that it may lose keys, a warning says so.

    Exit codes: 0 issued, 1 failed, 2 wrong usage.

    \b
    Examples:
      forecast keys issue --partner acme
      forecast keys issue --partner acme --areas forecast --rate 500/s --burst 100 --quota 5000000/month
      forecast keys issue --partner acme --plan basic --quota 2000000/month
      forecast keys issue --partner acme --label integration --test
      KEY=$(forecast keys issue --partner acme --json | jq -r .key)
    """
    partner, label = (checked_text(name, value) for name, value in (("--partner", partner), ("--label", label)))
    if not partner:
        raise click.UsageError("--partner is empty")
    if expires is not None and not_before is not None and expires <= not_before:
        raise click.UsageError("--expires must be later than --not-before")
    wanted, more = Given(**terms).terms(), MoreOfKey(plan=plan, not_before=not_before)
    (presented, key), warnings = changing(
        lambda store: changes.issue(store, partner, label, expires, wanted, test=test, more=more), begins=True
    )
    _hand_over(presented, KeyView.of(key, last_used=NEVER_USED), warnings)


@keys.command()
@key_argument
@click.option(
    "--overlap", type=duration, required=True, help="How long the old key still works: 7d, 12h; 0s ends it at once."
)
@click.option(
    "--expires", type=future_time, metavar="TIME", help="When the new key stops working. Default: same as the old key."
)
@with_json
def rotate(key_id: str, overlap: timedelta, expires: datetime | None) -> None:
    """Replace a key by a new one, with an overlap.

    The new key has the same partner, label, plan and terms, and is shown once. The old key works until the overlap
    ends, or until its own expiry if that comes first.

    Exit codes: 0 rotated, 1 failed or the key no longer works, 2 wrong usage.

    \b
    Examples:
      forecast keys rotate 0B1zQmX4ktLw --overlap 7d
    """
    (presented, key, old), warnings = changing(lambda store: changes.rotate(store, key_id, overlap, expires))
    if not wants_json():
        stderr().print(f"Key {old.key_id} ends {minute(old.expires_at)}.")
    _hand_over(presented, KeyView.of(key, last_used=NEVER_USED), warnings, old=KeyView.of(old))


@keys.command()
@key_argument
@click.option(
    "--expires",
    type=future_time_or_never,
    metavar="TIME",
    required=True,
    help="The new end: 90d (from now), 2027-01-31, never.",
)
@with_json
def extend(key_id: str, expires: datetime) -> Output:
    """Set when a key stops working, earlier or later.

    An expired key works again afterwards. A revoked key cannot be extended, nor a suspended one before it is resumed.

    Exit codes: 0 set, 1 failed, or the key is revoked or suspended, 2 wrong usage.

    \b
    Examples:
      forecast keys extend 0B1zQmX4ktLw --expires 2027-01-31
      forecast keys extend 0B1zQmX4ktLw --expires never
    """
    until = None if expires == NEVER else expires
    (before, key), warnings = repeatable(lambda store: changes.extend(store, key_id, until))
    ends = f"{minute(before.expires_at)} → {minute(key.expires_at)}"
    return _changed(key, warnings, f"Key {key.key_id} of {plain(key.partner)} ends: {ends}")


@keys.command()
@key_argument
@terms_options
@click.option("--all-areas", is_flag=True, help="Open every area, future ones included.")
@click.option("--no-rate", is_flag=True, help="Remove the rate limit.")
@click.option("--no-quota", is_flag=True, help="Remove the quota.")
@click.option("--plan", help="Give the key this plan. Its own terms stay, and come before the plan's.")
@click.option("--no-plan", is_flag=True, help="Take the plan away. The key keeps only its own terms.")
@with_json
def change(
    key_id: str, all_areas: bool, no_rate: bool, no_quota: bool, plan: str | None, no_plan: bool, **terms: Any
) -> Output:
    """Change the terms of a key: areas, rate, quota, plan.

    Other terms stay the same. The change reaches workers at once. If the key has a plan, a term that you remove is the
    plan's again.

    Exit codes: 0 changed, 1 failed, 2 wrong usage.

    \b
    Examples:
      forecast keys change 0B1zQmX4ktLw --rate 500/s --burst 100
      forecast keys change 0B1zQmX4ktLw --areas forecast --no-quota
      forecast keys change 0B1zQmX4ktLw --plan pro --no-rate
    """
    if no_plan and plan is not None:
        raise click.UsageError("--no-plan contradicts --plan")
    given, dropped = Given(**terms), Dropped(areas=all_areas, rate=no_rate, quota=no_quota)
    keeps_plan = plan is None and not no_plan
    edit = editor(given, dropped, required=keeps_plan)
    wanted = msgspec.UNSET if keeps_plan else plan
    (before, key), warnings = repeatable(lambda store: changes.change_terms(store, key_id, edit, wanted))
    both = " → ".join(plain(format_terms(each.terms, each.more.plan)) for each in (before, key))
    return _changed(key, warnings, f"Key {key.key_id} of {plain(key.partner)}: {both}")


@keys.command()
@key_argument
@click.option("--reason", required=True, help="Why, for operators: `keys show` and the audit trail have it.")
@with_json
def suspend(key_id: str, reason: str) -> Output:
    """Suspend a key until it is resumed.

    It reaches workers at once. Requests with the key get a 403, which does not have the reason. Suspending a key twice
    is harmless: the first time and reason stay. Other keys of the partner still work.

    Exit codes: 0 suspended, 1 failed or the key is revoked, 2 wrong usage.

    \b
    Examples:
      forecast keys suspend 0B1zQmX4ktLw --reason "invoice 4711 is overdue"
    """
    reason = checked_text("--reason", reason)
    if not reason:
        raise click.UsageError("--reason is empty")
    key, warnings = repeatable(lambda store: changes.suspend(store, key_id, reason))
    return _changed(key, warnings, f"Suspended {key.key_id} of {plain(key.partner)}.")


@keys.command()
@key_argument
@with_json
def resume(key_id: str) -> Output:
    """Make a suspended key work again.

    It ends when it would have ended without the suspension. Resuming a key that is not suspended is harmless.

    Exit codes: 0 resumed, 1 failed or the key is revoked, 2 wrong usage.

    \b
    Examples:
      forecast keys resume 0B1zQmX4ktLw
    """
    key, warnings = repeatable(lambda store: changes.resume(store, key_id))
    return _changed(key, warnings, f"Resumed {key.key_id} of {plain(key.partner)}: {KeyView.of(key).status}.")


@keys.command()
@key_argument
@click.option("--yes", is_flag=True, help="Confirm the action without prompting.")
@with_json
def revoke(key_id: str, yes: bool) -> Output:
    """Revoke a key for good.

    At a terminal, shows the key and its partner, and asks. The revocation reaches workers at once. It is on disk when
    the command returns; revoking a key twice is harmless.

    Exit codes: 0 revoked, 1 failed or declined, 2 wrong usage.

    \b
    Examples:
      forecast keys revoke 0B1zQmX4ktLw
      forecast keys revoke 0B1zQmX4ktLw --yes
    """
    if not yes and _is_at_terminal():
        _, shown = with_store(lambda store: store.read(key_id))
        label = f" ({printable(shown.label)})" if shown.label else ""
        question = f"Revoke key {key_id}{label} of {printable(shown.partner)} for good?"
        if shown.revoked_at is None:
            click.confirm(f"{question} Its requests will get a 401.", abort=True, err=True)
    key, warnings = repeatable(lambda store: store.revoke(key_id))
    return _changed(key, warnings, f"Revoked {key.key_id} of {plain(key.partner)}.")


@keys.command(name="adopt-store")
@click.option("--yes", is_flag=True, help="Confirm the action without prompting.")
@with_json
def adopt_store(yes: bool) -> Output:
    """Accept the loss of keys: use the key store as it is.

    For a key store that lost its keys, or whose pepper was changed on purpose or lost. Keys made with another pepper
    never work again. If you have a backup, run `forecast keys import` instead. A lost pepper is replaced by a new one:
    restart the instances.

    Exit codes: 0 accepted, 1 failed or declined, 2 wrong usage.

    \b
    Examples:
      forecast keys adopt-store
      forecast keys adopt-store --yes --json
    """
    if not yes:
        click.confirm(_QUESTION, abort=True, err=True)
    settings = load_settings().settings
    if pepper.is_lost(settings.keys_pepper, settings.data_path):
        # stops if the store is unreachable: a new pepper file would only hide the loss
        with_store(lambda store: store.raw_identity(), begins=True)
    pepper.obtain(settings.keys_pepper, settings.data_path, from_scratch=True)
    _, warnings = changing(adopt, begins=True)
    return done({"adopted": True}, warnings, lambda: stdout().print("The key store is accepted as it is."))


def _changed(key: ApiKey, warnings: list[str], text: str) -> Output:
    return done(KeyView.of(key), warnings, lambda: stdout().print(text, soft_wrap=True))


def _hand_over(presented: str, key: KeyView, warnings: list[str], old: KeyView | None = None) -> None:
    """Shows the key. If it cannot be shown, fails with a message that says how to revoke it."""
    more = {} if old is None else {"old": old}
    members = {"key": presented, **msgspec.structs.asdict(key), **more}
    try:
        print_output(done(members, warnings, lambda: _print_key(presented, key)))
        sys.stdout.flush()
    except OSError as error:
        revoke_it = f"it is active, so revoke it: forecast keys revoke {key.key_id}"
        fail(f"key {key.key_id} could not be shown ({error.strerror}); {revoke_it}", printed=True)


def _print_key(presented: str, key: KeyView) -> None:
    kind = "Test key" if key.test else "Key"
    stderr().print(f"{kind} [bold]{key.key_id}[/bold] for {plain(key.partner)}. It is not shown again:")
    click.echo(presented)


def _is_at_terminal() -> bool:
    return sys.stdin.isatty()
