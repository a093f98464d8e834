"""What operators change through their listener, and what they cannot."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from config.settings import Settings
from service.keys import audit
from service.keys.store import KeyStore, open_key_store
from service.operators.actions import Actions
from service.operators.app import OperatorsApp
from service.publishing.releases import FolderReleases
from service.redis.primary import Primary
from tests.service.operators.test_state import WELL, instance
from tests.support.drops import people, write_drop
from tests.support.key_store import PEPPER, parsed
from tests.support.operators import JSON, READ, WRITE, Answer, actions, ask, operators
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually
from tests.warehouse.helpers import publish
from warehouse.releases.catalog import Catalog
from warehouse.releases.instances import InstanceFile, InstanceRecord

UNKNOWN = "0" * 12
ROLLBACK = "/releases/rollback"
PURGE = "/caches/purge"
PATHS = (f"/keys/{UNKNOWN}/revoke", ROLLBACK, PURGE)


@pytest.fixture
def server(short: Path) -> Iterator[ValkeyProcess]:
    running = ValkeyProcess(short / "keys", appendonly=True).start()
    yield running
    running.kill()


@pytest.fixture
async def changes(server: ValkeyProcess, tmp_path: Path) -> AsyncIterator[Actions]:
    made = actions(Settings(data_dir=str(tmp_path)), server.url)
    yield made
    await made.backend.stop()


@pytest.fixture
def app(tmp_path: Path) -> OperatorsApp:
    """Its key store is never called."""
    changes = actions(Settings(data_dir=str(tmp_path)), "unix:///nowhere")
    return operators(lambda: instance(WELL), read=READ, write=WRITE, changes=changes)


@pytest.fixture
def with_keys(changes: Actions) -> OperatorsApp:
    return operators(lambda: instance(WELL), read=READ, write=WRITE, changes=changes)


@pytest.fixture
async def store(server: ValkeyProcess, tmp_path: Path) -> AsyncIterator[KeyStore]:
    """The key store as a command sees it."""
    opened = open_key_store(Primary(server.url), PEPPER, tmp_path)
    yield opened
    await opened.redis.stop()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A data folder with two releases, and their ids; the second is current."""
    folder = tmp_path_factory.mktemp("made")
    catalog = Catalog(folder / "data")
    ids = []
    for number in (1, 2):
        drop = write_drop(folder / f"drop{number}", population=[people("36436", 2023, number)])
        manifest = publish(catalog, drop).manifest
        assert manifest is not None
        ids.append(manifest.id)
    return catalog.data, ids[0], ids[1]


@pytest.fixture
def releases(tmp_path: Path, made: tuple[Path, str, str]) -> tuple[str, str]:
    """The two releases in the data folder of the test."""
    data, first, second = made
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    return first, second


async def post(app: OperatorsApp, path: str, body: bytes = b"", token: str | None = WRITE, **headers: str) -> Answer:
    given = {name.replace("-", "_"): value for name, value in (JSON if body else {}).items()} | headers
    return await ask(app, path, "POST", token=token, body=body, **given)


@pytest.mark.parametrize("path", PATHS)
async def test_without_a_write_token_the_paths_do_not_exist(path: str, tmp_path: Path) -> None:
    changes = actions(Settings(data_dir=str(tmp_path)), "unix:///nowhere")
    app = operators(lambda: instance(WELL), read=READ, changes=changes)
    for token in (None, READ, WRITE):
        assert (await post(app, path, token=token)).problem() == (404, "not_found")


@pytest.mark.parametrize("path", PATHS)
async def test_writing_takes_the_write_token(app: OperatorsApp, path: str) -> None:
    assert (await post(app, path, token=READ)).problem() == (403, "not_permitted")
    assert (await post(app, path, token="another-token-altogether")).problem() == (401, "invalid_token")
    refused = await post(app, path, token=None)
    assert refused.problem() == (401, "missing_token")
    assert refused.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", PATHS)
async def test_changes_are_posts(app: OperatorsApp, path: str) -> None:
    for method in ("GET", "HEAD", "PUT"):
        answer = await ask(app, path, method, token=WRITE)
        assert answer.problem() == (405, "method_not_allowed")
        assert answer.headers["allow"] == "OPTIONS, POST"


async def test_only_json_is_accepted_however_it_is_spelt(
    app: OperatorsApp, releases: tuple[str, str], tmp_path: Path
) -> None:
    """A page of another site could send a form, with the token."""
    for kind in (
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
        "text/plain",
        "application/jsonp",
        "text/plain, application/json",
        None,
    ):
        headers = {} if kind is None else {"content_type": kind}
        answer = await ask(app, ROLLBACK, "POST", token=WRITE, body=b"{}", **headers)
        assert answer.problem() == (415, "not_json")
    assert Catalog(tmp_path).current().id == releases[1]
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        assert (await post(app, ROLLBACK, b"{}", content_type=kind)).status == 200


async def test_a_wrong_body_changes_nothing(app: OperatorsApp, releases: tuple[str, str], tmp_path: Path) -> None:
    large = await post(app, ROLLBACK, b" " * 4097)
    assert large.problem() == (413, "body_too_large")
    assert large.json()["title"] == "Content Too Large"  # the phrase of RFC 9110
    for body in (
        b"{",
        b"[]",
        b'{"releas":"x"}',
        b'{"release":1}',
        b'{"release":""}',
        b'{"release":"' + b"x" * 101 + b'"}',
        b'{"release":"\xff"}',
    ):
        assert (await post(app, ROLLBACK, body)).problem() == (400, "invalid_body")
    assert Catalog(tmp_path).current().id == releases[1]


