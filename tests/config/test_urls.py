"""URLs of Redis: what is refused, and that no password is ever shown."""

import pytest

from config.urls import mask_url, url_problem

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
