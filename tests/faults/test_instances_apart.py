"""Instances that share both Redis and no folder: they count each other, a purge reaches all, one clock holds."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.faults.conftest import Site
from tests.support.instance import NO_TLS, Instance, forecast_here, serving
from tests.support.turned_clock import turned
from tests.support.waiting import until

WRITE = "write-token-of-the-tests"


def on_folder(site: Site, folder: Path, **settings: str) -> dict[str, str]:
    """The environment of `site` on a machine with a data folder of its own."""
    ours = {"data_dir": str(folder), "keys_pepper": (site.data / "pepper").read_text().strip()}
    given = ours | {"operator_write_token": WRITE} | settings
    return site.env | {f"FORECAST_{name.upper()}": value for name, value in given.items()}


@pytest.fixture
def apart(published: Site, short: Path) -> Iterator[list[Instance]]:
    """Two instances, with one worker and with two, each on a data folder of its own."""
    shutil.copytree(published.data, short / "other")
    with (
        serving(on_folder(published, published.data), short / "first.log") as first,
        serving(on_folder(published, short / "other"), short / "second.log", workers=2) as second,
    ):
        until(lambda: all(one.metric("forecast_all_workers") == 3 for one in (first, second)))
        yield [first, second]


def test_they_are_found_and_purged_from_a_machine_without_a_folder_and_counted_until_they_end(
    apart: list[Instance], published: Site, short: Path
) -> None:
    """Whoever is asked, all near caches are empty soon afterwards; the audit trail says who did it."""
    until(lambda: all(one.zip_code(published.key).is_success for one in apart))
    until(lambda: all(one.metric("forecast_near_cache_entries") > 0 for one in apart))
    elsewhere = on_folder(published, short / "nothing")
    seen = forecast_here(elsewhere, "status", "--json")
    assert seen.returncode in (0, 4), seen.stderr
    urls = {one["url"] for one in json.loads(seen.stdout)["instances"] if one["overview"]}
    assert urls == {one.operators for one in apart}
    done = forecast_here(elsewhere, "cache", "purge", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    [asked] = json.loads(done.stdout)["instances"]
    assert (len(asked["purged"]["reached"]), asked["purged"]["behind"]) == (1, [])
    assert [one.metric("forecast_near_cache_entries") for one in apart] == [0, 0]
    trail = json.loads(forecast_here(elsewhere, "log", "--json").stdout)
    assert trail[0]["what"] == "purged"
    assert trail[0]["by"].startswith("command over the listener (")
    first, second = apart
    second.stop()
    until(lambda: first.metric("forecast_all_workers") == 1)


def test_days_and_expiry_go_by_the_clock_of_the_key_store(published: Site, short: Path) -> None:
    """An instance whose own clock is an hour behind it is degraded, and knows that a key has expired."""
    soon = datetime.now(UTC) + timedelta(minutes=30)
    issued = forecast_here(published.env, "keys", "issue", "--partner", "b", "--json", "--expires", soon.isoformat())
    assert issued.returncode == 0, issued.stderr
    key = json.loads(issued.stdout)["key"]
    with turned(published.keys.socket, short, 3600) as url:
        env = on_folder(published, published.data, keys_url=url)
        with serving(env, short / "turned.log") as instance:
            until(lambda: instance.zip_code(published.key).is_success)
            refused = instance.zip_code(key)
            assert (refused.status_code, refused.json()["code"]) == (401, "expired_api_key")
            headers = {"authorization": f"Bearer {WRITE}"}
            ready = httpx.get(f"{instance.operators}/health/ready", headers=headers, verify=NO_TLS, timeout=30).json()
            assert ready["status"] == "degraded"
            assert "1 hour behind the key store's" in " ".join(ready["reasons"])
            assert instance.metric("forecast_clock_ahead_seconds") == pytest.approx(-3600, abs=30)
