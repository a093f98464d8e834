"""What partners get while the primary of the keys is killed, or cut off from the rest: real Valkeys and Sentinels."""

import json
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from service.keys import form
from service.keys.store_identity import SEEN
from tests.faults.conftest import Made
from tests.support.faulty_proxy import FaultyProxy
from tests.support.instance import SHORT_DRAIN, Instance, environment, forecast_here, issue_key, serving
from tests.support.sentinels import PortServer, Trio
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import until


@dataclass
class Moving:
    """A published site whose keys are at a primary with one replica and three Sentinels. `key` is good."""

    env: dict[str, str]
    trio: Trio
    key: str

    def issue(self) -> str:
        return issue_key(self.env)

    def revoke(self, key: str) -> int:
        return forecast_here(self.env, "keys", "revoke", _id(key)).returncode


def _id(key: str) -> str:
    parts = form.parse(key)
    assert parts is not None
    return parts.key_id


@pytest.fixture
def moving(short: Path, made: Made) -> Iterator[Moving]:
    shutil.copytree(made.whole / "data", short / "data")
    (short / "data" / SEEN).unlink()
    cache = ValkeyProcess(short / "cache").start()
    trio = Trio(short / "trio")
    try:
        trio.start()
        env = environment(
            short / "data", keys_url=trio.url, cache_url=cache.url, keys_replicas=1, drain=SHORT_DRAIN, log_level="info"
        )
        yield Moving(env, trio, issue_key(env))
    finally:
        trio.kill()
        cache.kill()


class Asking:
    """Asks with one key all the time, from a thread; `statuses` counts the answers."""

    def __init__(self, instance: Instance, key: str) -> None:
        self.statuses: dict[int, int] = {}
        self.first_good = 0.0  # monotonic seconds; 0: none yet
        self.last_good = 0.0
        self._instance = instance
        self._key = key
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Asking":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._stopping.wait(0.02):
            sent = time.monotonic()
            status = self._instance.zip_code(self._key).status_code
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == httpx.codes.OK:
                self.first_good = self.first_good or time.monotonic()
                self.last_good = sent


def one_failover(moving: Moving, instance: Instance) -> float:
    """The primary is killed right after a revocation; returns the seconds from promotion to a new key's answer."""
    known, revoked, new = (moving.issue() for _ in range(3))
    assert instance.zip_code(known).status_code == 200
    assert instance.zip_code(revoked).status_code == 200
    until(lambda: instance.metric("forecast_revocation_push_connections") == 1)
    with Asking(instance, known) as asking_known:
        assert moving.revoke(revoked) == 0
        until(lambda: instance.zip_code(revoked).status_code == 401)  # workers hear of it a moment later
        with Asking(instance, revoked) as asking_revoked:
            moving.trio.fail_over()
            promoted = time.monotonic()
            with Asking(instance, new) as asking_new:
                until(lambda: bool(asking_new.first_good))
            until(lambda: asking_revoked.statuses.get(401, 0) > 0)
    assert asking_known.statuses.keys() == {200}
    assert asking_revoked.statuses.get(200, 0) == 0
    return max(0.0, asking_new.first_good - promoted)


def test_a_killed_primary_costs_no_verified_key_and_revives_no_revoked_one(moving: Moving, short: Path) -> None:
    """Keys that are not verified yet are answered again once a replica is promoted; then the instance is ready."""
    with serving(moving.env, short / "serve.log") as instance:
        one_failover(moving, instance)
        until(lambda: instance.ready().json()["status"] != "unavailable")
        until(lambda: instance.metric('forecast_store_up{store="keys"}') == 1)
        assert instance.metric("forecast_key_store_went_back") == 0
        done = forecast_here(moving.env, "keys", "list", "--json")
        assert {key["status"] for key in json.loads(done.stdout)} == {"active", "revoked"}


