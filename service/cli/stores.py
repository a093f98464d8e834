"""Opens the key store or the shared cache for one command."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from config.settings import Settings, SettingsError
from service.base import interruption
from service.cli.output import load_settings, print_dimly
from service.embedded.owner import borrowed, running_url
from service.embedded.probe import check_answers_redis
from service.keys import pepper
from service.keys.errors import KeyStoreError
from service.keys.store import KeyStore, open_key_store
from service.redis.client import RedisStore
from service.redis.errors import StoreRefused, StoreUnavailable
from service.redis.opening import CacheStore, opened
from service.redis.primary import found
from service.redis.server import read_server_facts, wrong_for_keys

T = TypeVar("T")

_CACHE_SECONDS = 2.0
# A command that waits for the key store's first reply says so after the first, and fails after the second.
_NOTICE_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0
_POLL_SECONDS = 0.05


class _Patience:
    """The wait of one command for the key store's first reply."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._noticed = False

    def look(self) -> None:
        """Call it while waiting. Raises KeyStoreError once the wait is over: no change has begun."""
        waited = time.monotonic() - self._began
        if waited > _PATIENCE_SECONDS:
            raise KeyStoreError(
                f"the key store does not answer (waited {_PATIENCE_SECONDS:g} s). Nothing was changed. "
                "`forecast status` shows its state and the next step"
            )
        if waited > _NOTICE_SECONDS and not self._noticed:
            self._noticed = True
            print_dimly("waiting for the key store")

    async def wait_for(self, work: Awaitable[T]) -> T:
        task = asyncio.ensure_future(work)
        while not task.done():
            await asyncio.wait([task], timeout=_POLL_SECONDS)
            if not task.done():
                self.look()
        return await task


def with_key_store(work: Callable[[RedisStore, KeyStore], Awaitable[T]], *, begins: bool = False) -> T:
    """Runs `work` on the key store that the settings name. Starts the embedded one if it is not running.

    Creates a missing pepper only if the command `begins` a key store: any other command would leave a pepper behind in
    a wrong data folder.
    """
    settings, patience = load_settings().settings, _Patience()
    with borrowed(settings, ("keys",), patience.look) as urls:
        secret = pepper.obtain(settings.keys_pepper, settings.data_path, create=begins)

        async def run() -> T:
            problem = await patience.wait_for(check_answers_redis(urls["keys"], for_keys=True))
            if problem is not None:
                raise SettingsError(f"FORECAST_KEYS_URL: {problem}")
            async with found(urls["keys"]) as primary:
                store = open_key_store(primary, secret, settings.data_path, settings.keys_replicas)
                try:
                    with contextlib.suppress(StoreUnavailable):  # `work` reports it
                        await patience.wait_for(store.redis.call(lambda client: client.ping()))
                    return await work(store.redis, store)
                except StoreRefused as error:
                    raise await _add_cause(store.redis, error) from None
                finally:
                    await store.redis.stop()

        return interruption.run(run())


async def _add_cause(store: RedisStore, error: StoreRefused) -> StoreRefused:
    """Adds the server's problems to the error of a full server."""
    problems = await server_problems(store) if error.why == "full" else []
    return StoreRefused("; ".join([str(error), *problems]), error.why) if problems else error


async def server_problems(store: RedisStore) -> list[str]:
    """Returns why the server of a key store may lose keys; empty if that is unknown."""
    try:
        facts = await read_server_facts(store)
    except StoreUnavailable:
        return []
    return [] if facts is None else wrong_for_keys(facts)


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

    async def run() -> T:
        problem = await check_answers_redis(url)
        if problem is not None:
            raise SettingsError(f"FORECAST_CACHE_URL: {problem}")
        async with opened("shared cache", url, _CACHE_SECONDS) as store:
            return await work(store)

    return interruption.run(run())
