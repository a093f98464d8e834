"""What the figures share: a site on real servers, connections whose worker is known, ways to tell figures."""

import asyncio
import contextlib
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from service.keys import pepper
from service.keys.store import KeyStore
from service.redis.client import RedisStore
from service.redis.connections import open_client
from tests.support.drops import project, write_drop
from tests.support.instance import FORECAST, Instance, environment
from tests.support.publishing import publish_as_shipped
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import until
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog

_START_SECONDS = 30.0
# As an operator's command has it.
_STORE_TIMEOUT = 3.0
# From /proc/net/tcp.
_ESTABLISHED = "01"
# Asked without a key: the 401 shows that a worker has taken the connection.
_KNOCK = b"GET /v1/ HTTP/1.1\r\nHost: figures\r\n\r\n"


def say(text: str) -> None:
    print(f"{text}  [load {os.getloadavg()[0]:.1f}]", flush=True)  # noqa: T201 - it is what these are run for


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1)]


def milliseconds(values: Sequence[float]) -> str:
    shown = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
    return ", ".join(f"{name} {quantile(values, share) * 1000:.1f}" for name, share in shown) + " ms"


@dataclass(frozen=True)
class Site:
    """A small release with both areas, and two real servers. `env` serves it; `store` is opened in this process."""

    folder: Path
    env: dict[str, str]
    keys: ValkeyProcess
    cache: ValkeyProcess

    @contextlib.asynccontextmanager
    async def store(self) -> AsyncIterator[KeyStore]:
        data = self.folder / "data"
        redis = RedisStore("key store", self.keys.url, open_client(self.keys.url, timeout=_STORE_TIMEOUT, retries=1))
        try:
            yield KeyStore(redis, pepper.obtain(None, data), data)
        finally:
            await redis.stop()


@contextlib.contextmanager
def site() -> Iterator[Site]:
    """Both servers append to a file and wait for its disk, as config/redis-keys.conf says for the keys."""
    with contextlib.ExitStack() as stack:
        # short, for the names of sockets
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pff")))
        servers = [ValkeyProcess(folder / name, appendonly=True).start() for name in ("k", "c")]
        for server in servers:
            stack.callback(server.kill)
        drop = write_drop(folder / "drop", projects=[project("p1")])
        env = environment(folder / "data", keys_url=servers[0].url, cache_url=servers[1].url)
        done = publish_as_shipped(Catalog(folder / "data"), [str(drop)], PublishOptions(attribution=("The figures",)))
        assert done.result == "published", done
        yield Site(folder, env, servers[0], servers[1])


def wait_for_workers(instance: Instance, workers: int, pushed: int | None = None) -> list[int]:
    """Their process ids, when all serve and changes of keys are pushed to `pushed` of them (None: to all)."""
    reported = workers if pushed is None else pushed
    until(lambda: instance.metric("forecast_workers") == workers)
    until(lambda: instance.metric("forecast_revocation_push_connections") == reported)
    return instance.worker_pids()


def request(key: str) -> bytes:
    return f"GET {FORECAST}?zip_code=36436 HTTP/1.1\r\nHost: figures\r\nx-api-key: {key}\r\n\r\n".encode()


class Connection:
    """One keep-alive connection with one request at a time. `worker` is the process behind it, 0 if it is not known."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.worker = 0
        self.local_port: int = writer.get_extra_info("sockname")[1]
        self.close = writer.close
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, base: str) -> "Connection":
        where = urlsplit(base)
        return cls(*await asyncio.open_connection(where.hostname, where.port))

    async def ask(self, request: bytes) -> int:
        return (await exchange(self._reader, self._writer, request))[0]


async def exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer. Raises OSError or EOFError if it never comes."""
    writer.write(request)
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first.split()[1])
    return status, fields, await reader.readexactly(0 if status == 304 else int(fields.get("content-length", 0)))


async def spread(base: str, pids: Sequence[int], each: int) -> dict[int, list[Connection]]:
    """By worker, `each` connections: opened until every worker has taken so many; those too many are closed again."""
    kept: dict[int, list[Connection]] = {pid: [] for pid in pids}
    deadline = time.monotonic() + _START_SECONDS
    while any(len(connections) < each for connections in kept.values()):
        assert time.monotonic() < deadline, f"some worker takes no connections: {kept}"
        fresh = await asyncio.gather(*(Connection.to(base) for _ in range(2 * len(pids))))
        await asyncio.gather(*(connection.ask(_KNOCK) for connection in fresh))
        owners = workers_of(base, pids)
        for connection in fresh:
            connection.worker = owners.get(connection.local_port, 0)
            wanted = kept.get(connection.worker)
            if wanted is not None and len(wanted) < each:
                wanted.append(connection)
            else:
                connection.close()
    return kept


def workers_of(base: str, pids: Sequence[int]) -> dict[int, int]:
    """By a client's local port, the process that holds the other end."""
    holders: dict[str, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    holders[str(descriptor.readlink())] = pid
    port = urlsplit(base).port
    owners: dict[int, int] = defaultdict(int)
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *rest = line.split()
        if state == _ESTABLISHED and int(local.rpartition(":")[2], 16) == port:
            owners[int(remote.rpartition(":")[2], 16)] = holders.get(f"socket:[{rest[5]}]", 0)
    return owners
