"""The rights that docs/operate/rights.md grants are enough, and not more than that (its lines are read here)."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from redis import Redis as BlockingRedis
from redis.exceptions import NoPermissionError

from config.settings import Settings
from service.base.ipc import Endpoints
from service.base.terms import Terms, parse_rate
from service.cache.contents import read_entry, survey
from service.cache.entry import CacheEntry
from service.cache.key import cache_key
from service.cache.removing import purge_shared, remove_entries
from service.cache.shared import SharedCache
from service.cache.warm import Plan, warm
from service.embedded.probe import check_answers_redis
from service.embedded.runtime import server_program
from service.instance import store_checks
from service.instance.registry import Peer, beat, leave, peers_in
from service.instance.store_checks import StoreChecks
from service.keys import audit, backup, changes, named
from service.keys.backup import Dump
from service.keys.changes import adopt
from service.keys.reader import every_key
from service.keys.record import NO_MORE
from service.keys.restore import Restore
from service.keys.store import KeyStore
from service.keys.verdict import Accepted, Rejected
from service.keys.verifier import KeyVerifier
from service.operators.keys.backend import api_error
from service.quota.backup import UsageDump
from service.quota.last_errors import LastErrors
from service.quota.lease_store import LeaseStore
from service.quota.names import DAY_SECONDS
from service.quota.report import UsageReport
from service.quota.restore import restore_usage
from service.quota.usage_store import Totals, UsageStore
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.errors import StoreUnavailable
from service.redis.invalidation import InvalidationListener
from service.redis.primary import Primary
from tests.service.operators.test_state import WELL, instance
from tests.support.documented import rights
from tests.support.key_store import PEPPER
from tests.support.last_errors import failed, keep, kept
from tests.support.operators import KEYS, Answer, actions, ask, operators
from tests.support.usage import UsageWorker
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import eventually

PASSWORD = "PASSWORD"
Opened = Callable[[str], RedisStore]


@pytest.fixture
def server(short: Path) -> Iterator[ValkeyProcess]:
    """A server with the documented users, where no other user may do anything after the test has begun."""
    process = ValkeyProcess(short / "acl", appendonly=True, program=server_program()).start()
    with BlockingRedis.from_url(process.url) as client:
        for line in (*rights("keys"), *rights("cache")):
            client.execute_command(*line)
    yield process
    process.kill()


@pytest.fixture
async def opened(server: ValkeyProcess) -> AsyncIterator[Opened]:
    """Opens a store as one of the users."""
    stores: list[RedisStore] = []

    def as_user(user: str) -> RedisStore:
        stores.append(RedisStore(user, server.url, open_client(url(server, user), timeout=5)))
        return stores[-1]

    yield as_user
    for store in stores:
        await store.stop()


def url(server: ValkeyProcess, user: str) -> str:
    return server.url.replace("unix://", f"unix://{user}:{PASSWORD}@")


async def test_the_commands_of_keys_need_no_more(opened: Opened, tmp_path: Path) -> None:
    keys = KeyStore(opened("forecast-keys"), PEPPER, tmp_path)
    await adopt(keys)
    await named.set_partner(keys, "acme", Terms(), "")
    _, key = await changes.issue(keys, "acme", "", None, Terms(), test=False, more=NO_MORE)
    await changes.change_terms(keys, key.key_id, lambda _: Terms(areas=("forecast",)))
    _, new, _ = await changes.rotate(keys, key.key_id, timedelta(days=7))
    await changes.extend(keys, new.key_id, datetime.now(UTC) + timedelta(days=1))
    await keys.revoke(new.key_id)
    assert {one.key_id async for one in every_key(keys)} == {key.key_id, new.key_id}
    assert len([line async for line in audit.newest_first(keys.redis)]) == 8
    listed = await UsageReport(opened("forecast-worker")).listed(named.list_of_keys("acme"))
    assert listed == {key.key_id, new.key_id}
    lines = [line async for line in Dump(keys)]
    head = backup.check(lines, PEPPER)
    assert (await Restore(keys, head, lambda: lines, dry_run=False).run()).kept == 2


async def test_a_backup_can_be_imported_with_them_into_an_emptied_store(
    server: ValkeyProcess, opened: Opened, tmp_path: Path
) -> None:
    keys = KeyStore(opened("forecast-keys"), PEPPER, tmp_path)
    await keys.issue("acme", "", None)
    lines = [line async for line in Dump(keys)]
    with BlockingRedis.from_url(server.url) as client:
        client.flushall()
    done = await Restore(keys, backup.check(lines, PEPPER), lambda: lines, dry_run=False).run()
    assert (done.added, done.lines, done.made_ours) == (1, 1, True)


async def test_an_inbox_writes_to_the_audit_trail_with_its_right(server: ValkeyProcess, opened: Opened) -> None:
    line = audit.Change(what="published", by="inbox", release="r1")
    with pytest.raises(StoreUnavailable):
        await audit.note(opened("forecast-worker"), line)
    with BlockingRedis.from_url(server.url) as client:
        for right in rights("inbox"):
            client.execute_command(*right)
    await audit.note(opened("forecast-worker"), line)


async def test_usage_is_exported_and_imported_with_them(server: ValkeyProcess, opened: Opened, tmp_path: Path) -> None:
    client = opened("forecast-worker")._client
    assert client is not None
    worker = UsageWorker(client, tmp_path)
    worker.counters.count("a", "forecast", "answered")
    assert await worker.flusher.flush()
    commands = opened("forecast-keys")
    records = [record async for record in UsageDump(commands, None)]
    assert [len(record.workers) for record in records] == [0, 1, 0]
    with BlockingRedis.from_url(server.url) as client:
        client.flushall()
    assert (await restore_usage(commands, None, records, dry_run=True)).added == 1
    assert (await restore_usage(commands, None, records, dry_run=False)).added == 1
    with BlockingRedis.from_url(url(server, "forecast-keys")) as client:
        for command in ("DEL u:{a}:2026-11", "EXPIRE u:{a}:2026-11 1", "HDEL s:{a} x"):
            with pytest.raises(NoPermissionError):
                client.execute_command(*command.split())


async def test_instances_find_each_other_with_them(opened: Opened) -> None:
    me = Peer("a", "web-1", "http://web-1:8001", 2)
    store = opened("forecast-worker")
    assert (await beat(store, me, "mark")).peers == (me,)
    assert await peers_in(opened("forecast-keys")) == await peers_in(opened("forecast-worker")) == [me]
    await leave(store, "a")
    with pytest.raises(StoreUnavailable):
        await beat(opened("forecast-keys"), me)


async def test_a_worker_verifies_keys_and_hears_of_changes(
    server: ValkeyProcess, opened: Opened, tmp_path: Path
) -> None:
    assert await check_answers_redis(url(server, "forecast-worker")) is None
    keys = KeyStore(opened("forecast-keys"), PEPPER, tmp_path)
    presented, key = await keys.issue("acme", "", None)
    verifier = KeyVerifier(KeyStore(opened("forecast-worker"), PEPPER, tmp_path), PEPPER)
    listener = InvalidationListener(Primary(url(server, "forecast-worker")), "k:", verifier.invalidate, timeout=2)
    listener.start()
    try:
        await eventually(lambda: listener.connected)
        assert isinstance(await verifier.check(presented), Accepted)
        reported: list[str | None] = []
        listener._invalidate = reported.append
        await keys.revoke(key.key_id)
        await eventually(lambda: reported == [f"k:{{{key.key_id}}}"])
        verifier.invalidate(reported[0])
        verdict = await verifier.check(presented)
        assert isinstance(verdict, Rejected)
        assert (verdict.reason, verdict.key_id) == ("revoked", key.key_id)
    finally:
        await listener.stop()


async def test_a_worker_adds_usage_that_the_commands_read(
    server: ValkeyProcess, opened: Opened, tmp_path: Path
) -> None:
    worker = UsageWorker(open_client(url(server, "forecast-worker"), timeout=5), tmp_path)
    worker.counters.count("a", "forecast", "answered")
    await worker.flusher.flush()
    assert (await worker.store.totals("a", int(worker.clock()) // DAY_SECONDS)).of_day == 1
    report = UsageReport(opened("forecast-keys"))
    assert await report.keys(date(2026, 1, 1), date(2026, 12, 31)) == {"a"}
    assert len(await report.whole(["a"], date(2026, 1, 1), date(2026, 12, 31))) == 1
    assert await worker.rows("a") == await report.whole(["a"], date(2026, 1, 1), date(2026, 12, 31))
    await worker.client.aclose()


async def test_a_worker_reads_totals_of_quotas(server: ValkeyProcess, opened: Opened) -> None:
    """Also when the server has forgotten the script: its user may load one, and send none with a call."""
    store = UsageStore(opened("forecast-worker"))
    assert await store.totals("a", 20_777) == Totals(20_777, 0, 0)
    with BlockingRedis.from_url(server.url) as client:
        client.script_flush()
    assert await store.totals("a", 20_777) == Totals(20_777, 0, 0)


async def test_a_worker_can_change_no_key(opened: Opened, tmp_path: Path) -> None:
    _, key = await KeyStore(opened("forecast-keys"), PEPPER, tmp_path).issue("acme", "", None)
    worker = KeyStore(opened("forecast-worker"), PEPPER, tmp_path)
    with pytest.raises(StoreUnavailable, match="permissions"):
        await worker.issue("acme", "", None)
    for command in (("SET", f"k:{{{key.key_id}}}", "x"), ("DEL", "k:control"), ("XRANGE", "a:audit", "-", "+")):
        with pytest.raises(StoreUnavailable, match="permissions"):
            await worker.redis.call(lambda client, words=command: client.execute_command(*words))  # type: ignore[misc]
    assert (await worker.find(key.key_id)).key == key


@pytest.mark.parametrize(
    "command", ["DEL k:{a}", "FLUSHALL", "XTRIM a:audit MAXLEN 0", "XDEL a:audit 1-1", "SET a:audit x"]
)
def test_the_user_of_the_commands_cannot_delete(server: ValkeyProcess, command: str) -> None:
    with BlockingRedis.from_url(url(server, "forecast-keys")) as client, pytest.raises(NoPermissionError):
        client.execute_command(*command.split())


async def test_a_missing_right_to_ask_about_the_disk_is_not_taken_for_an_old_server(
    server: ValkeyProcess, opened: Opened, tmp_path: Path
) -> None:
    """Else changes would silently not be waited for."""
    with BlockingRedis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "forecast-keys", "-waitaof")
    with pytest.raises(StoreUnavailable, match=r"grant it \+waitaof"):
        await KeyStore(opened("forecast-keys"), PEPPER, tmp_path).issue("acme", "", None)


async def test_a_worker_s_user_can_revoke_where_the_listener_may(
    server: ValkeyProcess, opened: Opened, tmp_path: Path
) -> None:
    """The supervisor, with a write token and the rights that go with it; it can still delete nothing."""
    _, key = await KeyStore(opened("forecast-keys"), PEPPER, tmp_path).issue("acme", "", None)
    changes = actions(Settings(data_dir=str(tmp_path)), url(server, "forecast-worker"))
    try:
        with pytest.raises(StoreUnavailable) as refused:
            await (await changes.backend.store()).revoke(key.key_id)
        assert api_error(refused.value).code == "unavailable"
        with BlockingRedis.from_url(server.url) as client:
            for line in rights("write-token"):
                client.execute_command(*line)
        assert (await (await changes.backend.store()).revoke(key.key_id)).status() == "revoked"
        await changes.purge("127.0.0.1")
    finally:
        await changes.backend.stop()
    trail = audit.newest_first(opened("forecast-keys"))
    assert [line.change.what async for line in trail if line.change][:2] == ["purged", "revoked"]
    with BlockingRedis.from_url(url(server, "forecast-worker")) as client:
        for command in ("DEL k:{a}", "XTRIM a:audit MAXLEN 0", "SET a:audit x", "XRANGE a:audit - +", "FLUSHALL"):
            with pytest.raises(NoPermissionError):
                client.execute_command(*command.split())


async def test_a_worker_s_user_can_manage_keys_with_the_rights_for_a_keys_token(
    server: ValkeyProcess, tmp_path: Path
) -> None:
    changes = actions(Settings(data_dir=str(tmp_path)), url(server, "forecast-worker"))
    app = operators(lambda: instance(WELL), keys=KEYS, changes=changes)

    async def send(method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        return await ask(app, path, method, token=KEYS, body=body, content_type="application/json", **headers)

    with BlockingRedis.from_url(server.url) as client:
        for line in (*rights("write-token"), *rights("keys-token")):
            client.execute_command(*line)
    try:
        assert (await send("PUT", "/plans/basic", b"{}")).status == 201
        assert (await send("PUT", "/partners/acme", b"{}")).status == 201
        order = b'{"partner":"acme","plan":"basic","deliver":"link"}'
        issued = await send("POST", "/keys", order, idempotency_key="order-1")
        assert issued.status == 201
        path = f"/keys/{issued.json()['key_id']}"
        assert (await send("POST", issued.json()["link"].removeprefix("http://a"))).status == 200
        assert (await send("PATCH", path, b'{"plan":null}')).status == 200
        assert (await send("POST", f"{path}/suspend", b'{"reason":"x"}')).status == 200
        assert (await send("POST", f"{path}/resume")).status == 200
        assert (await send("POST", f"{path}/rotate", b'{"overlap_seconds":0}')).status == 201
        assert (await send("GET", f"{path}/usage")).status == 200
        assert (await send("GET", "/keys")).status == 200
        assert (await send("DELETE", "/plans/basic")).status == 204
    finally:
        await changes.backend.stop()


async def test_rates_are_kept_beside_the_cache(opened: Opened) -> None:
    """Twice: the server does not know the script at first."""
    leases = LeaseStore(opened("forecast-cache"))
    for _ in range(2):
        assert (await leases.lease("a", parse_rate("100/s"), 1, 1)).granted == 1


async def test_the_last_errors_of_keys_are_kept_beside_the_cache(opened: Opened) -> None:
    """Twice, for the same reason; and read."""
    errors = LastErrors(opened("forecast-cache"))
    for number in (1, 2):
        await keep(errors, failed(number))
    assert await kept(errors) == ["r2", "r1"]


async def test_the_cache_needs_no_more(server: ValkeyProcess, opened: Opened) -> None:
    """Filling, looking up, warming, counting, looking at, forgetting and purging; it sees nothing of the keys."""
    assert await check_answers_redis(url(server, "forecast-cache")) is None
    cache = SharedCache(opened("forecast-cache"), ttl=60)
    key = cache_key("r1", "forecast", "36436")
    assert await cache.put(key, CacheEntry.of(b"{}"))
    assert (await cache.get(key)).entry == CacheEntry.of(b"{}")
    plan = Plan(release="r2", ttl=60, seconds=5)
    assert await warm(url(server, "forecast-cache"), plan, [("forecast", "36436", b"{}")], lambda _: None) == 1
    found = await survey(opened("forecast-cache"), 60.0, lambda _: None)
    assert [(one.release, one.entries, one.measured) for one in found.releases] == [("r2", 1, 1), ("r1", 1, 1)]
    held = await read_entry(opened("forecast-cache"), key)
    assert (held.entry, held.counted) == (CacheEntry.of(b"{}"), False)
    assert held.seconds is not None
    assert await remove_entries(url(server, "forecast-cache"), ["r2"], 60) == 1
    assert await purge_shared(url(server, "forecast-cache")) == 1
    with BlockingRedis.from_url(url(server, "forecast-cache")) as client, pytest.raises(NoPermissionError):
        client.mget("k:control")


async def test_operators_see_changes_of_keys_and_those_that_end_soon_with_the_rights_for_it(
    server: ValkeyProcess, opened: Opened, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them neither is reported, and nothing else goes wrong; nothing can be changed with them."""
    monkeypatch.setattr(store_checks, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(store_checks, "_RETRY_SECONDS", 0.01)
    keys = KeyStore(opened("forecast-keys"), PEPPER, short)
    happened: list[str] = []
    worker = url(server, "forecast-worker")
    checks = StoreChecks(Endpoints(worker, worker, PEPPER), short, lambda _, text: happened.append(text))
    await checks.start()
    try:
        await eventually(lambda: bool(checks.stores([])[0].memory))
        assert checks.keys.expire_within_7_days is None
        with BlockingRedis.from_url(server.url) as client:
            for line in rights("operators-view"):
                client.execute_command(*line)
        await eventually(lambda: checks.keys.expire_within_7_days == 0)
        await eventually(lambda: checks.trail._newest is not None)
        _, key = await keys.issue("acme", "", None)
        await eventually(lambda: any(f"key {key.key_id} was issued" in text for text in happened))
        with BlockingRedis.from_url(worker) as client:
            for refused in (("SET", "k:x", "1"), ("XADD", "a:audit", "*", "line", "x")):
                with pytest.raises(NoPermissionError):
                    client.execute_command(*refused)
    finally:
        await checks.stop()
