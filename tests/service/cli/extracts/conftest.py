"""A store of releases, drops for it, and the commands on it."""

import itertools
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from tests.support.drops import people, write_drop
from tests.support.instance import environment, forecast_here
from warehouse.publishing import build
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore


class _Ticking:
    """A clock that is a second later at each call, because ids of releases have seconds."""

    def __init__(self) -> None:
        self._ticks = itertools.count(1)

    def now(self, zone: tzinfo) -> datetime:
        return datetime.now(zone) - timedelta(hours=1) + timedelta(seconds=next(self._ticks))


@pytest.fixture(scope="module")
def ticking() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(build, "datetime", _Ticking())
        yield


class Runner:
    """Each command has a data folder of its own, as on a CI runner: only the store remains from one to the next."""

    def __init__(self, folder: Path) -> None:
        self.url = f"file://{folder / 'bucket'}"
        self.store = ReleasesStore(open_objects(self.url))
        self._folder = folder
        self._times = 0

    def __call__(self, *arguments: str, code: int = 0) -> str:
        returned, stdout, stderr = self.tried(*arguments)
        assert returned == code, stderr
        return stdout if code == 0 else stderr

    def tried(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self._times += 1
        env = environment(self._folder / f"data{self._times}", releases_url=self.url)
        done = forecast_here(env, "extracts", *arguments)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    @property
    def current(self) -> str | None:
        return self.store.pointer().pointer.release


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Drops with different figures."""
    folder = tmp_path_factory.mktemp("drops")
    figures = [(people("36436", 2023, 783 + at), people("63101", 2023, 2620)) for at in range(5)]
    return [str(write_drop(folder / f"drop{at}", population=rows)) for at, rows in enumerate(figures)]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory, drops: list[str], ticking: None) -> tuple[Path, list[str]]:
    """A bucket with three releases, and their ids."""
    folder = tmp_path_factory.mktemp("made")
    runner = Runner(folder)
    return folder / "bucket", [runner("publish", drop) for drop in drops[:3]]


@pytest.fixture
def releases(run: Runner, bucket: tuple[Path, list[str]], tmp_path: Path) -> list[str]:
    """The three releases, in the bucket of `run`."""
    shutil.copytree(bucket[0], tmp_path / "bucket", dirs_exist_ok=True)
    return bucket[1]
