"""Releases switch under load; start-up mistakes end in one line."""

import socket
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import redis

from tests.faults.conftest import Site
from tests.support.drops import HOUSING, LOCATIONS, people, write_drop
from tests.support.instance import FORECAST, Instance, environment, forecast, forecast_here, serving, until_all_serve
from tests.support.waiting import until
from warehouse.releases.catalog import Catalog
from warehouse.releases.changes import roll_back

_SWITCHES = 10


def test_switches_under_load_lose_nothing_and_mix_nothing(site: Site, short: Path) -> None:
    """While releases go back and forth, every request is answered, and every answer is of the release it names."""
    figures = {}
    for figure in (1000, 2000):
        population = [people("36436", 2023, figure), people("90028", 2023, figure)]
        drop = write_drop(short / str(figure), locations=LOCATIONS, population=population, housing=HOUSING)
        figures[site.publish(drop)] = figure
    with serving(site.env, short / "serve.log", workers=2) as instance:
        until(lambda: instance.zip_code(site.key).status_code == 200)
        seen: Counter[tuple[int, bool]] = Counter()
        stop = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=instance.partners, headers={"x-api-key": site.key}, timeout=30) as client:
                while not stop.is_set():
                    query = (
                        {"city_name": "Los Angeles", "state_code": "CA"} if seen.total() % 2 else {"zip_code": "36436"}
                    )
                    answer = client.get(FORECAST, params=query)
                    expected = str(figures[answer.headers["x-data-release"]]) if answer.status_code == 200 else "?"
                    seen[answer.status_code, expected in answer.text] += 1
                    time.sleep(0.03)  # who switches needs the processors too

        callers = [threading.Thread(target=ask) for _ in range(4)]
        for caller in callers:
            caller.start()
        for _ in range(_SWITCHES):
            current = roll_back(Catalog(site.data)).id
            until_all_serve(site.data, current)
            assert instance.zip_code(site.key).headers["x-data-release"] == current
        stop.set()
        for caller in callers:
            caller.join()
    assert set(seen) == {(200, True)}, seen
    assert seen.total() > 10 * _SWITCHES


def test_a_publisher_that_warms_another_cache_gets_a_warning(published: Site, short: Path) -> None:
    """Its shell lacks the instance's FORECAST_CACHE_URL: said to the person, in the JSON, and in what is kept."""
    url = published.cache.url.replace("unix://", "unix://default:hunter2@")
    with redis.Redis.from_url(published.cache.url) as client:
        client.config_set("requirepass", "hunter2")
    bare = {name: value for name, value in published.env.items() if name != "FORECAST_CACHE_URL"}
    drops = [write_drop(short / str(figure), population=[people("36436", 2023, figure)]) for figure in (1, 2)]
    with serving({**published.env, "FORECAST_CACHE_URL": url}, short / "serve.log"):
        said = forecast_here(bare, "extracts", "publish", str(drops[0]))
        as_json = forecast_here(bare, "extracts", "publish", str(drops[1]), "--json")
    kept = forecast_here(bare, "extracts", "show").stdout
    for text in (said.stderr, as_json.stdout, kept):
        flat = "".join(text.split())
        assert "nocachewaswarmed" in flat
        assert f"unix://{published.cache.socket}?db=0" in flat
        assert "hunter2" not in flat
    records = [path.read_text() for path in published.data.glob("instances/*")]
    assert not any("hunter2" in text for text in records)


def test_a_refused_drop_and_a_damaged_release_leave_the_old_one_serving(published: Site, short: Path) -> None:
    """The publisher says what is wrong with a drop. A current release whose files are damaged is not opened: the old
    one answers, readiness gives the reason."""
    with serving(published.env, short / "serve.log") as instance:
        before = instance.zip_code(published.key)
        bad = write_drop(short / "bad", locations=[*LOCATIONS, LOCATIONS[0]])
        refused = forecast_here(published.env, "extracts", "publish", str(bad))
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "duplicate-key" in refused.stderr
        assert "zip_locations.parquet" in refused.stderr
        time.sleep(0.6)  # longer than workers take to look at the pointer
        after = instance.zip_code(published.key)
        assert after.headers["x-data-release"] == before.headers["x-data-release"]
        _damaged(instance, published, short)


def _damaged(instance: Instance, published: Site, short: Path) -> None:
    before = instance.zip_code(published.key).headers["x-data-release"]
    newer = site_release(published, short)
    until(lambda: instance.zip_code(published.key).headers["x-data-release"] == newer)
    forecast_here(published.env, "extracts", "rollback")
    until(lambda: instance.zip_code(published.key).headers["x-data-release"] == before)
    pointer = published.data / "current.json"
    entries = published.data / "releases" / newer / "forecast.parquet"
    entries.write_bytes(entries.read_bytes()[:-100])
    pointer.write_text(pointer.read_text().replace(f'"release":"{before}"', f'"release":"{newer}"'))
    until(lambda: "damaged" in " ".join(instance.ready().json()["reasons"]))
    assert instance.zip_code(published.key).headers["x-data-release"] == before


def site_release(site: Site, short: Path) -> str:
    return site.publish(write_drop(short / "newer", population=[people("36436", 2023, 784)]))


def test_a_busy_port_is_one_clear_line(published: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = forecast(published.env, "serve", "--port", str(port))
    assert ended.returncode == 1
    assert f"127.0.0.1:{port}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_data_folder_that_cannot_be_written_is_one_clear_line(short: Path) -> None:
    (short / "file").write_text("")
    ended = forecast(environment(short / "file" / "data"), "serve", "--port", "0", "--operator-port", "0")
    assert ended.returncode == 1
    assert "cannot write the data folder" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_url_that_answers_another_protocol_is_one_clear_line(published: Site) -> None:
    """A web server where Redis should be: exit code 1, the setting named."""
    with socket.create_server(("127.0.0.1", 0)) as web:
        port = web.getsockname()[1]

        def answer() -> None:
            connection, _ = web.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        env = {**published.env, "FORECAST_CACHE_URL": f"redis://127.0.0.1:{port}/0"}
        ended = forecast(env, "serve", "--port", "0", "--operator-port", "0")
    assert ended.returncode == 1
    assert "FORECAST_CACHE_URL" in ended.stderr
    assert "Traceback" not in ended.stderr
