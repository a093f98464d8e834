"""The usual way to build this: FastAPI, fastapi-cache2 with Redis, DuckDB over the same tables on a miss.

Run with uvicorn; RELEASE is a release's folder, KEYS and CACHE are Redis URLs, as for the instance beside it.
"""

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import duckdb
from fastapi import Depends, FastAPI, Header, HTTPException
from fastapi_cache import FastAPICache
from fastapi_cache.backends.redis import RedisBackend
from fastapi_cache.decorator import cache
from redis.asyncio import Redis

TABLES = os.environ["RELEASE"] + "/tables"
keys = Redis.from_url(os.environ["KEYS"])
connection = duckdb.connect()
connection.execute("SET threads = 1; SET parquet_metadata_cache = true")
QUERY = f"""
SELECT l.*, p.years, p.figures, h.* EXCLUDE (zip_code)
FROM read_parquet('{TABLES}/locations.parquet') l
LEFT JOIN (SELECT zip_code, list(year ORDER BY year) AS years,
                  list(tot_population ORDER BY year) AS figures
           FROM read_parquet('{TABLES}/population.parquet') WHERE zip_code = $zip GROUP BY zip_code) p USING (zip_code)
LEFT JOIN (SELECT * FROM read_parquet('{TABLES}/housing.parquet') WHERE zip_code = $zip) h USING (zip_code)
WHERE l.zip_code = $zip
"""


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    FastAPICache.init(RedisBackend(Redis.from_url(os.environ["CACHE"])), prefix="peer")
    yield


app = FastAPI(lifespan=lifespan)


async def known_key(x_api_key: str = Header()) -> None:
    digest = hashlib.sha256(x_api_key.encode()).hexdigest()
    if await keys.get(f"peer-key:{digest}") is None:
        raise HTTPException(401)


@app.get("/v1/population-housing-forecast", dependencies=[Depends(known_key)])
@cache(expire=86400)
def population_housing_forecast(zip_code: str) -> dict[str, Any]:
    row = connection.cursor().execute(QUERY, {"zip": zip_code}).fetchone()
    if row is None:
        raise HTTPException(404)
    zip_, city, state, county, fips, latitude, longitude, years, figures, *housing = row
    names = [f"tot_home_available_{year}" for year in range(2020, 2024)] + ["est_total_home_demand_2030"]
    return {
        "total_results": 1,
        "zip_codes": [
            {
                "location": {
                    "zip_code": zip_,
                    "county_name": county,
                    "county_fips_code": fips,
                    "city": f"{city}, {state}",
                    "state_code": state,
                    "latitude": latitude,
                    "longitude": longitude,
                },
                "population": [
                    {"year": year, "tot_population": figure}
                    for year, figure in zip(years or (), figures or (), strict=True)
                ],
                "housing": dict(zip(names, housing, strict=True)),
            }
        ],
    }
