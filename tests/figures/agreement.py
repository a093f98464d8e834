"""Whether partners, metrics, the request log and usage say the same, over many mixed requests on two real workers.

``python -m tests.figures.agreement [REQUESTS]`` (100,000 by default): all statuses and tiers, everything logged; the
caches are purged ten times on the way.
"""

import asyncio
import json
import sys
from pathlib import Path

import httpx

from tests.figures.common import say, site
from tests.support.agreement import Tally, answers, billed, logged, metrics, mixed
from tests.support.instance import forecast, serving
from tests.support.operators import WRITE

_ZIP_CODES = ("36436", "63101", "90028", "09001")
_PARTS = 10


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    told = Tally()
    with site() as made:

        def issue(*terms: str) -> str:
            done = forecast(made.env, "keys", "issue", "--partner", "acme", "--json", *terms)
            key: str = json.loads(done.stdout)["key"]
            return key

        keys = {"free": issue(), "slow": issue("--rate", "1/h", "--burst", "1"), "other": issue("--areas", "projects")}
        env = {**made.env, "FORECAST_ACCESS_LOG": "all", "FORECAST_OPERATOR_WRITE_TOKEN": WRITE}
        with serving(env, Path(made.folder) / "serve.log", workers=2) as instance:
            for part in range(_PARTS):
                found = asyncio.run(answers(instance.partners, mixed(keys, _ZIP_CODES, number // _PARTS, part)))
                told.statuses += found.statuses
                told.tiers += found.tiers
                purge = {"authorization": f"Bearer {WRITE}"}
                httpx.post(f"{instance.operators}/caches/purge", headers=purge, timeout=30).raise_for_status()
            counted = metrics(instance)
        lines = logged(instance)
        used = billed(forecast(made.env, "usage", "--format", "json").stdout)
    say(f"partners: {dict(sorted(told.statuses.items()))}, {dict(told.tiers)}")
    say(f"metrics the same: {(counted.statuses, counted.tiers) == (told.statuses, told.tiers)}")
    say(f"request log the same: {(lines.statuses, lines.tiers) == (told.statuses, told.tiers)}")
    say(f"usage the same: {used == told.tiers.total()} ({used:,} answers)")


if __name__ == "__main__":
    main()
