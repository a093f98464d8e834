"""The operators' tokens on a real instance."""

import json
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.faults.conftest import Site
from tests.support.drops import people, write_drop
from tests.support.hangs import Hanging
from tests.support.instance import FORECAST, NO_TLS, Instance, forecast_here, issue_key, serving, until_all_serve
from tests.support.operators import READ, WRITE
from tests.support.waiting import until


def with_tokens(site: Site, folder: Path) -> dict[str, str]:
    """The environment of `site` with both tokens in files."""
    env = dict(site.env)
    for name, token in (("READ", READ), ("WRITE", WRITE)):
        file = folder / f"{name.lower()}-token"
        file.write_text(f"{token}\n")
        env[f"FORECAST_OPERATOR_{name}_TOKEN_FILE"] = str(file)
    return env


def post(instance: Instance, path: str, token: str, seconds: float = 10, sender: str = "") -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"} | ({"x-forwarded-for": sender} if sender else {})
    return httpx.post(f"{instance.operators}{path}", headers=headers, timeout=seconds, verify=NO_TLS)


def metric(instance: Instance, sample: str) -> float:
    text = asked(instance, "/metrics").text
    return next((float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{sample} ")), 0.0)


def asked(instance: Instance, path: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {READ}"}
    return httpx.get(f"{instance.operators}{path}", headers=headers, timeout=30, verify=NO_TLS)


def read(instance: Instance, path: str) -> Any:
    """The JSON at `path`."""
    return asked(instance, path).json()


def is_ready(instance: Instance) -> bool:
    return bool(read(instance, "/health/ready")["status"] == "ready")


def near_entries(instance: Instance) -> float:
    return metric(instance, "forecast_near_cache_entries")


@pytest.fixture(scope="module")
def pair(common: Site) -> Iterator[Instance]:
    """Two workers for the tests that leave two behind, and all as it was."""
    folder = common.data.parent
    with serving(with_tokens(common, folder), folder / "serve.log", workers=2) as instance:
        yield instance


def test_a_revocation_through_the_listener_ends_a_key(common: Site, pair: Instance) -> None:
    """Partners get 401 from then on, the trail has it under the address that asked, and no token is in the log."""
    key = issue_key(common.env, "leaked")
    key_id = key.split("_")[2]
    until(lambda: pair.zip_code(key).status_code == 200)
    assert post(pair, f"/keys/{key_id}/revoke", READ).status_code == 403
    assert pair.zip_code(key).status_code == 200
    assert post(pair, f"/keys/{key}/revoke", WRITE).status_code == 400
    revoked = post(pair, f"/keys/{key_id}/revoke", WRITE, sender="192.0.2.9")
    assert (revoked.status_code, revoked.json()["status"]) == (200, "revoked")
    until(lambda: pair.zip_code(key).json().get("code") == "revoked_api_key")
    trail = json.loads(forecast_here(common.env, "log", key_id, "--json").stdout)
    assert (trail[0]["what"], trail[0]["by"]) == ("revoked", "operator listener (127.0.0.1)")
    assert any(line.get("what") == "revoked" and line.get("key_id") == key_id for line in pair.log())
    until(lambda: any(f"key {key_id} was revoked" in event["text"] for event in read(pair, "/overview")["events"]))
    written = pair.log_file.read_text()
    assert not [secret for secret in (READ, WRITE, key) if secret in written]


def test_what_is_logged_can_be_changed_and_a_request_be_found(common: Site, pair: Instance) -> None:
    """On every worker, also on one that replaces another, and without a restart."""
    assert pair.zip_code(common.key).status_code == 200
    sampling = {"authorization": f"Bearer {WRITE}", "content-type": "application/json"}
    url = f"{pair.operators}/log/sampling"
    changed = httpx.post(url, headers=sampling, content=b'{"rate": 1}', timeout=30, verify=NO_TLS)
    assert changed.json() == {"rate": 1.0}
    killed, other = pair.worker_pids(READ)
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in (pids := pair.worker_pids(READ)) and len(pids) == 2 and other in pids)
    seen: set[int] = set()

    def found() -> bool:
        sent = {"x-api-key": common.key, "x-request-id": f"asked-{len(seen)}"}
        url = f"{pair.partners}{FORECAST}?zip_code=36436"
        if httpx.get(url, headers=sent, timeout=30, verify=NO_TLS).status_code != 200:
            return False  # on a busy machine, a new worker may be slower than a timeout
        (line,) = read(pair, f"/requests/{sent['x-request-id']}")[-1:]
        assert (line["status"], line["query"], line["partner"]) == (200, "zip:36436", "acme")
        seen.add(line["pid"])
        return len(seen) == 2

    until(found)
    assert killed not in seen
    until(lambda: "zip:36436" in pair.log_file.read_text())  # workers write their lines a moment later


def test_whoever_polls_the_overview_does_not_hurry_the_streams(pair: Instance) -> None:
    """They get one a second."""
    headers = {"authorization": f"Bearer {READ}"}
    with (
        ThreadPoolExecutor(1) as polling,
        httpx.stream("GET", f"{pair.operators}/events", headers=headers, timeout=30, verify=NO_TLS) as stream,
    ):
        began = time.monotonic()
        polls = polling.submit(lambda: [read(pair, "/overview") for _ in range(60)])
        seen = 0
        for line in stream.iter_lines():
            seen += line.startswith("event: overview")
            if polls.done():
                break
        assert 1 <= seen <= time.monotonic() - began + 3


def test_an_unreachable_key_store_costs_a_503_and_no_revocation(common: Site, pair: Instance) -> None:
    """The listener and its health go on meanwhile; when the store is back, it is enough to ask again."""
    key_id = issue_key(common.env, "other").split("_")[2]
    common.keys.kill()
    assert post(pair, f"/keys/{key_id}/revoke", WRITE).status_code == 503
    assert asked(pair, "/health/live").status_code == 200
    common.keys.start()
    until(lambda: post(pair, f"/keys/{key_id}/revoke", WRITE).status_code == 200)
    until(lambda: is_ready(pair))


def test_a_rollback_through_the_listener_goes_live(common: Site, pair: Instance, short: Path) -> None:
    """The instance that does it follows like any other."""
    until_all_serve(common.data, common.publish(write_drop(short / "newer", population=[people("36436", 2023, 5)])))
    newer = pair.zip_code(common.key).content
    done = post(pair, "/releases/rollback", WRITE)
    assert done.status_code == 200
    until_all_serve(common.data, done.json()["release"])
    assert {pair.zip_code(common.key).content == newer for _ in range(10)} == {False}
    assert done.json()["release"] in read(pair, "/health/ready")["releases"]
    [line] = json.loads(forecast_here(common.env, "log", "--what", "rolled-back", "--json").stdout)
    assert (line["release"], line["via"]) == (done.json()["release"], "http")


def test_a_purge_through_the_listener_empties_every_cache(common: Site, pair: Instance) -> None:
    """In all workers; the next answer is made from the warehouse again."""
    # a connection for each request: sooner or later both workers have one
    until(lambda: pair.zip_code(common.key).is_success and near_entries(pair) == 2)
    before = metric(pair, 'forecast_near_cache_left_total{reason="purged"}')
    purged = post(pair, "/caches/purge", WRITE)
    assert (purged.status_code, purged.json()["near"]) == (200, 2)
    assert purged.json()["shared"] >= 1
    assert near_entries(pair) == 0
    assert metric(pair, 'forecast_near_cache_left_total{reason="purged"}') == before + 2
    assert "detail=warehouse" in pair.zip_code(common.key).headers["cache-status"]


def test_a_purge_without_the_shared_cache_says_so(common: Site, pair: Instance) -> None:
    until(lambda: pair.zip_code(common.key).status_code == 200)
    until(lambda: near_entries(pair) > 0)
    common.cache.kill()
    purged = post(pair, "/caches/purge", WRITE)
    assert (purged.status_code, purged.json()["code"]) == (503, "unavailable")
    assert "The near caches of this instance are empty" in purged.json()["detail"]
    assert near_entries(pair) == 0
    common.cache.start()
    until(lambda: is_ready(pair))


def test_a_rollback_that_hangs_keeps_no_instance_from_stopping(published: Site, short: Path) -> None:
    """Its thread waits for a file that never comes, as on a disk that is gone, and cannot be told to end."""
    older = published.data / "releases" / json.loads((published.data / "current.json").read_text())["release"]
    published.publish(write_drop(short / "newer", population=[people("36436", 2023, 5)]))
    hanging = Hanging(with_tokens(published, short), short / "hanging")
    with serving(hanging.env, short / "serve.log") as instance:
        hanging.begin(older / "manifest.json", for_ever=True)
        with pytest.raises(httpx.ReadTimeout):
            post(instance, "/releases/rollback", WRITE, seconds=1)
        instance.stop()


def test_a_restart_keeps_the_history_and_a_damaged_file_begins_it_anew(published: Site, short: Path) -> None:
    def overview(name: str) -> Any:
        with serving(published.env, short / name) as instance:
            assert instance.zip_code(published.key).status_code == 200
            url = f"{instance.operators}/overview"
            until(lambda: served(url) > 0)
            return httpx.get(url, verify=NO_TLS).json(), instance.log()

    def served(url: str) -> int:
        hits = httpx.get(url, verify=NO_TLS).json()["hit_rate_hour"]
        return int(hits["near"] + hits["shared"] + hits["warehouse"])

    overview("first.log")
    again, _ = overview("second.log")
    assert [event["text"] for event in again["events"]].count("the instance started") == 2
    (kept,) = published.data.glob("operators-*.history")
    kept.write_bytes(kept.read_bytes()[:50])
    anew, log = overview("third.log")
    assert [event["text"] for event in anew["events"]].count("the instance started") == 1
    assert sum("the history starts empty" in line["message"] for line in log) == 1
