"""Instances and publishers whose store of releases stalls, is gone, cuts answers off or flips bits; races for it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.faults.conftest import Site
from tests.support.drops import people, write_drop
from tests.support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from tests.support.instance import environment, forecast, serving, until_all_serve
from tests.support.publishing import publish_as_shipped
from tests.support.s3_server import REGION, S3Server
from tests.support.upstream import new_bucket, point, upload
from tests.support.waiting import until
from warehouse.publishing.going_live import GoingLive
from warehouse.publishing.working_copy import WorkingCopy
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.instances import InstanceFile, InstanceRecord
from warehouse.schema.errors import CatalogError, LostRaceError, StoreError
from warehouse.upstream.changes import retire, roll_back
from warehouse.upstream.documents import POINTER, holds
from warehouse.upstream.mirror import Mirror
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore

OTHER = "20991105T090000Z-ba9876543210"
FAULTS: tuple[Fault, ...] = ("gone", "cutting", "flipping", "stalled")


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultyProxy]:
    with faulty_proxy(s3.port) as proxy:
        yield proxy


@pytest.fixture
def url(s3: S3Server) -> str:
    return new_bucket(s3) + "/prefix"


@pytest.fixture
def store(s3: S3Server, url: str) -> ReleasesStore:
    """The store as somebody sees it to whom nothing happens."""
    return ReleasesStore(open_objects(url, s3.options))


def through(proxy: FaultyProxy) -> dict[str, str]:
    return {"endpoint": f"http://127.0.0.1:{proxy.port}", "region": REGION, "allow_http": "true"}


@pytest.mark.parametrize("fault", FAULTS[:3])
def test_a_mirror_never_has_what_a_faulty_store_sends_and_goes_on_once_it_is_well(
    store: ReleasesStore,
    url: str,
    proxy: FaultyProxy,
    published_data: Path,
    tmp_path: Path,
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It keeps serving its current release; the new one comes whole or not at all."""
    monkeypatch.setattr("warehouse.upstream.mirror._AGAIN_SECONDS", 0)
    catalog = Catalog(tmp_path)
    record = InstanceFile(tmp_path, "ab")
    record.write(InstanceRecord("7", 7, "host", "http://127.0.0.1:8001", (None,)))
    mirror = Mirror(ReleasesStore(open_objects(url, through(proxy))), catalog, "ab", lambda *_: ())

    def step() -> None:
        mirror.look()
        mirror.work()

    def follows(release: str) -> bool:
        step()
        pointer = catalog.pointer()
        return pointer is not None and pointer.release == release

    first = upload(store, published_data).id
    point(store, first)
    until(lambda: follows(first))
    upload(store, published_data, OTHER)
    point(store, OTHER, first)
    proxy.fault = fault
    for _ in range(4):
        step()
    assert proxy.hurt
    assert mirror.problem is not None
    current = catalog.pointer()
    assert current is not None
    assert current.release == first
    for name in catalog.names():
        stored = store.release(name)
        assert all(holds(catalog.folder(name) / path, file) for path, file in stored.files.items())
    proxy.fault = "none"
    until(lambda: follows(OTHER) and mirror.problem is None)
    record.close()


@pytest.mark.parametrize("fault", FAULTS[:3])
def test_a_publisher_whose_store_is_faulty_fails_in_one_line(
    store: ReleasesStore, url: str, proxy: FaultyProxy, short: Path, fault: Fault
) -> None:
    copy = WorkingCopy(ReleasesStore(open_objects(url, through(proxy))), short / "copy")
    proxy.fault = fault
    if fault == "gone":
        with pytest.raises(StoreError, match=r"^the store of releases: current\.json: "):
            copy.refresh(whole=True)
    point(store, upload(store, short_release(short)).id)
    with pytest.raises(StoreError):
        copy.refresh(whole=True)
    proxy.fault = "none"
    copy.refresh(whole=True)


def short_release(folder: Path) -> Path:
    publish_as_shipped(Catalog(folder / "data"), [str(write_drop(folder / "drop"))])
    return folder / "data"


@pytest.mark.parametrize("rounds", [3, pytest.param(50, marks=pytest.mark.soak)])
def test_of_eight_publishers_on_s3_one_wins_each_race_and_no_serial_is_left_out(
    store: ReleasesStore, published_data: Path, rounds: int
) -> None:
    race(store, published_data, rounds)


