"""What somebody without a key or a token can do to a real instance: nothing that others notice."""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.faults.conftest import Site
from tests.faults.test_operators import with_tokens
from tests.support.hostile import connect, pipeline, unread
from tests.support.instance import Instance, is_alive, serving
from tests.support.operators import WRITE
from tests.support.waiting import until

MOST_GROWTH = 80 << 20
METRICS = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def besieged(common: Site) -> Iterator[Instance]:
    """An instance that survives what is done to it here."""
    with serving(common.env, common.data.parent / "serve.log") as running:
        yield running


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_requests_without_end_on_one_connection_fill_no_memory(besieged: Instance) -> None:
    """On either listener: a read holds thousands of requests, and only as many are begun as can be answered."""
    instance = besieged
    (worker,) = instance.worker_pids()
    before = {pid: resident(pid) for pid in (worker, instance.process.pid)}
    attacks = [
        threading.Thread(target=pipeline, args=(base, b"GET / HTTP/1.1\r\nHost:localhost\r\n\r\n", 3.0))
        for base in (instance.partners, instance.operators)
    ]
    for attack in attacks:
        attack.start()
    most = dict(before)  # while it lasts: what is held for a connection is free when that ends
    while any(attack.is_alive() for attack in attacks):
        time.sleep(0.02)
        most = {pid: max(most[pid], resident(pid)) for pid in most}
    grown = {pid: (most[pid] - before[pid]) >> 20 for pid in before}
    assert max(grown.values()) << 20 < MOST_GROWTH, f"MiB more than before: {grown}"
    assert instance.ready().status_code == 200


@contextlib.contextmanager
def operators_who_never_end(base: str) -> Iterator[socket.socket]:
    """Somebody reads no answer; somebody with the token to write sends no body, and somebody a byte of it."""
    promise = (
        f"POST /caches/purge HTTP/1.1\r\nHost: [::1]\r\nAuthorization: Bearer {WRITE}\r\nContent-Length: 2\r\n\r\n"
    )
    with unread(base, METRICS), connect(base) as silent, connect(base) as halting, connect(base) as waiting:
        for connection, data in ((silent, promise), (halting, promise + "{"), (waiting, "GET /health")):
            connection.sendall(data.encode())
        yield waiting


@pytest.fixture
def beset(published: Site, short: Path) -> Iterator[Instance]:
    """An instance that has to stop while operators' requests never end; it has five minutes to drain."""
    env = with_tokens(published, short) | {"FORECAST_DRAIN": "300"}
    env.pop("FORECAST_OPERATOR_READ_TOKEN_FILE")
    with serving(env, short / "serve.log") as running, operators_who_never_end(running.operators):
        yield running


def test_operators_requests_that_never_end_keep_no_instance_from_stopping(published: Site, short: Path) -> None:
    """They have the time to drain, as partners' have."""
    env = with_tokens(published, short)
    env.pop("FORECAST_OPERATOR_READ_TOKEN_FILE")
    with serving(env, short / "serve.log") as instance, operators_who_never_end(instance.operators):
        assert instance.stop() == 0


def test_a_second_sigterm_stops_at_once_whatever_operators_do(beset: Instance) -> None:
    children = beset.descendants()
    beset.process.send_signal(signal.SIGTERM)
    until(lambda: beset.ready().status_code == 503)
    beset.stop()
    assert not [pid for pid in children if is_alive(pid)]


def test_thousands_of_connections_leave_room_for_a_health_check(besieged: Instance) -> None:
    """Those that were silent longest go; health and metrics are there all the time."""
    instance = besieged
    with contextlib.ExitStack() as stack:
        for number in range(2_000):
            connection = stack.enter_context(connect(instance.operators))
            with contextlib.suppress(OSError):
                connection.sendall(METRICS if number % 10 == 0 else b"GET /health")
            if number % 200 == 199:
                assert instance.ready().status_code == 200
                assert httpx.get(f"{instance.operators}/metrics", timeout=30).status_code == 200
        assert len(list(Path(f"/proc/{instance.process.pid}/fd").iterdir())) < 600
