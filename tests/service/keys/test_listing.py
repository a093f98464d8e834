"""Every key, one at a time; one that cannot be read does not hide the others."""

import msgspec
import pytest

from service.keys.reader import every_key
from service.keys.record import DamagedKey, record_name
from service.redis.errors import StoreUnavailable
from tests.support.key_store import HeldKeyStore


@pytest.mark.parametrize("damage", ["not json", "another's", "another type", "a name that is no text"])
async def test_a_damaged_record_is_reported_and_the_others_are_listed(store: HeldKeyStore, damage: str) -> None:
    _, one = await store.issue("acme", "", None)
    _, other = await store.issue("acme", "", None)
    name = record_name("0" * 12)
    match damage:
        case "not json":
            await store.client.set(name, "{")
        case "another's":
            await store.client.set(name, msgspec.json.encode(one))
        case "another type":
            await store.client.rpush(name, "x")
        case _:
            await store.client.set(b"k:{\xff}", "x")
    listed = [entry async for entry in every_key(store)]
    (damaged,) = (entry for entry in listed if isinstance(entry, DamagedKey))
    assert (damaged.key_id == "0" * 12) is (damage != "a name that is no text")
    assert damaged.reason
    keys = {entry.key_id: entry for entry in listed if not isinstance(entry, DamagedKey)}
    assert keys == {one.key_id: one, other.key_id: other}


async def test_a_store_lost_in_the_middle_is_reported(store: HeldKeyStore) -> None:
    await store.issue("acme", "", None)

    async def away(_: object) -> list[bytes]:
        raise ConnectionError

    store.client.mget = away  # type: ignore[assignment]
    with pytest.raises(StoreUnavailable):
        _ = [entry async for entry in every_key(store)]
