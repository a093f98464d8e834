"""What every run needs: processors, a release, Redis servers, a key with a rate and a quota, instances of the service.

All that is started belongs to an ExitStack and is stopped with it, also on Ctrl-C and SIGTERM.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import duckdb
import httpx
import msgspec
import redis
from rich.console import Console

from tests.support.instance import Instance, environment, forecast, serving
from tests.support.publishing import publish_as_shipped
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import until
from warehouse.publishing.illustrative import make_drops
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog, Manifest

SERVER_CORE, CLIENT_CORE = 0, 1
# So many ZIP codes are asked for again and again where answers are kept.
HOT_ZIP_CODES = 1000
FORECAST = "/v1/population-housing-forecast"
# Limits that are checked and counted, and never reached.
_TERMS = ("--rate", "999999999/s", "--burst", "999999999", "--quota", "999999999999/month")
_STOP_SECONDS = 5.0

# In a log, tables are as wide as they need.
console = Console(stderr=True, width=None if sys.stderr.isatty() else 160)


class BenchError(Exception):
    """The run cannot go on. The message is one line that says why and what to do."""


class Stage:
    """`folder` is a temporary one. `key` works everywhere; `data` is the data folder of all instances."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pfbench")))
        self.data = self.folder / "data"
        self.keys = self.valkey("k")
        self.cache = self.valkey("c")
        self.env = environment(self.data, keys_url=self.keys.url, cache_url=self.cache.url, warm="off")
        self.release = Path()
        self.manifest: Manifest | None = None
        self.key = ""
        self.instances: list[Instance] = []

    def valkey(self, name: str) -> ValkeyProcess:
        server = ValkeyProcess(self.folder / name).start()
        self.stack.callback(server.kill)
        return server

    def publish(self) -> None:
        """Publishes an illustrative release of the whole country, and issues the key."""
        make_drops(self.folder / "drops")
        outcome = publish_as_shipped(Catalog(self.data), [str(self.folder / "drops" / "first")], PublishOptions())
        assert outcome.manifest is not None, outcome.report.findings
        self.manifest = outcome.manifest
        self.release = self.data / "releases" / outcome.manifest.id
        self.key = self.issue(*_TERMS)

    def issue(self, *terms: str) -> str:
        """A new key, known to the service and to the peers."""
        done = forecast(self.env, "keys", "issue", "--partner", "bench", "--json", *terms)
        if done.returncode:
            raise BenchError(f"no key: {done.stderr.strip()}")
        key: str = msgspec.json.decode(done.stdout)["key"]
        with redis.Redis(unix_socket_path=str(self.keys.socket)) as client:
            client.set(f"peer-key:{key}", "bench")
        return key

    def zip_codes(self) -> list[str]:
        """Those of the release, ascending."""
        file = self.release / "tables" / "locations.parquet"
        rows = duckdb.connect().execute(f"SELECT zip_code FROM read_parquet('{file}') ORDER BY 1").fetchall()
        return [zip_code for (zip_code,) in rows]

    def serve(self, name: str, settings: Mapping[str, object], workers: int = 1) -> Instance:
        """An instance with `settings` beside the usual ones, named as the fields of `Settings`."""
        env = {**self.env, **{f"FORECAST_{key.upper()}": str(value) for key, value in settings.items()}}
        instance = self.stack.enter_context(serving(env, self.folder / f"{name}.log", workers))
        self.instances.append(instance)
        return instance

    def run(
        self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        """Starts a process whose output goes to a log in `folder`."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                env={**os.environ, **(env or {})},
                cwd=cwd,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us, who stop it
            )
        self.stack.callback(_stop, process)

    def wait_for(self, name: str, url: str, key: str) -> None:
        """Raises BenchError, with the end of its log, if `name` does not answer `url` within 20 s."""
        try:
            until(lambda: httpx.get(url, headers={"x-api-key": key}).status_code == 200)
        except AssertionError:
            log = (self.folder / f"{name}.log").read_text(errors="replace")[-600:]
            raise BenchError(f"{name} does not answer {url}: {log}") from None


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def stage() -> Iterator[Stage]:
    """A stage whose processes run on the server's core.

    Raises:
        BenchError: on a machine with fewer than two processors.
    """
    if not {SERVER_CORE, CLIENT_CORE} <= os.sched_getaffinity(0):
        raise BenchError("needs two processors: one for the server, one for its client")
    before = os.sched_getaffinity(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have us ignore it
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.sched_setaffinity(0, {SERVER_CORE})  # inherited by all that is started
    try:
        with ExitStack() as stack:
            yield Stage(stack)
    finally:
        os.sched_setaffinity(0, before)
