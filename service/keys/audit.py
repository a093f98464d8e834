"""The audit trail: each change of keys and releases, with its author and time. A Redis stream, ``a:audit``, that is
never trimmed.

A line's id is its time by the server's clock. Lines never hold a secret or a digest. The trail and the records change
in one step (change.lua), so both must be on one server (with its replicas), not on a cluster.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import msgspec
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, OutOfMemoryError, ResponseError

from service.keys.record import KeyState
from service.redis.client import RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.script import Script

AUDIT = "a:audit"
LINE = "line"
PURGED = "purged"
OF_RELEASES = ("published", "approved", "rolled-back")
# Each kind of change.
WHATS = (
    *("issued", "delivered", "rotated", "extended", "changed", "suspended", "resumed", "revoked"),
    *("imported", "adopted", "plan-set", "plan-removed", "partner-set", *OF_RELEASES, PURGED),
)
_PAGE = 1000  # lines
_WAIT_MILLISECONDS = 2000
# The script's reply: done, without lines in the damaged trail.
_WITHOUT_LINES = 2
# Prefix that lets a full server run the script (Redis 7, Valkey).
_EVEN_IF_FULL = "#!lua flags=allow-oom\n"
_SCRIPT = Script("service.keys", "change.lua")

_MEND = f"move it away (`RENAME {AUDIT} {AUDIT}-damaged`), and import the newest backup: that brings its lines back"

log = logging.getLogger("forecast.keys.audit")

T = TypeVar("T")


class Change(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the trail: a change of a key, of the store, or of what it serves."""

    what: str  # one of WHATS, or of a later version
    by: str
    key_id: str | None = None  # None: the change is about a plan, a partner, the store, the caches, or a release
    partner: str | None = None
    plan: str | None = None
    test: bool = False  # it is a test key
    before: KeyState | None = None
    after: KeyState | None = None
    revision: int = 0  # of the record, after the change
    rotated: str | None = None  # the other key of a rotation
    release: str | None = None  # that became current
    reason: str | None = None  # for accepting the findings of the release
    restored: str | None = None  # the id of an imported line in its original trail


class TrailLine(msgspec.Struct, frozen=True):
    """One line of the trail; `change` is None if it is damaged."""

    id: str
    change: Change | None

    @property
    def origin(self) -> str:
        """Id that the line was first written under."""
        return (self.change.restored if self.change else None) or self.id

    @property
    def at(self) -> datetime | None:
        """When the change was made; None if the id is no time."""
        try:
            return time_of(self.origin)
        except ValueError:
            return None


class Edit(NamedTuple):
    """A change to make: a record's bytes before (None: there is none) and after, and its line, if it has one."""

    name: str
    before: bytes | None
    after: bytes
    change: Change | None


async def note(store: RedisStore, change: Change) -> None:
    """Writes a line about an action that changes no record. Raises StoreUnavailable."""
    await _call(store, lambda client: client.xadd(AUDIT, {LINE: msgspec.json.encode(change)}))
    _log_change(change)


async def note_or_log(store: RedisStore, change: Change) -> None:
    """Writes a line about an action that has to go on without it: if it cannot be written, it is logged."""
    try:
        await note(store, change)
    except StoreUnavailable as error:
        log.error("%s (not in the audit trail: %s)", describe_change(change), error)


async def apply(store: RedisStore, edits: list[Edit], *, replicas: int = 0, quiet: bool = False) -> bool:
    """Makes the edits and writes their lines in one step, durably; False if a record was changed meanwhile.

    The lines also go to the log, unless `quiet`. A leaked key must be stopped in any state of the store: it is revoked,
    suspended or rotated on a full server too, and revoked without a line if the trail is damaged.

    Raises:
        StoreUnavailable: if the store does not reply, or does not confirm that they are on disk and on so many
            `replicas`; the edits may have been made nevertheless.
    """
    names = [edit.name for edit in edits]
    changes = [edit.change for edit in edits if edit.change is not None]
    texts = [
        (edit.before or b"", edit.after, b"" if edit.change is None else msgspec.json.encode(edit.change))
        for edit in edits
    ]
    whats = {change.what for change in changes}
    urgent, revoked = not whats.isdisjoint(("revoked", "suspended", "rotated")), whats == {"revoked"}
    reply, unconfirmed = await _run(store, names, texts, replicas, urgent=urgent, revoked=revoked)
    if reply == _WITHOUT_LINES:
        log.error("the audit trail `%s` is damaged, and lacks this change: %s", AUDIT, _MEND)
    done = reply in (1, _WITHOUT_LINES)
    if not done:  # a first try, whose reply was lost, may have made them
        now = await store.call(lambda client: client.mget(names))
        done = list(now) == [edit.after for edit in edits]
    if done and not quiet:
        for change in changes:
            _log_change(change)
    if done and reply == 0:
        await confirm(store, {edit.name: edit.after for edit in edits}, replicas)
    elif unconfirmed is not None and done:
        raise StoreUnavailable(f"{store.name}: the change is made, but {unconfirmed}")
    return done


