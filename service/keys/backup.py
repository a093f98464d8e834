"""A backup of the key store: one versioned document of JSON lines.

It holds ``head`` (version, pepper's fingerprint, identity), every key, the whole audit trail, keys that changed while
the others were written, plans, partners, usage (in the caller's form), and ``end`` with the number of each and a
checksum. It has digests but no secrets, and is worthless without the pepper, which is not in it. The checksum is an
HMAC-SHA-256 with the pepper, which reveals a file that was damaged, cut off or edited.
"""

import hmac
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Literal

import msgspec

from service.keys import audit, pepper
from service.keys.audit import TrailLine
from service.keys.edits import readable
from service.keys.errors import KeyStoreError
from service.keys.named import every
from service.keys.reader import every_key
from service.keys.record import NO_MORE, ApiKey, DamagedKey, KeyRecord, MoreOfKey, Partner, Plan, StoreIdentity
from service.keys.store import KeyStore, now

VERSION = 3
# Versions that can be read; the first had no usage, the second no plans and partners.
_READ = (1, 2, VERSION)
_PURPOSE = b"forecast keys backup\n"
_UNKNOWN_PEPPER = "unknown"
_CLOCKS_DIFFER = timedelta(days=1)


class BackupError(KeyStoreError):
    """The file cannot be imported here. The message has the reason."""


class BackupHead(msgspec.Struct, frozen=True, tag="head"):
    """The first line. `pepper` is the fingerprint, `identity` that of the store."""

    format: Literal["forecast-keys"]
    version: int
    pepper: str
    made_at: datetime
    identity: StoreIdentity = msgspec.field(name="control")


class KeyItem(msgspec.Struct, frozen=True, tag="key", omit_defaults=True):
    """The records of one key. Earlier versions ignore the second."""

    key: KeyRecord
    more: MoreOfKey = NO_MORE


class PlanItem(msgspec.Struct, frozen=True, tag="plan"):
    """The record of one plan."""

    plan: Plan


class PartnerItem(msgspec.Struct, frozen=True, tag="partner"):
    """The limits of one partner."""

    partner: Partner


class LineItem(msgspec.Struct, frozen=True, tag="line"):
    """One line of the audit trail."""

    line: TrailLine


class UsageItem(msgspec.Struct, frozen=True, tag="usage"):
    """Usage of one key: JSON that this package does not parse."""

    usage: msgspec.Raw


class BackupEnd(msgspec.Struct, frozen=True, tag="end"):
    """The last line: the number of each kind of line. `checksum`, as hex, is over every line before this one."""

    keys: int
    lines: int
    checksum: str
    usage: int = 0
    named: int = 0


class _Mark(msgspec.Struct, frozen=True):
    type: str
    format: str
    version: int


Item = BackupHead | KeyItem | PlanItem | PartnerItem | LineItem | UsageItem | BackupEnd
BEGINNING = b'{"type":"head","format":"forecast-keys",'  # of every backup
_items = msgspec.json.Decoder(Item)
_USAGE = b'{"type":"usage",'  # as every line of it begins


