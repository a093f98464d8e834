"""How long an error takes that corrects the misspelt name of a city.

``python -m tests.figures.mistakes DROP [QUERIES]``: DROP is the folder of a national drop, whose names of cities are
misspelt in 1,000 queries, or so many. They are sent one after the other.
"""

import asyncio
import random
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

import duckdb
import httpx

from tests.figures.common import milliseconds, say, site
from tests.support.instance import FORECAST, environment, issue_key, serving
from tests.support.publishing import publish_as_shipped
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog

_SEED = 15
_PLACES = "SELECT DISTINCT city_name, state_code FROM read_parquet(?) WHERE length(city_name) >= 5 ORDER BY ALL"


def misspelt(name: str, choose: random.Random) -> str:
    """With a letter left out or doubled, never the first."""
    at = choose.randrange(1, len(name))
    return name[:at] + choose.choice(("", name[at] * 2)) + name[at + 1 :]


async def ask(base: str, key: str, places: list[tuple[str, str]], queries: int) -> None:
    choose, seconds, named = random.Random(_SEED), list[float](), 0
    async with httpx.AsyncClient(base_url=base, headers={"x-api-key": key}) as client:
        while len(seconds) < queries:
            city, state = choose.choice(places)
            query = {"city_name": misspelt(city, choose), "state_code": state}
            began = time.perf_counter()
            answer = await client.get(FORECAST, params=query)
            took = time.perf_counter() - began
            if answer.status_code == 404:  # else there is a place of that name
                seconds.append(took)
                named += urlencode({"city_name": city, "state_code": state}) in answer.json()["detail"]
    say(f"{milliseconds(seconds)}; the correction is named in {named} of {queries}")


def main(drop: str, queries: str = "1000") -> None:
    with site() as made:
        env = environment(made.folder / "national", keys_url=made.keys.url, cache_url=made.cache.url)
        catalog = Catalog(made.folder / "national")
        done = publish_as_shipped(catalog, [drop], PublishOptions(attribution=("The figures",)))
        assert done.manifest is not None, done
        tables = Path(made.folder / "national" / "releases" / done.manifest.id / "tables")
        places = duckdb.execute(_PLACES, [str(tables / "locations.parquet")]).fetchall()
        with serving(env, made.folder / "serve.log") as instance:
            asyncio.run(ask(instance.partners, issue_key(env), places, int(queries)))


if __name__ == "__main__":
    main(*sys.argv[1:3])