async def confirm(store: RedisStore, records: Mapping[str, bytes], replicas: int) -> None:
    """Returns when the records, as they were read, are durable. They are written again: see `confirmed`.

    Raises:
        StoreUnavailable: if the store does not reply, or does not confirm it, or they were changed meanwhile.
    """
    texts = [(raw, raw, b"") for raw in records.values()]
    reply, unconfirmed = await _run(store, list(records), texts, replicas, urgent=True)
    if reply == 0:
        raise StoreUnavailable(f"{store.name}: the record was changed from elsewhere meanwhile; look again")
    if unconfirmed is not None:
        raise StoreUnavailable(f"{store.name}: the change is made, but {unconfirmed}")


async def _run(
    store: RedisStore,
    names: list[str],
    texts: list[tuple[bytes, bytes, bytes]],
    replicas: int,
    *,
    urgent: bool,
    revoked: bool = False,
) -> tuple[Any, str | None]:
    """Returns the script's reply, and which confirmation is missing; None if none is.

    `texts`: for each name, its bytes before and after, its line.
    """
    words = [len(names) + 1, AUDIT, *names, "revoked" if revoked else "", *chain.from_iterable(texts)]

    async def run(client: Redis) -> tuple[Any, str | None]:
        try:
            return await confirmed(client, ("EVAL", _SCRIPT.text, *words), replicas)
        except OutOfMemoryError:
            if not urgent:
                raise
            return await confirmed(client, ("EVAL", _EVEN_IF_FULL + _SCRIPT.text, *words), replicas)

    return await _call(store, run)


def newest_first(store: RedisStore, since: datetime | None = None) -> AsyncIterator[TrailLine]:
    """Yields the lines, read page by page. Raises StoreUnavailable."""
    oldest = "-" if since is None else str(max(0, int(since.timestamp() * 1000)))
    return _lines(store, "+", lambda client, at: client.xrevrange(AUDIT, at, oldest, count=_PAGE))


def oldest_first(store: RedisStore, behind: str | None = None) -> AsyncIterator[TrailLine]:
    """Yields the lines after the id `behind`, read page by page. Raises StoreUnavailable."""
    start = "-" if behind is None else f"({behind}"
    return _lines(store, start, lambda client, at: client.xrange(AUDIT, at, "+", count=_PAGE))


async def _lines(
    store: RedisStore, at: str, page_at: Callable[[Redis, str], Awaitable[Any]]
) -> AsyncIterator[TrailLine]:
    while True:
        page = await _page(store, lambda client, at=at: page_at(client, at))  # type: ignore[misc]
        for entry in page:
            line = _line(entry)
            yield line
        if len(page) < _PAGE:
            return
        at = f"({line.id}"


async def last_id(store: RedisStore) -> str | None:
    page = await _page(store, lambda client: client.xrevrange(AUDIT, "+", "-", count=1))
    return _line(page[0]).id if page else None


async def has(store: RedisStore, line_id: str) -> bool:
    """Returns whether the trail has this line."""
    return bool(await _page(store, lambda client: client.xrange(AUDIT, line_id, line_id, count=1)))


async def _page(store: RedisStore, command: Callable[[Redis], Awaitable[Any]]) -> list[Any]:
    page = await _call(store, command)
    if not isinstance(page, list):
        raise StoreUnavailable(f"the audit trail `{AUDIT}` was asked for, and something else was answered")
    return page


