"""The last errors of keys in a worker: how many may wait, what is not stored, and that no key is among them."""

import logging

import msgspec
import pytest

from service.quota import last_errors
from service.quota.last_errors import MOST_KEPT, LastErrors
from service.redis.errors import StoreUnavailable
from tests.support.last_errors import add, failed, keep, kept
from tests.support.usage import LossyStore, double
from tests.support.waiting import eventually


@pytest.fixture
def redis() -> LossyStore:
    return LossyStore(double())


@pytest.fixture
def errors(redis: LossyStore) -> LastErrors:
    return LastErrors(redis)


async def test_no_key_is_stored_wherever_it_was_put(errors: LastErrors) -> None:
    await keep(errors, msgspec.structs.replace(failed(1), request_id="phf_live_0B1zQmX4ktLw_secret"))
    assert await kept(errors) == ["phf_live_********"]


async def test_without_a_query_the_target_is_the_path(errors: LastErrors) -> None:
    await keep(errors, msgspec.structs.replace(failed(1), query=None, path="/nowhere"))
    (error,) = await errors.of_key("a")
    assert error.target == "/nowhere"


async def test_of_a_key_no_more_wait_than_are_kept(redis: LossyStore, errors: LastErrors) -> None:
    await keep(errors, *(failed(number) for number in range(3 * MOST_KEPT)))
    assert await kept(errors) == [f"r{number}" for number in range(3 * MOST_KEPT - 1, 2 * MOST_KEPT - 1, -1)]
    assert (errors.dropped, redis.calls) == (0, 3)


async def test_a_full_queue_drops_and_counts(errors: LastErrors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_errors, "MOST_WAITING", 3)
    await keep(errors, *(failed(number, f"k{number}") for number in range(5)))
    assert errors.dropped == 2
    await keep(errors, failed(5, "k4"))
    assert [await kept(errors, f"k{number}") for number in (2, 3, 4)] == [["r2"], [], ["r5"]]
    assert errors.dropped == 2


async def test_errors_for_an_unreachable_store_are_dropped_after_one_try(redis: LossyStore, errors: LastErrors) -> None:
    redis.away = True
    await keep(errors, *(failed(number, f"k{number}") for number in range(50)))
    assert (errors.dropped, redis.calls) == (50, 1)
    with pytest.raises(StoreUnavailable):
        await errors.of_key("k1")
    redis.away = False
    await keep(errors, failed(1))
    assert await kept(errors) == ["r1"]


async def test_a_refusal_is_logged_once(
    redis: LossyStore, errors: LastErrors, caplog: pytest.LogCaptureFixture
) -> None:
    await redis.call(lambda client: client.set("e:{a}", "x"))
    with caplog.at_level(logging.WARNING, "forecast.errors"):
        for key_id in ("a", "a", "b", "a"):
            await keep(errors, failed(1, key_id))
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "WRONGTYPE" in caplog.text
    assert errors.dropped == 3


async def test_errors_are_stored_soon_and_at_the_end(
    redis: LossyStore, errors: LastErrors, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert redis._client is not None
    reader = LastErrors(LossyStore(redis._client))
    await errors.start()
    add(errors, failed(1))

    async def stored() -> bool:
        return await kept(reader) == ["r1"]

    await eventually(stored)
    add(errors, failed(2))
    await errors.stop()
    assert await kept(reader) == ["r2", "r1"]
