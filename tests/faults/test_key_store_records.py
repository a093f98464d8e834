"""Whatever the key store holds instead of its records: a 503 with its reason, and everything heals with the record."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from service.keys.record import IDENTITY, record_name
from tests.faults.conftest import Site
from tests.support.instance import Instance, forecast_here, issue_key, serving
from tests.support.waiting import until


@pytest.fixture
def store(published: Site) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(published.keys.url) as client:
        yield client


@pytest.fixture
def common_store(common: Site) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(common.keys.url) as client:
        yield client


@pytest.fixture(scope="module")
def pair(common: Site) -> Iterator[Instance]:
    """Two workers for the tests that mend what they damage."""
    with serving(common.env, common.data.parent / "serve.log", workers=2) as instance:
        yield instance


def status(instance: Instance) -> str:
    said: str = instance.ready().json()["status"]
    return said


def reasons(instance: Instance) -> str:
    return " ".join(instance.ready().json()["reasons"])


def is_unavailable(instance: Instance, reason: str) -> bool:
    return instance.ready().status_code == 503 and reason in reasons(instance)


def is_ready(instance: Instance) -> bool:
    return status(instance) == "ready"


def damages(record: bytes) -> Iterator[tuple[str, bytes | None]]:
    """What a record may become; None: one of another type."""
    yield "cut short", record[: len(record) // 2]
    yield "no text", b"\xff\xfe" + record
    yield "no text within", record[:-3] + b"\xff" + record[-2:]
    yield "another type", None
    yield "empty", b""
    yield "too deep", b"[" * 100_000
    yield "a time without a zone", record.replace(b"Z", b"")


def put(store: "redis.Redis", name: str, value: bytes | None) -> None:
    store.delete(name)
    if value is None:
        store.hset(name, "a", "b")
    else:
        store.set(name, value)


def test_a_damaged_identity_makes_every_worker_unavailable_until_it_is_mended(
    common: Site, pair: Instance, common_store: "redis.Redis", short: Path
) -> None:
    """No worker can judge a key: a balancer has to look away. Log, readiness and metric agree, before anybody asks."""
    identity = common_store.get(IDENTITY)
    assert isinstance(identity, bytes)
    backup = str(short / "keys.jsonl")
    assert forecast_here(common.env, "keys", "export", backup).returncode == 0
    until(lambda: is_ready(pair))
    for what, damaged in damages(identity):
        put(common_store, IDENTITY, damaged)
        until(lambda: is_unavailable(pair, IDENTITY))
        assert pair.metric("forecast_key_store_foreign") == 1, what
        assert any(IDENTITY in line["message"] for line in pair.log() if line["level"] == "error"), what
        answer = pair.zip_code(common.key)
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable"), what
        put(common_store, IDENTITY, identity)
        until(lambda: is_ready(pair))
        assert pair.metric("forecast_key_store_foreign") == 0, what
    for mend in (("import", backup), ("adopt-store", "--yes")):
        put(common_store, IDENTITY, None)
        until(lambda: is_unavailable(pair, IDENTITY))
        done = forecast_here(common.env, "keys", *mend)
        assert done.returncode == 0, done.stderr
        until(lambda: is_ready(pair))
    assert pair.zip_code(common.key).status_code == 200


def test_a_store_that_is_not_ours_or_refuses_to_be_read_makes_every_worker_unavailable(
    published: Site, short: Path, store: "redis.Redis"
) -> None:
    """Emptied, with another pepper, or readable by nobody: it answers, but nobody can be told good by it.

    Where a key is remembered it goes on for its minute, and that is `degraded`.
    """
    backup = str(short / "keys.jsonl")
    assert forecast_here(published.env, "keys", "export", backup).returncode == 0
    other = published.env | {"FORECAST_KEYS_PEPPER": "another pepper than before"}
    with serving(other, short / "other.log", workers=2) as instance:
        assert is_unavailable(instance, "another pepper"), "from its first answer on"
        assert instance.zip_code(published.key).status_code == 503
        assert instance.metric("forecast_key_store_foreign") == 1
    with serving(published.env, short / "serve.log", workers=2) as instance:
        until(lambda: is_ready(instance))
        store.flushall()
        until(lambda: is_unavailable(instance, "identity"))
        assert forecast_here(published.env, "keys", "import", backup).returncode == 0
        until(lambda: is_ready(instance))
        try:
            store.acl_setuser("default", enabled=True, nopass=True, commands=["-get", "-mget"])
            until(lambda: is_unavailable(instance, "no permissions"))
            assert instance.zip_code(published.key).status_code == 503
        finally:
            store.acl_setuser("default", enabled=True, nopass=True, commands=["+get", "+mget"])
        until(lambda: is_ready(instance))
        until(lambda: instance.zip_code(published.key).status_code == 200)
        store.flushall()
        until(lambda: status(instance) == "degraded" and "identity" in reasons(instance))
        assert instance.ready().status_code == 200, "somebody is served"
        assert instance.metric("forecast_key_store_foreign") == 1


def test_a_damaged_key_does_not_affect_others_and_every_command_names_it(
    common: Site, pair: Instance, common_store: "redis.Redis", short: Path
) -> None:
    """503 for its owner and never 401; the others are served, listed and exported; an import restores it."""
    backup = str(short / "keys.jsonl")
    damaged, sound = issue_key(common.env, "damaged"), issue_key(common.env, "sound")
    assert forecast_here(common.env, "keys", "export", backup).returncode == 0
    key_id, sound_id = (key.split("_")[2] for key in (damaged, sound))
    name = record_name(key_id)
    record = common_store.get(name)
    assert isinstance(record, bytes)
    until(lambda: is_ready(pair))
    for what, damage in damages(record):
        put(common_store, name, damage)
        refused = pair.zip_code(damaged)
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable"), what
        assert pair.zip_code(sound).status_code == 200, what
        assert is_ready(pair), what
    assert any(name in line["message"] for line in pair.log() if line["level"] == "error")
    put(common_store, name, b'{"key_id":"\xff"}')
    listed = forecast_here(common.env, "keys", "list", "--json")
    assert (listed.returncode, {one["key_id"]: one["status"] for one in json.loads(listed.stdout)}) == (
        1,
        {key_id: "damaged", sound_id: "active", common.key.split("_")[2]: "active"},
    )
    for command in (
        ("show", key_id),
        ("revoke", key_id),
        ("rotate", key_id, "--overlap", "1h"),
        ("export", str(short / "another.jsonl")),
    ):
        done = forecast_here(common.env, "keys", *command)
        assert (done.returncode, "Traceback" in done.stderr, name in done.stderr) == (1, False, True), done.stderr
    put(common_store, name, None)
    assert name in forecast_here(common.env, "keys", "revoke", key_id).stderr
    assert forecast_here(common.env, "keys", "show", sound_id).returncode == 0
    assert forecast_here(common.env, "keys", "import", backup).returncode == 0
    until(lambda: pair.zip_code(damaged).status_code == 200)
    assert forecast_here(common.env, "keys", "list").returncode == 0


def test_commands_tell_a_damaged_identity_and_a_damaged_trail_and_still_show_keys(
    published: Site, store: "redis.Redis"
) -> None:
    """Each in one line that names the record. A leaked key can be revoked whatever is damaged."""
    key_id = published.key.split("_")[2]
    store.xadd("a:audit", {"line": b"\xff"}, id="18446744073709551614-1")  # a line that no key store writes
    done = forecast_here(published.env, "log")
    assert (done.returncode, "damaged" in done.stdout, "issued" in done.stdout) == (0, True, True), done.stderr
    put(store, IDENTITY, b"\xff")
    listed = forecast_here(published.env, "keys", "list", "--json")
    assert (listed.returncode, json.loads(listed.stdout)[0]["key_id"], IDENTITY in listed.stderr) == (1, key_id, True)
    assert forecast_here(published.env, "keys", "show", key_id).returncode == 0
    put(store, "a:audit", None)
    changing = (("issue", "--partner", "x"), ("export", "-"), ("rotate", key_id, "--overlap", "1h"))
    for command in (("log",), *(("keys", *words) for words in changing)):
        done = forecast_here(published.env, *command)
        named = IDENTITY in done.stderr or "a:audit" in done.stderr
        assert (done.returncode, named, "Traceback" in done.stderr) == (1, True, False), done.stderr
    assert forecast_here(published.env, "keys", "adopt-store", "--yes").returncode == 1, "its line has no place"
    revoked = forecast_here(published.env, "keys", "revoke", key_id)
    assert (revoked.returncode, "a:audit" in revoked.stderr) == (0, True)
    store.rename("a:audit", "a:audit-damaged")
    assert forecast_here(published.env, "keys", "adopt-store", "--yes").returncode == 0
    assert json.loads(forecast_here(published.env, "keys", "show", key_id, "--json").stdout)["status"] == "revoked"


def test_an_instance_whose_pepper_is_lost_says_so_and_makes_no_other(published: Site) -> None:
    """Once the file is back, the next start serves."""
    pepper = published.data / "pepper"
    kept = pepper.rename(published.data / "kept")
    with serving(published.env, published.data.parent / "serve.log") as instance:
        until(lambda: is_unavailable(instance, "another pepper"))
        assert instance.zip_code(published.key).status_code == 503
        said = [line["message"] for line in instance.log() if line["level"] == "error"]
        assert any(f"the pepper {pepper} is missing" in message for message in said)
        assert not pepper.exists()
    kept.rename(pepper)
    with serving(published.env, published.data.parent / "serve.log") as instance:
        until(lambda: instance.zip_code(published.key).status_code == 200)