def race(store: ReleasesStore, data: Path, rounds: int) -> None:
    """Each round, eight publishers begin at the same pointer, with releases of their own."""
    catalog = Catalog(data)
    manifest = catalog.current()
    folder = catalog.folder(manifest.id)
    named: set[str] = set()
    for number in range(rounds):
        known = store.pointer()
        assert known.pointer.serial == 2 * number
        ids = [f"2099{number:04}T090000Z-{at:012x}" for at in range(8)]
        publishers = [GoingLive(store, known, release, ready_seconds=0) for release in ids]
        together = threading.Barrier(len(publishers))
        publishes = partial(_wins, together, folder, manifest, named)
        with ThreadPoolExecutor(len(publishers)) as threads:
            won = list(threads.map(publishes, publishers, ids))
        assert won.count(True) == 1
        pointer = store.pointer().pointer
        assert pointer.release == ids[won.index(True)]
        named = {file.digest for file in store.release(pointer.release).files.values()}


def _wins(
    together: threading.Barrier, folder: Path, manifest: Manifest, named: set[str], publisher: GoingLive, release: str
) -> bool:
    together.wait()
    try:
        publisher.make_current(folder, msgspec.structs.replace(manifest, id=release), named)
    except LostRaceError:
        return False
    return True


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
def test_an_instance_answers_while_its_store_is_faulty_and_follows_it_afterwards(
    store: ReleasesStore, url: str, proxy: FaultyProxy, published_data: Path, site: Site, short: Path, fault: Fault
) -> None:
    options = ",".join(f"{name}={value}" for name, value in through(proxy).items())
    env = site.env | {"FORECAST_RELEASES_URL": url, "FORECAST_RELEASES_OPTIONS": options, "FORECAST_WARM": "off"}
    first = upload(store, published_data).id
    upload(store, published_data, OTHER)
    point(store, first)
    with serving(env, short / "serve.log", workers=2) as instance:
        until_all_serve(site.data, first)
        statuses: Counter[int] = Counter()
        ended = threading.Event()

        def asks() -> None:
            while not ended.is_set():
                statuses[instance.zip_code(site.key).status_code] += 1

        asking = threading.Thread(target=asks)
        asking.start()
        proxy.fault = fault
        point(store, OTHER, first)
        until(lambda: instance.ready().json()["status"] == "degraded")
        assert instance.zip_code(site.key).headers["x-data-release"] == first
        proxy.fault = "none"
        until_all_serve(site.data, OTHER)
        until(lambda: instance.ready().json()["status"] == "ready")
        ended.set()
        asking.join()
        assert set(statuses) == {200}


@pytest.mark.soak
def test_a_publisher_that_is_killed_at_any_moment_leaves_the_old_release_or_the_new_one(
    store: ReleasesStore, s3: S3Server, url: str, short: Path
) -> None:
    """Real processes, killed later and later; the next one publishes all the same."""
    options = ",".join(f"{name}={value}" for name, value in s3.options.items())
    env = environment(short / "runner", releases_url=url, releases_options=options)
    drops = [write_drop(short / str(at), population=(people("36436", 2023, 783 + at),)) for at in range(2)]
    done = forecast(env, "extracts", "publish", str(drops[0]))
    assert done.returncode == 0, done.stderr
    first = done.stdout.strip()
    began = time.monotonic()
    assert forecast(env, "extracts", "check", str(drops[1])).returncode == 0
    whole = time.monotonic() - began
    for at in range(12):
        command = [sys.executable, "-m", "service", "extracts", "publish", str(drops[1])]
        process = subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        time.sleep(whole * (0.3 + at / 8))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        pointer = store.pointer().pointer
        for release in (*pointer.releases, *([pointer.next.release] if pointer.next else [])):
            for file in store.release(release).files.values():
                assert sum(map(len, store.objects.stream(f"blobs/{file.digest}"))) == file.bytes
        if pointer.release != first:
            break
    done = forecast(env, "extracts", "publish", str(drops[1]), "--json")
    assert json.loads(done.stdout)["result"] in ("published", "already_current")


def test_names_that_no_client_can_read_do_not_block_the_store(
    s3: S3Server, url: str, store: ReleasesStore, published_data: Path
) -> None:
    """An object below instances/ with such a name ends every listing of them."""
    import boto3

    first = upload(store, published_data).id
    point(store, first)
    own = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    client = boto3.client("s3", endpoint_url=s3.endpoint, region_name=REGION, **own)
    bucket = url.removeprefix("s3://").partition("/")[0]
    for name in ("instances//x.json", "instances/../x", "instances/."):
        client.put_object(Bucket=bucket, Key=f"prefix/{name}", Body=b"{}")
    upload(store, published_data, OTHER)
    going_live = GoingLive(store, store.pointer(), "ann")
    folder, manifest = Catalog(published_data).folder(first), store.release(OTHER).manifest
    assert going_live.make_current(folder, manifest, ()) == []
    assert store.pointer().pointer.release == OTHER
    with pytest.raises(CatalogError, match="Delete objects that no instance wrote below instances/"):
        retire(store, [first])
    store.objects.put(POINTER, b"\0" * (17 << 20))
    assert roll_back(store, first, "ann").id == first
    assert store.pointer().pointer.releases == (OTHER, first)
