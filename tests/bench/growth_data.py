"""Drops and keys of any size, for `growth`."""

from pathlib import Path

import duckdb
import msgspec
import redis

from service.base.terms import Terms
from service.keys import form, pepper
from service.keys.record import ApiKey, record_name
from service.keys.store import now
from tests.bench.stage import Stage

_BATCH = 5000

_DROP = """
CREATE TABLE z AS SELECT printf('%05d', i * 100000 // $zips) AS zip_code, i FROM range($zips) t(i);
COPY (SELECT zip_code, 'City ' || (i // 5) AS city_name, ['AL', 'CA', 'NY', 'OH', 'TX'][1 + i // 5 % 5] AS state_code,
             'Clarke County' AS county_name, '01025' AS county_fips_code,
             31.7061::DOUBLE AS latitude, -87.9999::DOUBLE AS longitude FROM z)
  TO '{folder}/locations.parquet';
COPY (SELECT zip_code, year, 1000 + i % 9000 + year AS tot_population
      FROM z, (SELECT unnest(range(2000, 2000 + $years)) AS year)) TO '{folder}/population.parquet';
COPY (SELECT zip_code, 216 + i % 900 AS tot_home_available_2020, 333 AS tot_home_available_2021,
             334 AS tot_home_available_2022, 281 AS tot_home_available_2023, 467 AS est_total_home_demand_2030 FROM z)
  TO '{folder}/housing.parquet';
"""


def make_drop(folder: Path, zips: int, years: int) -> Path:
    """A made-up drop: `zips` ZIP codes, five to a city, each with `years` figures."""
    folder.mkdir(parents=True)
    statement = _DROP.replace("{folder}", str(folder)).replace("$zips", str(zips)).replace("$years", str(years))
    duckdb.connect().execute(statement)
    return folder


def add_keys(stage: Stage, count: int, terms: Terms) -> list[str]:
    """`count` more keys with `terms`, as partners present them; written to the key store directly.

    Issuing them would take a line in the audit trail and a round trip each.
    """
    secret = pepper.obtain(None, stage.data)
    encoder = msgspec.json.Encoder()
    keys = []
    with redis.Redis(unix_socket_path=str(stage.keys.socket)) as client:
        for start in range(0, count, _BATCH):
            records: dict[str, bytes] = {}
            for _ in range(min(_BATCH, count - start)):
                presented, parts = form.generate()
                keys.append(presented)
                key = ApiKey(
                    key_id=parts.key_id,
                    partner="bench",
                    digest=form.digest(parts.secret, secret),
                    created_at=now(),
                    terms=terms,
                    pepper=pepper.fingerprint(secret),
                )
                records[record_name(parts.key_id)] = encoder.encode(key)
            client.mset(records)
    return keys


def largest_cities(stage: Stage, most: int) -> list[str]:
    """The queries for the `most` cities with the most ZIP codes."""
    file = stage.release / "tables" / "locations.parquet"
    query = "'city_name=' || url_encode(city_name) || '&state_code=' || state_code"
    grouped = f"SELECT {query} FROM read_parquet('{file}') GROUP BY city_name, state_code"
    rows = duckdb.connect().execute(f"{grouped} ORDER BY count(*), 1").fetchall()
    return [query for (query,) in rows[-most:]]
