"""Overviews and histories made by hand: what an instance says in states that are hard to bring about."""

import math
import time
from typing import Any

from msgspec.structs import replace

from service.operators.overview import (
    Event,
    History,
    HitRate,
    Inbox,
    Instance,
    Keys,
    NextStep,
    Overview,
    Partner,
    Point,
    Ranked,
    Rankings,
    Reason,
    Release,
    Store,
    Switch,
    Traffic,
    Verdict,
    Warehouse,
    Worker,
)

NEWER, OLDER = "20261120T021144Z-9f3a61", "20261019T020412Z-71c2d0"
# What a partner may put into a query, and what must stay text.
MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>city</b>"


def point(at: float, load: float = 900.0) -> Point:
    wave = load * (1 + 0.25 * math.sin(at / 90))
    return Point(
        at=at,
        near=wave * 0.93,
        shared=wave * 0.05,
        warehouse=wave * 0.02,
        not_found=wave * 0.01,
        ok=wave,
        refused=wave * 0.015,
        failed=0.0,
        p50=0.00021 + 0.00005 * math.sin(at / 40),
        p99=0.0031 + 0.0008 * math.sin(at / 25),
        p999=0.021 + 0.009 * math.sin(at / 15),
        times=(10, 400, 300, 90, 40, 30, 20, 9, 4, 2, 1, 0, 0, 0, 0, 0),
        releases={NEWER: 0.979, OLDER: 0.93} if int(at) % 3600 < 900 else {NEWER: 0.979},
        connections=212,
        cache_bytes=int(124e6 + 2e6 * math.sin(at / 200)),
        evictions=max(0.0, 3 * math.sin(at / 300)),
    )


def history(now: float, seconds: float, step: float, load: float = 900.0) -> History:
    return History(
        step=step, points=tuple(point(now - seconds + n * step, load) for n in range(int(seconds / step) + 1))
    )


def well(now: float | None = None, **changed: Any) -> Overview:
    """An instance under load, and nothing is wrong."""
    now = now or time.time()
    made = Overview(
        at=now,
        verdict=Verdict("ok", "All is well.", now - 8040),
        instance=Instance(
            id="3f9c20d1",
            host="forecast-1",
            pid=4711,
            version="0.1.0",
            started_at=now - 93_600,
            restarts=0,
            connections=212,
            data_folder="/data",
            disk_free=41_300_000_000,
            disk_size=107_000_000_000,
        ),
        hit_rate_now=hits(60, 49_820, 2680, 1074, 512),
        hit_rate_hour=hits(3600, 2_900_100, 180_200, 91_400, 29_000),
        traffic_now=Traffic(
            seconds=60,
            requests=912.4,
            errors=0,
            by_status={"200": 871.2, "304": 21.7, "400": 0.3, "401": 1.1, "404": 8.5, "429": 9.6},
            p50=0.00021,
            p99=0.0034,
            p999=0.0221,
        ),
        traffic_hour=Traffic(
            seconds=3600,
            requests=889.1,
            errors=0.012,
            by_status={"200": 850.2, "304": 20.1, "400": 0.2, "401": 0.9, "404": 8.1, "429": 9.6, "503": 0.012},
            p50=0.00022,
            p99=0.0036,
            p999=0.0248,
        ),
        releases=(
            Release(id=NEWER, published_at=now - 187_000, current=True),
            Release(id=OLDER, published_at=now - 2_900_000, current=False),
        ),
        switch=Switch(at=now - 5000, before=OLDER, after=NEWER, rate_before=0.981, rate_after=0.942),
        rankings=rankings(),
        partners=tuple(
            Partner(
                name=name,
                requests=requests,
                per_second=requests / 3600,
                statuses={"200": requests - 40, "404": 30, "429": 10},
                p50=0.0002,
                p99=0.004,
                hit_rate=0.981,
                quota_used=quota,
                rate=rate,
                last_error=error,
            )
            for name, requests, quota, rate, error in (
                ("Acme Realty", 1_930_000, 0.87, 600.0, "2026-11-20T02:11:44.120+00:00 429 rate_limited"),
                ("Bolt Mortgages", 802_000, None, None, ""),
                ("Cedar <b>Homes</b>", 400, 0.0004, 0.5, "2026-11-20T02:11:44.120+00:00 404 no_matching_records"),
            )
        ),
        stores=(
            Store(name="keys", up=True, memory=8_400_000, evicted=0, latency=0.0002, pushed=2),
            Store(name="cache", up=True, memory=124_000_000, memory_limit=512_000_000, evicted=1290, latency=0.0003),
        ),
        warehouse=Warehouse(waiting=0, queries=17.9, p50=0.0041, p99=0.018),
        workers=tuple(
            Worker(
                pid=pid,
                state="serving",
                release=NEWER,
                memory=231_000_000,
                started_at=now - 93_500,
                requests=456.2,
                p99=0.0034,
                connections=106,
                near_entries=31_204,
                near_bytes=48_000_000,
            )
            for pid in (4720, 4721)
        ),
        inbox=Inbox(
            watched=True, published=3, refused=1, waiting=0, held=0, failing=0, last_drop_at=now - 187_000, overdue=0
        ),
        keys=Keys(expire_within_7_days=1, expire_within_30_days=4),
        events=(
            Event(now - 5000, "release", f"release {NEWER} is live; it was {OLDER}"),
            Event(now - 5003, "inbox", "the drop november.zip was published"),
            Event(now - 61_000, "key", "a key of Acme Realty was issued (0B1zQmX4ktLw)"),
            Event(now - 93_600, "instance", "the instance started"),
        ),
        latest=point(now),
    )
    return replace(made, **changed)


