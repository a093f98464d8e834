"""Files of the data folder are lost or not what they should be while instances use them."""

import time
from pathlib import Path

import redis

from tests.faults.conftest import Site
from tests.support.instance import serving
from tests.support.waiting import until

HOT, COLD = "36436", "90028"


def test_an_instance_whose_look_ups_all_fail_is_not_ready_until_they_work(published: Site, short: Path) -> None:
    """While the shared cache answers it is degraded. It finds out by itself: a balancer sends it nothing any more."""
    entries = next(published.data.glob("releases/*/forecast.parquet"))
    env = published.env | {"FORECAST_NEAR_CACHE_BYTES": "0", "FORECAST_LOOKUPS_IN_MEMORY": "false"}
    with redis.Redis.from_url(published.cache.url) as cache, serving(env, short / "serve.log") as instance:
        assert instance.zip_code(published.key, HOT).status_code == 200
        kept = entries.rename(entries.with_suffix(".kept"))
        cache.delete(*list(cache.scan_iter("c:*"))[1:])
        until(lambda: 503 in (instance.zip_code(published.key, one).status_code for one in (HOT, COLD)))
        until(lambda: instance.ready().json()["status"] == "degraded")
        cache.flushall()
        until(lambda: instance.zip_code(published.key, HOT).status_code == 503)
        until(lambda: instance.ready().status_code == 503)
        assert "No look-up works, and no answer is cached" in instance.ready().text
        time.sleep(2)  # no request comes, and nothing is tried out on partners
        assert instance.ready().status_code == 503
        kept.rename(entries)
        until(lambda: instance.ready().status_code == 200)
        assert instance.zip_code(published.key, HOT).status_code == 200


def test_answers_whose_entries_are_in_memory_need_no_file(published: Site, short: Path) -> None:
    """The file is read when the release is opened; what was not asked for before is answered without it."""
    entries = next(published.data.glob("releases/*/forecast.parquet"))
    env = published.env | {"FORECAST_NEAR_CACHE_BYTES": "0"}
    with redis.Redis.from_url(published.cache.url) as cache, serving(env, short / "serve.log") as instance:
        cache.flushall()
        kept = entries.rename(entries.with_suffix(".kept"))
        assert [instance.zip_code(published.key, one).status_code for one in (HOT, COLD)] == [200, 200]
        assert instance.ready().json()["status"] == "ready"
        kept.rename(entries)
