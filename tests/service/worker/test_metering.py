"""What a worker meters with: opened when it is needed, and closed when the worker stops."""

from pathlib import Path

from config.settings import Settings
from service.base.ipc import PartnerSample
from service.base.terms import Quota, Rate, Terms
from service.keys import named
from service.keys.store import KeyStore
from service.redis.client import RedisStore
from tests.support.served import FORECAST, served, with_keys


def test_a_worker_that_stops_closes_its_own_connections(settings: Settings) -> None:
    async def issue(store: KeyStore) -> str:
        return (await store.issue("acme", "", None, Terms(rate=Rate(10, 1, 10), quota=Quota(100, "day"))))[0]

    async def run() -> str:
        return await with_keys(settings.keys_url, Path(settings.data_dir), issue)

    with served(settings) as running:
        assert running.ask(f"{FORECAST}?zip_code=36436", key=running.run(run)).status == 200
        metering = running.app.metering
        stores = [metering._redis, running.app.cache_store]
        assert all(isinstance(store, RedisStore) and store.line.is_open for store in stores)
    assert not any(isinstance(store, RedisStore) and store.line.is_open for store in stores)


def test_the_used_share_of_a_partner_s_quota_counts_like_that_of_a_key(settings: Settings) -> None:
    async def issue(store: KeyStore) -> tuple[str, str]:
        await named.set_partner(store, "a metered partner", Terms(rate=Rate(50, 1, 50), quota=Quota(4, "day")), "")
        presented, key = await store.issue(
            "a metered partner", "", None, Terms(rate=Rate(10, 1, 10), quota=Quota(100, "month"))
        )
        return presented, key.key_id

    async def run() -> tuple[str, str]:
        return await with_keys(settings.keys_url, Path(settings.data_dir), issue)

    with served(settings) as running:
        presented, key_id = running.run(run)
        for _ in range(2):
            assert running.ask(f"{FORECAST}?zip_code=36436", key=presented).status == 200
        [found] = running.app.metering.add_limits([PartnerSample("a metered partner", keys={key_id})])
    assert (found.quota, found.rate) == (0.5, 50)
