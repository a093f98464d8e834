"""A listener that is about to close: whoever has begun to connect is served, and nobody else gets in."""

import contextlib
import errno
import select
import socket
from collections.abc import Iterator

import pytest

from service.base.sockets import bind, refuse_new

LOCAL = pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
# Linux's: from now on no filter may be attached.
SO_LOCK_FILTER = 44
# The kernel sends a SYN without answer again after one second.
AGAIN_SECONDS = 5.0
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
    """Whoever was established before is served afterwards, what it had sent included."""
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
def test_a_new_connection_is_neither_established_nor_reset_but_refused_after_the_close(host: str) -> None:
    """It hears nothing while the listener is there, and that nobody listens when it asks again."""
    with listening_on(host) as listening, socket.socket(listening.family) as client:
        refuse_new(listening)
        client.setblocking(False)
        assert client.connect_ex(listening.getsockname()[:2]) == errno.EINPROGRESS
        assert select.select([listening], [client], [], SILENT_SECONDS) == ([], [], [])
        listening.close()
        assert select.select([], [client], [], AGAIN_SECONDS)[1] == [client]
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED


def test_where_no_filter_can_be_attached_the_listener_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """That is logged, and connections are taken as before."""
    caplog.set_level("DEBUG", "forecast.sockets")
    with listening_on("127.0.0.1") as listening:
        listening.setsockopt(socket.SOL_SOCKET, SO_LOCK_FILTER, 1)
        refuse_new(listening)
        with socket.create_connection(listening.getsockname()[:2], timeout=5) as client:
            assert_talks(listening, client)
    assert "Operation not permitted" in caplog.text
