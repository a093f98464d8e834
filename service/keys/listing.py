"""Lists the keys of a store in small steps, so that a store of a million keys still serves others."""

from collections.abc import AsyncIterator

from service.keys.names import KEY_RECORD_PREFIX, key_id_of
from service.keys.record import ApiKey, DamagedKey, DamagedRecordError, decoded_key
from service.keys.store import KeyStore
from service.redis.scan import scan

_STEP = 1000  # names


async def every_key(store: KeyStore) -> AsyncIterator[ApiKey | DamagedKey]:
    """Every key once, in no order; an unreadable record is yielded as DamagedKey.

    Raises:
        StoreUnavailable: if the store does not answer.
    """
    seen: set[str] = set()  # SCAN may return a name twice
    async for names in scan(store.redis, f"{KEY_RECORD_PREFIX}{{*", _STEP):
        ids = dict.fromkeys(key_id_of(name.decode("utf-8", "replace")) for name in names)
        new = [key_id for key_id in ids if key_id is not None and key_id not in seen]
        seen.update(new)
        for key_id, record in zip(new, await store.raw(new), strict=True):
            yield readable(record, key_id)


def readable(record: bytes | None, key_id: str) -> ApiKey | DamagedKey:
    try:
        key = decoded_key(record, key_id)
    except DamagedRecordError as error:
        return DamagedKey(key_id, str(error))
    return DamagedKey(key_id, "it is no record of a key") if key is None else key
