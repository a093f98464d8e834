"""The rights that docs/operate/rights.md grants on Sentinels are enough, and not more than that."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

from config.server_lists import server_list
from service.embedded.probe import check_answers_redis
from service.redis.primary import found
from tests.support.documented import rights
from tests.support.sentinels import PortServer

USER = "sentinel_username=forecast&sentinel_password=PASSWORD"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """One Sentinel with the documented user, where no other user may do anything."""
    primary = PortServer(tmp_path / "primary").start()
    about = f"sentinel monitor keys 127.0.0.1 {primary.port} 1"
    sentinel = PortServer(tmp_path / "sentinel", sentinel=[about]).start()
    for line in (*rights("sentinels"), ("ACL", "SETUSER", "default", "off")):
        sentinel.command(*line)
    yield f"redis+sentinel://{sentinel.node}/keys/0?{USER}"
    sentinel.kill()
    primary.kill()


async def test_with_these_rights_the_primary_is_found(url: str) -> None:
    assert await check_answers_redis(url) is None
    async with found(url) as primary:
        assert primary.url is not None
        assert primary.url.startswith("redis://127.0.0.1:")


def test_with_these_rights_nothing_can_be_changed(url: str) -> None:
    listed = server_list(url)
    assert listed is not None
    with Redis.from_url(listed.sentinel_url(listed.nodes[0])) as client:
        for words in (("SENTINEL", "FAILOVER", "keys"), ("SENTINEL", "SET", "keys", "quorum", "3")):
            with pytest.raises(NoPermissionError):
                client.execute_command(*words)


async def test_a_sentinel_that_wants_credentials_is_reported_at_the_start(url: str) -> None:
    """Those of the primary are not sent to it."""
    problem = await check_answers_redis(url.partition("?")[0])
    assert problem is not None
    assert "refuses the credentials" in problem
