"""How cost grows: one thing at a time is made larger, all else stays."""

import time
from collections.abc import Callable, Iterable

import httpx
import msgspec
from rich.console import Console

from config.settings import Settings
from service.publishing.warming import warm_release
from tests.bench.contenders import Contender, start_tiers
from tests.bench.growth_data import make_drop
from tests.bench.load import Endpoint, Sample, check_programs, measure, request_heads, write_requests
from tests.bench.report import new_table
from tests.bench.stage import CLIENT_CORE, HOT_ZIP_CODES, SERVER_CORE, BenchError, Stage, console, stage
from tests.bench.verify import warm

_SECONDS = 2
# Long enough to ask for every ZIP code of the country once.
_ALL_SECONDS = 6
_MEGABYTE = 1 << 20


class Row(msgspec.Struct, frozen=True):
    """`size` is what was made larger, `tier` who answered. `memory`: of a worker, MiB. `also`: what else was seen."""

    of: str
    size: str
    tier: str
    sample: Sample
    memory: float
    also: str = ""


def growth(dimensions: Iterable[str]) -> list[Row]:
    """Measures each of `dimensions`, of DIMENSIONS. Raises BenchError if something needed is missing."""
    check_programs()
    rows: list[Row] = []
    for name in dimensions:
        console.print(f"growth: {name}")
        rows += DIMENSIONS[name]()
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
                rows += [_row("data", what, set_up, tier, also) for tier in start_tiers(set_up)]
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


def _workers() -> list[Row]:
    rows = []
    for count in (1, 2):
        # the client shares the second processor with them, in both rows
        with stage({SERVER_CORE, CLIENT_CORE}) as set_up:
            set_up.publish()
            instance = set_up.serve("workers", {"keep_alive": 3600}, count)
            tier = Contender(name="default", group="hit", endpoint=Endpoint(instance.partners, set_up.key))
            rows.append(_row("workers", str(count), set_up, tier, "on both cores, client and Redis too"))
    return rows


DIMENSIONS: dict[str, Callable[[], list[Row]]] = {"data": _data, "held": _held, "workers": _workers}


def _hit_tier(set_up: Stage) -> Contender:
    """The first one: the nearest."""
    return next(tier for tier in start_tiers(set_up) if tier.group == "hit")


def _row(of: str, size: str, set_up: Stage, tier: Contender, also: str) -> Row:
    all_zips = set_up.zip_codes()
    zips = all_zips[:HOT_ZIP_CODES] if tier.group == "hit" else all_zips[HOT_ZIP_CODES:]
    if tier.group == "hit":
        warm(tier, zips)
    base = tier.endpoint.base
    file = write_requests(set_up.folder / "asked", request_heads(tier.endpoint, zips))
    tier.forget()
    sample = measure(base, file, unique=True, seconds=_SECONDS)
    return Row(of, size, tier.name, sample, _worker_memory(set_up), also)


def _worker_memory(set_up: Stage) -> float:
    """MiB of the largest worker."""
    largest = 0.0
    for instance in set_up.instances:
        text = httpx.get(f"{instance.operators}/metrics", timeout=5).text
        lines = [line for line in text.splitlines() if line.startswith("forecast_worker_resident_memory_bytes{")]
        largest = max([largest, *(float(line.rpartition(" ")[2]) for line in lines)])
    return largest / _MEGABYTE


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
