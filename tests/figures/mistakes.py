"""How often an error names the correction, over wrong queries of the kinds people make; and what such an answer takes.

``python -m tests.figures.mistakes DROP [QUERIES]``: DROP is the folder of a national drop, of whose places the queries
(1,000 by default) are made. The mistakes are made here, without the service's own tables of them.
"""

import asyncio
import json
import random
import string
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import duckdb
import httpx
import msgspec

from tests.figures.common import milliseconds, say, site
from tests.support.instance import FORECAST, environment, forecast, serving
from warehouse.publishing.outcome import PublishOptions
from warehouse.publishing.publish import publish
from warehouse.releases.catalog import Catalog

_SEED = 15
_HITS = 2_000
_STATES = {"CA": "California", "TX": "Texas", "NY": "New York", "OH": "Ohio", "WA": "Washington", "IL": "Illinois"}
_PLACES = """
SELECT zip_code, city_name, state_code FROM '{file}'
WHERE zip_code IS NOT NULL AND city_name IS NOT NULL AND state_code IS NOT NULL ORDER BY zip_code
"""

Place = tuple[str, str, str]


class Mistake(msgspec.Struct, frozen=True):
    """A wrong query, and the texts of which an error that helps has one."""

    target: str
    right: tuple[str, ...]
    headers: dict[str, str] = {}


def misspelt(name: str, edits: int, random_: random.Random) -> str:
    """With letters left out, doubled, exchanged or replaced, never the first."""
    for _ in range(edits):
        at = random_.randrange(1, len(name))
        letter = random_.choice(string.ascii_lowercase)
        ways = (
            name[:at] + name[at + 1 :],
            name[:at] + name[at] + name[at:],
            name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :] if at > 1 else name[:at] + letter + name[at:],
            name[:at] + letter + name[at + 1 :],
        )
        name = random_.choice(ways)
    return name


def _query(**parameters: str) -> str:
    return f"{FORECAST}?{urlencode(parameters)}"


class Mistakes:
    """Makes mistakes, of a kind at a time."""

    def __init__(self, places: Sequence[Place], key: str) -> None:
        self._places = places
        self._key = key
        self._random = random.Random(_SEED)
        self._zeros = [place for place in places if place[0].startswith("0")]
        self._states: dict[str, set[str]] = defaultdict(set)
        for _, city, state in places:
            self._states[city.lower()].add(state)

    def kinds(self) -> dict[str, Callable[[], Mistake]]:
        return {
            "city, one letter": lambda: self._typo(1),
            "city, two letters": lambda: self._typo(2),
            "city of another state": self._elsewhere,
            "state spelt out": self._spelt_state,
            "parameter misnamed": self._misnamed,
            "ZIP code badly written": self._badly_written_zip,
            "ZIP code of another city": self._wrong_city,
            "city without state": self._no_state,
            "key in the wrong place or form": self._wrong_key,
            "path nearly right": self._wrong_path,
        }

    def _place(self, fits: Callable[[Place], bool] = lambda place: len(place[1]) >= 5) -> Place:
        return next(place for place in iter(lambda: self._random.choice(self._places), None) if fits(place))

    def _typo(self, edits: int) -> Mistake:
        _, city, state = self._place(lambda place: len(place[1]) >= 4 + 4 * (edits - 1))
        return Mistake(_query(city_name=misspelt(city, edits, self._random), state_code=state), (f"{city}, {state}",))

    def _elsewhere(self) -> Mistake:
        _, city, state = self._place(lambda place: len(self._states[place[1].lower()]) <= 3)
        other = self._random.choice([one for one in _STATES if one not in self._states[city.lower()]])
        return Mistake(_query(city_name=city, state_code=other), (f" {state}", f"{state},"))

    def _spelt_state(self) -> Mistake:
        state = self._random.choice(list(_STATES))
        _, city, _ = self._place(lambda place: place[2] == state)
        written = self._random.choice(
            (_STATES[state], _STATES[state].upper(), misspelt(_STATES[state], 1, self._random))
        )
        return Mistake(_query(city_name=city, state_code=written), (state,))

    def _misnamed(self) -> Mistake:
        zip_code, city, state = self._place()
        one = self._random.choice(
            (
                ({self._random.choice(("zip", "zipcode", "zipCode", "postal_code", "zip_cod")): zip_code}, "zip_code"),
                (
                    {self._random.choice(("city", "cityName", "town", "city_nam")): city, "state_code": state},
                    "city_name",
                ),
                (
                    {"city_name": city, self._random.choice(("state", "stateCode", "st", "state_cod")): state},
                    "state_code",
                ),
            )
        )
        return Mistake(_query(**one[0]), (one[1],))

    def _badly_written_zip(self) -> Mistake:
        zip_code = self._random.choice(self._zeros if self._random.random() < 0.6 else self._places)[0]
        bare = zip_code.lstrip("0")
        forms = [
            f"{zip_code}.0",
            f'"{zip_code}"',
            f"{zip_code}1234",
            f"{zip_code} 1234",
            f"'{zip_code}",
            f"#{zip_code}",
        ]
        if bare != zip_code:
            forms += [bare, f"{bare}.0", bare, f"{bare}1234", zip_code.replace("0", "O")]
        return Mistake(_query(zip_code=self._random.choice(forms)), (zip_code,))

    def _wrong_city(self) -> Mistake:
        (zip_code, city, state), (_, other, _) = self._place(), self._place()
        return Mistake(_query(zip_code=zip_code, city_name=other, state_code=state), (f"{city}, {state}",))

    def _no_state(self) -> Mistake:
        _, city, state = self._place(lambda place: len(self._states[place[1].lower()]) == 1)
        return Mistake(_query(city_name=city), (state,))

    def _wrong_key(self) -> Mistake:
        good = _query(zip_code=self._place()[0])
        return self._random.choice(
            (
                Mistake(good, ("x-api-key",), {"authorization": f"Bearer {self._key}"}),
                Mistake(f"{good}&api_key={self._key}", ("x-api-key",), {"x-other": ""}),
                Mistake(good, ("Send the key alone",), {"x-api-key": f"Bearer {self._key}"}),
                Mistake(good, ("Send the key alone",), {"x-api-key": f'"{self._key}"'}),
                Mistake(good, ("placeholder", "variable"), {"x-api-key": self._random.choice(("$KEY", "<key>", ""))}),
                Mistake(
                    good,
                    ("characters instead of", "checksum"),
                    {"x-api-key": self._key[: self._random.randrange(20, 71)]},
                ),
            )
        )

    def _wrong_path(self) -> Mistake:
        path = self._random.choice((FORECAST, "/v1/development-projects", "/v1/usage", "/v1/releases"))
        folder, _, name = path.rpartition("/")
        wrong = self._random.choice(
            (
                f"{folder}/{misspelt(name, 1, self._random)}",
                f"/{name}",
                f"/api{path}",
                path.replace("v1", "v2"),
                path.replace("-", "_") if "-" in path else f"{path}s",
            )
        )
        return Mistake(f"{wrong}?zip_code={self._place()[0]}", (f"{path}?",))


