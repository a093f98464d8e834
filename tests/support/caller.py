"""Somebody with a key of certain terms, and what is counted of them."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from config.settings import Settings
from service.base.terms import Terms
from service.keys.record import ApiKey
from service.keys.store import KeyStore
from tests.support.served import FORECAST, Served, with_keys
from tests.support.wire import Answer


class Caller:
    def __init__(self, worker: Served, settings: Settings, terms: Terms, *, test: bool = False) -> None:
        async def issue(store: KeyStore) -> tuple[str, ApiKey]:
            return await store.issue("acme", "", None, terms, test=test)

        async def run() -> tuple[str, ApiKey]:
            return await with_keys(settings.keys_url, Path(worker.app._settings.data_dir), issue)

        self.worker = worker
        self.key, self.record = worker.run(run)

    def ask(self, target: str = f"{FORECAST}?zip_code=36436", method: str = "GET", **headers: str) -> Answer:
        return self.worker.ask(target, method, key=self.key, **headers)

    def usage(self) -> dict[str, Any]:
        body: dict[str, Any] = self.ask("/v1/usage").json()
        return body

    def counted(self, area: str = "forecast") -> dict[str, int]:
        """Today's figures of an area, once the worker has stored them."""
        time_out = time.monotonic() + 10
        while self.worker.app.metering.counters.waiting():
            assert time.monotonic() < time_out
            time.sleep(0.02)
        (day,) = [day for day in self.usage()["days"] if day["area"] == area]
        assert day.pop("date") == f"{datetime.now(UTC):%Y-%m-%d}"
        assert day.pop("area") == area
        figures: dict[str, int] = day
        return figures
