"""forecast keys"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

import click
import msgspec
from rich.markup import escape

from config.settings import SettingsError
from service.cli.durations import FutureTime
from service.cli.output import fail, json_option, load_settings, print_json, reports_errors, stderr, stdout, table
from service.embedded import borrowed
from service.keys import form, pepper
from service.keys.record import KeyView
from service.keys.store import KeyStore
from service.probe import check_answers_redis
from service.redis.client import RedisStore, open_client

T = TypeVar("T")

# An operator waits rather than being told to try again.
_TIMEOUT_SECONDS = 3.0
_COLOURS = {"active": "green", "expired": "yellow", "revoked": "red"}


@click.group()
def keys() -> None:
    """Issue, list and revoke the API keys of partners.

    \b
    forecast keys issue --partner acme --expires 90d
    forecast keys list
    forecast keys revoke 0B1zQmX4ktLw
    """


@keys.command()
@click.option("--partner", required=True, help="Who the key is for.")
@click.option("--label", default="", help="What tells this key from the partner's others.")
@click.option("--expires", type=FutureTime(), help="When it stops working: 90d, 12h, 2027-01-31. Default: never.")
@json_option
@reports_errors
def issue(partner: str, label: str, expires: datetime | None, as_json: bool) -> None:
    """Issue a key. It is shown this once, and durable by then.

    \b
    forecast keys issue --partner acme
    KEY=$(forecast keys issue --partner acme --json | jq -r .key)
    """
    partner, label = (_text(name, value) for name, value in (("--partner", partner), ("--label", label)))
    if not partner:
        raise click.UsageError("--partner is empty")
    presented, key = _with_store(lambda store: store.issue(partner, label, expires))
    try:
        _hand_over(presented, KeyView.of(key), as_json=as_json)
    except OSError as error:
        revoke_it = f"it works, but nobody has it: forecast keys revoke {key.key_id}"
        fail(f"key {key.key_id} could not be shown ({error.strerror}); {revoke_it}")


def _hand_over(presented: str, key: KeyView, *, as_json: bool) -> None:
    """Shows the key, and makes sure that it arrived."""
    if as_json:
        print_json({"key": presented, **msgspec.structs.asdict(key)})
        sys.stdout.flush()
        return
    stderr().print(f"Key [bold]{key.key_id}[/bold] for {escape(key.partner)}. It is not shown again:")
    click.echo(presented)
    sys.stdout.flush()


@keys.command(name="list")
@click.option("--partner", help="Only this partner's.")
@click.option("--status", type=click.Choice(["active", "expired", "revoked"]), help="Only these.")
@json_option
@reports_errors
def list_keys(partner: str | None, status: str | None, as_json: bool) -> None:
    """List keys, newest first; secrets are not kept and cannot be shown.

    \b
    forecast keys list --partner acme --status active
    """

    async def collect(store: KeyStore) -> list[KeyView]:
        return [KeyView.of(key) async for key in store.all()]

    views = [
        view
        for view in _with_store(collect)
        if (partner is None or view.partner == partner) and (status is None or view.status == status)
    ]
    views.sort(key=lambda view: (view.created_at, view.key_id), reverse=True)
    if as_json:
        print_json(views)
        return
    shown = table("key id", "partner", "label", "status", "created", "expires")
    for view in views:
        status_text = f"[{_COLOURS[view.status]}]{view.status}[/]"
        texts = (view.key_id, escape(view.partner), escape(view.label), status_text)
        shown.add_row(*texts, _day(view.created_at), _day(view.expires_at))
    stdout().print(shown if views else "No keys.")


@keys.command()
@click.argument("key_id")
@json_option
@reports_errors
def revoke(key_id: str, as_json: bool) -> None:
    """Revoke a key for good. Workers are told at once; it is durable when this returns.

    \b
    forecast keys revoke 0B1zQmX4ktLw
    """
    whole = form.parse(key_id)
    if whole is not None:  # and is not repeated: it may be good
        fail(f"this is a whole key; revoke it by its id, {whole.key_id}", as_json=as_json)
    if not form.is_key_id(key_id):
        shown = "this" if key_id.startswith(form.PREFIX) else repr(key_id)
        fail(f"{shown} is no key id: `forecast keys list` shows them", as_json=as_json)
    key = _with_store(lambda store: store.revoke(key_id))
    if as_json:
        print_json(KeyView.of(key))
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

    \b
    forecast keys adopt-store
    forecast keys adopt-store --yes --json
    """
    _with_store(lambda store: store.adopt())
    if as_json:
        print_json({"adopted": True})
        return
    stdout().print("The key store is ours from now on.")


def _with_store(work: Callable[[KeyStore], Awaitable[T]]) -> T:
    """Runs `work` on the key store of the settings; the embedded one is started for it if nobody runs it."""
    settings = load_settings().settings
    with borrowed(settings, ("keys",)) as urls:
        secret = pepper.obtain(settings.keys_pepper, settings.data_path)
        problem = check_answers_redis(urls["keys"])
        if problem is not None:
            raise SettingsError(f"FORECAST_KEYS_URL: {problem}")

        async def run() -> T:
            redis = RedisStore(
                "key store", urls["keys"], open_client(urls["keys"], timeout=_TIMEOUT_SECONDS, retries=1)
            )
            try:
                return await work(KeyStore(redis, secret, settings.data_path))
            finally:
                await redis.stop()

        return asyncio.run(run())


def _text(name: str, value: str) -> str:
    if len(value) > 200 or not value.isprintable():
        raise click.UsageError(f"{name} must be printable and at most 200 characters")
    return value.strip()


def _day(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d}" if time else "never"
