"""Releases in Azure Blob Storage and in Google Cloud Storage, as far as an emulator and a stub are them."""

import os
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.faults.test_store_faults import race
from tests.support.drops import people, write_drop
from tests.support.instance import forecast_here, serving, until_all_serve
from tests.support.upstream import Cloud, new_bucket
from tests.support.waiting import until
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore

_CREDENTIALS = ("AZURE_STORAGE_ACCOUNT_KEY", "GOOGLE_APPLICATION_CREDENTIALS")


@pytest.fixture(params=["azure", "gcs"])
def cloud(request: pytest.FixtureRequest) -> Cloud:
    server: Cloud = request.getfixturevalue(request.param)
    return server


def test_a_drop_goes_through_the_cloud_to_an_empty_instance_and_back(cloud: Cloud, site: Site, short: Path) -> None:
    """Published from elsewhere with the documented credentials; rolled back, and old releases retired."""
    url = new_bucket(cloud) + "/production"
    options = ",".join(f"{name}={value}" for name, value in cloud.options.items())
    given = {name: os.environ[name] for name in _CREDENTIALS if name in os.environ}
    env = site.env | given | {"FORECAST_RELEASES_URL": url, "FORECAST_RELEASES_OPTIONS": options}
    elsewhere = env | {"FORECAST_DATA_DIR": str(short / "runner")}
    with serving(env, short / "serve.log") as instance:
        published = []
        for number in range(3):
            drop = write_drop(short / str(number), population=[people("36436", 2023, 900 + number)])
            done = forecast_here(elsewhere, "extracts", "publish", str(drop))
            assert done.returncode == 0, done.stderr
            published.append(done.stdout.strip())
            until_all_serve(site.data, published[-1])
        until(lambda: instance.ready().json()["status"] == "ready")
        assert forecast_here(elsewhere, "extracts", "rollback").returncode == 0
        until_all_serve(site.data, published[1])
        assert instance.zip_code(site.key).headers["x-data-release"] == published[1]
        done = forecast_here(elsewhere, "extracts", "retire", "--keep", "1")
        assert done.returncode == 0, done.stderr
        store = ReleasesStore(open_objects(url, cloud.options))
        assert set(store.pointer().pointer.releases) == set(published[1:])


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.soak)])
def test_of_eight_publishers_one_wins_each_race(cloud: Cloud, published_data: Path, rounds: int) -> None:
    url = new_bucket(cloud) + "/production"
    race(ReleasesStore(open_objects(url, cloud.options)), published_data, rounds)
