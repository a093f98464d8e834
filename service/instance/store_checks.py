"""Checks how the two Redis of an instance are configured, every few seconds: either may be replaced or reconfigured."""

import logging

from service.base.messages import Endpoints
from service.base.tasks import end_task, keep_running
from service.redis.client import RedisStore, open_client
from service.redis.errors import StoreUnavailable
from service.redis.server import ServerFacts, ask_server, wrong_for_cache, wrong_for_keys

log = logging.getLogger("forecast.stores")

_TIMEOUT_SECONDS = 1.0
_LOOK_SECONDS = 5.0


class StoreChecks:
    """The checks of one instance, owned by its supervisor. `problems`: what operators must change.

    A store that is away, or may not be asked, is no problem.
    """

    def __init__(self, endpoints: Endpoints) -> None:
        self.problems: tuple[str, ...] = ()
        self._keys = _store("key store", endpoints.keys_url)
        self._cache = _store("cache", endpoints.cache_url)
        self._known: dict[str, ServerFacts | None] = {}
        self._silent: set[str] = set()

    def start(self) -> None:
        self._task = keep_running("look at the stores", self._look)

    async def stop(self) -> None:
        await end_task(self._task)
        await self._keys.stop()
        await self._cache.stop()

    async def _look(self) -> float:
        keys, cache = await self._asked(self._keys), await self._asked(self._cache)
        shared = keys is not None and cache is not None and keys.run_id == cache.run_id
        problems: list[str] = []
        if keys is not None:
            problems += wrong_for_keys(keys, shared=shared)
        if cache is not None:
            problems += wrong_for_cache(cache, shared=shared)
        for problem in problems:
            if problem not in self.problems:
                log.warning("%s", problem)
        if self.problems and not problems:
            log.info("the stores are configured correctly now")
        self.problems = tuple(problems)
        return _LOOK_SECONDS

    async def _asked(self, store: RedisStore) -> ServerFacts | None:
        """What the store says about itself; while it is away, what it said last."""
        try:
            server = await ask_server(store)
        except StoreUnavailable as error:
            log.debug("not checked: %s", error)
            return self._known.get(store.name)
        partly = server is not None and server.appendonly and server.appendfsync is None
        if server is None or partly:
            self._say_once(store.name, "appendfsync" if partly else "persistence and eviction")
        self._known[store.name] = server
        return server

    def _say_once(self, name: str, what: str) -> None:
        text = f"{name}: {what} could not be checked: the user lacks the right (INFO, CONFIG GET)"
        if text not in self._silent:
            self._silent.add(text)
            log.info("%s", text)


def _store(name: str, url: str) -> RedisStore:
    return RedisStore(name, url, open_client(url, timeout=_TIMEOUT_SECONDS))
