"""URLs of Redis: what is refused, and that no password is ever shown."""

import pytest

from config.urls import address, mask_url, same_store, url_problem

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
]


@pytest.mark.parametrize(("url", "shown"), GOOD.items())
def test_a_good_url_is_shown_without_its_password(url: str, shown: str) -> None:
    """A URL is accepted, and shown with everything but the password and the query."""
    assert url_problem(url) is None
    assert mask_url(url) == shown


@pytest.mark.parametrize("url", BAD)
def test_a_bad_url_is_refused_and_hidden_whole(url: str) -> None:
    """Where a URL is malformed nobody knows which part the password is, so none is shown; what is wrong is said."""
    problem = url_problem(url)
    assert problem is not None
    assert "hunter2" not in problem
    assert "ter2" not in problem
    assert mask_url(url) == "********"


def test_embedded_is_no_secret() -> None:
    """The word `embedded` is shown as it is."""
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
    ],
)
def test_an_address_is_a_place_and_no_secret(url: str, shown: str) -> None:
    assert address(url) == shown


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
    ],
)
def test_whether_two_addresses_are_one_store(one: str, host: str, other: str, other_host: str, same: bool) -> None:
    """Loopback and sockets are each host's own."""
    assert same_store(one, host, other, other_host) == same_store(other, other_host, one, host) == same
