"""Which requests come from pages of other sites."""

import pytest

from service.operators.origins import Hosts, is_cross_site


def known(hosts: Hosts, *sent: str) -> bool:
    return hosts.know([(b"accept", b"*/*"), *((b"host", host.encode()) for host in sent)])


def test_names_of_this_machine_are_known_on_any_port() -> None:
    names = ("localhost", "localhost:8001", "LOCALHOST:9001", "localhost.")
    for host in (*names, "127.0.0.1:8001", "127.1.2.3", "[::1]", "[::1]:8001"):
        assert known(Hosts(), host)


@pytest.mark.parametrize(
    "host",
    [
        "rebound.example",
        "rebound.example:8001",
        "localhost.rebound.example",
        "127.0.0.1.rebound.example",
        "localhost@rebound.example",
        "[::1].rebound.example",
        "[127.0.0.1]rebound.example",
        "127.0.0.1:80@rebound.example",
        "192.0.2.1:8001",
        "0.0.0.0:8001",
        "[2001:db8::1]:8001",
        "ÿ",
        "",
    ],
)
def test_an_unknown_name_of_this_machine_is_refused(host: str) -> None:
    """A browser sends the name of the page's own site."""
    assert not known(Hosts(), host)


def test_operators_can_name_further_hosts() -> None:
    hosts = Hosts(["ops.Example.org", "2001:db8::1"])
    assert known(hosts, "OPS.example.org:443")
    assert known(hosts, "[2001:DB8::1]:8001")
    assert not known(hosts, "example.org")


def test_each_host_that_is_sent_must_be_known() -> None:
    assert known(Hosts())
    assert not known(Hosts(), "localhost", "rebound.example")


@pytest.mark.parametrize(
    ("headers", "cross"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin", "origin": "https://ops.example.org"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site", "origin": "http://localhost:8001"}, True),
        ({"origin": "http://localhost:8001"}, False),
        ({"origin": "HTTP://LOCALHOST:8001"}, False),
        ({"origin": "http://localhost:3000"}, True),
        ({"origin": "https://elsewhere.example"}, True),
        ({"origin": "null"}, True),
    ],
    ids=str,
)
def test_a_browser_says_where_a_request_comes_from(headers: dict[str, str], cross: bool) -> None:
    """Another port is another site. What is no browser says nothing."""
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert is_cross_site([(b"host", b"localhost:8001"), *sent]) is cross
