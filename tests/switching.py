"""Switches two releases back and forth under load, and holds every answer against the bytes of the release it names.

``python -m tests.switching URL KEY DATA_FOLDER [SWITCHES]``: an instance that serves DATA_FOLDER, where
the current release and the one before it differ. 32 connections ask without a pause. Counted are requests that fail,
answers that are not byte by byte those of the release in their X-Data-Release, and answers of a release that had not
been current for more than 2 s when they were asked for.
"""

import asyncio
import random
import sys
import time
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import msgspec

from warehouse.areas import forecast
from warehouse.releases.catalog import Catalog
from warehouse.releases.changes import roll_back

_CONNECTIONS = 32
_PATH = "/v1/population-housing-forecast"
_QUERIES = 4000
_OLD_SECONDS = 2.0
# In turn: long enough for an old answer to show, and too short for every worker to have followed.
_PAUSES = (2.4, 0.3)
_TIMEOUT = 10.0

Bodies = dict[str, bytes]


class Tally:
    """What became of the requests. `lag` is the longest that a release was answered after it was current."""

    def __init__(self) -> None:
        self.answers = self.failed = self.mixed = self.old = 0
        self.lag = self.slowest = 0.0
        self.examples: list[str] = []

    def wrong(self, what: str) -> None:
        if len(self.examples) < 10:
            self.examples.append(what)


class Currency:
    """When each release was current last."""

    def __init__(self, release: str) -> None:
        self._current = release
        self._until: dict[str, float] = {}

    def switched(self, release: str) -> None:
        if release != self._current:
            self._until[self._current] = time.monotonic()
            self._current = release

    def age(self, release: str, asked: float) -> float:
        """Seconds since `release` was current, when somebody asked."""
        return 0.0 if release == self._current else asked - self._until.get(release, asked)


def bodies_of(catalog: Catalog) -> dict[str, Bodies]:
    """By release and request target, the answers of queries that tell the two releases apart."""
    pointer = catalog.pointer()
    if pointer is None or pointer.previous is None:
        raise SystemExit(f"{catalog.data} needs two releases")
    every = {
        name: dict(forecast.forecast_answers_to_warm(catalog.folder(name)))
        for name in (pointer.release, pointer.previous)
    }
    both = set.intersection(*(set(answers) for answers in every.values()))
    differ = sorted(query for query in both if len({answers[query] for answers in every.values()}) == len(every))
    chosen = random.Random(1).sample(differ, min(len(differ), _QUERIES))
    return {
        name: {target(query, answers[query]): answers[query] for query in chosen} for name, answers in every.items()
    }


def target(query: str, body: bytes) -> str:
    kind, _, rest = query.partition(":")
    if kind == "zip":
        return f"{_PATH}?{urlencode({'zip_code': rest})}"
    state, _, name = rest.partition(":")
    first = msgspec.json.decode(body)["zip_codes"][0]["location"]["city"].rpartition(", ")[0]
    # an alias is asked for as it is folded, a city as it is spelled
    spelled = first if "".join(filter(str.isalnum, first.lower())) == name else name
    return f"{_PATH}?{urlencode({'city_name': spelled, 'state_code': state})}"


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> tuple[int, str, bytes]:
    writer.write(head)
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    body = await reader.readexactly(int(headers["content-length"]))
    return int(lines[0].split()[1]), headers.get("x-data-release", ""), body


async def load(base: str, key: str, expected: dict[str, Bodies], currency: Currency, tally: Tally) -> None:
    """One connection, until it is cancelled; opened again if it breaks, which counts as a failure."""
    where = urlsplit(base)
    targets = list(next(iter(expected.values())))
    while True:
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            while True:
                chosen = random.choice(targets)
                head = f"GET {chosen} HTTP/1.1\r\nHost: {where.netloc}\r\nx-api-key: {key}\r\n\r\n".encode()
                asked = time.monotonic()
                async with asyncio.timeout(_TIMEOUT):
                    status, release, body = await ask(reader, writer, head)
                judge(tally, chosen, status, expected.get(release, {}).get(chosen) == body)
                tally.slowest = max(tally.slowest, time.monotonic() - asked)
                age = currency.age(release, asked)
                tally.lag = max(tally.lag, age)
                tally.old += age > _OLD_SECONDS
        except (OSError, EOFError, TimeoutError, ValueError, KeyError) as error:
            tally.failed += 1
            tally.wrong(repr(error))
        finally:
            writer.close()


def judge(tally: Tally, chosen: str, status: int, agrees: bool) -> None:
    tally.answers += 1
    if status != 200:
        tally.failed += 1
        tally.wrong(f"{status}: {chosen}")
    elif not agrees:
        tally.mixed += 1
        tally.wrong(f"not of the release it names: {chosen}")


async def switch(catalog: Catalog, currency: Currency, switches: int) -> None:
    for number in range(switches):
        manifest = await asyncio.to_thread(roll_back, catalog)
        currency.switched(manifest.id)
        await asyncio.sleep(_PAUSES[number % len(_PAUSES)])


async def run(base: str, key: str, data: str, switches: int) -> Tally:
    catalog = Catalog(Path(data))
    expected = bodies_of(catalog)
    currency, tally = Currency(catalog.current().id), Tally()
    callers = [asyncio.create_task(load(base, key, expected, currency, tally)) for _ in range(_CONNECTIONS)]
    await switch(catalog, currency, switches)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    return tally


def main(base: str, key: str, data: str, switches: str = "100") -> int:
    began = time.monotonic()
    tally = asyncio.run(run(base, key, data, int(switches)))
    seconds = time.monotonic() - began
    print(  # noqa: T201 - it is what it is run for
        f"{switches} switches, {seconds:.0f} s, {tally.answers:,} answers: {tally.failed} failed, {tally.mixed} mixed, "
        f"{tally.old} older than {_OLD_SECONDS:g} s; a release was answered {tally.lag:.2f} s after its end at most; "
        f"slowest answer {tally.slowest * 1000:.0f} ms"
    )
    for line in tally.examples:
        print(line)  # noqa: T201
    return 1 if tally.failed or tally.mixed or tally.old else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
