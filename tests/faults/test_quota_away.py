"""Quotas while the key store is unreachable: no worker spends more than its share of what was left."""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.conftest import Site
from tests.support.instance import FORECAST, Instance, forecast_here, serving
from tests.support.waiting import until

QUOTA = 1000
CLIENTS = 8
WORKERS = 2


@pytest.fixture
def pair(published: Site, short: Path) -> Iterator[Instance]:
    with serving(published.env, short / "serve.log", workers=WORKERS) as running:
        until(lambda: running.ready().json()["status"] == "ready")
        yield running


def issue(site: Site) -> str:
    done = forecast_here(site.env, "keys", "issue", "--partner", "metered", "--quota", f"{QUOTA}/day", "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["key"])


def hammer(instance: Instance, key: str, seconds: float) -> Counter[int]:
    """Statuses of what CLIENTS clients got, each on connections that last for a few requests: so all workers answer."""
    statuses: Counter[int] = Counter()
    end = time.monotonic() + seconds

    def ask() -> None:
        where = urlsplit(instance.partners)
        while time.monotonic() < end:
            connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
            for _ in range(20):
                connection.request("GET", f"{FORECAST}?zip_code=36436", headers={"x-api-key": key})
                reply = connection.getresponse()
                reply.read()
                statuses[reply.status] += 1
            connection.close()

    clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return statuses


def used(site: Site, key: str) -> int:
    """What the store has counted."""
    done = forecast_here(site.env, "usage", "--key", key.split("_")[2][:12], "--json")
    assert done.returncode == 0, done.stderr
    return sum(day["answered"] for day in json.loads(done.stdout))


def test_an_outage_lets_no_quota_pass_twice(pair: Instance, published: Site) -> None:
    """Workers spend their shares and no more, in one outage and in short ones that follow each other. Until a share is
    spent nobody is refused; then a 503 says that it is unknown what is left. All of it is stored."""
    key = issue(published)
    passed = hammer(pair, key, 0.2)[200]
    for _ in range(3):
        published.keys.kill()
        statuses = hammer(pair, key, 1.5)
        passed += statuses[200]
        assert set(statuses) <= {200, 429, 503}
        published.keys.start()
        passed += hammer(pair, key, 0.3)[200]
    assert QUOTA // WORKERS <= passed <= QUOTA + WORKERS * CLIENTS, passed
    until(lambda: used(published, key) == passed)
    until(lambda: pair.get(FORECAST, key, zip_code="36436").status_code in (200, 429))
