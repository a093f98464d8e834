"""Publishes, approvals and rollbacks in the audit trail, and what happens without its Redis."""

import time
from pathlib import Path

import msgspec
import pytest
from redis import Redis

from config.settings import Settings
from service.base.whoami import inbox, whoami
from service.embedded.owner import EmbeddedServers
from service.keys import audit
from service.keys.audit import Change
from service.publishing.publisher import make_options, make_origin, publish_and_wait
from service.publishing.releases import note_in_trail, open_releases, roll_back_and_wait
from tests.support.drops import POPULATION, people, write_drop
from tests.support.valkey import ValkeyProcess
from tests.warehouse.helpers import NO_LIMITS
from warehouse.publishing.outcome import PublishOptions, SeenWhenHeld
from warehouse.releases.catalog import Catalog
from warehouse.rules.acceptance import accept_found


def lines(socket: Path) -> list[Change]:
    with Redis(unix_socket_path=str(socket)) as client:
        found = client.xrange(audit.AUDIT)
        return [msgspec.json.decode(members[b"line"], type=Change) for _, members in found]


def publish(settings: Settings, drop: Path, via: PublishOptions | None = None) -> str:
    options = msgspec.structs.replace(via or make_options(settings), limits=NO_LIMITS)
    published = publish_and_wait(settings, [str(drop)], options, lambda _: None)
    assert published.outcome.manifest is not None
    return published.outcome.manifest.id


@pytest.fixture
def keys(short: Path) -> ValkeyProcess:
    return ValkeyProcess(short / "keys")


@pytest.fixture
def settings(short: Path, keys: ValkeyProcess) -> Settings:
    return Settings(data_dir=str(short / "data"), keys_url=keys.url, warm="off")


def test_the_trail_has_who_published_approved_and_rolled_back(
    settings: Settings, keys: ValkeyProcess, short: Path
) -> None:
    keys.start()
    first = write_drop(short / "first")
    dropped = make_options(settings, origin=make_origin([str(first)], "inbox"))
    by_inbox = publish(settings, first, dropped)
    publish(settings, first)  # already current
    current = Catalog(settings.data_path).current()
    tables = {name: table.checksum for name, table in current.tables.items()}
    accepted = accept_found([], "it was checked", "alice", current.published_at)
    seen = msgspec.structs.replace(dropped, acceptance=accepted, seen=SeenWhenHeld(tables, None))
    approved = publish(settings, first, seen)  # it was live already, as after an interrupted approval
    by_hand = publish(settings, write_drop(short / "second", population=[*POPULATION, people("36436", 2024, 790)]))
    roll_back_and_wait(open_releases(settings), None, "bob")
    assert [(line.what, line.by, line.release, line.reason) for line in lines(keys.socket)] == [
        ("published", inbox(), by_inbox, None),
        ("approved", whoami(), approved, "it was checked"),
        ("published", whoami(), by_hand, None),
        ("rolled-back", "bob", by_inbox, None),
    ]
    keys.kill()


@pytest.mark.parametrize("hangs", [False, True], ids=["away", "hanging"])
def test_a_release_goes_live_without_the_redis_of_the_trail(
    settings: Settings, keys: ValkeyProcess, short: Path, caplog: pytest.LogCaptureFixture, hangs: bool
) -> None:
    if hangs:
        keys.start().stall()
    began = time.monotonic()
    release = publish(settings, write_drop(short / "drop"))
    assert time.monotonic() - began < 10
    if hangs:
        keys.go_on()
        keys.kill()
    assert Catalog(settings.data_path).current().id == release
    assert f"release {release} was published by {whoami()}; the audit trail lacks this: key store" in caplog.text


def test_an_embedded_key_store_is_started_for_a_line_if_there_is_one(short: Path) -> None:
    data = short / "data"
    settings = Settings(data_dir=str(data))
    note_in_trail(settings, "r1", "published", "me")
    assert not data.exists()
    servers = EmbeddedServers(data, ("keys",))
    servers.ensure()
    servers.stop()
    note_in_trail(settings, "r2", "published", "me")
    servers.ensure()
    [line] = lines(Path(servers.url("keys").removeprefix("unix://")))
    servers.stop()
    assert (line.what, line.release) == ("published", "r2")
