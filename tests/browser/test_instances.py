"""The operators' page of a real instance, while things go well and while they do not."""

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, Opened
from tests.browser.test_page import row, sentence
from tests.faults.conftest import Site
from tests.support.drops import people, write_drop
from tests.support.instance import FORECAST, Instance, forecast, serving
from tests.support.waiting import until

WELL = "All is well."
HOT, COLD = "36436", "90028"
# Above 50 requests a second, rankings are an estimate from a sample.
_ROUNDS = 15


class Watched:
    """One instance with two workers for all tests here; each mends what it breaks."""

    def __init__(self, site: Site, instance: Instance, folder: Path) -> None:
        self.site, self.instance, self.folder = site, instance, folder
        self.url = f"{instance.operators}/"

    def ask(self, rounds: int = 1, key: str | None = None, **params: str) -> None:
        headers = {"x-api-key": key or self.site.key}
        with httpx.Client(base_url=self.instance.partners, headers=headers, timeout=30) as client:
            for _ in range(rounds):
                client.get(FORECAST, params=params)


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    folder = Path(tempfile.mkdtemp(prefix="pf"))
    site = Site.within(folder, run=forecast)
    site.publish(write_drop(folder / "drop"), forecast)
    # look-ups read the file of the release, which a test loses
    env = site.env | {"FORECAST_LOOKUPS_IN_MEMORY": "false"}
    with serving(env, folder / "serve.log", workers=2) as instance:
        until(lambda: instance.ready().json()["status"] == "ready")
        yield Watched(site, instance, folder)
    site.kill()
    shutil.rmtree(folder)


def says(page: Page, *words: str) -> None:
    """Waits for a verdict with these words."""
    expect(sentence(page)).to_have_text(re.compile(".*".join(map(re.escape, words))))


def test_under_load_it_shows_keys_queries_and_tiers(watched: Watched, opened: Opened) -> None:
    with opened(watched.url) as page:
        says(page, WELL)
        watched.ask(_ROUNDS, zip_code=HOT)
        watched.ask(_ROUNDS, zip_code="00000")
        watched.ask(_ROUNDS, key="pf_live_000000000000_wrong", zip_code=HOT)
        refused = page.locator("#ranking-refused tbody td.number")
        expect(refused).to_have_text(str(_ROUNDS))
        expect(page.locator("#partners tbody tr")).to_have_text(
            re.compile(f"acme.*200: {_ROUNDS}, 404: {_ROUNDS}.*404 no_matching")
        )
        assert row(page, "#ranking-queries", f"forecast zip_code={HOT}")[1] == str(_ROUNDS)
        assert {row(page, "#answers", status)[1] for status in ("200 found", "404 not found", "401 no valid key")} != {
            "0"
        }
        assert re.match(r"\S+ requests a second, none failed. 9\d.\d % of answers come", page.inner_text("#gist"))
        expect(page.locator("figure canvas")).to_have_count(9)


def test_a_switch_of_releases_is_seen_with_the_hit_rate_on_both_sides(watched: Watched, opened: Opened) -> None:
    with opened(watched.url) as page:
        says(page, WELL)
        before = page.locator("#releases tbody th").first.inner_text()
        watched.site.publish(write_drop(watched.folder / "newer", population=[people(HOT, 2023, 5)]), forecast)
        expect(page.locator("#switch")).to_have_text(re.compile(f"Last switch at .* from {before} to "))
        current = page.locator("#releases tbody th").first.inner_text()
        assert row(page, "#releases", before)[1] == "earlier"
        expect(page.locator("#gist")).to_contain_text(f"Release {current}")
        expect(page.locator("#events")).to_contain_text(f"release {current} is live, by ")
        expect(page.locator("#events")).to_contain_text(f"; it was {before}")
        expect(page.locator("#workers")).to_contain_text(current)


@pytest.mark.parametrize(
    ("name", "words"), [("cache", "shared cache is unreachable"), ("keys", "key store is unreachable")]
)
def test_a_redis_that_is_stopped_is_named(watched: Watched, opened: Opened, name: str, words: str) -> None:
    server = getattr(watched.site, name)
    with opened(watched.url, PHONE, "dark") as page:
        watched.ask(zip_code=HOT)  # a worker remembers the key
        server.kill()
        says(page, "Partners get answers. The ", words)
        expect(page.locator("#since")).to_have_text(re.compile(r"Since [\d:]+, for \d+ s\."))
        expect(page.locator("#stores tbody tr", has_text=name)).to_contain_text("unreachable")
        server.start()
        says(page, "Partners get answers. Ended a moment ago: The ", words)
        expect(page.locator("#events")).to_contain_text(words.replace("unreachable", "reachable again"))


def test_a_lost_file_of_the_release_is_named(watched: Watched, opened: Opened) -> None:
    entries = next(iter(sorted(watched.site.data.glob("releases/*/forecast.parquet"), reverse=True)))
    with opened(watched.url) as page:
        says(page, WELL)
        kept = entries.rename(entries.with_suffix(".kept"))
        with redis.Redis.from_url(watched.site.cache.url) as cache:
            cache.flushall()  # publishing has warmed it
        until(lambda: watched.instance.zip_code(watched.site.key, COLD).status_code == 503)
        says(page, "Partners get answers.", "release")
        expect(page.locator("#answers")).to_contain_text("503 unavailable")
        kept.rename(entries)  # workers find out by themselves, within half a minute


def test_a_killed_worker_is_shown_with_its_successor(watched: Watched, opened: Opened) -> None:
    """Its event names it, the count of replaced ones grows, and another serves. For a minute not all is well, so this
    is the last test of the instance."""
    with opened(watched.url) as page:
        expect(page.locator("#workers tbody tr")).to_have_count(2)
        pid = page.locator("#workers tbody th").first.inner_text()
        os.kill(int(pid), signal.SIGKILL)
        expect(page.locator("#events")).to_contain_text(
            f"worker {pid} was replaced: signal 9, SIGKILL; its last log line: "
        )
        expect(page.locator("#restarts")).to_have_text("1 replaced since the start")
        expect(page.locator("#workers tbody td", has_text="serving")).to_have_count(2)
        says(page, "Restarted in the last minute: 1 of the workers", "SIGKILL")
