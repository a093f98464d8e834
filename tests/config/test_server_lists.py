"""URLs that name several servers: what they say."""

import pytest

from config.server_lists import Node, ServerList, ServerListError, server_list
from config.urls import keys_problem

SENTINELS = "redis+sentinel://user:hunter2@h1:26379,h2,H3:26381/keys/2"


def listed(url: str) -> ServerList:
    found = server_list(url)
    assert found is not None
    return found


def test_sentinels_are_listed_with_the_service_they_know() -> None:
    found = listed(SENTINELS)
    assert (found.kind, found.tls) == ("sentinel", False)
    assert found.nodes == (Node("h1", 26379), Node("h2", 26379), Node("h3", 26381))
    assert (found.service, found.database) == ("keys", 2)
    assert found.server_url(Node("10.0.0.1", 6379)) == "redis://user:hunter2@10.0.0.1:6379/2"
    assert found.sentinel_url(found.nodes[0]) == "redis://h1:26379/0"


def test_sentinels_have_credentials_of_their_own() -> None:
    """What the primary wants is not sent to the Sentinels, nor the other way round; special characters stay encoded."""
    found = listed("redis+sentinel://:a%40b@h1/keys?sentinel_username=watch&sentinel_password=c%2Fd%2Be")
    assert found.server_url(Node("p", 1)) == "redis://:a%40b@p:1/0"
    assert found.sentinel_url(found.nodes[0]) == "redis://watch:c%2Fd%2Be@h1:26379/0"


def test_a_cluster_is_listed_by_some_of_its_nodes() -> None:
    found = listed("rediss+cluster://u:p@h1,[::1]:7000/0?ssl_ca_certs=/ca.pem")
    assert (found.kind, found.tls) == ("cluster", True)
    assert found.nodes == (Node("h1", 6379), Node("::1", 7000))
    assert found.server_url(found.nodes[1]) == "rediss://u:p@[::1]:7000/0?ssl_ca_certs=%2Fca.pem"


@pytest.mark.parametrize("url", ["redis://h", "rediss://h", "unix:///s", "embedded", "sentinel://h1/keys"])
def test_other_urls_list_nothing(url: str) -> None:
    assert server_list(url) is None


def test_a_bad_list_is_an_error() -> None:
    """tests/config/test_urls.py has the ways to be one."""
    with pytest.raises(ServerListError):
        server_list("redis+sentinel://h1,h2")


def test_keys_are_refused_on_a_cluster_with_the_reason() -> None:
    problem = keys_problem("redis+cluster://h1,h2")
    assert problem is not None
    assert "audit trail are written in one step" in problem
    assert "redis+sentinel://" in problem
    assert [keys_problem(url) for url in (SENTINELS, "redis://h", "unix:///s")] == [None] * 3
