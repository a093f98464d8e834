"""An inbox whose drops are published to a store of releases, by one of several instances without a shared folder."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.faults.test_inbox import figure, put, settled, watchers
from tests.support.faulty_proxy import FaultyProxy, faulty_proxy
from tests.support.instance import Instance, forecast_here, serving
from tests.support.s3_server import CREDENTIALS, REGION, S3Server
from tests.support.upstream import new_bucket
from tests.support.waiting import until
from warehouse.upstream.objects import open_objects
from warehouse.upstream.store import ReleasesStore


@pytest.fixture
def inbox(short: Path) -> Path:
    folder = short / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def url(short: Path) -> str:
    return f"file://{short / 'bucket'}"


@pytest.fixture
def env(site: Site, inbox: Path, url: str) -> dict[str, str]:
    pepper = (site.data / "pepper").read_text().strip()
    ours = {"FORECAST_INBOX": str(inbox), "FORECAST_RELEASES_URL": url, "FORECAST_KEYS_PEPPER": pepper}
    return site.env | ours


@pytest.fixture
def apart(env: dict[str, str], short: Path) -> Iterator[list[Instance]]:
    """Two instances on data folders of their own."""
    first, second = ({**env, "FORECAST_DATA_DIR": str(short / name)} for name in ("first", "second"))
    with serving(first, short / "first.log") as one, serving(second, short / "second.log") as other:
        yield [one, other]


def test_a_drop_goes_to_the_store_and_live_on_every_instance(
    apart: list[Instance], site: Site, inbox: Path, url: str
) -> None:
    """One of the two publishes it, once. The other takes over when the first one ends, in the middle of a drop too."""
    store = ReleasesStore(open_objects(url))
    for number in range(2):
        put(inbox, f"drop-{number}", 1000 + number)
    until(lambda: [figure(one, site) for one in apart] == [1001, 1001])
    until(lambda: settled(inbox) == {"published": ["drop-0", "drop-1"], "quarantine": []})
    assert len(store.pointer().pointer.releases) == 2
    assert store.pointer().pointer.serial == 4, "two that were announced, and went live"
    counted = [one.metric("forecast_inbox_published_total") for one in apart]
    assert sorted(counted) == [0, 2], "whoever watches counts, in its own data folder"
    watching = apart[counted.index(2)]
    other = apart[counted.index(0)]
    before = store.pointer().pointer.serial
    put(inbox, "drop-2", 1002)
    until(lambda: store.pointer().pointer.serial > before or any(inbox.glob(".claimed/*/*")))
    assert watching.stop() == 0
    until(lambda: figure(other, site) == 1002)
    until(lambda: settled(inbox)["published"] == ["drop-0", "drop-1", "drop-2"])
    assert other.ready().json()["status"] == "ready"


def test_drops_wait_while_the_store_is_unreachable_and_go_live_in_order_afterwards(
    s3: S3Server, site: Site, env: dict[str, str], inbox: Path, short: Path
) -> None:
    """None is refused, though tried again and again; the instance answers on, and says why it is degraded."""
    with faulty_proxy(s3.port) as proxy:
        bucket = new_bucket(s3) + "/prefix"
        store = ReleasesStore(open_objects(bucket, s3.options))
        options = f"endpoint=http://127.0.0.1:{proxy.port},region={REGION},allow_http=true"
        env |= CREDENTIALS | {"FORECAST_RELEASES_URL": bucket, "FORECAST_RELEASES_OPTIONS": options}
        with serving(env, short / "serve.log") as instance:
            put(inbox, "drop-0", 2000)
            until(lambda: figure(instance, site) == 2000)
            until(lambda: settled(inbox)["published"] == ["drop-0"])
            _waits(instance, site, inbox, proxy)
            proxy.fault = "none"
            until(lambda: settled(inbox)["published"] == ["drop-0", "drop-1", "drop-2"])
            until(lambda: figure(instance, site) == 2002)
            until(lambda: instance.ready().json()["status"] == "ready")
        names = sorted(store.pointer().pointer.releases)
        origins = [store.release(name).manifest.origin for name in names]
        assert [Path(origin.paths[0]).name for origin in origins if origin] == ["drop-0", "drop-1", "drop-2"]


def _waits(instance: Instance, site: Site, inbox: Path, proxy: FaultyProxy) -> None:
    """Two drops come while the store is unreachable, and the watcher dies once meanwhile."""
    proxy.fault = "gone"
    put(inbox, "drop-1", 2001)
    until(lambda: instance.metric("forecast_inbox_failing") == 1)
    put(inbox, "drop-2", 2002)
    (pid,) = watchers(instance)
    os.kill(pid, signal.SIGKILL)
    until(lambda: instance.metric("forecast_inbox_failing") == 2)
    reasons = " ".join(instance.ready().json()["reasons"])
    assert "Drops are not published" in reasons
    assert "the store of releases" in reasons
    assert settled(inbox) == {"published": ["drop-0"], "quarantine": []}
    assert figure(instance, site) == 2000


def test_a_drop_that_is_held_is_approved_where_its_instance_has_its_data(
    site: Site, env: dict[str, str], inbox: Path, short: Path
) -> None:
    env |= {"FORECAST_INBOX_HOLD": "changed-figures"}
    with serving(env, short / "serve.log") as instance:
        put(inbox, "first", 3000)
        until(lambda: figure(instance, site) == 3000)
        put(inbox, "second", 3001)
        until(lambda: instance.metric("forecast_inbox_held") == 1)
        assert figure(instance, site) == 3000
        done = forecast_here(env, "extracts", "approve", "second", "--reason", "it is right")
        assert done.returncode == 0, done.stderr
        until(lambda: figure(instance, site) == 3001)
        until(lambda: settled(inbox)["published"] == ["first", "second"])