def hits(seconds: float, near: int, shared: int, warehouse: int, not_found: int, previous: int = 0) -> HitRate:
    answers = near + shared + warehouse
    return HitRate(
        seconds=seconds,
        near=near,
        shared=shared,
        warehouse=warehouse,
        previous=previous,
        not_found=not_found,
        rate=(near + shared) / answers if answers else None,
    )


def rankings() -> Rankings:
    return Rankings(
        seconds=3600,
        queries=(
            Ranked("zip_code=90210", 41_200, 120),
            Ranked("city=springfield&state=IL", 38_900, 120),
            Ranked(MARKUP, 12_000, 300),
        ),
        missed=(Ranked("city=llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch", 410),),
        unknown=(Ranked("zip_code=00000", 9100, 20), Ranked("city=atlantis", 2200, 90)),
        keys=(
            Ranked("0B1zQmX4ktLw", 1_930_000, 0, "Acme Realty"),
            Ranked("9xTt2mLr0aQe", 802_000, 0, "Bolt Mortgages"),
        ),
        limited=(Ranked("9xTt2mLr0aQe", 34_560, 0, "Bolt Mortgages"),),
        refused=(Ranked("203.0.113.77", 3960, 0, "unknown key"),),
    )


def under_load(requests: float) -> Overview:
    """With figures that are short or long: requests a second, what follows from them, and times as long as they are."""
    made = well()
    slow = requests / 50_000
    return replace(
        made,
        hit_rate_now=hits(60, int(requests * 55), int(requests * 3), int(requests), 512),
        traffic_now=replace(
            made.traffic_now, requests=requests, errors=requests / 3000, p50=slow + 0.0001, p99=slow + 0.001
        ),
        switch=Switch(at=made.at - 5000 - requests, before=OLDER, after=NEWER, rate_before=slow % 1, rate_after=1),
        workers=tuple(
            replace(worker, requests=requests / 2, p99=slow, connections=int(requests), memory=int(9e6 + requests))
            for worker in made.workers
        ),
        stores=tuple(replace(store, memory=int(1e6 + requests * 500), latency=slow / 100) for store in made.stores),
        warehouse=replace(made.warehouse, queries=requests, p50=slow, p99=slow),
        latest=point(made.at, requests),
    )


def without_cache(now: float | None = None) -> Overview:
    """The shared cache is unreachable."""
    overview = well(now)
    since = overview.at - 75
    text = "The shared cache is unreachable. DuckDB answers instead; nothing is lost."
    step = NextStep("docs/operate/alerts-stores.html#forecastcacheaway", "docker compose ps -a cache")
    verdict = Verdict("degraded", f"Partners get answers. {text}", since, (Reason(text, since, "cache", next=step),))
    keys, cache = overview.stores
    return replace(overview, verdict=verdict, stores=(keys, replace(cache, up=False, memory=None, latency=None)))


def unavailable(now: float | None = None) -> Overview:
    """Nobody gets an answer, and a worker hangs."""
    overview = well(now)
    since = overview.at - 41
    reasons = (
        Reason("No look-up works, and no answer is cached: forecast.parquet is missing.", since),
        Reason("Worker 4720 does not respond.", since + 9),
    )
    first, second = overview.workers
    return replace(
        overview,
        verdict=Verdict("unavailable", f"Partners get no answers. {reasons[0].text}", since, reasons),
        workers=(replace(first, state="hanging"), second),
        traffic_now=replace(overview.traffic_now, errors=890.2, by_status={"503": 890.2, "401": 1.1}),
        warehouse=replace(overview.warehouse, waiting=256),
    )


def empty(now: float | None = None) -> Overview:
    """An instance that has just started: no request came, and nothing is known."""
    now = now or time.time()
    none = hits(2, 0, 0, 0, 0)
    quiet = Traffic(seconds=2, requests=0, errors=0, by_status={}, p50=None, p99=None, p999=None)
    return well(
        now,
        verdict=Verdict("unavailable", "Partners get no answers. No release has been published yet.", now - 2),
        instance=replace(well(now).instance, started_at=now - 2, disk_free=None, disk_size=None),
        hit_rate_now=none,
        hit_rate_hour=none,
        traffic_now=quiet,
        traffic_hour=quiet,
        releases=(),
        switch=None,
        rankings=Rankings(seconds=2),
        stores=(Store(name="keys", up=False), Store(name="cache", up=False)),
        warehouse=Warehouse(waiting=0, queries=0, p50=None, p99=None),
        workers=(),
        keys=Keys(),
        events=(),
    )
