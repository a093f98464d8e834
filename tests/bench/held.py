"""What it takes to hold every answer of the country near: memory of a worker, time of an answer."""

import time

import httpx

from config.settings import Settings
from service.publishing.warming import warm_release
from tests.bench.contenders import TIERS, start_tiers
from tests.bench.load import check_programs, measure, request_heads, write_requests
from tests.bench.stage import BenchError, console, stage

_SECONDS = 2
# Long enough to ask for every ZIP code of the country once.
_ALL_SECONDS = 6


def held() -> None:
    """Warms as publishing does it, then asks for every ZIP code. Raises BenchError if something needed is missing."""
    check_programs()
    with stage() as set_up:
        set_up.publish()
        assert set_up.manifest is not None
        (tier,) = start_tiers(set_up, TIERS[:1])
        settings = Settings(data_dir=str(set_up.data), cache_url=set_up.cache.url)
        began = time.monotonic()
        found = warm_release(settings, set_up.release, set_up.manifest, lambda _: None)
        problem = [one for one in found if one.rule != "warmed-elsewhere"]  # it cannot ask where instances look
        taken = time.monotonic() - began
        if problem:
            raise BenchError(f"the cache could not be warmed: {problem}")
        zips = set_up.zip_codes()
        file = write_requests(set_up.folder / "all", request_heads(tier.endpoint, zips))
        measure(tier.endpoint.base, file, unique=True, seconds=_ALL_SECONDS)
        sample = measure(tier.endpoint.base, file, unique=True, seconds=_SECONDS)
        text = httpx.get(f"{set_up.instances[0].operators}/metrics", timeout=5).text
        lines = [line for line in text.splitlines() if line.startswith("forecast_worker_resident_memory_bytes{")]
        memory = max(float(line.rpartition(" ")[2]) for line in lines)
    console.print(
        f"{len(zips):,} ZIP codes, from DuckDB to Redis in {taken:.1f} s; a worker has {memory / 2**20:.0f} MiB; "
        f"{sample.rate:,.0f} answers/s, {sample.cost:,.0f} µs of its core each, p99 {sample.p99:.1f} ms, "
        f"{sample.bad} not 2xx"
    )
