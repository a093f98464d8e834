"""A URL whose server is of another kind is an error that names the right scheme: real servers of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.embedded.probe import check_answers_redis
from tests.support.sentinels import PortServer, wait_until


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, PortServer]]:
    folder: Path = tmp_path_factory.mktemp("kinds")
    primary = PortServer(folder / "primary").start()
    monitor = f"sentinel monitor keys 127.0.0.1 {primary.port} 1"
    started = {
        "primary": primary,
        "replica": PortServer(folder / "replica", "--replicaof", "127.0.0.1", str(primary.port)).start(),
        "sentinel": PortServer(folder / "sentinel", sentinel=[monitor]).start(),
        "node": PortServer(folder / "node", "--cluster-enabled", "yes").start(),
    }
    wait_until(lambda: started["replica"].command("INFO", "replication")["master_link_status"] == "up", "a replica")
    yield started
    for server in started.values():
        server.kill()


def url(servers: dict[str, PortServer], scheme: str, name: str) -> str:
    suffix = {"redis+sentinel": "/keys/0", "redis+cluster": ""}.get(scheme, "/0")
    return f"{scheme}://{servers[name].node}{suffix}"


@pytest.mark.parametrize(
    ("scheme", "name"), [("redis", "primary"), ("redis+sentinel", "sentinel"), ("redis+cluster", "node")]
)
async def test_the_right_kind_is_no_mistake(servers: dict[str, PortServer], scheme: str, name: str) -> None:
    assert await check_answers_redis(url(servers, scheme, name)) is None


@pytest.mark.parametrize(
    ("scheme", "name", "said", "right"),
    [
        ("redis", "replica", "is a replica", "redis+sentinel://"),
        ("redis", "sentinel", "is a Sentinel", "redis+sentinel://"),
        ("redis", "node", "is a node of a cluster", "redis+cluster://"),
        ("redis+sentinel", "primary", "is one server", "redis://"),
        ("redis+sentinel", "node", "is a node of a cluster", "redis+cluster://"),
        ("redis+cluster", "primary", "is one server", "redis://"),
        ("redis+cluster", "sentinel", "is a Sentinel", "redis+sentinel://"),
    ],
)
async def test_another_kind_is_a_mistake_that_names_the_right_scheme(
    servers: dict[str, PortServer], scheme: str, name: str, said: str, right: str
) -> None:
    problem = await check_answers_redis(url(servers, scheme, name))
    assert problem is not None
    assert said in problem
    assert right in problem


async def test_keys_on_a_node_of_a_cluster_are_refused_with_the_reason(servers: dict[str, PortServer]) -> None:
    """The scheme of a cluster would be refused as well, so it is not named."""
    problem = await check_answers_redis(url(servers, "redis", "node"), for_keys=True)
    assert problem is not None
    assert "in one step" in problem
    assert "redis+cluster" not in problem


async def test_a_service_that_no_sentinel_knows_is_a_mistake(servers: dict[str, PortServer]) -> None:
    problem = await check_answers_redis(f"redis+sentinel://{servers['sentinel'].node}/cache")
    assert problem is not None
    assert "know no service `cache`" in problem


async def test_unreachable_sentinels_are_no_mistake(servers: dict[str, PortServer]) -> None:
    """Neither all of them, nor so many that there is no majority."""
    assert await check_answers_redis("redis+sentinel://127.0.0.1:1/keys") is None
    assert await check_answers_redis(f"redis+sentinel://{servers['sentinel'].node},127.0.0.1:1/keys") is None
