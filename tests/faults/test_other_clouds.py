"""Releases in Azure Blob Storage and in Google Cloud Storage, as far as an emulator and a stub are them."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.faults.test_store_faults import race
from tests.support import azurite, gcs_server
from tests.support.drops import people, write_drop
from tests.support.instance import forecast_here, serving, until_all_serve
from tests.support.waiting import until
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore

_buckets = itertools.count()
_CREDENTIALS = ("AZURE_STORAGE_ACCOUNT_KEY", "GOOGLE_APPLICATION_CREDENTIALS")
Cloud = azurite.AzureServer | gcs_server.GcsServer


@pytest.fixture(scope="module", params=["azure", "gcs"])
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    made = azurite.azurite() if request.param == "azure" else gcs_server.gcs_server()
    with pytest.MonkeyPatch.context() as patched, made as server:
        account = gcs_server.credentials(tmp_path_factory.mktemp("account"))
        for name, value in (azurite.CREDENTIALS if request.param == "azure" else account).items():
            patched.setenv(name, value)
        yield server


def test_a_drop_goes_through_the_cloud_to_an_empty_instance_and_back(cloud: Cloud, site: Site, short: Path) -> None:
    """Published from elsewhere with the documented credentials; rolled back, and old releases retired."""
    url = cloud.make_bucket(f"bucket{next(_buckets)}") + "/production"
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
    url = cloud.make_bucket(f"bucket{next(_buckets)}") + "/production"
    race(ReleasesStore(open_objects(url, cloud.options)), published_data, rounds)
