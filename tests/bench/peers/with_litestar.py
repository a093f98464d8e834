"""Litestar's own response cache with its RedisStore, the key looked up in Redis, DuckDB on a miss.

Run with uvicorn; RELEASE is a release's folder, KEYS and CACHE are Redis URLs.
"""

import os
from typing import Any

from litestar import Litestar, get
from litestar.config.response_cache import ResponseCacheConfig
from litestar.connection import ASGIConnection
from litestar.exceptions import NotAuthorizedException, NotFoundException
from litestar.handlers import BaseRouteHandler
from litestar.stores.redis import RedisStore
from lookup import look_up
from redis.asyncio import Redis

keys = Redis.from_url(os.environ["KEYS"])


async def known_key(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
    if await keys.get(f"peer-key:{connection.headers.get('x-api-key', '')}") is None:
        raise NotAuthorizedException


@get("/v1/population-housing-forecast", guards=[known_key], cache=86400, sync_to_thread=True)
def population_housing_forecast(zip_code: str) -> dict[str, Any]:
    answer = look_up(zip_code)
    if answer is None:
        raise NotFoundException
    return answer


app = Litestar(
    [population_housing_forecast],
    stores={"answers": RedisStore(Redis.from_url(os.environ["CACHE"]), namespace="litestar")},
    response_cache_config=ResponseCacheConfig(store="answers"),
    openapi_config=None,
    logging_config=None,
)
