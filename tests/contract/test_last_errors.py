"""LastErrors over every server: the newest of each key, never for ever, and nothing that was damaged."""

from typing import Any

import msgspec
import pytest

from service.quota import last_errors
from service.quota.last_errors import KEPT_SECONDS, MOST_KEPT, LastErrors
from service.redis.client import RedisStore
from service.redis.errors import StoreUnavailable
from tests.support.last_errors import failed, keep, kept

NAME = "e:{a}"


@pytest.fixture
def errors(redis: RedisStore) -> LastErrors:
    return LastErrors(redis)


async def stored(redis: RedisStore, name: str) -> bytes:
    """The only entry of a list."""
    entries: list[Any] = await redis.call(lambda client: client.lrange(name, 0, -1))
    (entry,) = entries
    assert isinstance(entry, bytes)
    return entry


async def test_a_key_s_errors_are_listed_newest_first(errors: LastErrors) -> None:
    """With what their owner needs, and no address; of other keys nothing."""
    await keep(errors, failed(1), failed(2), failed(3, "b"))
    assert await kept(errors) == ["r2", "r1"]
    assert await kept(errors, "b") == ["r3"]
    assert await kept(errors, "c") == []
    assert msgspec.to_builtins((await errors.of_key("a"))[0]) == {
        "time": "2026-11-20T12:00:00.002Z",
        "request_id": "r2",
        "method": "GET",
        "status": 400,
        "code": "invalid_parameter",
        "target": "/v1/population-housing-forecast?zip_code=2",
    }


async def test_errors_of_several_workers_are_listed_in_the_order_of_time(redis: RedisStore) -> None:
    first, second = LastErrors(redis), LastErrors(redis)
    await keep(first, failed(1), failed(4))
    await keep(second, failed(2), failed(3))
    assert await kept(first) == await kept(second) == ["r4", "r3", "r2", "r1"]


async def test_only_the_newest_are_kept_and_not_for_ever(redis: RedisStore, errors: LastErrors) -> None:
    """Also of one flush; the list lives so long after the last of them."""
    await keep(errors, *(failed(number) for number in range(150)))
    await keep(errors, *(failed(number) for number in range(150, 170)))
    assert await kept(errors) == [f"r{number}" for number in range(169, 69, -1)]
    assert await redis.call(lambda client: client.llen(NAME)) == MOST_KEPT
    assert KEPT_SECONDS - 60 < await redis.call(lambda client: client.ttl(NAME)) <= KEPT_SECONDS
    assert errors.dropped == 0


async def test_what_is_damaged_or_another_key_s_is_left_out(redis: RedisStore, errors: LastErrors) -> None:
    """A changed byte, a part, an entry of another list, another version's, and what is no entry at all."""
    await keep(errors, failed(1), failed(2, "b"))
    good, other = [await stored(redis, name) for name in (NAME, "e:{b}")]
    unknown = b'{"version":2}'
    for entry in (
        good.replace(b"r1", b"r7"),
        good[:-1],
        other,
        last_errors._digest("a", unknown).encode() + unknown,
        b"",
        b"\xff" * 40,
    ):
        await redis.call(lambda client, entry=entry: client.lpush(NAME, entry))  # type: ignore[misc]
    assert await kept(errors) == ["r1"]


async def test_a_record_of_another_type_is_no_list_and_stays(redis: RedisStore, errors: LastErrors) -> None:
    """The reader is told that nothing can be read; what cannot be stored is dropped, and other keys' errors are not."""
    await redis.call(lambda client: client.set(NAME, "x"))
    with pytest.raises(StoreUnavailable):
        await errors.of_key("a")
    await keep(errors, failed(1), failed(2, "b"))
    assert errors.dropped == 1
    assert await kept(errors, "b") == ["r2"]
