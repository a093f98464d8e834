"""Usage against what clients saw answered, while workers are killed and both Redis are restarted.

``python -m tests.figures.usage_run [SECONDS]`` (240 by default): two workers, six keys with different terms, some
hundred requests a second for both areas, answered 200, 304, 400, 403, 404 and 429. Workers are killed (SIGKILL) six
times; the Redis of the keys and that of the cache are restarted twice each, once killed and once shut down, with their
append-only file on and 1.5 s of absence. At the end the instance is stopped by SIGTERM under load.

For every key, area and outcome, what is stored may be neither

- more than what was answered and what may have been: requests whose connection was lost before their answer; nor
- less than what was answered without what workers answered in the last second before they were killed.
"""

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import uvloop

from service.base.terms import Quota, Rate, Terms
from service.quota.report import DamagedUsage, UsageReport
from service.quota.spool import FOLDER
from tests.figures.common import Site, request, say, site, wait_for_workers
from tests.figures.usage_load import Cell, Load, Question, Tally
from tests.support.instance import FORECAST, Instance, is_alive, serving
from tests.support.valkey import ValkeyProcess

WORKERS = 2
KILLS = 6
AWAY_SECONDS = 1.5
LOST_SECONDS = 1.0
# After a kill, until all that it sent has arrived.
ARRIVED_SECONDS = 0.5
PROJECTS = "/v1/development-projects"
TERMS = {
    "open": Terms(),
    "open too": Terms(),
    "50/s": Terms(rate=Rate(50, 1, 50)),
    "5/s": Terms(rate=Rate(5, 1, 5)),
    "quota": Terms(rate=Rate(1000, 1, 1000), quota=Quota(5_000_000, "month")),
    "one area": Terms(areas=("forecast",)),
}


class Harm:
    """What is done to the instance meanwhile."""

    def __init__(self, instance: Instance, load: Load, tally: Tally) -> None:
        self._instance = instance
        self._load = load
        self._tally = tally

    async def kill_worker(self) -> None:
        """The one with more connections. Whose they are is looked up twice, because some end in its last second."""
        workers = self._instance.descendants("forecast-worker")
        assert workers, f"no workers: {self._instance.log_file.read_text()[-2000:]}"
        self._load.look(workers)
        await asyncio.sleep(LOST_SECONDS)
        held = self._load.look(workers)
        victim = max(workers, key=lambda pid: held[pid])
        self._tally.when = "when their worker was killed"
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        await asyncio.sleep(ARRIVED_SECONDS)
        self._tally.when = "without a reason"
        risk = [seen.cell for seen in self._tally.recent
                if seen.connection.worker == victim and seen.at > killed - LOST_SECONDS]  # fmt: skip
        self._tally.at_risk.update(risk)
        say(f"killed a worker, which answered {len(risk)} in its last second")

    async def restart(self, server: ValkeyProcess, name: str, number: signal.Signals) -> None:
        pid = server.pid
        os.kill(pid, number)
        while is_alive(pid):  # noqa: ASYNC110 - no process tells us
            await asyncio.sleep(0.01)
        server.kill()  # and reap it
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(server.start)
        say(f"restarted the Redis of the {name} after {number.name}")

    async def all(self, ground: Site, seconds: float) -> None:
        """Everything in turn, evenly over the time that there is."""
        pause = seconds / (KILLS + 5)
        restarts: list[Callable[[], Awaitable[None]]] = [
            lambda server=server, name=name, number=number: self.restart(server, name, number)  # type: ignore[misc]
            for number in (signal.SIGKILL, signal.SIGTERM)
            for server, name in ((ground.keys, "keys"), (ground.cache, "cache"))
        ]
        for turn in range(KILLS):
            await asyncio.sleep(pause)
            await self.kill_worker()
            if turn < len(restarts):
                await asyncio.sleep(pause)
                await restarts[turn]()
        await asyncio.sleep(pause)


async def questions_of(ground: Site) -> tuple[list[Question], dict[str, str]]:
    """What is asked, with keys of all terms, and their names by id."""
    questions, names = [], {}
    paths = [("forecast", f"{FORECAST}?zip_code={code}") for code in ("36436", "90028", "99999", "1")]
    paths += [("projects", f"{PROJECTS}?zip_code={code}") for code in ("36436", "99999")]
    async with ground.store() as store:
        for name, terms in TERMS.items():
            presented, key = await store.issue("acme", name, None, terms)
            names[key.key_id] = name
            questions += [Question(key.key_id, area, request(presented, path)) for area, path in paths]
            questions.append(Question(key.key_id, "forecast", request(presented, paths[0][1], "*")))
    return questions, names


async def stored(ground: Site, key_ids: list[str]) -> Counter[Cell]:
    """Of yesterday and today: a run may meet midnight."""
    found: Counter[Cell] = Counter()
    today = datetime.now(UTC).date()
    async with ground.store() as store:
        async for row in UsageReport(store.redis).of_keys(key_ids, today - timedelta(days=1), today):
            assert not isinstance(row, DamagedUsage), row
            counts = {"answered": row.answered + row.answered_empty}
            counts |= {name: getattr(row, name) for name in ("not_modified", "not_found", "rejected")}
            found.update({Cell(row.key_id, row.area, outcome): n for outcome, n in counts.items()})
    return +found


def verdict(tally: Tally, found: Counter[Cell], names: dict[str, str]) -> bool:
    wrong = 0
    for cell in sorted({*tally.answered, *found}):
        most = tally.answered[cell] + tally.unanswered[cell.key_id, cell.area]
        least = tally.answered[cell] - tally.at_risk[cell]
        agrees = least <= found[cell] <= most
        wrong += not agrees
        say(f"  {names[cell.key_id]:9} {cell.area:9} {cell.outcome:13} answered {tally.answered[cell]:7,}, stored "
            f"{found[cell]:7,}, may be {least:,} to {most:,}{'' if agrees else '  WRONG'}")  # fmt: skip
    answered, kept = tally.answered.total(), found.total()
    say(f"{answered:,} answered, {kept:,} stored: {answered - kept:,} lost, of {tally.at_risk.total():,} that {KILLS} "
        f"kills may cost; not answered: {dict(tally.unanswered_when) or 0}; failed: {dict(tally.failed) or 0}; "
        f"{wrong} figures wrong")  # fmt: skip
    return not wrong


async def run(ground: Site, instance: Instance, seconds: float) -> bool:
    questions, names = await questions_of(ground)
    tally = Tally()
    load = Load(instance.partners, questions, tally)
    asking = asyncio.create_task(load.run())
    await Harm(instance, load, tally).all(ground, seconds)
    load.stopping, tally.when = True, "when the instance was stopped"
    code = await asyncio.to_thread(instance.stop)
    await asking
    left = list((ground.folder / "data" / FOLDER).glob("*"))
    say(f"stopped with exit code {code}; {len(left)} files in the spool")
    return verdict(tally, await stored(ground, list(names)), names) and not code and not left


def main(seconds: str = "240") -> int:
    with site() as ground, serving(ground.env, ground.folder / "serve.log", WORKERS) as instance:
        wait_for_workers(instance, WORKERS)
        return 0 if uvloop.run(run(ground, instance, float(seconds))) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