async def test_a_key_is_revoked_and_the_trail_says_by_whom(with_keys: OperatorsApp, store: KeyStore) -> None:
    _, key = await store.issue("acme", "the label", None)
    answer = await post(with_keys, f"/keys/{key.key_id}/revoke")
    assert answer.status == 200
    shown = answer.json()
    assert (shown["key_id"], shown["partner"], shown["status"]) == (key.key_id, "acme", "revoked")
    assert "digest" not in shown
    assert (await post(with_keys, f"/keys/{key.key_id}/revoke", b"{}")).json() == shown
    (line, _) = [line.change async for line in audit.newest_first(store.redis)]
    assert line is not None
    assert (line.what, line.key_id, line.by) == ("revoked", key.key_id, "operator listener (192.0.2.7)")


async def test_an_unknown_id_is_a_404(with_keys: OperatorsApp) -> None:
    answer = await post(with_keys, f"/keys/{UNKNOWN}/revoke")
    assert answer.problem() == (404, "no_such_key")
    assert "forecast keys list" in answer.json()["detail"]


async def test_an_unknown_id_in_an_emptied_store_is_a_503(with_keys: OperatorsApp, store: KeyStore) -> None:
    """It is unknown whether there was such a key; the loss is what to mend."""
    _, key = await store.issue("acme", "", None)
    await store.redis.call(lambda client: client.flushall())
    answer = await post(with_keys, f"/keys/{key.key_id}/revoke")
    assert answer.problem() == (503, "unavailable")
    assert "key store has lost its identity" in answer.json()["detail"]


async def test_a_malformed_id_is_a_400_and_not_repeated(app: OperatorsApp) -> None:
    """Part of a key may be in it."""
    for key_id in ("short", "0" * 13, "0" * 11 + "-", "0" * 11 + "é", "phf_live_x", "k:{a}"):
        answer = await post(app, f"/keys/{key_id}/revoke")
        assert answer.problem() == (400, "invalid_key_id")
        assert key_id not in answer.json()["detail"]


async def test_a_whole_key_sent_by_mistake_is_not_repeated(
    with_keys: OperatorsApp, store: KeyStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    presented, key = await store.issue("acme", "", None)
    answer = await post(with_keys, f"/keys/{presented}/revoke")
    assert answer.problem() == (400, "invalid_key_id")
    assert key.key_id in answer.json()["detail"]
    parts = parsed(presented)
    assert parts.secret not in answer.body.decode() + caplog.text
    assert (await store.find(key.key_id)).key == key


async def test_while_the_key_store_is_unreachable_nothing_is_promised(
    with_keys: OperatorsApp, server: ValkeyProcess, store: KeyStore
) -> None:
    _, key = await store.issue("acme", "", None)
    server.kill()
    for _ in range(6):  # more often than the breaker allows
        answer = await post(with_keys, f"/keys/{key.key_id}/revoke")
        assert answer.problem() == (503, "unavailable")
        assert answer.headers["retry-after"] == "1"
    server.start()

    async def revoked() -> bool:
        return (await post(with_keys, f"/keys/{key.key_id}/revoke")).status == 200

    await eventually(revoked)


async def test_no_connection_is_made_before_it_is_needed(with_keys: OperatorsApp, changes: Actions) -> None:
    await ask(with_keys, "/health/ready", token=WRITE)
    await post(with_keys, "/keys/short/revoke")
    await post(with_keys, f"/keys/{UNKNOWN}/revoke", token=READ)
    assert changes.backend._store is None


async def test_a_release_is_rolled_back(
    app: OperatorsApp, releases: tuple[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first, second = releases
    assert (await post(app, ROLLBACK)).json() == {"release": first, "behind": []}
    assert Catalog(tmp_path).current().id == first
    assert (await post(app, ROLLBACK, b'{"release":null}')).json()["release"] == second
    assert (await post(app, ROLLBACK, f'{{"release":"{first}"}}'.encode())).json()["release"] == first
    assert f"release {first} was made current by operator listener (192.0.2.7)" in caplog.text


async def test_an_unknown_release_is_a_404(app: OperatorsApp, releases: tuple[str, str], tmp_path: Path) -> None:
    for release in ("20200101T000000Z-000000000000", "../drop1", "."):
        answer = await post(app, ROLLBACK, f'{{"release":"{release}"}}'.encode())
        assert answer.problem() == (404, "no_such_release")
    assert Catalog(tmp_path).current().id == releases[1]


async def test_a_publisher_at_work_is_a_409(app: OperatorsApp, releases: tuple[str, str], tmp_path: Path) -> None:
    with Catalog(tmp_path).publishing():
        assert (await post(app, ROLLBACK)).problem() == (409, "busy")
    assert (await post(app, ROLLBACK)).status == 200


async def test_where_there_is_no_way_back_it_says_so(app: OperatorsApp) -> None:
    answer = await post(app, ROLLBACK)
    assert answer.problem() == (409, "rollback_refused")
    assert "nothing has been published yet" in answer.json()["detail"]


async def test_others_are_answered_while_a_rollback_waits(
    app: OperatorsApp, releases: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderReleases, "served_within", 3.0)
    stuck = InstanceFile(tmp_path, "stuck")
    stuck.write(InstanceRecord("stuck", 4711, "elsewhere", "http://127.0.0.1:1", (releases[1],)))
    try:
        asked = asyncio.create_task(post(app, ROLLBACK))
        await eventually(lambda: Catalog(tmp_path).current().id == releases[0])
        assert (await ask(app, "/health/live")).status == 200
        assert not asked.done()
        behind = (await asked).json()["behind"]
    finally:
        stuck.close()
    assert [record["instance"] for record in behind] == ["stuck"]


async def test_a_purge_says_how_many_answers_there_were(app: OperatorsApp) -> None:
    assert (await post(app, PURGE)).json() == {"near": 3, "shared": 4, "reached": [], "behind": []}
