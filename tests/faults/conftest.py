"""A small published release, two real Redis that a test can hurt, and a key."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.drops import write_drop
from tests.support.instance import Instance, environment, forecast, issue_key, serving
from tests.support.valkey import ValkeyProcess


@dataclass
class Site:
    """Everything that one instance needs, on this machine."""

    data: Path
    env: dict[str, str]
    keys: ValkeyProcess
    cache: ValkeyProcess
    key: str

    def publish(self, drop: Path) -> str:
        done = forecast(self.env, "extracts", "publish", str(drop))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def site(short: Path) -> Iterator[Site]:
    """Key store, cache and a key; nothing is published yet."""
    keys = ValkeyProcess(short / "keys", appendonly=True).start()
    cache = ValkeyProcess(short / "cache").start()
    env = environment(short / "data", keys_url=keys.url, cache_url=cache.url)
    yield Site(short / "data", env, keys, cache, issue_key(env))
    for server in (keys, cache):
        server.kill()


@pytest.fixture
def published(site: Site, short: Path) -> Site:
    site.publish(write_drop(short / "drop"))
    return site


@pytest.fixture
def instance(published: Site, short: Path) -> Iterator[Instance]:
    with serving(published.env, short / "serve.log") as running:
        yield running
