"""Opens the key store or the shared cache for one command."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from config.settings import Settings, SettingsError
from service.base import interruption
from service.cli.output import load_settings
from service.embedded.owner import borrowed, running_url
from service.embedded.probe import check_answers_redis
from service.keys import pepper
from service.keys.store import KeyStore, open_key_store
from service.redis.client import RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.opening import CacheStore, opened
from service.redis.primary import found
from service.redis.server import read_server_facts, wrong_for_keys

T = TypeVar("T")

_CACHE_SECONDS = 2.0


def with_key_store(work: Callable[[RedisStore, KeyStore], Awaitable[T]], *, begins: bool = False) -> T:
    """Runs `work` on the key store that the settings name. Starts the embedded one if it is not running.

    Creates a missing pepper only if the command `begins` a key store: any other command would leave a pepper behind in
    a wrong data folder.
    """
    settings = load_settings().settings
    with borrowed(settings, ("keys",)) as urls:
        secret = pepper.obtain(settings.keys_pepper, settings.data_path, create=begins)
        problem = check_answers_redis(urls["keys"], for_keys=True)
        if problem is not None:
            raise SettingsError(f"FORECAST_KEYS_URL: {problem}")

        async def run() -> T:
            async with found(urls["keys"]) as primary:
                store = open_key_store(primary, secret, settings.data_path, settings.keys_replicas)
                try:
                    return await work(store.redis, store)
                except StoreRefused as error:
                    raise await _add_cause(store.redis, error) from None
                finally:
                    await store.redis.stop()

        return interruption.run(run())


async def _add_cause(store: RedisStore, error: StoreRefused) -> StoreRefused:
    """Adds the server's problems to the error of a full server."""
    try:
        server = await read_server_facts(store) if error.why == "full" else None
    except StoreUnavailable:
        server = None
    return error if server is None else StoreRefused("; ".join([str(error), *wrong_for_keys(server)]), error.why)


def with_cache(settings: Settings, work: Callable[[CacheStore], Awaitable[T]]) -> T:
    """Runs `work` on the shared cache that the settings name.

    Raises:
        StoreUnavailable: if it is embedded and does not answer (it is not started, because it would be empty), or if no
            node of a cluster answers.
    """
    url = running_url(settings, "cache")
    if url is None:
        raise StoreUnavailable(
            f"no embedded cache answers on {settings.data_path.absolute()}: start an instance, which runs one"
        )
    problem = check_answers_redis(url)
    if problem is not None:
        raise SettingsError(f"FORECAST_CACHE_URL: {problem}")

    async def run() -> T:
        async with opened("shared cache", url, _CACHE_SECONDS) as store:
            return await work(store)

    return interruption.run(run())
