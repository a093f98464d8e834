"""A listener that is about to close: whoever has begun to connect is served, and no other gets in."""

import contextlib
import select
import socket
from collections.abc import Iterator

import pytest

from service.base import sockets
from service.base.sockets import StartError, bind, refuse_new, url_of

LOCAL = pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
# What is established on this machine is so at once.
SILENT_SECONDS = 0.3


@contextlib.contextmanager
def listening_on(host: str) -> Iterator[socket.socket]:
    with bind(host, 0, "listen_port") as bound:
        bound.settimeout(5)
        yield bound


def assert_talks(listening: socket.socket, client: socket.socket) -> None:
    """`client` is accepted, and what either side sends arrives."""
    client.sendall(b"question")
    accepted, _ = listening.accept()
    with accepted:
        assert accepted.recv(100) == b"question"
        accepted.sendall(b"answer")
        assert client.recv(100) == b"answer"


@LOCAL
def test_connections_in_the_queue_are_accepted_when_new_ones_are_not(host: str) -> None:
    with listening_on(host) as listening:
        clients = [socket.create_connection(listening.getsockname()[:2], timeout=5) for _ in range(3)]
        refuse_new(listening)
        for client in clients:
            with client:
                assert_talks(listening, client)


@LOCAL
def test_a_handshake_under_way_is_finished_when_new_ones_are_not_begun(host: str) -> None:
    """The last segment of a handshake passes, though it is addressed to the listener."""
    with listening_on(host) as listening:
        # With this the kernel ends a handshake when the first data arrives, so until then it is under way.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 5)
        with socket.create_connection(listening.getsockname()[:2], timeout=5) as client:
            assert select.select([listening], [], [], SILENT_SECONDS)[0] == []
            refuse_new(listening)
            assert_talks(listening, client)


@LOCAL
def test_a_new_connection_is_refused_before_the_close(host: str) -> None:
    with listening_on(host) as listening:
        refuse_new(listening)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(listening.getsockname()[:2], timeout=5)


def test_a_listener_of_both_families_refuses_both() -> None:
    with listening_on("::") as listening:
        refuse_new(listening)
        for host in ("127.0.0.1", "::1"):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((host, listening.getsockname()[1]), timeout=5)


def test_where_the_kernel_cannot_refuse_the_listener_goes_on_and_a_warning_says_what_may_be_lost(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As before Linux 5.7, and in some sandboxes."""
    monkeypatch.setattr(sockets, "_SO_BINDTOIFINDEX", 9999)  # an option that no kernel has
    with listening_on("127.0.0.1") as listening:
        refuse_new(listening)
        with socket.create_connection(listening.getsockname()[:2], timeout=5) as client:
            assert_talks(listening, client)
    assert "cannot refuse new connections before the listener closes (Protocol not available)" in caplog.text


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("a..b", "it is not a host name"),
        ("224.0.0.1", "it is an address of several machines"),
        ("255.255.255.255", "it is an address of several machines"),
        ("ff02::1", "it is an address of several machines"),
        ("a" * 80, "it is not a host name"),
    ],
)
@pytest.mark.parametrize("listener", ["LISTEN", "OPERATOR"])
def test_a_host_that_is_none_is_explained(host: str, why: str, listener: str) -> None:
    with pytest.raises(StartError) as reported, bind(host, 0, f"{listener.lower()}_port"):
        pass
    assert str(reported.value) == (
        f"cannot listen on {host} (FORECAST_{listener}_HOST): {why}. Give an IP address or a host name of this "
        f"machine, such as 127.0.0.1 or 0.0.0.0. The port goes into FORECAST_{listener}_PORT."
    )


def test_a_star_is_every_address_of_the_machine() -> None:
    with bind("*", 0, "listen_port") as bound:
        assert url_of(bound).startswith(("http://127.0.0.1:", "http://[::1]:"))


@pytest.mark.parametrize("host", ["192.0.2.7", "fe80::1"])
def test_an_address_of_another_machine_is_named(host: str) -> None:
    """A link-local address is none without its interface."""
    with pytest.raises(StartError, match="it is not an address of this machine"), bind(host, 0, "listen_port"):
        pass