def test_a_revocation_while_the_replica_is_stopped_is_not_confirmed(moving: Moving, short: Path) -> None:
    """The command fails and says what is known; workers hear of the revocation all the same."""
    with serving(moving.env, short / "serve.log") as instance:
        assert instance.zip_code(moving.key).status_code == 200
        [replica] = moving.trio.replicas()
        replica.stall()
        done = forecast_here(moving.env, "keys", "revoke", _id(moving.key))
        assert done.returncode == 1
        assert "0 of the 1 replicas that FORECAST_KEYS_REPLICAS asks for confirmed it" in done.stderr
        assert "run this again" in done.stderr
        until(lambda: instance.zip_code(moving.key).status_code == 401)
        replica.go_on()
        until(lambda: moving.revoke(moving.key) == 0)


@contextmanager
def cut_off(moving: Moving, proxies: list[FaultyProxy]) -> Iterator[PortServer]:
    """The instance and the old primary on one side; Sentinels and the replica, which they promote, on the other.

    The old primary turns their users away meanwhile. Yields the new primary.
    """
    old, own = moving.trio.primary(), moving.trio.sentinels[0]
    for proxy in proxies:
        proxy.fault = "silent"
    own.stall()
    for user in ("others", "default"):
        old.command("ACL", "SETUSER", user, "off")
        old.command("CLIENT", "KILL", "USER", user)
    others = moving.trio.sentinels[1:]
    until(lambda: all(moving.trio.names(sentinel) != old.port for sentinel in others))
    new = next(server for server in moving.trio.servers if server is not old)
    until(lambda: new.command("ROLE")[0] == b"master")
    assert old.command("ROLE")[0] == b"master"
    yield new
    for user in ("others", "default"):
        old.command("ACL", "SETUSER", user, "on")
    own.go_on()
    for proxy in proxies:
        proxy.fault = "none"


@pytest.mark.soak
def test_who_is_cut_off_with_the_old_primary_trusts_it_for_a_minute(
    moving: Moving, short: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A key that is revoked on the other side passes for 60 s at most, then all get a 503; healed, all is right."""
    trio = moving.trio
    for server in trio.servers:
        for user in ("others", "ours"):
            server.command("ACL", "SETUSER", user, "on", ">word", "~*", "&*", "+@all")
        server.credentials = "ours:word@"
        server.command("CONFIG", "SET", "masteruser", "others", "masterauth", "word")
    for sentinel in trio.sentinels[1:]:
        sentinel.command("SENTINEL", "SET", Trio.SERVICE, "auth-user", "others", "auth-pass", "word")
    trio.primary().command("CLIENT", "KILL", "TYPE", "replica")
    trio.wait_whole()
    proxies = [FaultyProxy(sentinel.port) for sentinel in trio.sentinels[1:]]
    nodes = ",".join(str(node) for node in (trio.sentinels[0].node, *(f"127.0.0.1:{proxy.port}" for proxy in proxies)))
    env = {**moving.env, "FORECAST_KEYS_URL": f"redis+sentinel://ours:word@{nodes}/{Trio.SERVICE}/0"}
    revoked, good = moving.issue(), moving.issue()
    with serving(env, short / "serve.log") as instance:
        with Asking(instance, revoked) as asking, Asking(instance, good) as asking_good:
            until(lambda: bool(asking.first_good and asking_good.first_good))
            with cut_off(moving, proxies) as new:
                there = {**moving.env, "FORECAST_KEYS_URL": new.url, "FORECAST_KEYS_REPLICAS": "0"}
                began = time.monotonic()
                assert forecast_here(there, "keys", "revoke", _id(revoked)).returncode == 0
                while time.monotonic() < began + 75:
                    time.sleep(1)
                assert asking.last_good < began + 61
                assert asking.statuses.keys() == asking_good.statuses.keys() == {200, 503}
            healed = time.monotonic()
            until(lambda: asking.statuses.get(401, 0) > 0)
            right = time.monotonic() - healed
            until(lambda: asking_good.last_good > healed)
        with capsys.disabled():
            sys.stdout.write(f"\nit passed for {asking.last_good - began:.1f} s; right {right:.1f} s after healing\n")
    for proxy in proxies:
        proxy.close()