async def ask(base: str, key: str, made: dict[str, Callable[[], Mistake]], queries: int) -> None:
    """Asks, one request at a time, and says what came of it."""
    found: dict[str, list[bool]] = {kind: [] for kind in made}
    missed: dict[str, str] = {}
    seconds: list[float] = []
    async with httpx.AsyncClient(base_url=base) as client:
        for kind in _in_turns(made, queries):
            while True:
                mistake = made[kind]()
                headers = mistake.headers or {"x-api-key": key}
                began = time.perf_counter()
                answer = await client.get(mistake.target, headers=headers)
                took = time.perf_counter() - began
                if answer.status_code >= 400:  # else it was none: there is a place of that name
                    break
            seconds.append(took)
            detail = answer.json()["detail"]
            helps = any(text in f"{detail} " for text in mistake.right)
            found[kind].append(helps)
            if not helps:
                missed[kind] = f"{urlsplit(mistake.target).query or mistake.target}: {detail}"
        hits: list[float] = []
        for _ in range(_HITS):
            began = time.perf_counter()
            (await client.get(_query(zip_code="10001"), headers={"x-api-key": key})).raise_for_status()
            hits.append(time.perf_counter() - began)
    for kind, helped in found.items():
        say(f"{kind}: {sum(helped)} of {len(helped)}; {missed.get(kind, '')}")
    everything = [one for helped in found.values() for one in helped]
    say(f"the correction is named: {sum(everything)} of {len(everything)} ({sum(everything) / len(everything):.1%})")
    say(f"such an answer: {milliseconds(seconds)}; a hit: {milliseconds(hits)}")


def _in_turns(kinds: dict[str, Callable[[], Mistake]], number: int) -> Iterator[str]:
    names = list(kinds)
    return (names[at % len(names)] for at in range(number))


def main() -> None:
    drop, queries = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    master = next(path for path in sorted(drop.glob("*.parquet")) if _has_places(path))
    places: list[Place] = duckdb.execute(_PLACES.format(file=master)).fetchall()
    with site() as made:
        env = environment(made.folder / "national", keys_url=made.keys.url, cache_url=made.cache.url)
        done = publish(Catalog(made.folder / "national"), [str(drop)], PublishOptions(attribution=("The figures",)))
        assert done.result == "published", done
        issued = forecast(env, "keys", "issue", "--partner", "acme", "--json")
        key: str = json.loads(issued.stdout)["key"]
        with serving(env, made.folder / "serve.log", workers=1) as instance:
            asyncio.run(ask(instance.partners, key, Mistakes(places, key).kinds(), queries))


def _has_places(path: Path) -> bool:
    columns = {name.lower() for name, *_ in duckdb.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()}
    return {"zip_code", "city_name", "state_code", "latitude"} <= columns and "project_id" not in columns


if __name__ == "__main__":
    main()
