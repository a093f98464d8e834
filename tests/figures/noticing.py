"""How long it takes from a fault to the sentence that names it, as the operators' page is told.

``python -m tests.figures.noticing``: a line for each fault. Each is done to real processes and files, and mended before
the next one. The page shows what `GET /events` sends as soon as it arrives.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import httpx
import msgspec
import redis

from service.operators.overview import Overview
from tests.figures.common import Site, say, site
from tests.support.drops import people, write_drop
from tests.support.instance import FORECAST, Instance, issue_key, serving
from tests.support.waiting import until

_ZIP_CODES = ("36436", "90028", "63101")
Fault = Callable[[Site, Instance], AbstractContextManager[None]]


class Page:
    """What the page was told last, read in a thread of its own."""

    def __init__(self, operators: str) -> None:
        self.newest: Overview | None = None
        self._url = f"{operators}/events"
        threading.Thread(target=self._read, daemon=True).start()

    def says(self, text: str) -> bool:
        return self.newest is not None and any(text in reason.text for reason in self.newest.verdict.reasons)

    def is_well(self) -> bool:
        return self.newest is not None and self.newest.verdict.level == "ok"

    def _read(self) -> None:
        with suppress(httpx.HTTPError), httpx.stream("GET", self._url, timeout=30) as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    self.newest = msgspec.json.decode(line.removeprefix("data: "), type=Overview)


@contextmanager
def cache_killed(site: Site, _: Instance) -> Iterator[None]:
    site.cache.kill()
    yield
    site.cache.start()


@contextmanager
def cache_full(site: Site, _: Instance) -> Iterator[None]:
    with redis.Redis.from_url(site.cache.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", "1")
        yield
        client.config_set("maxmemory", "0")


@contextmanager
def keys_killed(site: Site, _: Instance) -> Iterator[None]:
    site.keys.kill()
    yield
    site.keys.start()


@contextmanager
def keys_emptied(site: Site, _: Instance) -> Iterator[None]:
    with redis.Redis.from_url(site.keys.url) as client:
        kept = {name: client.dump(name) for name in client.scan_iter("*")}
        client.flushall()
        yield
        for name, value in kept.items():
            client.restore(name, 0, value, replace=True)


@contextmanager
def worker_killed(_: Site, instance: Instance) -> Iterator[None]:
    os.kill(instance.worker_pids()[0], signal.SIGKILL)
    yield


@contextmanager
def worker_stopped(_: Site, instance: Instance) -> Iterator[None]:
    os.kill(instance.worker_pids()[0], signal.SIGSTOP)
    yield


@contextmanager
def release_file_lost(site: Site, instance: Instance) -> Iterator[None]:
    entries = next((site.folder / "data").glob("releases/*/forecast.parquet"))
    kept = entries.rename(entries.with_suffix(".kept"))
    with redis.Redis.from_url(site.cache.url) as client:
        client.flushall()
    for zip_code in _ZIP_CODES:
        httpx.get(f"{instance.partners}{FORECAST}?zip_code={zip_code}", headers={"x-api-key": KEYS[-1]}, timeout=10)
    yield
    kept.rename(entries)


@contextmanager
def pointer_damaged(site: Site, _: Instance) -> Iterator[None]:
    pointer = site.folder / "data" / "current.json"
    kept = pointer.read_bytes()
    pointer.write_bytes(b"{")
    yield
    pointer.write_bytes(kept)


@contextmanager
def inbox_gone(site: Site, _: Instance) -> Iterator[None]:
    inbox = site.folder / "inbox"
    kept = inbox.rename(inbox.with_suffix(".kept"))
    yield
    kept.rename(inbox)


@contextmanager
def drop_held(site: Site, _: Instance) -> Iterator[None]:
    made = write_drop(site.folder / "next", population=[people("36436", 2023, 4711)])
    (made / "_SUCCESS").touch()
    made.rename(site.folder / "inbox" / "2026-12")
    yield
    waiting = next((site.folder / "inbox").glob("held/*"), None)
    if waiting is not None:
        waiting.rename(site.folder / "discarded")


KEYS: list[str] = []
FAULTS: tuple[tuple[str, Fault, str], ...] = (
    ("the shared cache is killed", cache_killed, "the shared cache is unreachable"),
    ("the shared cache is full", cache_full, "the shared cache"),
    ("the key store is killed", keys_killed, "the key store is unreachable"),
    ("the key store is emptied", keys_emptied, "the key store"),
    ("a worker is killed", worker_killed, "workers serve"),
    ("a worker is stopped", worker_stopped, "worker"),
    ("a release's file is lost", release_file_lost, "look-ups in release"),
    ("the pointer is damaged", pointer_damaged, "current.json cannot be read"),
    ("the inbox is gone", inbox_gone, "drops are not published"),
    ("a drop is held", drop_held, "waits for approval"),
)


def main() -> None:
    with site() as made:
        KEYS.append(issue_key(made.env))
        inbox = made.folder / "inbox"
        inbox.mkdir()
        env = {**made.env, "FORECAST_INBOX": str(inbox), "FORECAST_INBOX_HOLD": "changed-figures"}
        env["FORECAST_NEAR_CACHE_BYTES"] = "0"
        with serving(env, Path(made.folder) / "serve.log", workers=2) as instance:
            page = Page(instance.operators)
            for name, fault, sentence in FAULTS:
                until(page.is_well)
                before = time.monotonic()
                with fault(made, instance):
                    until(lambda sentence=sentence: page.says(sentence))  # type: ignore[misc]
                    told = [reason.text for reason in page.newest.verdict.reasons] if page.newest else []
                    say(f"{name}: {time.monotonic() - before:.1f} s: {told[0]}")


if __name__ == "__main__":
    main()
