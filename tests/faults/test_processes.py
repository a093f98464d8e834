"""What happens when processes of an instance die, or are stopped."""

import contextlib
import json
import os
import re
import resource
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from service.connection import limits
from tests.faults.conftest import Site
from tests.support.drops import write_drop
from tests.support.instance import (
    FORECAST,
    SHORT_DRAIN,
    Instance,
    environment,
    forecast,
    forecast_here,
    is_alive,
    issue_key,
    serving,
)
from tests.support.waiting import until
from warehouse.releases.catalog import Catalog

_USUAL_DRAIN = {"FORECAST_DRAIN": "10"}


@pytest.fixture
def patient(published: Site, short: Path) -> Iterator[Instance]:
    """One worker that takes the usual time to stop."""
    with serving(published.env | _USUAL_DRAIN, short / "serve.log") as instance:
        yield instance


def test_a_worker_that_is_killed_is_replaced_and_what_it_counted_stays(published: Site, short: Path) -> None:
    """The instance answers again, with as many workers as before, and counts the restarts.

    What a dead worker had reported is still in the sums.
    """
    sample = 'forecast_requests_total{area="forecast",outcome="answered",status="200"}'
    with serving(published.env, short / "serve.log", workers=2) as instance:
        before = instance.worker_pids()
        assert len(before) == 2
        instance.zip_code(published.key)
        assert instance.metric(sample) == 1
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(lambda: instance.zip_code(published.key).status_code == 200)
        assert instance.metric(sample) == 2
        until(lambda: len(instance.worker_pids()) == 2 and not set(before) & set(instance.worker_pids()))
        assert instance.metric("forecast_worker_restarts_total") == 2


def test_while_no_worker_can_start_requests_get_a_503_at_once_and_operators_read_why(
    published: Site, short: Path
) -> None:
    """For lack of memory, which the supervisor lacks too. It answers, counts, and steps aside for the first worker."""
    refused = 'forecast_requests_total{area="none",outcome="unavailable",status="503"}'
    with serving(published.env, short / "serve.log", workers=2) as instance:
        (forks,) = instance.descendants("forecast-forks")
        enough = resource.prlimit(forks, resource.RLIMIT_AS)
        resource.prlimit(forks, resource.RLIMIT_AS, (virtual_bytes(forks), enough[1]))
        few = virtual_bytes(instance.process.pid) // 4
        resource.prlimit(instance.process.pid, resource.RLIMIT_AS, (few, enough[1]))
        for pid in instance.worker_pids():
            os.kill(pid, signal.SIGKILL)
        until(lambda: any("ended before it served" in line["message"] for line in instance.log()))
        began = time.monotonic()
        answer = instance.zip_code(published.key)
        assert time.monotonic() - began < 5
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["code"] == "unavailable"
        assert instance.metric(refused) >= 1
        (reason,) = instance.ready().json()["reasons"]
        # without memory, Python raises, or waits for good while a thread starts (python/cpython#140746)
        assert re.match("No worker can start: (exit code 1, |signal 9, SIGKILL, because it did not respond)", reason)
        for process in (forks, instance.process.pid):
            resource.prlimit(process, resource.RLIMIT_AS, enough)
        until(lambda: instance.zip_code(published.key).status_code == 200)
        until(lambda: instance.ready().json()["reasons"] == [])


def test_while_workers_take_long_to_start_no_request_waits_for_one(published: Site, short: Path) -> None:
    with serving(published.env, short / "serve.log") as instance:
        (forks,) = instance.descendants("forecast-forks")
        os.kill(forks, signal.SIGSTOP)  # the next start waits for it for 10 s
        for pid in instance.worker_pids():
            os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        assert instance.zip_code(published.key).status_code == 503
        assert time.monotonic() - began < 5
        until(lambda: instance.zip_code(published.key).status_code == 200)


