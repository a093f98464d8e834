"""The requests of a shape, byte for byte, for whoever is asked."""

import random
from collections.abc import Sequence

import duckdb
import httpx
import msgspec
import redis

from service.base.terms import Quota, Rate, Terms
from service.keys import form, pepper
from service.keys.record import ApiKey, record_name
from service.keys.store import now
from tests.bench.contenders import Contender
from tests.bench.load import Endpoint, request_heads
from tests.bench.shapes.catalog import OVER_RATE, Shape
from tests.bench.stage import FORECAST, HOT_ZIP_CODES, Stage
from tests.support.key_store import any_key

# Rates that partners have: a fifth of it is used where 200 keys take turns.
_TERMS = Terms(rate=Rate(2000, 1, 2000), quota=Quota(999_999_999_999, "month"))
_WRONG_KEYS = 1000
_UNKNOWN_ZIP_CODES = 1000
_CITIES = 20
# Mixed traffic, as shares of its requests. ZIP codes are asked for by a Zipf law.
_MIXED = 20_000
_WRONG, _CITY, _UNKNOWN, _GZIPPED, _UNCHANGED = 0.01, 0.1, 0.05, 1 / 3, 0.1


class Requests:
    """What shapes ask for, with the keys that they use; made once, when the first shape needs it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._zips = stage.zip_codes()
        self._keys: dict[object, list[str]] = {"limits": [stage.key]}
        self._tags: list[str] = []

    def heads(self, shape: Shape, contender: Contender) -> list[bytes]:
        """Without their end, for headers that differ."""
        if shape.asked == "mixed":
            return self._mixed(shape, contender.endpoint)
        asked, endpoint = self._asked(shape, contender.endpoint)
        if not shape.matching:
            return request_heads(endpoint, asked, self._keys_of(shape), shape.headers, shape.version)
        tags = self._tags_of(asked)
        return [
            request_heads(endpoint, [one], (), [f"if-none-match: {tag}"])[0]
            for one, tag in zip(asked, tags, strict=True)
        ]

    def _asked(self, shape: Shape, endpoint: Endpoint) -> tuple[Sequence[str], Endpoint]:
        if shape.asked in ("cities", "three"):
            of_any = msgspec.structs.replace(endpoint, path=f"{FORECAST}?", after=shape.after)
            return largest_cities(self._stage, 3 if shape.asked == "three" else _CITIES), of_any
        if shape.after:
            endpoint = msgspec.structs.replace(endpoint, after=shape.after)
        if shape.asked == "cold":
            return self.cold(), endpoint
        if shape.asked == "unknown":
            return self._unknown(), endpoint
        return (self._zips if shape.asked == "all" else self._zips[:HOT_ZIP_CODES]), endpoint

    def _unknown(self) -> list[str]:
        there = set(self._zips)
        absent = (f"{number:05}" for number in range(100_000))
        return [one for one in absent if one not in there][:_UNKNOWN_ZIP_CODES]

    def _mixed(self, shape: Shape, endpoint: Endpoint) -> list[bytes]:
        """In an order that is random and the same for all."""
        chance = random.Random(1)
        keys, wrong = self._keys_of(shape), [any_key()[0] for _ in range(_WRONG_KEYS)]
        cities, unknown = largest_cities(self._stage, _CITIES), self._unknown()
        of_any = msgspec.structs.replace(endpoint, path=f"{FORECAST}?")
        hot = self._zips[:HOT_ZIP_CODES]
        tags = dict(zip(hot, self._tags_of(hot), strict=True))
        popular = chance.choices(self._zips, [1 / (rank + 1) for rank in range(len(self._zips))], k=_MIXED)
        heads = []
        for zip_code in popular:
            key = chance.choice(wrong if chance.random() < _WRONG else keys)
            more = ["accept-encoding: gzip"] if chance.random() < _GZIPPED else []
            kind = chance.random()
            if kind < _CITY:
                heads += request_heads(of_any, [chance.choice(cities)], [key], more)
            elif kind < _CITY + _UNKNOWN:
                heads += request_heads(endpoint, [chance.choice(unknown)], [key], more)
            else:
                if not more and zip_code in tags and chance.random() < _UNCHANGED:
                    more = [f"if-none-match: {tags[zip_code]}"]
                heads += request_heads(endpoint, [zip_code], [key], more)
        return heads

    def cold(self) -> list[str]:
        """In an order that is random and the same for all."""
        cold = self._zips[HOT_ZIP_CODES:]
        random.Random(1).shuffle(cold)
        return cold

    def _keys_of(self, shape: Shape) -> list[str]:
        if shape.keys not in self._keys:
            self._keys[shape.keys] = self._new_keys(shape)
        return self._keys[shape.keys]

    def _new_keys(self, shape: Shape) -> list[str]:
        if shape.keys == "none":
            return [self._stage.issue()]
        if shape.keys == "over":
            return [self._stage.issue("--rate", f"{OVER_RATE}/s", "--burst", str(OVER_RATE))]
        if shape.keys == "wrong":
            return [any_key()[0] for _ in range(_WRONG_KEYS)]
        return add_keys(self._stage, int(shape.keys))

    def _tags_of(self, zips: Sequence[str]) -> list[str]:
        """Of the service's answers, which whoever is before it passes on."""
        if not self._tags:
            base = self._stage.instances[0].partners
            with httpx.Client(base_url=base, headers={"x-api-key": self._stage.key}) as client:
                answers = [client.get(Endpoint(base, "").target(one)) for one in zips]
            self._tags = [answer.headers["etag"] for answer in answers]
        return self._tags


def add_keys(stage: Stage, count: int) -> list[str]:
    """`count` more keys, as partners present them; written to the key store directly.

    Issuing them would take a line in the audit trail and a round trip each.
    """
    secret = pepper.obtain(None, stage.data)
    fingerprint, stored, keys = pepper.fingerprint(secret), dict[str, bytes](), []
    for _ in range(count):
        presented, parts = any_key()
        keys.append(presented)
        digest = form.digest(parts.secret, secret)
        key = ApiKey(
            key_id=parts.key_id, partner="bench", digest=digest, created_at=now(), terms=_TERMS, pepper=fingerprint
        )
        stored |= {record_name(parts.key_id): msgspec.json.encode(key), f"peer-key:{presented}": b"bench"}
    with redis.Redis(unix_socket_path=str(stage.keys.socket)) as client:
        client.mset(stored)
    return keys


def largest_cities(stage: Stage, most: int) -> list[str]:
    """The queries for the `most` cities with the most ZIP codes."""
    file = stage.release / "tables" / "locations.parquet"
    query = "'city_name=' || url_encode(city_name) || '&state_code=' || state_code"
    grouped = f"SELECT {query} FROM read_parquet('{file}') GROUP BY city_name, state_code"
    rows = duckdb.connect().execute(f"{grouped} ORDER BY count(*), 1").fetchall()
    return [query for (query,) in rows[-most:]]
