"""An instance and commands on a machine whose clock is wrong."""

import json
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.faults.conftest import Site
from tests.support.instance import Instance, forecast, forecast_here, serving, until_all_serve
from tests.support.s3_server import S3Server
from tests.support.turned_machine import turned_clock
from tests.support.upstream import new_bucket, point, upload
from tests.support.waiting import until
from warehouse.upstream.documents import release_name
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore, all_releases

SECOND, THIRD, LEFT = (f"2099110{day}T090000Z-ba987654321{day}" for day in range(1, 4))
HOUR, DAY = 3600, 86_400
MIRROR = "forecast-mirror"


def issued(site: Site, *terms: str) -> str:
    done = forecast_here(site.env, "keys", "issue", "--partner", "b", "--json", *terms)
    assert done.returncode == 0, done.stderr
    key: str = json.loads(done.stdout)["key"]
    return key


def test_a_served_release_is_not_retired_if_clocks_are_an_hour_off(
    s3: S3Server, site: Site, published_data: Path, short: Path
) -> None:
    """Neither its own, which is ahead, nor that of whoever retires, which is behind.

    It is degraded, serves, and knows which keys have expired.
    """
    url = new_bucket(s3) + "/prefix"
    store = ReleasesStore(open_objects(url, s3.options))
    options = ",".join(f"{name}={value}" for name, value in s3.options.items())
    env = site.env | {"FORECAST_RELEASES_URL": url, "FORECAST_RELEASES_OPTIONS": options, "FORECAST_WARM": "off"}
    first = upload(store, published_data).id
    point(store, first)
    soon = datetime.now(UTC) + timedelta(minutes=30)
    key = issued(site, "--expires", soon.isoformat())
    with serving(env | turned_clock(HOUR), short / "serve.log") as instance:
        until_all_serve(site.data, first)
        until(lambda: first in store.live(store.now())[_only_beat(store)].instance.releases)
        assert instance.zip_code(key).status_code == 200
        assert instance.ready().json()["status"] == "degraded"
        assert "1 hour ahead of the key store's" in instance.ready().text
        _retired_elsewhere(instance, store, env, published_data, short)
        assert instance.zip_code(key).headers["x-data-release"] == first


def _only_beat(store: ReleasesStore) -> str:
    (name,) = store.live(store.now())
    return name


def _retired_elsewhere(instance: Instance, store: ReleasesStore, env: dict[str, str], data: Path, short: Path) -> None:
    """The instance no longer follows: it serves what is neither current nor the one before, as others retire."""
    (mirror,) = instance.descendants(MIRROR)
    os.kill(mirror, signal.SIGSTOP)
    try:
        upload(store, data, SECOND)
        upload(store, data, THIRD)
        point(store, THIRD, SECOND, store.pointer().current())
        kept = set(store.pointer().pointer.releases)
        for turned in ({}, turned_clock(-HOUR)):
            elsewhere = env | turned | {"FORECAST_DATA_DIR": str(short / "runner")}
            done = forecast(elsewhere, "extracts", "retire", "--keep", "1", "--json")
            assert done.returncode == 0, done.stderr
            assert set(store.pointer().pointer.releases) == kept == all_releases(store)
    finally:
        os.kill(mirror, signal.SIGCONT)


def test_a_sweep_by_a_machine_that_is_days_ahead_leaves_what_is_being_published(
    s3: S3Server, site: Site, published_data: Path, short: Path
) -> None:
    """What is old goes by the store's clock."""
    url = new_bucket(s3) + "/prefix"
    store = ReleasesStore(open_objects(url, s3.options))
    point(store, upload(store, published_data).id)
    upload(store, published_data, LEFT)
    before = {one.name for folder in ("blobs", "releases") for one in store.objects.list(folder)}
    assert release_name(LEFT) in before
    options = ",".join(f"{name}={value}" for name, value in s3.options.items())
    env = site.env | turned_clock(3 * DAY) | {"FORECAST_DATA_DIR": str(short / "runner")}
    env |= {"FORECAST_RELEASES_URL": url, "FORECAST_RELEASES_OPTIONS": options}
    done = forecast(env, "extracts", "retire", "--keep", "1")
    assert done.returncode == 0, done.stderr
    assert {one.name for folder in ("blobs", "releases") for one in store.objects.list(folder)} == before


def test_usage_of_an_instance_that_is_a_day_ahead_is_of_the_key_stores_day(published: Site, short: Path) -> None:
    """So is a quota; and a key that expires tomorrow is good."""
    tomorrow = datetime.now(UTC) + timedelta(hours=20)
    key = issued(published, "--expires", tomorrow.isoformat(), "--quota", "3/day")
    days = {datetime.now(UTC).date().isoformat()}
    with serving(published.env | turned_clock(DAY), short / "serve.log") as instance:
        statuses = [instance.zip_code(key).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        assert instance.stop() == 0
    days.add(datetime.now(UTC).date().isoformat())  # a test may meet midnight
    rows = json.loads(forecast_here(published.env, "usage", "--json").stdout)
    assert {row["date"] for row in rows} <= days
    assert sum(row["answered"] for row in rows) == 3
