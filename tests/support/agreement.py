"""What partners were answered, and whether metrics, request log and usage say the same."""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.instance import FORECAST, Instance

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_CACHE_STATUS = re.compile(rb"\r\ncache-status: ([^\r]+)")
_CONNECTIONS = 8


def tier_of(cache_status: str) -> str:
    """docs/operate/watch.md, "The hit rate"."""
    if "previous-release" in cache_status:
        return "previous"
    return cache_status.rpartition("detail=")[2]


@dataclass
class Tally:
    """Answers by status, and those of data areas by tier."""

    statuses: Counter[int] = field(default_factory=Counter)
    tiers: Counter[str] = field(default_factory=Counter)


def mixed(keys: dict[str, str], zip_codes: Sequence[str], number: int, seed: int) -> list[bytes]:
    """Requests of every kind, in random order. `keys`: `free`, `slow` (soon limited), `other` (not entitled)."""
    choose = random.Random(seed)
    kinds: list[Callable[[], bytes]] = [
        lambda: _request(f"{FORECAST}?zip_code={choose.choice(zip_codes)}", keys["free"]),
        lambda: _request(f"{FORECAST}?city_name=springfield&state_code=IL", keys["free"], "Accept-Encoding: gzip"),
        lambda: _request(f"{FORECAST}?zip_code={choose.choice(zip_codes)}", keys["free"], "If-None-Match: *"),
        lambda: _request(f"{FORECAST}?zip_code={choose.choice(zip_codes)}", keys["free"], method="HEAD"),
        lambda: _request(f"{FORECAST}?zip_code=0000{choose.randrange(10)}", keys["free"]),
        lambda: _request(f"{FORECAST}?zip_code=abc", keys["free"]),
        lambda: _request(f"{FORECAST}?zip_code={zip_codes[0]}", None),
        lambda: _request(f"{FORECAST}?zip_code={zip_codes[0]}", keys["free"][:-1] + "x"),
        lambda: _request(f"{FORECAST}?zip_code={zip_codes[0]}", keys["other"]),
        lambda: _request(f"{FORECAST}?zip_code={zip_codes[0]}", keys["slow"]),
        lambda: _request("/nowhere", keys["free"]),
        lambda: _request("/v1", keys["free"]),
        lambda: _request(FORECAST, keys["free"], method="POST"),
    ]
    weights = [60, 5, 8, 3, 4, 2, 3, 2, 2, 3, 2, 2, 2]
    return [kind() for kind in choose.choices(kinds, weights, k=number)]


async def answers(url: str, requests: Iterable[bytes]) -> Tally:
    """Sends each once, over a few connections."""
    tally, waiting = Tally(), iter(requests)
    address = urlsplit(url)

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        for request in waiting:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            status, length, cache = _STATUS.match(head), _LENGTH.search(head), _CACHE_STATUS.search(head)
            assert status is not None
            if length is not None and not request.startswith(b"HEAD"):
                await reader.readexactly(int(length[1]))
            tally.statuses[int(status[1])] += 1
            if cache is not None:
                tally.tiers[tier_of(cache[1].decode())] += 1
        writer.close()

    await asyncio.gather(*(connection() for _ in range(_CONNECTIONS)))
    return tally


def metrics(instance: Instance) -> Tally:
    """What the instance counted."""
    tally = Tally()
    text = httpx.get(f"{instance.operators}/metrics", timeout=30).text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "forecast_requests_total":
                tally.statuses[int(sample.labels["status"])] += int(sample.value)
            elif sample.name == "forecast_answers_total":
                tally.tiers[sample.labels["tier"]] += int(sample.value)
    return tally


def logged(instance: Instance) -> Tally:
    """What its request log says; complete once the instance has stopped."""
    tally = Tally()
    for line in instance.log():
        if line["logger"] == "forecast.access":
            count = line.get("count", 1)
            tally.statuses[line["status"]] += count
            if "tier" in line:
                tally.tiers[line["tier"]] += count
    return tally


def billed(usage: str) -> int:
    """Requests with an answer, of `forecast usage --format json`."""
    return sum(row[name] for row in json.loads(usage) for name in ("answered", "answered_empty", "not_modified"))


def _request(target: str, key: str | None, *lines: str, method: str = "GET") -> bytes:
    sent = [f"{method} {target} HTTP/1.1", "Host: forecast.test", *([f"x-api-key: {key}"] if key else []), *lines]
    return "\r\n".join([*sent, "", ""]).encode()
