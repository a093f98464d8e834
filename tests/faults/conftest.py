"""A small published release, two real Redis that a test can hurt, and a key."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from tests.support.drops import write_drop
from tests.support.instance import SHORT_DRAIN, Instance, Run, environment, forecast_here, issue_key, serving
from tests.support.valkey import ValkeyProcess


@dataclass
class Site:
    """Everything that one instance needs, on this machine."""

    data: Path
    env: dict[str, str]
    keys: ValkeyProcess
    cache: ValkeyProcess
    key: str

    @classmethod
    def within(cls, folder: Path, key: str = "", run: Run = forecast_here) -> "Site":
        """Both servers started, on what is in `folder`; a key is issued unless there is one."""
        keys = ValkeyProcess(folder / "keys", appendonly=True).start()
        cache = ValkeyProcess(folder / "cache").start()
        env = environment(folder / "data", keys_url=keys.url, cache_url=cache.url, drain=SHORT_DRAIN)
        return cls(folder / "data", env, keys, cache, key or issue_key(env, run=run))

    def publish(self, drop: Path, run: Run = forecast_here) -> str:
        done = run(self.env, "extracts", "publish", str(drop))
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def kill(self) -> None:
        for server in (self.keys, self.cache):
            server.kill()


@dataclass(frozen=True)
class Made:
    """Folders to copy a site from: `bare` has a key, `whole` a release as well, warm in its cache."""

    bare: Path
    whole: Path
    key: str

    def copy(self, made: Path, folder: Path) -> Site:
        shutil.copytree(made, folder, dirs_exist_ok=True)
        site = Site.within(folder, self.key)
        (folder / "cache" / "dump.rdb").unlink(missing_ok=True)  # a cache that is killed comes back empty
        return site


@pytest.fixture(scope="session")
def made(short_folder: Path) -> Made:
    """Made once, with the commands of an operator."""
    bare, whole = short_folder / "bare", short_folder / "whole"
    site = Site.within(bare)
    site.kill()
    for server in (site.keys, site.cache):
        server.socket.unlink()
    shutil.copytree(bare, whole)
    site = Site.within(whole, site.key)
    site.publish(write_drop(short_folder / "drop of faults"))
    with redis.Redis.from_url(site.cache.url) as client:
        client.save()
    site.kill()
    for server in (site.keys, site.cache):
        server.socket.unlink()
    return Made(bare, whole, site.key)


@pytest.fixture
def site(short: Path, made: Made) -> Iterator[Site]:
    """Key store, cache and a key; nothing is published yet."""
    site = made.copy(made.bare, short)
    yield site
    site.kill()


@pytest.fixture
def published(short: Path, made: Made) -> Iterator[Site]:
    site = made.copy(made.whole, short)
    yield site
    site.kill()


@pytest.fixture(scope="module")
def common(made: Made) -> Iterator[Site]:
    """A published site for tests of a module that leave it as they found it."""
    with tempfile.TemporaryDirectory(prefix="pf") as folder:
        site = made.copy(made.whole, Path(folder))
        yield site
        site.kill()


@pytest.fixture
def instance(published: Site, short: Path) -> Iterator[Instance]:
    with serving(published.env, short / "serve.log") as running:
        yield running


@pytest.fixture(scope="session")
def published_data(made: Made) -> Path:
    """A data folder with a release, for those who only read it."""
    return made.whole / "data"


@pytest.fixture(scope="module")
def without_near(common: Site) -> Iterator[Instance]:
    """Its every request asks the shared cache. Whoever takes a server away waits until it is well again."""
    env = {**common.env, "FORECAST_NEAR_CACHE_BYTES": "0"}
    with serving(env, common.data.parent / "serve.log") as running:
        yield running
