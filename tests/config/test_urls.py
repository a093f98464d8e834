"""URLs of Redis, which may name several servers: what is refused, and that no password is ever shown."""

import pytest

from config.urls import address, mask_url, same_store, url_problem

SENTINELS = "redis+sentinel://user:hunter2@h1:26379,h2,H3:26381/keys/2"
GOOD = {
    "redis://h": "redis://h",
    "redis://h:6379/0": "redis://h:6379/0",
    "rediss://h:6380/1": "rediss://h:6380/1",
    "redis://user:hunter2@h:6379/0": "redis://user:********@h:6379/0",
    "redis://:hunter2@h": "redis://:********@h",
    "redis://:hun@ter2@h": "redis://:********@h",
    "redis://:hun%2Fter2@h": "redis://:********@h",
    "redis://h/0?password=hunter2": "redis://h/0?********",
    "rediss://h?ssl_ca_certs=/ca.pem&ssl_check_hostname=false": "rediss://h?********",
    "redis://[::1]:6379": "redis://[::1]:6379",
    "unix:///run/redis.sock?password=hunter2": "unix:///run/redis.sock?********",
    "unix://user:hunter2@/run/redis.sock": "unix://user:********@/run/redis.sock",
    SENTINELS: "redis+sentinel://user:********@h1:26379,h2,H3:26381/keys/2",
    "redis+sentinel://h1/keys?sentinel_password=hunter2": "redis+sentinel://h1/keys?********",
    "rediss+cluster://:hunter2@h1,h2": "rediss+cluster://:********@h1,h2",
}
BAD = [
    "hunter2",
    "user:hunter2@h:6379",
    "http://user:hunter2@h",
    "REDIS//user:hunter2@h",
    "redis://user:hunter2",  # the host forgotten
    "redis://user:hun/ter2@h",  # not percent-encoded
    "redis://user:hun#ter2@h",
    "redis://user:12?hunter2@h",
    "redis://user:12/hunter2@h",
    "redis://user:12#hunter2@h",
    "redis://h:99999",
    "redis://[::1",
    "redis://",
    "unix://run/redis.sock",
    "redis://h/0?bogus=hunter2",
    "redis://h/0?hunter2",
    "redis://h/0?ssl_ca_certs=/hunter2",  # without TLS
    "redis://h/0?socket_timeout=60",
    "unix:///run/redis.sock?bogus=hunter2",
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


@pytest.mark.parametrize(("url", "shown"), GOOD.items())
def test_a_good_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert url_problem(url) is None
    assert mask_url(url) == shown


@pytest.mark.parametrize("url", BAD)
def test_a_bad_url_is_refused_and_hidden_whole(url: str) -> None:
    """Where a URL is malformed it is unknown which part the password is, so none is shown; what is wrong is said."""
    problem = url_problem(url)
    assert problem
    assert "ter2" not in problem
    assert mask_url(url) == "********"


def test_embedded_is_no_secret() -> None:
    assert mask_url("embedded") == "embedded"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("embedded", "embedded"),
        ("redis://h", "redis://h:6379/0"),
        ("redis://user:hunter2@H:6379/0", "redis://h:6379/0"),
        ("redis://:hun%2Fter2@h:7000/1?db=2&password=hunter2", "redis://h:7000/2"),
        ("rediss://h:6380/1?ssl_ca_certs=/ca.pem", "rediss://h:6380/1"),
        ("redis://[::1]:6379", "redis://[::1]:6379/0"),
        ("unix:///run/redis.sock?password=hunter2", "unix:///run/redis.sock?db=0"),
        ("unix://user:hunter2@/run/a%20b.sock?db=3", "unix:///run/a b.sock?db=3"),
        (SENTINELS, "redis+sentinel://h1:26379,h2:26379,h3:26381/keys/2"),
        ("redis+sentinel://b,a/k%20s", "redis+sentinel://a:26379,b:26379/k%20s/0"),
        ("rediss+cluster://u:hunter2@b:7000,a?ssl_ca_certs=/ca", "rediss+cluster://a:6379,b:7000"),
    ],
)
def test_an_address_is_a_place_and_no_secret(url: str, shown: str) -> None:
    """The order of a list does not matter; the address of one is itself a URL that can be read."""
    assert address(url) == shown
    assert "+" not in url or address(shown) == shown


@pytest.mark.parametrize(
    ("one", "host", "other", "other_host", "same"),
    [
        ("redis://h:6379/0", "a", "redis://h:6379/0", "b", True),
        ("redis://h:6379/0", "a", "rediss://h:6379/0", "b", True),
        ("redis://h:6379/0", "a", "redis://h:6379/1", "a", False),
        ("redis://h:6379/0", "a", "redis://g:6379/0", "a", False),
        ("redis://127.0.0.1:6379/0", "a", "redis://localhost:6379/0", "a", True),
        ("redis://127.0.0.1:6379/0", "a", "redis://127.0.0.1:6379/0", "b", False),
        ("unix:///s?db=0", "a", "unix:///s?db=0", "a", True),
        ("unix:///s?db=0", "a", "unix:///s?db=0", "b", False),
        ("embedded", "a", "embedded", "a", True),
        ("embedded", "a", "redis://h:6379/0", "a", False),
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
def test_whether_two_addresses_are_one_store(one: str, host: str, other: str, other_host: str, same: bool) -> None:
    """Loopback and sockets are each host's own; lists that share a Sentinel and the service, or a node, are one."""
    ones, others = address(one), address(other)
    assert same_store(ones, host, others, other_host) == same_store(others, other_host, ones, host) == same
