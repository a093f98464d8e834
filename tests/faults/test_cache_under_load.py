"""The cache's Redis is hurt while everybody asks it: every answer is the right one, and hits come back."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
import redis

from tests.faults.conftest import Site
from tests.support.instance import FORECAST, Instance
from tests.support.waiting import until

_CALLERS = 8
_ZIP_CODES = ("36436", "63101", "90028")
_HIT = "forecast; hit; detail=shared"


def shared_answers(instance: Instance) -> float:
    return instance.total("forecast_answers_total", tier="shared")


class Load:
    """Callers who ask on connections of their own until they are stopped. `wrong` is what should not have been."""

    def __init__(self, instance: Instance, key: str) -> None:
        self.wrong: list[str] = []
        self.answered: Counter[str] = Counter()  # by Cache-Status
        self._instance = instance
        self._key = key
        self._right = {zip_code: instance.zip_code(key, zip_code).content for zip_code in _ZIP_CODES}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(_CALLERS)]

    @contextmanager
    def running(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def _ask(self) -> None:
        try:
            with httpx.Client(base_url=self._instance.partners, headers={"x-api-key": self._key}, timeout=30) as client:
                while not self._stop.is_set():
                    for zip_code in _ZIP_CODES:
                        answer = client.get(FORECAST, params={"zip_code": zip_code})
                        if (answer.status_code, answer.content) != (200, self._right[zip_code]):
                            self.wrong.append(f"{answer.status_code}: {answer.text}")
                        self.answered[answer.headers["cache-status"]] += 1
                        time.sleep(0.02)  # more would keep the processors from what they are about
        except httpx.HTTPError as error:
            self.wrong.append(repr(error))


def _kill(instance: Instance, site: Site) -> None:
    """It stays away until that was noticed, and comes back empty."""
    site.cache.kill()
    until(lambda: instance.ready().json()["status"] == "degraded")
    site.cache.start()


def _stall(instance: Instance, site: Site) -> None:
    """It accepts, and does not answer, until that was noticed."""
    site.cache.stall()
    try:
        until(lambda: instance.ready().json()["status"] == "degraded")
    finally:
        site.cache.go_on()


def _restart(_: Instance, site: Site) -> None:
    """At once, and three times."""
    for _round in range(3):
        site.cache.kill()
        site.cache.start()


def _end_connections(_: Instance, site: Site) -> None:
    """Again and again, of all."""
    with redis.Redis.from_url(site.cache.url) as client:
        for _round in range(50):
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


@pytest.mark.parametrize("hurt", [_kill, _stall, _restart, _end_connections])
def test_a_cache_that_is_hurt_under_load_costs_no_answer(
    without_near: Instance, common: Site, hurt: Callable[[Instance, Site], None]
) -> None:
    instance = without_near
    load, before = Load(instance, common.key), shared_answers(instance)
    with load.running():
        until(lambda: shared_answers(instance) > before + 50)
        hurt(instance, common)
        until(lambda: instance.ready().json()["status"] == "ready")
        before, hits = shared_answers(instance), load.answered[_HIT]
        until(lambda: shared_answers(instance) > before + 50 and load.answered[_HIT] > hits + 50)
    assert load.wrong == []
    until(lambda: instance.ready().json()["status"] == "ready")
