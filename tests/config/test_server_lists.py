"""URLs that name several servers: what they say, what is refused, and that no password is ever shown."""

import pytest

from config.server_lists import Node, ServerList, ServerListError, server_list
from config.urls import address, keys_problem, mask_url, same_store, url_problem

SENTINELS = "redis+sentinel://user:hunter2@h1:26379,h2,H3:26381/keys/2"
BAD = [
    "redis+sentinel://user:hunter2@h1,h2",  # no service
    "redis+sentinel://user:hunter2@h1,h2/",
    "redis+sentinel://user:hunter2@/keys",
    "redis+sentinel://user:hunter2@h1,,h2/keys",
    "redis+sentinel://user:hunter2@h1:port/keys",
    "redis+sentinel://user:hunter2@h1:99999/keys",
    "redis+sentinel://user:hunter2@h1:0/keys",
    "redis+sentinel://user:hun/ter2@h1/keys",
    "redis+sentinel://user:hun#ter2@h1/keys",
    "redis+sentinel://user:hun?ter2@h1/keys",
    "redis+sentinel://h1/keys/hunter2",
    "redis+sentinel://h1,h1:26379/keys?sentinel_password=hunter2",  # two votes
    "redis+sentinel://h1/keys?hunter2",
    "redis+sentinel://h1/keys?ssl_ca_certs=/hunter2",  # without TLS
    "redis+sentinel://[::1/keys",
    "redis+sentinel://h1, h2/keys",
    "redis+cluster://user:hunter2@",
    "redis+cluster://h1/1",
    "redis+cluster://h1/keys",
    "redis+cluster://h1?sentinel_password=hunter2",
    "rediss+cluster://h1?bogus=hunter2",
]


def listed(url: str) -> ServerList:
    found = server_list(url)
    assert found is not None
    return found


def test_sentinels_are_listed_with_the_service_they_know() -> None:
    """Sentinels with their usual port, the name of the service, its database, and who asks the primary."""
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
    """Each is asked with the same credentials and certificates, as is every node that they name."""
    found = listed("rediss+cluster://u:p@h1,[::1]:7000/0?ssl_ca_certs=/ca.pem")
    assert (found.kind, found.tls) == ("cluster", True)
    assert found.nodes == (Node("h1", 6379), Node("::1", 7000))
    assert found.server_url(found.nodes[1]) == "rediss://u:p@[::1]:7000/0?ssl_ca_certs=%2Fca.pem"


@pytest.mark.parametrize("url", ["redis://h", "rediss://h", "unix:///s", "embedded", "sentinel://h1/keys"])
def test_other_urls_list_nothing(url: str) -> None:
    """They name one server, or none."""
    assert server_list(url) is None


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (SENTINELS, "redis+sentinel://user:********@h1:26379,h2,H3:26381/keys/2"),
        ("redis+sentinel://h1/keys?sentinel_password=hunter2", "redis+sentinel://h1/keys?********"),
        ("rediss+cluster://:hunter2@h1,h2", "rediss+cluster://:********@h1,h2"),
    ],
)
def test_a_good_list_is_shown_without_its_passwords(url: str, shown: str) -> None:
    """A list is accepted, and shown with everything but passwords and the query."""
    assert url_problem(url) is None
    assert mask_url(url) == shown


@pytest.mark.parametrize("url", BAD)
def test_a_bad_list_is_refused_and_hidden_whole(url: str) -> None:
    """Where a URL is malformed nobody knows which part the password is, so none is shown; what is wrong is said."""
    problem = url_problem(url)
    assert problem
    assert "ter2" not in problem
    assert mask_url(url) == "********"
    with pytest.raises(ServerListError):
        server_list(url)


def test_keys_are_refused_on_a_cluster_with_the_reason() -> None:
    """And accepted wherever one server has them all."""
    problem = keys_problem("redis+cluster://h1,h2")
    assert problem is not None
    assert "audit trail are written in one step" in problem
    assert "redis+sentinel://" in problem
    assert [keys_problem(url) for url in (SENTINELS, "redis://h", "unix:///s")] == [None] * 3


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (SENTINELS, "redis+sentinel://h1:26379,h2:26379,h3:26381/keys/2"),
        ("redis+sentinel://b,a/k%20s", "redis+sentinel://a:26379,b:26379/k%20s/0"),
        ("rediss+cluster://u:hunter2@b:7000,a?ssl_ca_certs=/ca", "rediss+cluster://a:6379,b:7000"),
    ],
)
def test_the_address_of_a_list_is_a_place_and_no_secret(url: str, shown: str) -> None:
    """The order does not matter; an address is itself a URL that can be read."""
    assert address(url) == shown
    assert address(shown) == shown


@pytest.mark.parametrize(
    ("one", "host", "other", "other_host", "same"),
    [
        ("redis+sentinel://a,b/keys/0", "x", "redis+sentinel://b,c/keys/0", "y", True),
        ("redis+sentinel://a,b/keys/0", "x", "rediss+sentinel://a,b/keys/0", "y", True),
        ("redis+sentinel://a,b/keys/0", "x", "redis+sentinel://a,b/cache/0", "y", False),
        ("redis+sentinel://a,b/keys/0", "x", "redis+sentinel://a,b/keys/1", "y", False),
        ("redis+sentinel://a,b/keys/0", "x", "redis+sentinel://c,d/keys/0", "y", False),
        ("redis+sentinel://127.0.0.1/keys/0", "x", "redis+sentinel://localhost/keys/0", "x", True),
        ("redis+sentinel://127.0.0.1/keys/0", "x", "redis+sentinel://127.0.0.1/keys/0", "y", False),
        ("redis+cluster://a,b", "x", "redis+cluster://b,c", "y", True),
        ("redis+cluster://a", "x", "redis://a:6379/0", "x", False),
    ],
)
def test_whether_two_lists_lead_to_one_store(one: str, host: str, other: str, other_host: str, same: bool) -> None:
    """Lists that share a Sentinel and the service, or a node of a cluster."""
    ones, others = address(one), address(other)
    assert same_store(ones, host, others, other_host) == same_store(others, other_host, ones, host) == same
