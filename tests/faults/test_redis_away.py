"""What partners get while a Redis is gone, stalled, emptied, or of another owner."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import redis

from tests.faults.conftest import Site
from tests.support.instance import Instance, forecast_here, issue_key, serving
from tests.support.key_store import any_key
from tests.support.waiting import until

_WHOLE_BUDGET = 5.0


def test_without_the_cache_answers_come_from_the_warehouse(without_near: Instance, common: Site) -> None:
    """The cache dies: same bytes, no hang; it comes back: entries and last errors are stored again within 2 s."""
    instance = without_near

    def fail() -> str:
        return str(instance.zip_code(common.key, "501").headers["x-request-id"])

    def errors() -> httpx.Response:
        return instance.get("/v1/usage/errors", common.key)

    before, known = instance.zip_code(common.key), fail()
    until(lambda: known in errors().text)
    common.cache.kill()
    for _ in range(5):
        answer = instance.zip_code(common.key)
        assert (answer.status_code, answer.content) == (200, before.content)
        assert answer.headers["cache-status"] == "forecast; fwd=bypass; detail=warehouse"
    fail()
    until(lambda: instance.metric("forecast_own_errors_dropped_total") >= 1)
    until(lambda: errors().status_code == 503)
    assert (errors().json()["code"], errors().headers["retry-after"]) == ("unavailable", "1")
    until(lambda: instance.ready().json()["status"] == "degraded")
    common.cache.start()
    until(lambda: instance.zip_code(common.key).headers["cache-status"] == "forecast; hit; detail=shared")
    until(lambda: instance.ready().json()["status"] == "ready")
    anew: list[str] = []

    def told_anew() -> bool:  # the first may still be dropped
        anew.append(fail())
        return any(request_id in errors().text for request_id in anew)

    until(told_anew)


@pytest.mark.parametrize("stalled", ["cache", "keys"])
def test_a_stalled_redis_delays_no_request_for_long(without_near: Instance, common: Site, stalled: str) -> None:
    """Under load, a server that accepts and never answers costs its budget a few times, then nothing."""
    instance = without_near
    server = common.cache if stalled == "cache" else common.keys
    assert instance.zip_code(common.key).status_code == 200

    def ask(_: int) -> tuple[int, float]:
        began = time.monotonic()
        return instance.zip_code(common.key).status_code, time.monotonic() - began

    server.stall()
    try:
        with ThreadPoolExecutor(8) as callers:
            answers = list(callers.map(ask, range(200)))
    finally:
        server.go_on()
    assert {status for status, _ in answers} == {200}
    assert max(seconds for _, seconds in answers) < _WHOLE_BUDGET
    until(lambda: instance.ready().json()["status"] == "ready")


def test_verified_keys_keep_working_and_others_get_a_503(without_near: Instance, common: Site) -> None:
    """The key store dies: a key verified in the last 60 s works, an unseen one is 503 and never 401; then it heals."""
    instance = without_near
    unseen = issue_key(common.env, "other")
    assert instance.zip_code(common.key).status_code == 200
    common.keys.kill()
    time.sleep(5.5)  # past the age at which a request waits for a re-check
    assert instance.zip_code(common.key).status_code == 200
    refused = instance.zip_code(unseen)
    assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "unavailable", "1")
    assert instance.zip_code("phf_live_nonsense").status_code == 401, "a wrong checksum needs no store"
    common.keys.start()
    until(lambda: instance.zip_code(unseen).status_code == 200)
    until(lambda: instance.ready().json()["status"] == "ready")


def test_an_instance_starts_without_both_and_heals_and_near_hits_need_no_cache(published: Site, short: Path) -> None:
    """A refused connection at the start is no error: degraded, then whole within 2 s.

    When the cache dies again, what the worker has in memory by then is a hit, at once.
    """
    published.keys.kill()
    published.cache.kill()
    with serving(published.env, short / "serve.log") as instance:
        assert instance.zip_code(published.key).status_code == 503
        assert instance.ready().status_code == 503, "it can answer nobody"
        published.keys.start()
        published.cache.start()
        until(lambda: instance.zip_code(published.key).status_code == 200)
        before = instance.zip_code(published.key)
        published.cache.kill()
        answer = instance.zip_code(published.key)
        assert (answer.status_code, answer.content) == (200, before.content)
        assert answer.headers["cache-status"] == "forecast; hit; detail=near"


def test_an_emptied_or_recreated_key_store_is_an_alarm_and_not_a_401(
    instance: Instance, published: Site, short: Path
) -> None:
    """All keys lost: 503 for all, readiness says why, and issuing refuses until the loss is accepted.

    A key that is issued from another data folder changes nothing of that, until a command from there decides.
    """
    backup = str(short / "keys.jsonl")
    assert forecast_here(published.env, "keys", "export", backup).returncode == 0
    assert instance.zip_code(published.key).status_code == 200
    published.keys.kill()
    for file in published.keys.socket.parent.glob("appendonlydir/*"):
        file.unlink()
    published.keys.start()
    until(lambda: "identity" in " ".join(instance.ready().json()["reasons"]))  # without a request
    stranger, _ = any_key()
    assert instance.zip_code(stranger).status_code == 503, "never 401: nobody knows whether it is good"
    issued = forecast_here(published.env, "keys", "issue", "--partner", "acme")
    assert (issued.returncode, "adopt-store" in issued.stderr) == (1, True)
    assert instance.metric("forecast_key_store_foreign") == 1
    _begun_anew(instance, published, short / "elsewhere", "import", backup)
    with redis.Redis.from_url(published.keys.url) as client:
        client.flushall()
    _begun_anew(instance, published, short / "another", "adopt-store", "--yes")


def _begun_anew(instance: Instance, published: Site, data: Path, how: str, argument: str) -> None:
    elsewhere = published.env | {
        "FORECAST_DATA_DIR": str(data),
        "FORECAST_KEYS_PEPPER_FILE": str(published.data / "pepper"),
    }
    newcomer = issue_key(elsewhere, "newbie")
    until(lambda: "emptied and recreated" in " ".join(instance.ready().json()["reasons"]))
    stranger, _ = any_key()
    for key in (newcomer, stranger):
        assert instance.zip_code(key).status_code == 503
    assert instance.metric("forecast_key_store_foreign") == 1
    done = forecast_here(elsewhere, "keys", how, argument)
    assert done.returncode == 0, done.stderr
    until(lambda: instance.ready().json()["status"] == "ready")
    assert instance.zip_code(newcomer).status_code == 200
    assert instance.zip_code(stranger).status_code == 401
    until(lambda: instance.zip_code(published.key).status_code == (200 if how == "import" else 401))
