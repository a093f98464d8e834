"""Quotas while the key store is unreachable: no worker spends more than its share of what was left."""

import contextlib
import http.client
import itertools
import json
import os
import signal
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


def issue(site: Site, partner: str = "metered", *terms: str) -> str:
    done = forecast_here(site.env, "keys", "issue", "--partner", partner, *terms, "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["key"])


def sharing(site: Site, partner: str) -> list[str]:
    """Returns five keys that share the quota."""
    done = forecast_here(site.env, "partners", "set", partner, "--quota", f"{QUOTA}/day")
    assert done.returncode == 0, done.stderr
    return [issue(site, partner) for _ in range(5)]


def hammer(instance: Instance, keys: list[str], seconds: float, most: int = 1 << 30) -> Counter[int]:
    """Statuses of what CLIENTS clients got, each on connections that last for a few requests: so all workers answer.

    They send at most about `most` requests, with the keys in turn.
    """
    statuses: Counter[int] = Counter()
    end = time.monotonic() + seconds

    def ask(at: int) -> None:
        where = urlsplit(instance.partners)
        turns = itertools.count(at)
        while time.monotonic() < end and statuses.total() < most:
            connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=30)
            for turn in itertools.islice(turns, 20):
                headers = {"x-api-key": keys[turn % len(keys)]}
                connection.request("GET", f"{FORECAST}?zip_code=36436", headers=headers)
                reply = connection.getresponse()
                reply.read()
                statuses[reply.status] += 1
            connection.close()

    clients = [threading.Thread(target=ask, args=(at,)) for at in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return statuses


def used(site: Site, partner: str = "metered") -> int:
    """What the store has counted."""
    done = forecast_here(site.env, "usage", "--partner", partner, "--json")
    assert done.returncode == 0, done.stderr
    return sum(day["answered"] for day in json.loads(done.stdout))


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Meanwhile, other processes take all connections."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_five_keys_share_a_quota_and_an_outage_lets_it_not_pass_twice(pair: Instance, published: Site) -> None:
    """While all is well, exactly the quota is answered. In outages, workers spend
    their shares and no more, in one outage and in short ones that follow each other. Until a share is spent no request
    is refused; then a 503 says that it is unknown what is left. All of it is stored."""
    statuses = hammer(pair, sharing(published, "well"), 60, 2 * QUOTA)
    assert statuses.keys() - {503} == {200, 429}  # 503: a worker that must wait for the processor holds the rest
    assert statuses[200] == QUOTA
    keys = sharing(published, "metered")
    for pid in pair.worker_pids():  # both hear of the keys; more requests would need both to hear of them in time
        with stopped(pid):
            assert [pair.zip_code(key).status_code for key in keys] == [200] * 5
    passed = WORKERS * 5
    for _ in range(3):
        published.keys.kill()
        statuses = hammer(pair, keys, 1.5)
        passed += statuses[200]
        assert set(statuses) <= {200, 429, 503}
        published.keys.start()
        passed += hammer(pair, keys, 0.3)[200]
    assert QUOTA // WORKERS <= passed <= QUOTA + WORKERS * CLIENTS, passed
    until(lambda: used(published) == passed)
    until(lambda: pair.get(FORECAST, keys[0], zip_code="36436").status_code in (200, 429))


def test_a_worker_that_hears_of_a_key_after_an_outage_spends_only_its_share(pair: Instance, published: Site) -> None:
    """It asked nothing while the store was away. The store does not know yet what the other worker spent meanwhile."""
    key = issue(published, "metered", "--quota", f"{QUOTA}/day")
    spender, other = pair.worker_pids()
    with stopped(other):
        passed = hammer(pair, [key], 0.1)[200]
    published.keys.kill()
    passed += hammer(pair, [key], 1.5)[200]
    with stopped(spender):
        published.keys.start()
        passed += hammer(pair, [key], 1.5)[200]
    assert passed <= QUOTA + WORKERS * CLIENTS, passed
    until(lambda: used(published) == passed)
