"""The records of a key as bytes, and the edits that change both together."""

from typing import NamedTuple

import msgspec

from service.keys.audit import Change, Edit
from service.keys.errors import DamagedRecordError
from service.keys.record import (
    NO_MORE,
    ApiKey,
    DamagedKey,
    KeyState,
    decoded_key,
    more_name,
    record_name,
)


class RawKey(NamedTuple):
    """The bytes of a key's records; None for one that does not exist."""

    record: bytes | None = None
    more: bytes | None = None


def readable(raw: RawKey, key_id: str) -> ApiKey | DamagedKey:
    try:
        key = decoded_key(raw.record, key_id, raw.more)
    except DamagedRecordError as error:
        return DamagedKey(key_id, str(error))
    return DamagedKey(key_id, "it is no record of a key") if key is None else key


def with_next_revision(before: ApiKey, after: ApiKey) -> ApiKey:
    revision = before.revision + 1
    more = after.more if after.more == before.more else msgspec.structs.replace(after.more, revision=revision)
    return msgspec.structs.replace(after, revision=revision, more=more)


def edits_of(
    raw: RawKey, before: ApiKey | None, after: ApiKey, what: str, rotated: str | None = None, *, by: str
) -> list[Edit]:
    """Returns the edits of one key, with a line: `by` made them."""
    change = Change(
        what=what,
        by=by,
        key_id=after.key_id,
        partner=after.partner,
        test=after.test,
        before=None if before is None else KeyState.of(before),
        after=KeyState.of(after),
        revision=after.revision,
        rotated=rotated,
    )
    edits = [Edit(record_name(after.key_id), raw.record, msgspec.json.encode(after.record), change)]
    # a damaged one is replaced, too
    if after.more != (NO_MORE if before is None else before.more) or (before is None and raw.more is not None):
        edits.append(Edit(more_name(after.key_id), raw.more, msgspec.json.encode(after.more), None))
    return edits
