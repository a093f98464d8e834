"""The data folder's file system hangs: cached answers continue, operators are notified, and all heals by itself."""

import contextlib
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from tests.faults.conftest import Site
from tests.support.drops import people, write_drop
from tests.support.hangs import Hanging, hang_file
from tests.support.instance import FORECAST, Instance, forecast, forecast_here, is_alive, serving
from tests.support.waiting import until
from tests.support.wire import Wire

HOT, COLD, COLDER = "36436", "90028", "00501"


def reasons(instance: Instance) -> str:
    return " | ".join(instance.ready().json()["reasons"])


def forget_answers(site: Site) -> None:
    with redis.Redis.from_url(site.cache.url) as client:
        client.flushall()


@contextmanager
def asking(instance: Instance, key: str) -> Iterator[Counter[int]]:
    """The statuses of a cached request that is sent again and again."""
    seen: Counter[int] = Counter()
    stop = threading.Event()

    def ask() -> None:
        while not stop.wait(0.05):
            seen[instance.zip_code(key, HOT).status_code] += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def test_a_worker_whose_look_ups_hang_is_replaced_when_another_can_serve(published: Site, short: Path) -> None:
    """Until then it answers what is cached, says what is wrong, and all others get a 503 with Retry-After."""
    entries = next(published.data.glob("releases/*/forecast.parquet"))
    forget_answers(published)
    env = published.env | {"FORECAST_LOOKUP_TIMEOUT": "0.5", "FORECAST_LOOKUPS_IN_MEMORY": "false"}
    with serving(env, short / "serve.log") as instance:
        assert instance.zip_code(published.key, HOT).status_code == 200
        (hung,) = instance.worker_pids()
        with asking(instance, published.key) as seen:
            with hang_file(entries):
                for zip_code in (COLD, COLDER):
                    answer = instance.zip_code(published.key, zip_code)
                    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
                until(lambda: "warehouse query stuck since" in reasons(instance))
                assert instance.metric("forecast_hung_workers") == 1
                until(lambda: any("its successor did not serve" in line["message"] for line in instance.log()))
                assert hung in instance.worker_pids(), "what it has is all there is"
            until(lambda: instance.zip_code(published.key, COLD).status_code == 200)
            until(lambda: instance.ready().json()["status"] == "ready")
        assert set(seen) == {200}
        until(lambda: not is_alive(hung))
        assert instance.worker_pids() != [hung]
        assert instance.stop() == 0


def test_requests_behind_a_look_up_that_hangs_end_in_time_and_do_not_delay_a_stop(published: Site, short: Path) -> None:
    """Each with a 503, and what came behind it with its answer; some have gone by then."""
    entries = next(published.data.glob("releases/*/forecast.parquet"))
    forget_answers(published)
    env = published.env | {"FORECAST_LOOKUP_TIMEOUT": "0.5", "FORECAST_LOOKUPS_IN_MEMORY": "false"}
    with serving(env, short / "serve.log") as instance:
        assert instance.zip_code(published.key, HOT).status_code == 200
        head = f"GET {FORECAST}?zip_code={{}} HTTP/1.1\r\nHost: a\r\nx-api-key: {published.key}\r\n\r\n"
        port = int(instance.partners.rpartition(":")[2])
        with contextlib.ExitStack() as stack, hang_file(entries):
            wires = [stack.enter_context(Wire(port)) for _ in range(20)]
            for wire in wires:
                wire.send(head.format(COLD) + head.format(HOT))
            for gone in wires[::4]:
                gone.__exit__(None, None, None)
            for wire in set(wires) - set(wires[::4]):
                refused = wire.answer()
                assert (refused.status, refused.header("retry-after")) == (503, "1")
                assert wire.answer().status == 200
            stack.enter_context(Wire(port)).send(head.format(COLDER))
            assert instance.stop(signal.SIGTERM) == 0


def test_a_pointer_that_hangs_delays_no_request_and_is_followed_when_it_is_back(published: Site, short: Path) -> None:
    """Also where the read that hangs never returns: another worker reads it."""
    hanging = Hanging(published.env, short / "hanging")
    with serving(hanging.env, short / "serve.log") as instance:
        assert instance.zip_code(published.key, HOT).status_code == 200
        (hung,) = instance.worker_pids()
        with asking(instance, published.key) as seen:
            hanging.begin(published.data / "current.json", for_ever=True)
            until(lambda: "current.json" in reasons(instance))
            asked = seen[200]
            until(lambda: seen[200] > asked + 5)
            hanging.end()
            drop = write_drop(short / "newer", population=[people(HOT, 2023, 784)])
            newer = published.publish(drop, forecast)
            until(lambda: instance.zip_code(published.key, HOT).headers["x-data-release"] == newer)
            until(lambda: instance.ready().json()["status"] == "ready")
        assert set(seen) == {200}
        until(lambda: not is_alive(hung))


def test_an_instance_whose_data_folder_hangs_answers_and_can_be_stopped(published: Site, short: Path) -> None:
    """Everything in it, while the key store is unreachable, so that usage would go to the spool."""
    hanging = Hanging(published.env, short / "hanging")
    with serving(hanging.env, short / "serve.log") as instance:
        until(lambda: instance.zip_code(published.key, HOT).status_code == 200)
        hanging.begin(published.data)
        published.keys.kill()
        until(lambda: "Writing the usage spool hangs" in reasons(instance))
        assert instance.zip_code(published.key, HOT).status_code == 200
        assert instance.metric("forecast_workers") == 1
        published.keys.start()
        until(lambda: instance.metric("forecast_usage_waiting") == 0)
        instance.zip_code(published.key, HOT)
        assert instance.stop(signal.SIGTERM) == 0
    hanging.end()
    counted = forecast_here(published.env, "usage", "--json")
    assert counted.returncode == 0, counted.stderr
    rows = json.loads(counted.stdout)
    assert sum(row["answered"] for row in rows) == 3, "nothing is lost, nothing counted twice"
