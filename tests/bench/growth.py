"""How cost grows: one thing at a time is made larger, all else stays."""

import time
from collections.abc import Callable, Iterable, Sequence

import httpx
import msgspec
import redis
from rich.console import Console

from config.settings import Settings
from service.publishing.warming import warm_release
from tests.bench.contenders import Contender, start_tiers
from tests.bench.growth_data import add_keys, largest_cities, make_drop
from tests.bench.load import Endpoint, Sample, check_programs, measure, request_heads, write_requests
from tests.bench.report import new_table
from tests.bench.stage import CLIENT_CORE, FORECAST, HOT_ZIP_CODES, SERVER_CORE, BenchError, Stage, console, stage
from tests.bench.verify import warm

_SECONDS = 2
# Long enough to ask for every ZIP code of the country once.
_ALL_SECONDS = 6
_CONNECTIONS = (1, 10, 100, 1000, 10_000)
# So many that a sample before the one that counts uses each of them.
_MOST_KEYS_USED = 2000
_MEGABYTE = 1 << 20


class Row(msgspec.Struct, frozen=True):
    """`size` is what was made larger, `tier` who answered. `memory`: of a worker, MiB. `also`: what else was seen."""

    of: str
    size: str
    tier: str
    sample: Sample
    memory: float
    also: str = ""


def growth(dimensions: Iterable[str], most_keys: int) -> list[Row]:
    """Measures each of `dimensions`, of DIMENSIONS. Raises BenchError if something needed is missing."""
    check_programs()
    rows: list[Row] = []
    for name in dimensions:
        console.print(f"growth: {name}")
        rows += _keys(most_keys) if name == "keys" else DIMENSIONS[name]()
    return rows


def _data() -> list[Row]:
    rows = []
    for zips in (40_000, 100_000):
        for years in (10, 100):
            with stage() as set_up:
                drop = make_drop(set_up.folder / "drop", zips, years)
                taken = set_up.publish(drop)
                size = sum(file.stat().st_size for file in set_up.release.iterdir() if file.is_file()) / _MEGABYTE
                also = f"published in {taken:.1f} s, {size:.0f} MiB served from"
                what = f"{zips:,} ZIP codes, {years} years"
                rows += [_row("data", what, set_up, tier, also=also) for tier in start_tiers(set_up)]
    return rows


def _keys(most: int = 1_000_000) -> list[Row]:
    rows = []
    with stage() as set_up:
        set_up.publish()
        tier = _hit_tier(set_up)
        keys: list[str] = []
        count = 10
        while count <= most:
            keys += add_keys(set_up, count - len(keys))
            used = _memory_of(str(set_up.keys.socket)) / _MEGABYTE
            also = f"key store {used:.0f} MiB, {min(count, _MOST_KEYS_USED):,} of them used"
            rows.append(_row("keys", f"{count:,}", set_up, tier, also=also, keys=keys[:_MOST_KEYS_USED]))
            count *= 10
    return rows


def _held() -> list[Row]:
    """Every ZIP code of the country, warmed as publishing does it, then asked for."""
    with stage() as set_up:
        set_up.publish()
        assert set_up.manifest is not None
        tier = _hit_tier(set_up)
        settings = Settings(data_dir=str(set_up.data), cache_url=set_up.cache.url)
        began = time.monotonic()
        found = warm_release(settings, set_up.release, set_up.manifest, lambda _: None)
        problem = [one for one in found if one.rule != "warmed-elsewhere"]  # it cannot ask where instances look
        taken = time.monotonic() - began
        if problem:
            raise BenchError(f"the cache could not be warmed: {problem}")
        zips = set_up.zip_codes()
        base = tier.endpoint.base
        file = write_requests(set_up.folder / "all", request_heads(tier.endpoint, zips))
        measure(base, file, unique=True, seconds=_ALL_SECONDS)
        sample = measure(base, file, unique=True, seconds=_SECONDS)
        also = f"all answers from DuckDB to Redis in {taken:.1f} s"
        return [Row("held", f"{len(zips):,} ZIP codes", tier.name, sample, _worker_memory(set_up), also)]


