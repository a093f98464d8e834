"""The usual way to build this: FastAPI, fastapi-cache2 with Redis, DuckDB over the same tables on a miss.

Run with uvicorn; RELEASE is a release's folder, KEYS and CACHE are Redis URLs, as for the instance beside it.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Depends, FastAPI, Header, HTTPException
from fastapi_cache import FastAPICache
from fastapi_cache.backends.redis import RedisBackend
from fastapi_cache.decorator import cache
from lookup import look_up
from redis.asyncio import Redis

keys = Redis.from_url(os.environ["KEYS"])


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    FastAPICache.init(RedisBackend(Redis.from_url(os.environ["CACHE"])), prefix="fastapi")
    yield


app = FastAPI(lifespan=lifespan)


async def known_key(x_api_key: str = Header()) -> None:
    if await keys.get(f"peer-key:{x_api_key}") is None:
        raise HTTPException(401)


@app.get("/v1/population-housing-forecast", dependencies=[Depends(known_key)])
@cache(expire=86400)
def population_housing_forecast(zip_code: str) -> dict[str, Any]:
    answer = look_up(zip_code)
    if answer is None:
        raise HTTPException(404)
    return answer