def test_an_instance_stops_in_order_while_no_worker_serves(published: Site, short: Path) -> None:
    with serving(published.env, short / "serve.log") as instance:
        (forks,) = instance.descendants("forecast-forks")
        os.kill(forks, signal.SIGSTOP)
        for pid in instance.worker_pids():
            os.kill(pid, signal.SIGKILL)
        assert instance.zip_code(published.key).status_code == 503
        assert instance.stop() == 0


def test_many_connections_leave_an_instance_its_files_and_the_limit_is_named(published: Site, short: Path) -> None:
    """No wrong cause is reported, and a release that is published meanwhile goes live."""
    few = ("sh", "-c", 'ulimit -n 256; exec "$@"', "sh")
    with serving(published.env, short / "serve.log", prefix=few) as instance, contextlib.ExitStack() as crowd:
        url = httpx.URL(instance.partners)
        for _ in range(400):
            with contextlib.suppress(ConnectionError):  # one too many may be reset as soon as it connects
                crowd.enter_context(socket.create_connection((url.host, url.port or 80), timeout=30))
        until(lambda: any("256 open files" in reason for reason in instance.ready().json()["reasons"]))
        published.publish(write_drop(short / "another"))
        release = Catalog(published.data).current().id
        until(lambda: instance.ready().json()["releases"] == [release])
        (reason,) = instance.ready().json()["reasons"]
        assert reason == (
            "1 of 1 workers serve 64 connections each, the most that are allowed with 256 open files (ulimit -n, "
            "LimitNOFILE). Requests on further connections get a 503."
        )
        assert "Too many open files" not in instance.log_file.read_text()


def virtual_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def test_without_the_process_that_forks_workers_go_on_and_are_replaced(published: Site, short: Path) -> None:
    """Nothing else ends with it."""
    with serving(published.env, short / "serve.log") as instance:
        (pid,) = instance.worker_pids()
        (forking,) = instance.descendants("forecast-forks")
        os.kill(forking, signal.SIGKILL)
        assert instance.zip_code(published.key).status_code == 200
        os.kill(pid, signal.SIGKILL)
        until(lambda: instance.worker_pids() not in ([], [pid]))
        until(lambda: instance.zip_code(published.key).status_code == 200)
        assert instance.descendants("forecast-forks") == []


def test_a_worker_that_is_started_while_an_instance_stops_is_stopped(published: Site, short: Path) -> None:
    """Else the stop would take all of the drain time, as at any moment while an instance starts."""
    with serving(published.env | {"FORECAST_DRAIN": "300"}, short / "serve.log", workers=2) as instance:
        (forking,) = instance.descendants("forecast-forks")
        first, _ = instance.worker_pids()
        os.kill(forking, signal.SIGSTOP)
        os.kill(first, signal.SIGKILL)
        until(lambda: first not in instance.worker_pids())
        instance.process.send_signal(signal.SIGTERM)
        until(lambda: instance.ready().status_code == 503)
        os.kill(forking, signal.SIGCONT)
        assert instance.stop() == 0


def test_nothing_survives_a_killed_supervisor_but_the_keys(short: Path) -> None:
    """Workers and embedded servers end with it, also when it is killed outright. A key that was issued works later.

    Two instances share the data folder then; when the owner of the servers goes, the other starts them again.
    """
    env = environment(short / "data", drain=SHORT_DRAIN)
    assert forecast_here(env, "extracts", "publish", str(write_drop(short / "drop"))).returncode == 0
    with serving(env, short / "serve.log", workers=2) as instance:
        key = issue_key(env)
        assert instance.zip_code(key).status_code == 200
        children = instance.descendants()
        assert len(children) == 5, "two workers and what forks them, two embedded servers"
        instance.process.kill()
        instance.process.wait()
        until(lambda: not any(is_alive(pid) for pid in children))
    with serving(env, short / "first.log") as first, serving(env, short / "second.log") as second:
        assert first.zip_code(key).status_code == second.zip_code(key).status_code == 200
        first.stop()
        until(lambda: second.ready().json()["status"] == "ready")
        assert second.zip_code(key).status_code == 200


