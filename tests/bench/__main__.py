"""``make bench``: a Redis hit and a miss on one core, beside FastAPI with fastapi-cache2, in alternating rounds."""

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import httpx
import msgspec
import pyarrow.parquet as pq
import redis
from rich.console import Console
from rich.table import Table

from tests.support.instance import environment, issue_key, serving, until
from tests.support.valkey import ValkeyProcess
from warehouse.illustrative import make_drops
from warehouse.publish import publish
from warehouse.releases import Catalog

HERE = Path(__file__).parent
PEER_PYTHON = HERE.parent.parent / ".bench" / "bin" / "python"
ROUNDS = int(os.environ.get("ROUNDS", "6"))
SECONDS = int(os.environ.get("SECONDS", "3"))
HOT_ZIP_CODES = 1000
MISSES_PER_ROUND = 4500
PEER_PORT = 8099
SERVER_CORE, CLIENT_CORE = "0", "1"


class Sample(msgspec.Struct):
    """One round of wrk: requests per second, answers that were not 2xx, and p99 in milliseconds."""

    rate: float
    bad: int
    p99: float


class Contender(msgspec.Struct):
    name: str
    base: str
    key: str


def main() -> int:
    for program in ("wrk", "taskset"):
        if shutil.which(program) is None:
            print(f"bench: needs {program} (Debian: apt-get install wrk util-linux)", file=sys.stderr)  # noqa: T201
            return 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pfbench")))
        keys = ValkeyProcess(folder / "k").start()
        cache = ValkeyProcess(folder / "c").start()
        stack.callback(keys.kill)
        stack.callback(cache.kill)
        release, hot, cold = _publish(folder)
        env = environment(folder / "data", keys_url=keys.url, cache_url=cache.url)
        key = issue_key(env)
        ours = stack.enter_context(serving(env, folder / "serve.log"))
        peer = _start_peer(stack, folder / "data" / "releases" / release, keys, cache, key)
        _pin(ours.process.pid, *ours.descendants(), *_server_pids(keys, cache), peer.pid)
        contenders = [
            Contender("this project", ours.partners, key),
            Contender("FastAPI + fastapi-cache2", f"http://127.0.0.1:{PEER_PORT}", key),
        ]
        for contender in contenders:
            _warm(contender, hot)
        results = _rounds(contenders, hot, cold)
        _print(results)
        print(json.dumps({name: msgspec.to_builtins(samples) for name, samples in results.items()}))  # noqa: T201
    return 0


def _publish(folder: Path) -> tuple[str, Path, Path]:
    """An illustrative release; files of the hot ZIP codes and of all others."""
    make_drops(folder / "drops")
    outcome = publish(Catalog(folder / "data"), [str(folder / "drops" / "first")])
    assert outcome.manifest is not None
    places = pq.read_table(folder / "drops" / "first" / "US_HOUSING_FORECAST.parquet")
    zips = places.column("ZIP_CODE").to_pylist()
    hot, cold = folder / "hot", folder / "cold"
    hot.write_text("\n".join(zips[:HOT_ZIP_CODES]))
    cold.write_text("\n".join(zips[HOT_ZIP_CODES:]))
    return outcome.manifest.id, hot, cold


def _start_peer(
    stack: ExitStack, release: Path, keys: ValkeyProcess, cache: ValkeyProcess, key: str
) -> "subprocess.Popen[bytes]":
    with redis.Redis(unix_socket_path=str(keys.socket)) as client:
        client.set(f"peer-key:{hashlib.sha256(key.encode()).hexdigest()}", "bench")
    env = {**os.environ, "RELEASE": str(release), "KEYS": keys.url, "CACHE": cache.url}
    command = [
        str(PEER_PYTHON),
        "-m",
        "uvicorn",
        "peer_fastapi:app",
        "--port",
        str(PEER_PORT),
        "--no-access-log",
        "--log-level",
        "error",
    ]
    process = subprocess.Popen(command, cwd=HERE, env=env)
    stack.callback(process.wait)
    stack.callback(process.kill)
    url = f"http://127.0.0.1:{PEER_PORT}/v1/population-housing-forecast?zip_code=36436"
    until(lambda: httpx.get(url, headers={"x-api-key": key}).status_code == 200, 20)
    return process


def _warm(contender: Contender, zips: Path) -> None:
    """Every hot ZIP code once, so that hits are hits."""
    with httpx.Client(base_url=contender.base, headers={"x-api-key": contender.key}) as client:
        for zip_code in zips.read_text().split():
            client.get("/v1/population-housing-forecast", params={"zip_code": zip_code}).raise_for_status()


def _rounds(contenders: list[Contender], hot: Path, cold: Path) -> dict[str, list[Sample]]:
    results: dict[str, list[Sample]] = {}
    for number in range(ROUNDS):
        for contender in contenders:
            hit = _wrk(contender, hot, 0)
            # every round begins where none has been
            miss = _wrk(contender, cold, number * MISSES_PER_ROUND)
            for kind, sample in (("Redis hit", hit), ("miss", miss)):
                results.setdefault(f"{contender.name}: {kind}", []).append(sample)
            Console(stderr=True).print(
                f"round {number + 1}/{ROUNDS} {contender.name}: {hit.rate:,.0f} {miss.rate:,.0f}"
            )
    return results


def _wrk(contender: Contender, zips: Path, start: int) -> Sample:
    env = {**os.environ, "ZIPS": str(zips), "KEY": contender.key, "START": str(start)}
    command = ["taskset", "-c", CLIENT_CORE, "wrk", "-t1", "-c32", f"-d{SECONDS}s", "-s", str(HERE / "rotate.lua")]
    done = subprocess.run([*command, contender.base], env=env, capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    requests, microseconds, bad, p99 = (int(word) for word in line.split()[1:])
    return Sample(requests / (microseconds / 1e6), bad, p99 / 1000)


def _print(results: dict[str, list[Sample]]) -> None:
    table = Table("what", "req/s (median)", "p99 ms", "not 2xx", "ratio (least - most)", box=None)
    peer = "FastAPI + fastapi-cache2"
    for name, samples in results.items():
        kind = name.rpartition(": ")[2]
        base = results[f"{peer}: {kind}"]
        ratios = [sample.rate / other.rate for sample, other in zip(samples, base, strict=True)]
        table.add_row(
            name,
            f"{statistics.median(sample.rate for sample in samples):,.0f}",
            f"{statistics.median(sample.p99 for sample in samples):.1f}",
            str(sum(sample.bad for sample in samples)),
            f"{statistics.median(ratios):.1f} ({min(ratios):.1f} - {max(ratios):.1f})",
        )
    Console(stderr=True).print(table)


def _pin(*pids: int) -> None:
    for pid in pids:
        subprocess.run(["taskset", "-a", "-p", "-c", SERVER_CORE, str(pid)], stdout=subprocess.DEVNULL, check=True)


def _server_pids(*servers: ValkeyProcess) -> list[int]:
    return [server.pid for server in servers]


if __name__ == "__main__":
    sys.exit(main())
