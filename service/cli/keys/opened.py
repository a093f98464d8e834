"""Shared parts of the `forecast keys` commands: opening the store, checking ids, formatting keys."""

import contextlib
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click
import msgspec

from config.settings import Settings
from config.text import json_text
from service.base import logs, masking
from service.base.terms import Terms
from service.cli.output import FAILED, Output, fail, load_settings, print_error, print_output
from service.cli.stores import server_problems, with_key_store
from service.keys import audit, form
from service.keys.record import DamagedKey
from service.keys.store import KeyStore
from service.redis.errors import StoreRefused, StoreUnavailable

T = TypeVar("T")

ROWS = 100  # shown unless --limit says otherwise

limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1),
    help=f"Show at most this many, newest first. Default: {ROWS}; all with --json.",
)


def with_store(work: Callable[[KeyStore], Awaitable[T]], *, begins: bool = False) -> T:
    """Runs `work` on the key store in the settings. Also logs its audit lines to standard error, except at a terminal.

    `begins`: the key store may still be empty.
    """
    with _audit_log(load_settings().settings):
        return with_key_store(lambda _, store: work(store), begins=begins)


def changing(work: Callable[[KeyStore], Awaitable[T]], *, begins: bool = False) -> tuple[T, list[str]]:
    """`with_store` for commands that change keys. Prints and returns warnings why the key store may lose them again."""

    async def run(store: KeyStore) -> tuple[T, list[str]]:
        return await work(store), await server_problems(store.redis)

    result, warnings = with_store(run, begins=begins)
    for warning in warnings:
        print_error(f"warning: {warning}")
    return result, warnings


def repeatable(work: Callable[[KeyStore], Awaitable[T]]) -> tuple[T, list[str]]:
    """`changing` for commands that can safely run twice. If a reply is lost, the error says to run them again."""
    try:
        return changing(work)
    except StoreRefused as error:
        raise StoreRefused(f"{error}; the key is unchanged", error.why) from None
    except StoreUnavailable as error:
        raise StoreUnavailable(f"{error}; the change may be done: run this again, which is harmless") from None


def done(value: msgspec.Struct | dict[str, Any], warnings: list[str], show: Callable[[], None]) -> Output:
    """The output of a command that changed keys: `value`, with the warnings if there are any."""
    members = value if isinstance(value, dict) else msgspec.structs.asdict(value)
    return Output({**members, "warnings": warnings} if warnings else members, show)


def report_loss(loss: str | None) -> None:
    """Fails the command if the store lost its keys, because its output is then incomplete."""
    if loss is not None:
        print_error(loss)
        sys.exit(FAILED)


def checked_id(_: click.Context, __: click.Parameter, key_id: str | None) -> str | None:
    """Callback of a parameter with a key's id. The message never repeats a whole key: it may be valid."""
    if key_id is None:
        return None
    whole = form.parse(key_id)
    if whole is not None:
        fail(f"this is a whole key; give its id, {whole.key_id}")
    if not form.is_key_id(key_id):
        shown = "this" if key_id.startswith((masking.LIVE_PREFIX, masking.TEST_PREFIX)) else repr(key_id)
        fail(f"{shown} is not a key id; `forecast keys list` shows them")
    return key_id


key_argument = click.argument("key_id", callback=checked_id)


def checked_text(name: str, value: str) -> str:
    """Returns an option's value without spaces around it. Raises click.UsageError if it cannot be stored."""
    try:
        return masking.storable(name, value)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def day(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d}" if time else "never"


def minute(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC" if time else "never"


def end(time: datetime | None) -> str:
    """Formats the end of a key: only the day if it ends at midnight, as it does if a date was entered."""
    return day(time) if time is not None and (time.hour, time.minute) == (0, 0) else minute(time)


def format_terms(terms: Terms, plan: str | None = None, *, brief: bool = False) -> str:
    """Formats terms in one line; `-` if there are none. `brief`: without burst and warning."""
    parts = [] if plan is None else [f"plan {plan}"]
    if terms.areas is not None:
        parts.append(", ".join(terms.areas))
    if terms.rate is not None:
        parts.append(f"{terms.rate}{'' if brief else f' (burst {terms.rate.burst:,})'}")
    if terms.quota is not None:
        warning = "" if brief else f" (warning at {terms.quota.warn_at:.0%})"
        parts.append(f"{terms.quota.requests:,}/{terms.quota.period}{warning}")
    return "; ".join(parts) or "-"


def print_listed(listed: Output, damaged: Sequence[DamagedKey]) -> None:
    """Prints a list of records. Names those that are damaged, and then fails the command."""
    for one in damaged:
        print_error(f"damaged: {one.key_id}: {one.reason}; `forecast keys import` restores it from a backup")
    print_output(listed)
    if damaged:
        sys.exit(FAILED)


class JsonArray:
    """A JSON array, printed element by element, so that a million elements need no memory. One per command."""

    def __init__(self) -> None:
        self._before = "[\n"

    def add(self, element: Any) -> None:
        click.echo(f"{self._before}  {json_text(element)}", nl=False)
        self._before = ",\n"

    def end(self) -> None:
        click.echo("[]" if self._before == "[\n" else "\n]")


@contextlib.contextmanager
def _audit_log(settings: Settings) -> Iterator[None]:
    """Lines of the audit trail also go to standard error, for log collectors.

    At a terminal they do not, unless `log_format` is set: the command's output shows its result.
    """
    if settings.log_format == "auto" and sys.stderr.isatty():
        yield
        return
    handler = logs.handler(as_json=settings.log_format != "text")
    level, propagate = audit.log.level, audit.log.propagate
    audit.log.addHandler(handler)
    audit.log.setLevel(logging.INFO)
    audit.log.propagate = False
    try:
        yield
    finally:
        audit.log.removeHandler(handler)
        audit.log.setLevel(level)
        audit.log.propagate = propagate