def test_commands_at_once_share_the_embedded_servers(short: Path) -> None:
    env = environment(short / "data", drain=SHORT_DRAIN)
    with ThreadPoolExecutor(4) as commands:
        keys = list(commands.map(lambda number: issue_key(env, f"partner {number}", forecast), range(8)))
    listed = json.loads(forecast_here(env, "keys", "list", "--json").stdout)
    assert len(set(keys)) == len(listed) == 8


def test_sigterm_finishes_what_is_under_way_and_says_close(patient: Instance, published: Site) -> None:
    """A kept-alive connection gets its next answer, with Connection: close; readiness turns 503; the exit code is 0."""
    host, port = httpx.URL(patient.partners).host, httpx.URL(patient.partners).port
    request = f"GET {FORECAST}?zip_code=36436 HTTP/1.1\r\nHost: x\r\nx-api-key: {published.key}\r\n\r\n".encode()
    with socket.create_connection((host, port or 80), timeout=30) as connection:
        connection.sendall(request)
        assert b"connection: close" not in whole_answer(connection).lower()
        half = len(request) // 2
        connection.sendall(request[:half])
        patient.process.send_signal(signal.SIGTERM)
        until(lambda: patient.zip_code(published.key).headers.get("connection") == "close")
        assert patient.ready().status_code == 503
        connection.sendall(request[half:])
        answer = whole_answer(connection)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in answer.lower()
        assert connection.recv(10) == b""
    assert patient.stop() == 0


