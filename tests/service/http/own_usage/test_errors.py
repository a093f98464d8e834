"""GET /v1/usage/errors: what the asking key did wrong, or was refused, last."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from config.settings import Settings
from service.base.terms import Terms, parse_rate
from service.http.own_usage.errors import EXAMPLES, ErrorReader, ReadErrors
from service.quota.last_errors import MOST_KEPT, OwnError
from service.redis.errors import StoreUnavailable
from service.request.errors import ApiError
from tests.support.caller import Caller
from tests.support.problems import problem
from tests.support.served import FORECAST, Served
from tests.support.waiting import eventually, until
from tests.support.wire import Answer

ERRORS = "/v1/usage/errors"


def reported(caller: Caller, number: int) -> list[dict[str, Any]]:
    """The caller's errors, once there are so many."""
    found: list[dict[str, Any]] = []

    def enough() -> bool:
        answer = caller.ask(f"{ERRORS}?limit=100")
        assert answer.status == 200
        found[:] = answer.json()["errors"]
        return len(found) >= number

    until(enough)
    return found


def test_a_key_sees_its_last_errors_with_their_request_ids(worker: Served, settings: Settings) -> None:
    caller, other = Caller(worker, settings, Terms(areas=("forecast",))), Caller(worker, settings, Terms())
    wrong: list[tuple[str, str, Answer]] = []
    for method, target in (
        ("GET", f"{FORECAST}?zip_code=501"),
        ("HEAD", f"{FORECAST}?zip_code=99999"),
        ("GET", "/nowhere?a=phf_live_0B1zQmX4ktLw_secret"),
        ("POST", FORECAST),
        ("GET", "/v1/development-projects?zip_code=94103"),
        ("GET", f"{FORECAST}/batch?zip_code=1,2"),
        ("GET", f"{ERRORS}?limit=0"),
    ):
        assert caller.ask().status == 200
        wrong.append((method, target, caller.ask(target, method)))
    assert other.ask("/elsewhere").status == 404
    assert caller.ask(f"{FORECAST}/batch?zip_code=99999").status == 200  # its ZIP code is a 404, it is none
    errors = reported(caller, len(wrong))
    assert [error["request_id"] for error in errors] == [one.header("x-request-id") for _, _, one in reversed(wrong)]
    assert [(error["method"], error["status"]) for error in errors] == [
        (method, one.status) for method, _, one in reversed(wrong)
    ]
    assert [error["code"] for error in reversed(errors)] == [
        *("invalid_parameter", "no_matching_records", "not_found", "method_not_allowed", "not_found"),
        *("invalid_parameter", "invalid_parameter"),
    ]
    targets = [error["target"] for error in reversed(errors)]
    assert targets[0] == f"{FORECAST}?zip_code=501"
    assert targets[2] == "/nowhere?a=phf_live_********"
    at = [datetime.fromisoformat(error["time"]) for error in errors]
    assert at == sorted(at, reverse=True)
    assert all(abs((datetime.now(UTC) - one).total_seconds()) < 60 for one in at)
    assert "secret" not in str(errors)


def test_asking_is_neither_counted_nor_limited(worker: Served, settings: Settings) -> None:
    caller = Caller(worker, settings, Terms(rate=parse_rate("1/h")))
    assert [caller.ask().status for _ in range(3)] == [200, 429, 429]
    errors = reported(caller, 2)
    assert {(error["status"], error["code"]) for error in errors} == {(429, "rate_limited")}
    answer = caller.ask(ERRORS)
    assert answer.header("cache-control") == "no-store"
    assert answer.header("ratelimit") is None
    assert answer.json()["key_id"] == caller.record.key_id
    assert caller.counted()["answered"] == 1


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid_parameter"),
        ("limit=101", "invalid_parameter"),
        ("limit=x", "invalid_parameter"),
        ("limit=1&limit=2", "duplicate_parameter"),
        ("cursor=x", "unknown_parameter"),
    ],
)
def test_a_wrong_query_gets_an_error(worker: Served, query: str, code: str) -> None:
    answer = worker.ask(f"{ERRORS}?{query}")
    assert problem(answer) == (400, code)
    if code == "invalid_parameter":
        assert "from 1 to 100. Without it, a page has 20." in answer.json()["detail"]


def errors_of(number: int) -> tuple[OwnError, ...]:
    return (EXAMPLES[0],) * number


async def ask(read: ReadErrors, query: str = "") -> Any:
    return msgspec.json.decode(await ErrorReader(read).newest("a", query.encode()))


@pytest.mark.parametrize(("query", "number"), [("", 20), ("limit=1", 1), ("limit=100", 100)])
async def test_as_many_of_the_newest_are_listed_as_requested(query: str, number: int) -> None:
    async def read(_: str) -> tuple[OwnError, ...]:
        return errors_of(MOST_KEPT)

    body = await ask(read, query)
    assert list(body) == ["key_id", "total_results", "errors"]
    assert (body["total_results"], len(body["errors"])) == (number, number)


async def test_while_the_store_is_unreachable_the_answer_says_so() -> None:
    async def read(_: str) -> tuple[OwnError, ...]:
        raise StoreUnavailable("store of errors: at 10.0.0.1")

    with pytest.raises(ApiError) as refused:
        await ask(read)
    assert refused.value.code == "unavailable"
    assert (refused.value.detail or "").startswith("Your last errors cannot be read at the moment.")


class Store:
    """Counts reads, which wait until `free` is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.free = asyncio.Event()
        self.fails = False

    async def read(self, key_id: str) -> tuple[OwnError, ...]:
        self.asked.append(key_id)
        await self.free.wait()
        if self.fails:
            raise StoreUnavailable("away")
        return errors_of(len(self.asked))


async def test_many_requests_of_a_key_share_one_read() -> None:
    store = Store()
    reader = ErrorReader(store.read)
    waiting = [asyncio.create_task(reader.newest("a", b"")) for _ in range(50)]
    other = asyncio.create_task(reader.newest("b", b""))
    await eventually(lambda: store.asked == ["a", "b"])
    waiting.pop(0).cancel()
    store.free.set()
    assert len(set(await asyncio.gather(*waiting))) == 1
    await other
    await reader.newest("a", b"limit=1")
    assert store.asked == ["a", "b"]


async def test_what_was_read_is_read_again_before_long() -> None:
    store = Store()
    store.free.set()
    reader = ErrorReader(store.read)

    async def is_read_again() -> bool:
        await reader.newest("a", b"")
        return len(store.asked) > 1

    await eventually(is_read_again)


async def test_a_read_that_failed_is_not_used_again() -> None:
    store = Store()
    store.free.set()
    reader = ErrorReader(store.read)
    store.fails = True
    with pytest.raises(ApiError):
        await reader.newest("a", b"")
    store.fails = False
    assert msgspec.json.decode(await reader.newest("a", b""))["total_results"] == 2
