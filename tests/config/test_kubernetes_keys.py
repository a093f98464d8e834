"""The key store of config/kubernetes-several.yaml, started by its own script on real servers."""

import asyncio
import os
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from service.embedded.probe import check_answers_redis
from service.embedded.runtime import server_program
from service.redis.client import RedisStore
from service.redis.connections import open_client
from service.redis.primary import found
from service.redis.server import read_server_facts, wrong_for_keys
from tests.support.containerfile import ROOT
from tests.support.documented import rights
from tests.support.manifests import Manifests
from tests.support.sentinels import as_dict, wait_until
from tests.support.valkey import ValkeyProcess

SEVERAL = Manifests(ROOT / "config" / "kubernetes-several.yaml")
FILES: dict[str, str] = SEVERAL.named("ConfigMap", "keys")["data"]
SECRETS = ("worker", "keys", "replica", "sentinel", "ask")
URL = (
    "redis+sentinel://forecast-worker:worker-secret@{0}:26379,{1}:26379,{2}:26379/keys/0"
    "?sentinel_username=forecast&sentinel_password=ask-secret"
)


class Pods:
    """The three pods of the StatefulSet, each on a loopback address instead of its name."""

    def __init__(self, folder: Path) -> None:
        net = f"127.{random.randrange(64, 128)}.{random.randrange(256)}"
        self.addresses = [f"{net}.{number}" for number in range(1, 4)]
        self._folder = folder
        self._running: dict[tuple[int, str], subprocess.Popen[bytes]] = {}
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "valkey-server").symlink_to(server_program())

    @property
    def url(self) -> str:
        return URL.format(*self.addresses)

    def start(self, pod: int, role: str) -> None:
        """As the container does: the script, with its folders below ours and addresses for names."""
        home = self._folder / f"keys-{pod}"
        for name in ("config", "secrets", "data", f"tmp-{role}"):
            (home / name).mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            (home / "config" / name).write_text(self._here(text, home, pod, role))
        for name in SECRETS:
            (home / "secrets" / name).write_text(f"{name}-secret")
        environment = os.environ | {"PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}", "HOSTNAME": f"keys-{pod}"}
        command = ["sh", str(home / "config" / "start.sh"), role]
        with (home / f"{role}.log").open("ab") as log:
            self._running[pod, role] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def _here(self, text: str, home: Path, pod: int, role: str) -> str:
        replaced = {
            "bind * -::*": f"bind {self.addresses[pod]}",
            "$HOSTNAME.keys": self.addresses[pod],
            "keys 5000": "keys 2000",  # sooner than in production
            "keys 30000": "keys 3000",
        }
        replaced |= {f"keys-{number}.keys": address for number, address in enumerate(self.addresses)}
        replaced |= {f"/{name}/": f"{home}/{name}/" for name in ("config", "secrets", "data")}
        replaced |= {"dir /data": f"dir {home}/data", "/tmp": f"{home}/tmp-{role}"}
        return re.sub("|".join(map(re.escape, replaced)), lambda found: replaced[found[0]], text)

    def kill(self, pod: int, role: str) -> None:
        process = self._running.pop((pod, role))
        process.kill()
        process.wait()

    def stop(self) -> None:
        for pod, role in list(self._running):
            self.kill(pod, role)

    def ask(self, pod: int, role: str, *words: str) -> Any:
        """As the user that Sentinels have."""
        port = {"server": 6379, "sentinel": 26379}[role]
        with Redis(
            self.addresses[pod], port, username="sentinel", password="sentinel-secret", socket_timeout=5
        ) as client:
            return client.execute_command(*words)

    def primary(self) -> int:
        address, _ = self.ask(0, "sentinel", "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "keys")
        return self.addresses.index(address.decode())

    def follows(self, pod: int) -> str | None:
        """The address of whom this one replicates, and is in step with."""
        said = self.ask(pod, "server", "INFO", "replication")
        in_step = said["role"] == "slave" and said["master_link_status"] == "up"
        return str(said["master_host"]) if in_step else None

    def wait_whole(self) -> int:
        """Until all Sentinels and all servers agree on a primary, which is returned. It may change meanwhile."""
        wait_until(self._is_whole, "servers and Sentinels that agree on a primary")
        return self.primary()

    def in_step(self) -> bool:
        """Whether two servers replicate the primary."""
        primary = self.primary()
        replicas = [self.follows(pod) for pod in range(3) if pod != primary]
        return replicas == [self.addresses[primary]] * 2

    def _is_whole(self) -> bool:
        return self.in_step() and all(self._knows(pod, self.addresses[self.primary()]) for pod in range(3))

    def _knows(self, pod: int, address: str) -> bool:
        known = as_dict(self.ask(pod, "sentinel", "SENTINEL", "MASTER", "keys"))
        reported = known[b"ip"], known[b"num-other-sentinels"], known[b"num-slaves"]
        return reported == (address.encode(), b"2", b"2")


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    started = Pods(tmp_path)
    for pod in range(3):
        started.start(pod, "server")
    wait_until(lambda: started.ask(0, "server", "PING"), "the first server")
    for pod in range(3):
        started.start(pod, "sentinel")
    yield started
    started.stop()


async def test_three_valkeys_with_sentinels_start_from_empty_volumes(pods: Pods) -> None:
    """Instances find the primary, with the documented users, and nothing is wrong with it."""
    # on a busy machine, another one than the first may be primary by now
    wait_until(pods.in_step, "two replicas")
    assert await check_answers_redis(pods.url) is None
    async with found(pods.url) as primary:
        assert primary.url is not None
        store = RedisStore("keys", primary.url, open_client(primary.url, timeout=5))
        facts = await read_server_facts(store)
        await store.stop()
    assert facts is not None
    assert wrong_for_keys(facts) == []


@pytest.mark.soak
def test_a_primary_that_died_comes_back_as_a_replica_and_a_full_restart_keeps_the_roles(pods: Pods) -> None:
    """A server takes its configuration again at each start, and its role from its volume."""
    pods.wait_whole()
    old = pods.primary()
    pods.kill(old, "server")

    async def url_now() -> str:
        async with found(pods.url) as primary:
            return primary.url or ""

    wait_until(lambda: pods.addresses[old] not in asyncio.run(url_now()), "another primary")
    pods.start(old, "server")
    primary_now = pods.wait_whole()

    for role in ("sentinel", "server"):
        for pod in range(3):
            pods.kill(pod, role)
    for pod in range(3):  # without Sentinels: each begins as what it was
        pods.start(pod, "server")
    wait_until(lambda: pods.ask(primary_now, "server", "ROLE")[0] == b"master", "the same primary")
    for pod in range(3):
        pods.start(pod, "sentinel")
    pods.wait_whole()


def test_the_users_of_the_key_store_have_the_documented_rights(short: Path) -> None:
    """Those of docs/operate/rights.md, no more and no less: the same users, made in both ways, are listed alike."""
    folder = short / "v"
    folder.mkdir()
    lines = [line for line in FILES["server.acl"].splitlines() if line.startswith("user forecast-")]
    text = "\n".join(["user default on nopass ~* +@all", *lines]).replace("@worker@", "PASSWORD")
    (folder / "users.acl").write_text(text.replace("@keys@", "PASSWORD") + "\n")
    server = ValkeyProcess(folder, options=["--aclfile", str(folder / "users.acl")]).start()
    try:
        with Redis.from_url(server.url) as client:
            shipped = {user: client.acl_getuser(user) for user in ("forecast-worker", "forecast-keys")}
            for role in ("keys", "replicas", "operators-view"):
                for line in rights(role):
                    client.execute_command(*line)
            assert {user: client.acl_getuser(user) for user in shipped} == shipped
    finally:
        server.kill()


def test_the_users_of_the_sentinels_have_the_documented_rights() -> None:
    (documented,) = rights("sentinels")
    (shipped,) = [line for line in FILES["sentinel.acl"].splitlines() if line.startswith("user forecast ")]
    assert shipped.replace("@ask@", "PASSWORD").split()[1:] == documented[2:]


def test_the_servers_are_configured_as_a_key_store_is() -> None:
    lines = (ROOT / "config" / "redis-keys.conf").read_text().splitlines()
    wanted = {line for line in lines if line and not line.startswith("#")}
    assert wanted <= set(FILES["server.conf"].splitlines())


def test_both_containers_run_the_script_with_what_it_needs() -> None:
    """Its folders are mounted, its secrets are those that the comment makes, and its ports are the container's."""
    spec = SEVERAL.named("StatefulSet", "keys")["spec"]
    for container, role in zip(spec["template"]["spec"]["containers"], ("server", "sentinel"), strict=True):
        assert container["command"] == ["sh", "/config/start.sh", role]
        mounts = {each["mountPath"]: each.get("readOnly", False) for each in container["volumeMounts"]}
        assert mounts == {"/data": False, "/config": True, "/secrets": True, "/tmp": False}
        (port,) = container["ports"]
        assert f"port {port['containerPort']}" in FILES[f"{role}.conf"].splitlines()
    made = (ROOT / "config" / "kubernetes-several.yaml").read_text()
    for name in SECRETS:
        assert f"--from-file={name}" in made
