"""The standing rig: three instances, three Valkeys with Sentinels, a cluster of six for the cache, a bucket, a load.

Each on a machine of its own, whose links a test can cut. Where namespaces are not permitted, all are on ports of this
machine, and a server that is silenced is stopped instead.
"""

import http.client
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from service.keys import form
from tests.support.cluster import Cluster
from tests.support.drops import location, people, write_drop
from tests.support.instance import (
    FORECAST,
    SHORT_DRAIN,
    Instance,
    environment,
    forecast,
    forecast_here,
    issue_key,
    serving,
)
from tests.support.network import HERE, Machine, Namespace, Network, permitted
from tests.support.s3_server import CREDENTIALS, S3Server, s3_server
from tests.support.sentinels import PortServer, Trio, wait_until
from tests.support.waiting import until
from warehouse.areas.forecast import forecast_answers_to_warm
from warehouse.releases.catalog import Catalog

INSTANCES = 3
# The first one differs from release to release.
ZIP_CODES = ("36436", *(str(number) for number in range(36000, 36080)))
_KEY_SERVERS, _CACHE_NODES = 3, 6


class Answer(NamedTuple):
    sent: float  # monotonic seconds, as `done`
    done: float
    status: int  # 0: there was none
    release: str


class Load:
    """Asks one instance with one key, from its own machine, at a fixed rate."""

    def __init__(self, instance: Instance, key: str, per_second: float = 25) -> None:
        self.answers: list[Answer] = []
        self.bodies: set[tuple[str, str, bytes]] = set()  # release, ZIP code, what was answered of them
        self.key = key
        self._instance, self._pause = instance, 1 / per_second
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def statuses(self) -> Counter[int]:
        return Counter(answer.status for answer in list(self.answers))

    def last(self, status: int) -> float:
        """When the last request was sent that was answered so; 0 if none was."""
        return max((answer.sent for answer in list(self.answers) if answer.status == status), default=0.0)

    def first(self, status: int, since: float = 0.0, release: str = "") -> float:
        """When the first request that was sent after `since` was answered so, of `release`; 0 if none was."""
        fits = (one for one in list(self.answers) if one.status == status and release in ("", one.release))
        return min((one.done for one in fits if one.sent > since), default=0.0)

    def _ask(self) -> None:
        with self._instance.machine.inside():
            connection = http.client.HTTPConnection(urlsplit(self._instance.partners).netloc, timeout=30)
            due, number = time.monotonic(), 0
            while not self._stopping.wait(max(0.0, due - time.monotonic())):
                due += self._pause
                number += 1
                self._ask_once(connection, ZIP_CODES[number // 2 % len(ZIP_CODES) if number % 2 else 0])
            connection.close()

    def _ask_once(self, connection: http.client.HTTPConnection, zip_code: str) -> None:
        sent, status, release = time.monotonic(), 0, ""
        try:
            connection.request("GET", f"{FORECAST}?zip_code={zip_code}", headers={"x-api-key": self.key})
            answer = connection.getresponse()
            body, status, release = answer.read(), answer.status, answer.headers.get("X-Data-Release", "")
        except (OSError, http.client.HTTPException):
            connection.close()
        if status == http.client.OK:
            self.bodies.add((release, zip_code, body))
        self.answers.append(Answer(sent, time.monotonic(), status, release))


@dataclass
class Rig:
    """`network` is None where namespaces are not permitted. Commands are given on the machine `runner`."""

    folder: Path
    network: Network | None
    runner: Machine
    trio: Trio
    cluster: Cluster
    store: S3Server
    env: dict[str, str]
    instances: list[Instance] = field(default_factory=list)

    def env_of(self, number: int) -> dict[str, str]:
        return self.env | {"FORECAST_DATA_DIR": str(self.folder / f"data-{number}")}

    def issue(self) -> str:
        with self.runner.inside():
            return issue_key(self.env)

    def revoke(self, key: str) -> int:
        """The exit code of the command."""
        with self.runner.inside():
            return forecast_here(self.env, "keys", "revoke", id_of(key)).returncode

    def stored(self, key: str) -> int:
        """How many answers the usage of `key` has."""
        with self.runner.inside():
            done = forecast_here(self.env, "usage", "--key", id_of(key), "--json")
        assert done.returncode == 0, done.stderr
        return sum(row["answered"] + row["answered_empty"] for row in json.loads(done.stdout))

    def extracts(self, *words: str) -> str:
        """What a command about releases says. It has a process of its own, because its threads stay on its machine."""
        done = forecast(self.env, "extracts", *words, machine=self.runner)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def publish(self, figure: int) -> str:
        """Publishes a release in which so many people live in the first ZIP code."""
        drop = write_drop(
            self.folder / f"drop-{figure}",
            locations=[location(zip_code, "Dickinson", "AL") for zip_code in ZIP_CODES],
            population=[people(ZIP_CODES[0], 2023, figure)],
        )
        return self.extracts("publish", str(drop))

    def wrong(self, *loads: Load) -> list[str]:
        """Answers that are not byte by byte those of the release that they name."""
        catalog = Catalog(self.folder / "data-0")
        seen = set.union(*(load.bodies for load in loads))
        right = {
            release: dict(forecast_answers_to_warm(catalog.folder(release)))
            for release in {name for name, _, _ in seen}
        }
        return [f"{zip_code} of {name}" for name, zip_code, body in seen if right[name][f"zip:{zip_code}"] != body]

    def silence(self, *servers: PortServer) -> None:
        """Nothing comes from these servers, nor from what else is on their machines, without a notice."""
        for server in servers:
            if self.network is None:
                server.stall()
            else:
                assert isinstance(server.machine, Namespace)
                self.network.unplug(server.machine)

    def promoted(self, old: PortServer) -> float:
        """Waits until another server than `old` is the primary of the keys. Returns when it was."""
        others = [server for server in self.trio.servers if server is not old]
        wait_until(lambda: any(server.command("ROLE")[0] == b"master" for server in others), "another primary")
        return time.monotonic()

    def heal(self) -> None:
        if self.network is not None:
            self.network.heal()
        else:
            for server in (*self.trio.servers, *self.trio.sentinels, *self.cluster.nodes):
                server.go_on()

    def settle(self) -> None:
        """Waits until all is well, everywhere."""
        self.trio.wait_whole()
        until(lambda: all(node.is_fine() for node in self.cluster.nodes))
        until(lambda: all(one.ready().json()["status"] == "ready" for one in self.instances))


@contextmanager
def rig(folder: Path, **settings: object) -> Iterator[Rig]:
    with ExitStack() as stack:
        network = None
        if permitted():
            network = Network()
            stack.callback(network.close)
        else:
            sys.stdout.write(
                "\nnetwork namespaces are not permitted here: servers are on ports, and stopped, not cut off\n"
            )

        def machines(number: int) -> list[Machine]:
            return [HERE if network is None else network.machine() for _ in range(number)]

        runner, bucket = machines(2)
        trio = Trio(folder / "keys", _KEY_SERVERS, machines(_KEY_SERVERS))
        stack.callback(trio.kill)
        trio.start()
        cluster = Cluster(folder / "cache", machines=machines(_CACHE_NODES))
        stack.callback(cluster.kill)
        cluster.start()
        store = stack.enter_context(s3_server(bucket))
        options = ",".join(f"{name}={value}" for name, value in store.options.items())
        env = environment(
            folder / "runner",
            keys_url=trio.url,
            keys_replicas=1,
            keys_pepper="pepper of the rig, long enough",
            cache_url=cluster.url,
            near_cache_bytes=0,
            releases_url=store.make_bucket("releases") + "/prefix",
            releases_options=options,
            drain=SHORT_DRAIN,
            **settings,
        )
        made = Rig(folder, network, runner, trio, cluster, store, env | CREDENTIALS)
        for number, machine in enumerate(machines(INSTANCES)):
            log = folder / f"serve-{number}.log"
            made.instances.append(stack.enter_context(serving(made.env_of(number), log, machine=machine)))
        made.publish(783)
        made.settle()
        yield made


def id_of(key: str) -> str:
    parts = form.parse(key)
    assert parts is not None
    return parts.key_id
