"""Instances whose releases come from a store: from an empty folder, when the store changes, is gone, or comes back."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.faults.conftest import Site
from tests.support.drops import people, write_drop
from tests.support.instance import Instance, forecast_here, serving, until_all_serve
from tests.support.upstream import point, upload
from tests.support.waiting import until
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore

OTHER = "20991105T090000Z-ba9876543210"
TOKEN = "may-roll-back-0123456789"
MIRROR = "forecast-mirror"


@pytest.fixture
def store(short: Path) -> ReleasesStore:
    return ReleasesStore(open_objects(f"file://{short / 'bucket'}"))


@pytest.fixture
def mirrored(site: Site, short: Path) -> Iterator[Instance]:
    """An instance on an empty data folder."""
    env = site.env | {"FORECAST_RELEASES_URL": f"file://{short / 'bucket'}", "FORECAST_WARM": "off"}
    with serving(env, short / "serve.log") as instance:
        yield instance


@pytest.fixture
def mirrored_warm(site: Site, short: Path) -> Iterator[Instance]:
    """The same, and it warms its cache."""
    env = site.env | {"FORECAST_RELEASES_URL": f"file://{short / 'bucket'}", "FORECAST_OPERATOR_WRITE_TOKEN": TOKEN}
    with serving(env, short / "serve.log") as instance:
        yield instance


def test_an_instance_with_an_empty_folder_is_ready_once_the_store_has_a_release(
    store: ReleasesStore, mirrored: Instance, site: Site, published_data: Path, short: Path
) -> None:
    """Then it follows the store, also when its mirror was killed, and serves on degraded without the store.

    It tells its own beat, and has none once it has ended.
    """
    assert mirrored.ready().status_code == 503
    first = upload(store, published_data).id
    point(store, first)
    until(lambda: mirrored.ready().status_code == 200)
    assert mirrored.zip_code(site.key).headers["x-data-release"] == first
    (pid,) = mirrored.descendants(MIRROR)
    os.kill(pid, signal.SIGKILL)
    upload(store, published_data, OTHER)
    point(store, OTHER, first)
    until_all_serve(site.data, OTHER)
    assert mirrored.zip_code(site.key).headers["x-data-release"] == OTHER
    assert mirrored.descendants(MIRROR) != [pid]
    (short / "bucket" / "current.json").rename(short / "hidden.json")
    until(lambda: "without current.json" in mirrored.ready().text)
    assert mirrored.ready().json()["status"] == "degraded"
    assert mirrored.zip_code(site.key).status_code == 200
    (short / "hidden.json").rename(short / "bucket" / "current.json")
    until(lambda: mirrored.ready().json()["status"] == "ready")
    until(lambda: [beat.instance.releases for beat in store.live(store.now()).values()] == [(OTHER,)])
    assert mirrored.stop() == 0
    assert store.live(store.now()) == {}


def test_an_instance_without_a_store_imports_nothing_of_it() -> None:
    modules = "service.instance.supervisor, service.worker.main, service.cli"
    check = f"import sys, {modules}; sys.exit('obstore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_a_drop_published_elsewhere_is_warm_and_served_when_publishing_returns(
    mirrored_warm: Instance, store: ReleasesStore, site: Site, short: Path
) -> None:
    """The publisher sees the store alone; one instance warms the cache, all of them are waited for.

    An operator rolls back in the store, too.
    """
    env = {
        **site.env,
        "FORECAST_DATA_DIR": str(short / "runner"),
        "FORECAST_RELEASES_URL": f"file://{short / 'bucket'}",
    }
    env |= {"FORECAST_KEYS_URL": "redis://nowhere:1", "FORECAST_CACHE_URL": "redis://nowhere:1"}
    until(lambda: (short / "bucket" / "instances").is_dir())
    done = forecast_here(env, "extracts", "publish", str(write_drop(short / "drop")), "--json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert [found for found in reported["findings"] if found["rule"] in ("not-ready", "not-warmed")] == []
    release = reported["release"]
    until_all_serve(site.data, release)
    answer = mirrored_warm.zip_code(site.key)
    assert (answer.status_code, answer.headers["x-data-release"]) == (200, release)
    assert "shared" in answer.headers["cache-status"]
    other = write_drop(short / "other", population=(people("36436", 2023, 784),))
    done = forecast_here(env, "extracts", "publish", str(other))
    assert done.returncode == 0, done.stderr
    until_all_serve(site.data, done.stdout.strip())
    rolled_back = httpx.post(
        f"{mirrored_warm.operators}/releases/rollback",
        json={},
        headers={"authorization": f"Bearer {TOKEN}"},
        timeout=30,
    )
    assert (rolled_back.status_code, rolled_back.json()) == (200, {"release": release, "behind": []})
    assert store.pointer().pointer.release == release
