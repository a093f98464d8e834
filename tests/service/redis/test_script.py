"""Scripts by the library. See test_line.py for calls by their digest."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis

from service.redis.errors import StoreUnavailable
from service.redis.script import Script

# Of tokens of one key, whose burst is 5.
CALLS = [[1, "r:{a}", 10, 1_000_000, 5, wanted, 1, 0] for wanted in (1, 3, 4)]


class Sent(FakeAsyncRedis):
    """Notes the names of commands. `loses` the last reply of each round trip."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[str] = []
        self.loses = False

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        made: Any = super().pipeline(transaction, shard_hint)
        execute_command, execute = made.execute_command, made.execute

        def noted(*words: Any, **options: Any) -> Any:
            self.commands.append(words[0])
            return execute_command(*words, **options)

        async def executed(**options: Any) -> list[Any]:
            replies: list[Any] = await execute(**options)
            return replies[:-1] if self.loses else replies

        made.execute_command, made.execute = noted, executed
        return made


@pytest.fixture
async def client() -> AsyncIterator[Sent]:
    made = Sent()
    yield made
    await made.aclose()


async def test_evaluating_needs_no_script_that_is_known(client: Sent) -> None:
    script = Script("service.quota", "lease.lua")
    assert [reply[0] for reply in await script.evaluate(client, CALLS)] == [1, 3, 1]
    assert client.commands == ["EVAL"] * 3


async def test_a_missing_reply_makes_all_unknown(client: Sent) -> None:
    client.loses = True
    with pytest.raises(StoreUnavailable, match=r"lease\.lua: 3 calls sent, 2 answered"):
        await Script("service.quota", "lease.lua").evaluate(client, CALLS)