class Dump:
    """Writes one backup. Afterwards `counted` has the number of its items by type, and `damaged` lists what it lacks.

    The parameter `usage` yields records of usage, each of which can be encoded as JSON.
    """

    def __init__(self, store: KeyStore, usage: AsyncIterable[msgspec.Struct] | None = None) -> None:
        self.counted: Counter[type[Item]] = Counter()
        self.damaged: list[DamagedKey] = []
        self._store = store
        self._counted = usage
        self._sum = hmac.new(store.pepper, _PURPOSE, sha256)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the lines of the file.

        Raises:
            KeyStoreError: if this is not the store that our keys are in, or has none.
            StoreUnavailable: if the store does not reply.
        """
        identity = await self._store.identity()
        self._store.check_identity(identity)
        if identity is None:
            raise KeyStoreError("no key was ever issued here, so there are none to export")
        yield self._encoded(BackupHead("forecast-keys", VERSION, self._store.fingerprint, now(), identity))
        before = await audit.last_id(self._store.redis)
        async for key in every_key(self._store):
            for item in self._item(key, identity):
                yield item
        changed: dict[str, None] = {}
        async for line in audit.oldest_first(self._store.redis):
            yield self._encoded(LineItem(line))
            if line.change and line.change.key_id and _is_behind(line.id, before):
                changed[line.change.key_id] = None
        for key_id in changed:
            (raw,) = await self._store.raw([key_id])
            for item in self._item(readable(raw, key_id), identity):
                yield item
        async for item in self._named():  # after the keys, so that none is missing that a key has
            yield item
        async for item in self._usage():
            yield item
        yield msgspec.json.encode(_end(self.counted, self._sum.hexdigest())) + b"\n"

    async def _usage(self) -> AsyncIterator[bytes]:
        if self._counted is not None:
            async for counted in self._counted:
                yield self._encoded(UsageItem(msgspec.Raw(msgspec.json.encode(counted))))

    async def _named(self) -> AsyncIterator[bytes]:
        for kind in (Plan, Partner):
            async for record in every(self._store, kind):
                match record:
                    case Plan():
                        yield self._encoded(PlanItem(record))
                    case Partner():
                        yield self._encoded(PartnerItem(record))
                    case DamagedKey():
                        self.damaged.append(record)

    def _item(self, key: ApiKey | DamagedKey, identity: StoreIdentity) -> Iterator[bytes]:
        if isinstance(key, DamagedKey):
            self.damaged.append(key)
            return
        if not key.pepper:  # a record of the first version lacks it
            made_with = _UNKNOWN_PEPPER if identity.voids(key) else self._store.fingerprint
            key = msgspec.structs.replace(key, pepper=made_with)
        yield self._encoded(KeyItem(key.record, key.more))

    def _encoded(self, item: Item) -> bytes:
        line = msgspec.json.encode(item) + b"\n"
        self._sum.update(line)
        self.counted[type(item)] += 1
        return line


def read_backup(lines: Iterable[bytes]) -> Iterator[KeyItem | PlanItem | PartnerItem | LineItem]:
    """Yields the records and the trail of a checked backup."""
    for line in lines:
        if not line.startswith(_USAGE):
            item = _items.decode(line)
            if isinstance(item, KeyItem | PlanItem | PartnerItem | LineItem):
                yield item


def read_usage(lines: Iterable[bytes]) -> Iterator[msgspec.Raw]:
    """Yields the usage in a checked backup."""
    for line in lines:
        if line.startswith(_USAGE):
            item = _items.decode(line)
            if isinstance(item, UsageItem):
                yield item.usage


def check(
    lines: Iterable[bytes], secret: bytes, is_usage: Callable[[msgspec.Raw], object] = lambda _: None
) -> BackupHead:
    """Checks a backup: it must be whole, and made with the pepper `secret`. Returns its head.

    `is_usage` raises ValueError for a malformed record of usage.

    Raises:
        BackupError: if it is not.
    """
    stream = iter(lines)
    first = next(stream, b"")
    head = _head(first, pepper.fingerprint(secret))
    digest = hmac.new(secret, _PURPOSE + first, sha256)
    counted: Counter[type[Item]] = Counter()
    newest = (-1, -1)
    for number, line in enumerate(stream, 2):
        try:
            item = _items.decode(line)
            if isinstance(item, BackupEnd):
                _check_end(item, _end(counted, digest.hexdigest()), rest=next(stream, None))
                return head
            if isinstance(item, LineItem):
                before, newest = newest, audit.order_of(item.line.id)
                if newest <= before:
                    raise ValueError("a line of the audit trail is out of order")
            if isinstance(item, UsageItem):
                is_usage(item.usage)
            counted[type(item)] += 1
        except (msgspec.DecodeError, ValueError) as error:
            raise BackupError(f"the file is damaged in line {number} ({error}); nothing was imported") from None
        digest.update(line)
    raise BackupError("the file is cut off: its end is missing; nothing was imported")


def _end(counted: Counter[type[Item]], checksum: str) -> BackupEnd:
    named = counted[PlanItem] + counted[PartnerItem]
    return BackupEnd(counted[KeyItem], counted[LineItem], checksum, counted[UsageItem], named)


def is_ahead(line: TrailLine, head: BackupHead) -> bool:
    """Returns whether the line is dated after the backup was made.

    Written under its id, it would date all later lines.
    """
    return line.at is None or line.at > head.made_at + _CLOCKS_DIFFER


def _head(first: bytes, fingerprint: str) -> BackupHead:
    try:
        mark = msgspec.json.decode(first, type=_Mark)
    except msgspec.DecodeError:
        raise BackupError("the file is no backup of a key store; nothing was imported") from None
    if (mark.type, mark.format) != ("head", "forecast-keys"):
        raise BackupError("the file is no backup of a key store; nothing was imported")
    if mark.version not in _READ:
        raise BackupError(
            f"the file has version {mark.version}, and versions up to {VERSION} are read here: import it with the "
            "release of this service that wrote it"
        )
    try:
        head = msgspec.json.decode(first, type=BackupHead)
    except msgspec.DecodeError as error:
        raise BackupError(f"the file is damaged in line 1 ({error}); nothing was imported") from None
    if head.pepper != fingerprint:
        raise BackupError(
            "the backup was made with another pepper, so its keys could never be verified here: set "
            "FORECAST_KEYS_PEPPER, or restore the file `pepper` of the data folder; nothing was imported"
        )
    return head


def _check_end(end: BackupEnd, counted: BackupEnd, rest: bytes | None) -> None:
    numbers = ("keys", "lines", "usage", "named")
    if any(getattr(end, name) != getattr(counted, name) for name in numbers):
        said, found = (
            f"{one.keys:,} keys, {one.lines:,} lines, {one.named:,} plans and partners, {one.usage:,} records of usage"
            for one in (end, counted)
        )
        raise BackupError(f"the file is damaged: it should hold {said}, and holds {found}; nothing was imported")
    if not hmac.compare_digest(end.checksum, counted.checksum):
        raise BackupError("the file is damaged or was edited: its checksum is wrong; nothing was imported")
    if rest is not None:
        raise BackupError("the file is damaged: something follows its end; nothing was imported")


def _is_behind(line_id: str, start: str | None) -> bool:
    return start is None or audit.order_of(line_id) > audit.order_of(start)
