"""Confirms that a change of the key store is durable: on disk, and on as many replicas as the settings ask for.

WAIT and WAITAOF speak of what their own connection wrote. So the change and both travel on one, in one round trip.
"""

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, ResponseError

_WAIT_MILLISECONDS = 2000


async def confirmed(client: Redis, command: Sequence[Any], replicas: int) -> tuple[Any, str | None]:
    """The reply to `command`, which writes, and what is not confirmed about it; None if all is.

    `replicas` must have it, besides the server's append-only file, if it has one and can say so. Raises the error that
    `command` is answered with.
    """
    async with client.pipeline(transaction=False) as pipeline:
        pipeline.execute_command(*command)
        if replicas:
            pipeline.execute_command("WAIT", replicas, _WAIT_MILLISECONDS)
        pipeline.execute_command("WAITAOF", 1, 0, _WAIT_MILLISECONDS)
        reply, *waited, on_disk = await pipeline.execute(raise_on_error=False)
    if isinstance(reply, Exception):
        raise reply
    return reply, (_of_replicas(waited[0], replicas) if waited else None) or _of_disk(on_disk)


def _of_replicas(reply: object, wanted: int) -> str | None:
    if isinstance(reply, NoPermissionError):
        return "its user may not ask which replicas have it; grant it +wait"
    if not isinstance(reply, int):
        return f"the server does not say which replicas have it: {reply}"
    if reply >= wanted:
        return None
    return (
        f"{reply} of the {wanted} replicas that FORECAST_KEYS_REPLICAS asks for confirmed it within "
        f"{_WAIT_MILLISECONDS // 1000} s: if the primary is lost now, it can be lost too"
    )


def _of_disk(reply: object) -> str | None:
    if isinstance(reply, NoPermissionError):
        return "its user may not ask whether it is on disk; grant it +waitaof"
    if isinstance(reply, ResponseError):
        return None  # older than 7.2, or without the file: its own configuration decides
    if isinstance(reply, list) and reply and reply[0]:
        return None
    return "its disk has not confirmed it; check it"
