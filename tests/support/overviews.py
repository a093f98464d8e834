"""An overview made by hand: of an instance at which all is well, unless a test says otherwise."""

from typing import Any

import msgspec

from service.operators.overview import (
    Event,
    HitRate,
    Inbox,
    Instance,
    Keys,
    Overview,
    Partner,
    Point,
    Ranked,
    Rankings,
    Release,
    Store,
    Switch,
    Traffic,
    Verdict,
    Warehouse,
    Worker,
)

NOW = 1_790_000_000.0  # 2026-09-21 14:13:20 UTC
RELEASE = "20260921T120000Z-0123456789ab"
BEFORE = "20260821T120000Z-ba9876543210"


def worker(pid: int, **over: Any) -> Worker:
    made = Worker(
        pid=pid,
        state="serving",
        release=RELEASE,
        memory=180_000_000,
        started_at=NOW - 7200,
        requests=406.0,
        p99=0.0011,
        connections=20,
        near_entries=50_000,
        near_bytes=120_000_000,
    )
    return msgspec.structs.replace(made, **over)


def traffic(seconds: float, requests: float) -> Traffic:
    by_status = {"200": requests * 0.9, "304": requests * 0.05, "404": requests * 0.05}
    return Traffic(
        seconds=seconds, requests=requests, errors=0.0, by_status=by_status, p50=0.0002, p99=0.0011, p999=0.0042
    )


def hits(seconds: float, near: int, shared: int, warehouse: int, *, previous: int = 0) -> HitRate:
    return HitRate(
        seconds=seconds,
        near=near,
        shared=shared,
        warehouse=warehouse,
        previous=previous,
        not_found=7,
        rate=(near + shared) / (near + shared + warehouse),
    )


def overview(**over: Any) -> Overview:
    made = Overview(
        at=NOW,
        verdict=Verdict("ok", "All is well.", NOW - 7200),
        instance=Instance(
            id="3f9c20d1",
            host="web-1",
            pid=4711,
            version="0.1.0",
            started_at=NOW - 7200,
            restarts=0,
            connections=40,
            data_folder="/var/lib/forecast",
            disk_free=80_000_000_000,
            disk_size=100_000_000_000,
        ),
        hit_rate_now=hits(60.0, 9000, 900, 100),
        hit_rate_hour=hits(3600.0, 800_000, 150_000, 50_000),
        traffic_now=traffic(60.0, 812.4),
        traffic_hour=traffic(3600.0, 790.1),
        releases=(
            Release(id=RELEASE, published_at=NOW - 7200, current=True),
            Release(id=BEFORE, published_at=NOW - 31 * 86_400, current=False),
        ),
        switch=Switch(at=NOW - 7200, before=BEFORE, after=RELEASE, rate_before=0.9812, rate_after=0.9795),
        rankings=Rankings(
            seconds=3600.0,
            queries=(Ranked("forecast zip_code=90210", 9000), Ranked("forecast city_name=stlouis&state_code=MO", 800)),
            missed=(Ranked("forecast zip_code=99950", 12),),
            unknown=(Ranked("forecast zip_code=00000", 7),),
        ),
        partners=(
            Partner(
                name="acme",
                requests=9800,
                per_second=2.7,
                statuses={"200": 9800},
                p50=0.0002,
                p99=0.001,
                hit_rate=0.98,
                quota_used=None,
                rate=None,
                last_error="",
            ),
        ),
        stores=(
            Store(name="keys", up=True, memory=12_000_000, latency=0.0002, pushed=2),
            Store(name="cache", up=True, memory=124_000_000, memory_limit=512_000_000, evicted=0, latency=0.0003),
        ),
        warehouse=Warehouse(waiting=0, queries=3.1, p50=0.0021, p99=0.0093),
        workers=(worker(4712), worker(4713, p99=0.0012)),
        inbox=Inbox(
            watched=True, published=3, refused=0, waiting=0, held=0, failing=0, last_drop_at=NOW - 7200, overdue=0.0
        ),
        keys=Keys(expire_within_7_days=0, expire_within_30_days=2),
        events=(Event(NOW - 7200, "release", f"release {RELEASE} is current"),),
        latest=Point(
            at=NOW,
            near=700.0,
            shared=70.0,
            warehouse=8.0,
            not_found=1.0,
            ok=770.0,
            refused=1.0,
            failed=0.0,
            p50=0.0002,
            p99=0.0011,
            p999=0.0042,
        ),
    )
    return msgspec.structs.replace(made, **over)