async def _call(store: RedisStore, command: Callable[[Redis], Awaitable[T]]) -> T:
    """Returns the reply to `command`. Raises StoreUnavailable, with the remedy if the trail is damaged."""
    try:
        return await store.call(command)
    except StoreRefused as error:
        if not any(word in str(error) for word in ("WRONGTYPE", "DAMAGED")):
            raise
        raise StoreRefused(f"the audit trail `{AUDIT}`: {error}; {_MEND}", error.why) from None


def order_of(line_id: str) -> tuple[int, int]:
    """Returns the sort key of an id: milliseconds since 1970, and a number. Raises ValueError if `line_id` is no id."""
    milliseconds, _, number = line_id.partition("-")
    if not (milliseconds.isascii() and milliseconds.isdigit() and number.isascii() and number.isdigit()):
        raise ValueError(f"{line_id!r} is no id of a line")
    return int(milliseconds), int(number)


def time_of(line_id: str) -> datetime:
    """Returns the time of an id. Raises ValueError if it is no id, or no time."""
    milliseconds, _ = order_of(line_id)
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{line_id!r} is no time") from None


def _line(entry: Any) -> TrailLine:
    try:
        line_id = entry[0].decode("ascii")
        order_of(line_id)
    except (TypeError, LookupError, AttributeError, ValueError):
        raise StoreUnavailable("the key store replied with something other than an audit trail") from None
    try:
        change = msgspec.json.decode(entry[1][LINE.encode()], type=Change)
        time_of(change.restored or line_id)
    except (LookupError, TypeError, ValueError, RecursionError):
        return TrailLine(line_id, None)
    return TrailLine(line_id, change)


def describe_change(change: Change) -> str:
    """Returns `change` in a few words."""
    if change.what == PURGED:
        return f"the caches were purged by {change.by}"
    if change.release is not None:
        what = "made current again" if change.what == "rolled-back" else change.what
        return f"release {change.release} was {what} by {change.by}"
    if change.plan is not None:
        return f"plan {change.plan} was {change.what.removeprefix('plan-')} by {change.by}"
    if change.what == "partner-set":
        return f"limits of partner {change.partner} were set by {change.by}"
    about = f"{'test key' if change.test else 'key'} {change.key_id}" if change.key_id else "the key store"
    return f"{about} was {change.what} by {change.by}"


def _log_change(change: Change) -> None:
    members: dict[str, Any] = msgspec.to_builtins(change)
    log.info("%s", describe_change(change), extra=members)


async def confirmed(client: Redis, command: Sequence[Any], replicas: int) -> tuple[Any, str | None]:
    """Returns the reply to `command`, which writes, and which confirmation is missing; None if none is.

    `replicas` must have it, and the server's append-only file, if it has one and can confirm it. Raises the error of
    the reply to `command`. WAIT and WAITAOF cover the writes of their own connection, so all use the same one.
    """
    async with client.pipeline(transaction=False) as pipeline:
        pipeline.execute_command(*command)
        if replicas:
            pipeline.execute_command("WAIT", replicas, _WAIT_MILLISECONDS)
        pipeline.execute_command("WAITAOF", 1, 0, _WAIT_MILLISECONDS)
        reply, *waited, on_disk = await pipeline.execute(raise_on_error=False)
    if isinstance(reply, Exception):
        raise reply
    return reply, (_of_replicas(waited[0], replicas) if waited else None) or _of_disk(on_disk)


def _of_replicas(reply: object, wanted: int) -> str | None:
    if isinstance(reply, NoPermissionError):
        return "its user may not ask which replicas have it; grant it +wait"
    if not isinstance(reply, int):
        return f"the server does not say which replicas have it: {reply}"
    if reply >= wanted:
        return None
    return (
        f"{reply} of the {wanted} replicas that FORECAST_KEYS_REPLICAS asks for confirmed it within "
        f"{_WAIT_MILLISECONDS // 1000} s: if the primary is lost now, it can be lost too"
    )


def _of_disk(reply: object) -> str | None:
    if isinstance(reply, NoPermissionError):
        return "its user may not ask whether it is on disk; grant it +waitaof"
    if isinstance(reply, ResponseError):
        return None  # older than 7.2, or without the file: its own configuration decides
    if isinstance(reply, list) and reply and reply[0]:
        return None
    return "its disk has not confirmed it; check it"
