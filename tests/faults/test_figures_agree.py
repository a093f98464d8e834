"""One definition of the hit rate: what partners see, metrics, the request log and usage add up to the same."""

import asyncio
import json
from pathlib import Path

import httpx

from tests.faults.conftest import Site
from tests.support.agreement import answers, billed, logged, metrics, mixed
from tests.support.instance import forecast_here, serving
from tests.support.operators import WRITE

ZIP_CODES = ("36436", "63101", "90028", "09001")


def issue(site: Site, *terms: str) -> str:
    done = forecast_here(site.env, "keys", "issue", "--partner", "bell", "--json", *terms)
    assert done.returncode == 0, done.stderr
    key: str = json.loads(done.stdout)["key"]
    return key


def test_headers_metrics_log_and_usage_say_the_same(published: Site, short: Path) -> None:
    """Over all statuses, tiers and doors, with everything logged; errors alike are counted, not lost."""
    keys = {
        "free": published.key,
        "slow": issue(published, "--rate", "1/h", "--burst", "1"),
        "other": issue(published, "--areas", "projects"),
    }
    env = {**published.env, "FORECAST_ACCESS_LOG": "all", "FORECAST_OPERATOR_WRITE_TOKEN": WRITE}
    with serving(env, short / "serve.log", workers=2) as instance:
        reported = asyncio.run(answers(instance.partners, mixed(keys, ZIP_CODES, 1000, 1)))
        purge = httpx.post(f"{instance.operators}/caches/purge", headers={"authorization": f"Bearer {WRITE}"})
        assert purge.status_code == 200
        again = asyncio.run(answers(instance.partners, mixed(keys, ZIP_CODES, 1000, 2)))
        reported.statuses += again.statuses
        reported.tiers += again.tiers
        assert set(reported.tiers) == {"near", "shared", "warehouse"}
        assert {200, 304, 400, 401, 403, 404, 405, 429} <= set(reported.statuses)
        counted = metrics(instance)
        assert (counted.statuses, counted.tiers) == (reported.statuses, reported.tiers)
    assert (logged(instance).statuses, logged(instance).tiers) == (reported.statuses, reported.tiers)
    used = forecast_here(published.env, "usage", "--format", "json")
    assert billed(used.stdout) == reported.tiers.total()