def whole_answer(connection: socket.socket) -> bytes:
    """One answer with its body; the two can arrive apart."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65536)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def test_an_instance_that_is_to_outlive_its_terminal_does_and_a_stop_takes_no_longer_than_the_drain_time(
    published: Site, short: Path
) -> None:
    """Under nohup, which has it ignore a hangup.

    A caller who never finishes its request does not keep it from stopping.
    """
    env = {**published.env, "FORECAST_DRAIN": "1"}
    instance = Instance(env, short / "serve.log", workers=1, prefix=("nohup",))
    try:
        os.killpg(instance.process.pid, signal.SIGHUP)
        assert instance.zip_code(published.key).status_code == 200
        assert instance.ready().status_code == 200
        url = httpx.URL(instance.partners)
        with socket.create_connection((url.host, url.port or 80), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
            began = time.monotonic()
            assert instance.stop() == 0
            assert time.monotonic() - began < limits.HEAD_SECONDS - 1, "else it was the head that ran out of time"
    finally:
        instance.stop()


def test_an_instance_without_a_release_waits_for_the_first(site: Site, short: Path) -> None:
    """It answers 503 with Retry-After, is not ready, and serves the first release within 2 s."""
    with serving(site.env, short / "serve.log") as instance:
        answer = instance.zip_code(site.key)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["code"] == "unavailable"
        assert answer.json()["detail"].startswith("No data has been published yet.")
        assert instance.ready().status_code == 503
        assert "No release has been published yet" in instance.ready().text
        site.publish(write_drop(short / "drop"))
        until(lambda: instance.zip_code(site.key).status_code == 200)
        assert instance.ready().status_code == 200


def test_clients_that_reconnect_lose_no_request_to_a_stop(published: Site, short: Path) -> None:
    """While an instance drains, a new connection is answered or refused, and never reset with its request sent."""
    patient = {"FORECAST_KEYS_TIMEOUT": "5"}  # a slow key store would be a 503, which is not what this shows
    with serving(published.env | _USUAL_DRAIN | patient, short / "serve.log", workers=2) as instance:
        outcomes: Counter[str] = Counter()

        def ask() -> None:
            while not outcomes["refused"]:
                try:
                    outcomes[str(instance.zip_code(published.key).status_code)] += 1
                except httpx.ConnectError:
                    outcomes["refused"] += 1
                except httpx.TransportError as error:
                    outcomes[repr(error)] += 1

        callers = [threading.Thread(target=ask) for _ in range(3)]
        for caller in callers:
            caller.start()
        until(lambda: outcomes["200"] > 20)
        assert instance.stop() == 0
        for caller in callers:
            caller.join()
    assert set(outcomes) == {"200", "refused"}, outcomes


def _refuses(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=30).close()
    except ConnectionRefusedError:
        return True
    return False


def test_who_waits_to_be_accepted_when_a_stalled_worker_stops_is_answered(patient: Instance, published: Site) -> None:
    """A worker that was stalled until it had to close accepts first; no other gets in meanwhile."""
    url = httpx.URL(patient.partners)
    address = (url.host, url.port or 80)
    (worker,) = patient.worker_pids()
    patient.process.send_signal(signal.SIGTERM)
    until(lambda: patient.zip_code(published.key).headers.get("connection") == "close")
    os.kill(worker, signal.SIGSTOP)
    with contextlib.ExitStack() as waiting:
        clients = [waiting.enter_context(socket.create_connection(address, timeout=30)) for _ in range(5)]
        for client in clients:
            client.sendall(f"GET {FORECAST}?zip_code=36436 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(1.05)  # now it ought to have closed
        until(lambda: _refuses(address))
        os.kill(worker, signal.SIGCONT)
        for client in clients:
            assert whole_answer(client).startswith(b"HTTP/1.1 401")
    assert patient.stop() == 0


def test_signals_that_log_rotation_sends_are_logged_and_end_nothing(
    published: Site, short: Path, tmp_path: Path
) -> None:
    """To every process of the instance, as `pkill` sends them. Those it started leave SIGQUIT to it, too."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with serving(published.env | {"FORECAST_INBOX": str(inbox)}, short / "serve.log", workers=2) as instance:
        until(lambda: bool(instance.descendants("forecast-inbox")))
        started = instance.descendants()
        assert len(started) == 4
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            for pid in (instance.process.pid, *started):
                os.kill(pid, number)
        os.kill(instance.process.pid, signal.SIGALRM)  # which only a command that is interrupted sets itself
        for pid in started:
            os.kill(pid, signal.SIGQUIT)
        until(lambda: {"SIGUSR1", "SIGUSR2"} <= {line["message"].split()[0] for line in instance.log()})
        assert instance.zip_code(published.key).status_code == 200
        assert instance.descendants() == started
        os.kill(instance.worker_pids()[0], signal.SIGKILL)  # its successor is no other
        until(lambda: bool(set(instance.worker_pids()) - set(started)))
        (successor,) = set(instance.worker_pids()) - set(started)
        os.kill(successor, signal.SIGQUIT)
        assert instance.stop(signal.SIGQUIT) == 0, "which stops it in order"
    assert any(line["message"].startswith("stopping (SIGQUIT): ") for line in instance.log())


def test_a_hangup_drains_as_a_stop_does(patient: Instance, published: Site) -> None:
    """A closed terminal's, which goes to the whole group, and more than once; a second one cuts nothing short."""
    url = httpx.URL(patient.partners)
    request = f"GET {FORECAST}?zip_code=36436 HTTP/1.1\r\nHost: x\r\nx-api-key: {published.key}\r\n\r\n".encode()
    with socket.create_connection((url.host, url.port or 80), timeout=30) as connection:
        connection.sendall(request[:-2])
        until(lambda: patient.zip_code(published.key).status_code == 200)
        for _ in range(2):
            os.killpg(patient.process.pid, signal.SIGHUP)
            until(lambda: patient.ready().status_code == 503)
        for pid in patient.worker_pids():
            os.kill(pid, signal.SIGHUP)  # as service managers do that signal every process
        connection.sendall(request[-2:])
        answer = whole_answer(connection)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in answer.lower()
    assert patient.process.wait(60) == 0
