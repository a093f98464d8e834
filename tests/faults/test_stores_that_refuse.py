"""Two Redis that answer and do not do what they are for: they take nothing, or would not keep it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from tests.faults.conftest import Site
from tests.support.instance import Instance, forecast_here, serving
from tests.support.waiting import until

Client = redis.Redis


@pytest.fixture
def keys(published: Site) -> Iterator[Client]:
    with redis.Redis.from_url(published.keys.url) as client:
        yield client


@pytest.fixture
def cache(published: Site) -> Iterator[Client]:
    with redis.Redis.from_url(published.cache.url) as client:
        yield client


def said(instance: Instance) -> tuple[str, str]:
    """Status and reasons."""
    ready = instance.ready().json()
    return ready["status"], " ".join(ready["reasons"])


def is_degraded(instance: Instance, *reasons: str) -> bool:
    status, all_reasons = said(instance)
    return status == "degraded" and all(reason in all_reasons for reason in reasons)


def is_ready(instance: Instance) -> bool:
    return said(instance)[0] == "ready"


def refuse_as_full(client: Client) -> None:
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1")


def take_again(client: Client) -> None:
    client.config_set("maxmemory", "0")


def refuse_as_a_replica(client: Client) -> None:
    client.replicaof("127.0.0.1", 1)


def take_as_a_master(client: Client) -> None:
    client.replicaof("NO", "ONE")


def refuse_without_replicas(client: Client) -> None:
    client.config_set("min-replicas-to-write", "1")


def take_without_replicas(client: Client) -> None:
    client.config_set("min-replicas-to-write", "0")


Act = Callable[[Client], None]
REFUSALS: tuple[tuple[Act, Act, str], ...] = (
    (refuse_as_full, take_again, "full"),
    (refuse_as_a_replica, take_as_a_master, "away"),  # nothing is sent to what is no primary
    (refuse_without_replicas, take_without_replicas, "other"),
)


def test_a_cache_that_refuses_writes_is_noticed(instance: Instance, published: Site, cache: Client) -> None:
    """Answers go on. It is counted by reason and said, also before anybody asks; then it heals by itself."""
    until(lambda: is_ready(instance))
    zip_codes = iter(("36436", "63101", "90028"))
    for refuse, take, why in REFUSALS:
        cache.flushall()  # what is warm is not stored again
        refuse(cache)
        until(lambda: is_degraded(instance, "The shared cache"))
        assert instance.zip_code(published.key, next(zip_codes)).status_code == 200
        counted = f'forecast_cache_stores_failed_total{{reason="{why}"}}'
        until(lambda counted=counted: instance.metric(counted) == 1)  # type: ignore[misc]
        take(cache)
        until(lambda: is_ready(instance))


def test_a_key_store_that_would_not_keep_keys_is_reported(
    published: Site, short: Path, keys: Client, cache: Client
) -> None:
    """From the start, in readiness, the metric, the log and by the commands; nothing is said once it is mended."""
    keys.config_set("maxmemory-policy", "allkeys-lru")
    keys.config_set("appendonly", "no")
    cache.config_set("maxmemory", "100mb")
    with serving(published.env, short / "serve.log") as instance:
        wrong = ("allkeys-lru", "appendonly", "The shared cache stores no answers when it is full")
        until(lambda: is_degraded(instance, *wrong))
        assert instance.zip_code(published.key).status_code == 200
        assert instance.metric("forecast_store_problems") == 3
        warned = [line["message"] for line in instance.log() if line["level"] == "warning"]
        assert sum("allkeys-lru" in message for message in warned) == 1
        for command in (("issue", "--partner", "acme"), ("revoke", published.key.split("_")[2])):
            done = forecast_here(published.env, "keys", *command, "--json")
            assert (done.returncode, "warning" in done.stderr) == (0, True)
            warnings = " ".join(json.loads(done.stdout)["warnings"])
            assert ("allkeys-lru" in warnings, "appendonly" in warnings) == (True, True)
        keys.config_set("maxmemory-policy", "noeviction")
        keys.config_set("appendonly", "yes")
        cache.config_set("maxmemory-policy", "allkeys-lfu")
        until(lambda: is_ready(instance))
        done = forecast_here(published.env, "keys", "issue", "--partner", "acme", "--json")
        assert ("warning" in done.stderr, "warnings" in json.loads(done.stdout)) == (False, False)


def test_a_key_store_that_refuses_writes_issues_nothing_and_loses_no_usage(
    instance: Instance, published: Site, keys: Client
) -> None:
    """Requests are answered; their usage waits, which is said, and is stored when the store takes it again."""
    assert instance.zip_code(published.key).status_code == 200  # its key is verified
    until(lambda: instance.metric("forecast_usage_waiting") == 0)
    for refuse, take, why in REFUSALS:
        refuse(keys)
        away = why == "away"
        if away:
            until(lambda: is_degraded(instance, "The key store is unreachable"))
        assert instance.zip_code(published.key).status_code == 200
        if not away:
            until(lambda: is_degraded(instance, "Usage of 1 keys cannot be stored and waits"))
        done = forecast_here(published.env, "keys", "issue", "--partner", "acme")
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert ("is a replica" if away else "nothing was issued") in done.stderr
        take(keys)
        until(lambda: is_ready(instance))
        until(lambda: instance.metric("forecast_usage_waiting") == 0)
    used = json.loads(forecast_here(published.env, "usage", "--json").stdout)
    assert sum(row["billable"] for row in used) == 1 + len(REFUSALS)
    assert len(json.loads(forecast_here(published.env, "keys", "list", "--json").stdout)) == 1
