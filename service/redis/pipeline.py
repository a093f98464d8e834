"""Commands in one write, and their replies: the library's own pipeline takes twice as long for each."""

from collections.abc import Sequence
from typing import Any

import hiredis
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from service.redis.name_store import NameCommand


async def run_pipeline(client: Redis, commands: Sequence[NameCommand]) -> list[Any]:
    """The reply to each command, or the error that it was answered with. Raises and tries again as `client` does."""
    data = b"".join([hiredis.pack_command(command.words) for command in commands])  # type: ignore[arg-type]  # a tuple
    pool = client.connection_pool
    connection: AbstractConnection = await pool.get_connection()  # type: ignore[no-untyped-call]
    try:
        return await connection.retry.call_with_retry(
            lambda: _exchanged(client, connection, data, commands), lambda error: connection.disconnect(error=error)
        )
    except BaseException:
        await connection.disconnect(nowait=True)  # what was not read must not answer the next who has it
        raise
    finally:
        await pool.release(connection)


async def _exchanged(
    client: Redis, connection: AbstractConnection, data: bytes, commands: Sequence[NameCommand]
) -> list[Any]:
    await connection.send_packed_command([data])
    replies: list[Any] = []
    for command in commands:
        try:
            reply = await connection.read_response()
        except ResponseError as error:
            reply = error
        else:
            told = client.response_callbacks.get(command.words[0])  # type: ignore[arg-type]  # a word
            reply = told(reply) if told is not None else reply
        replies.append(reply)
    return replies