def _connections() -> list[Row]:
    with stage() as set_up:
        set_up.publish()
        tier = _hit_tier(set_up)
        return [_row("connections", f"{count:,}", set_up, tier, connections=count) for count in _CONNECTIONS]


def _body() -> list[Row]:
    rows = []
    with stage() as set_up:
        set_up.publish()
        tier = _hit_tier(set_up)
        path = f"{FORECAST}?"
        asked = msgspec.structs.replace(tier, endpoint=Endpoint(tier.endpoint.base, set_up.key, path))
        for count, query in largest_cities(set_up, (1, 10, 100)):
            row = _row("body", f"{count} ZIP code{'s' if count > 1 else ''}", set_up, asked, zips=[query])
            mebibytes = row.sample.rate * row.sample.size / _MEGABYTE
            rows.append(msgspec.structs.replace(row, also=f"{row.sample.size:,.0f} bytes each, {mebibytes:,.0f} MiB/s"))
    return rows


def _workers() -> list[Row]:
    rows = []
    for count in (1, 2):
        # the client shares the second processor with them, in both rows
        with stage({SERVER_CORE, CLIENT_CORE}) as set_up:
            set_up.publish()
            instance = set_up.serve("workers", {"keep_alive": 3600}, count)
            tier = Contender(name="default", group="hit", endpoint=Endpoint(instance.partners, set_up.key))
            rows.append(_row("workers", str(count), set_up, tier, also="on both cores, client and Redis too"))
    return rows


DIMENSIONS: dict[str, Callable[[], list[Row]]] = {
    "data": _data,
    "held": _held,
    "keys": _keys,
    "connections": _connections,
    "body": _body,
    "workers": _workers,
}


def _hit_tier(set_up: Stage) -> Contender:
    """The first one: the nearest."""
    return next(tier for tier in start_tiers(set_up) if tier.group == "hit")


def _row(
    of: str,
    size: str,
    set_up: Stage,
    tier: Contender,
    *,
    also: str = "",
    keys: Sequence[str] = (),
    connections: int = 32,
    zips: list[str] | None = None,
) -> Row:
    if zips is None:
        all_zips = set_up.zip_codes()
        zips = all_zips[:HOT_ZIP_CODES] if tier.group == "hit" else all_zips[HOT_ZIP_CODES:]
    if tier.group == "hit":
        warm(tier, zips)
    base = tier.endpoint.base
    file = write_requests(set_up.folder / "asked", request_heads(tier.endpoint, zips, keys))
    tier.forget()
    if keys:  # a key's first use is another matter
        measure(base, file, unique=True, seconds=_SECONDS, connections=connections)
    sample = measure(base, file, unique=True, seconds=_SECONDS, connections=connections)
    return Row(of, size, tier.name, sample, _worker_memory(set_up), also)


def _worker_memory(set_up: Stage) -> float:
    """MiB of the largest worker."""
    largest = 0.0
    for instance in set_up.instances:
        text = httpx.get(f"{instance.operators}/metrics", timeout=5).text
        lines = [line for line in text.splitlines() if line.startswith("forecast_worker_resident_memory_bytes{")]
        largest = max([largest, *(float(line.rpartition(" ")[2]) for line in lines)])
    return largest / _MEGABYTE


def _memory_of(socket: str) -> float:
    with redis.Redis(unix_socket_path=socket) as client:
        return float(client.info("memory")["used_memory"])


def show(rows: list[Row], console: Console) -> None:
    table = new_table(f"How cost grows, {_SECONDS} s each", "of", "size", "tier")
    for heading in ("answers/s", "core µs", "p99 ms", "not 2xx", "worker MiB"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("also")
    for row in rows:
        sample = row.sample
        figures = (f"{sample.rate:,.0f}", f"{sample.cost:,.0f}", f"{sample.p99:.1f}", str(sample.bad))
        table.add_row(row.of, row.size, row.tier, *figures, f"{row.memory:.0f}", row.also)
    console.print(table)
