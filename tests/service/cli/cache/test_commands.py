"""`forecast cache warm`, `stats` and `purge`."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis

from service.cli.cache import commands
from service.operators.actions import Purged
from tests.service.cli.conftest import HERE, Start
from tests.service.conftest import Cli, Done
from tests.support.drops import project, write_drop
from tests.support.overviews import overview
from tests.support.valkey import ValkeyProcess
from warehouse.areas import forecast
from warehouse.releases.catalog import Catalog

TOKEN = "write-token-of-the-tests"


@pytest.fixture
def cache(short: Path, cli: Cli) -> Iterator[ValkeyProcess]:
    """A server that the commands' settings name."""
    server = ValkeyProcess(short / "cache").start()
    cli.settings["cache_url"] = server.url
    yield server
    server.kill()


@pytest.fixture(autouse=True)
def niceness(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tests go on at the usual priority."""
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", asked.append)
    return asked


def names_in(server: ValkeyProcess) -> set[bytes]:
    with redis.Redis(unix_socket_path=str(server.socket)) as client:
        return set(client.keys("c:*"))


def test_warming_puts_every_answer_back(cli: Cli, release: str, cache: ValkeyProcess, niceness: list[int]) -> None:
    expected = len(list(forecast.forecast_answers_to_warm(Catalog(cli.data).folder(release))))
    for _ in range(2):
        done = cli("cache", "warm", "--json", warm="off")
        assert (done.code, done.json["release"], done.json["answers"]) == (0, release, expected)
        assert done.json["warnings"] == []
    done = cli("cache", "warm")
    assert f" answers of release {release} are in the cache (" in done.out
    assert str(cli.data) in done.err
    assert len(names_in(cache)) == expected
    assert niceness == [commands._NICENESS] * 3
    assert cli("cache", "explain", "zip_code=36436", "--json").json["shared"] == "hit"


def test_a_page_is_explained_with_the_key_that_workers_use(cli: Cli, cache: ValkeyProcess, tmp_path: Path) -> None:
    """It contains a mark of the pepper: without the pepper nothing is said, rather than something wrong."""
    drop = write_drop(tmp_path / "drop", projects=[project("A-1"), project("A-2")])
    assert cli("extracts", "publish", str(drop), warm="off").code == 0
    query = "/v1/development-projects?zip_code=36436"
    done = cli("cache", "explain", query)
    assert done.code == 1
    assert "set FORECAST_KEYS_PEPPER_FILE" in done.error()
    cli.settings["keys_pepper"] = "pepper of the tests"
    assert cli("cache", "warm").code == 0
    said = cli("cache", "explain", query, "--json").json
    assert (said["area"], said["shared"]) == ("projects", "hit")
    said = cli("cache", "explain", f"{query}&limit=1", "--json").json
    assert said["shared"] == "miss"
    assert said["query"].startswith("zip:36436\n1\n")
    assert "zip:36436 / 1 / " in cli("cache", "explain", f"{query}&limit=1").out
    said = cli("cache", "explain", f"{query}&cursor=made-up", "--json").json
    assert (said["status"], said["outcome"]) == (400, "invalid_cursor")


def test_without_a_cache_or_a_release_nothing_can_be_warmed(
    cli: Cli, made: tuple[Path, str], cache: ValkeyProcess
) -> None:
    assert "nothing has been published yet" in failed(cli("cache", "warm"))
    shutil.copytree(made[0], cli.data, dirs_exist_ok=True)
    cache.kill()
    for command in ("warm", "stats"):
        for more in ((), ("--json",)):
            assert failed(cli("cache", command, *more))
    assert "no embedded cache answers here" in failed(cli("cache", "warm", cache_url="embedded"))


def failed(done: Done) -> str:
    assert done.code == 1
    return done.error()


def test_a_release_that_becomes_current_meanwhile_is_reported(
    cli: Cli, release: str, cache: ValkeyProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Catalog(cli.data).current()
    seen = [msgspec.structs.replace(now, id="newer"), now]
    monkeypatch.setattr(Catalog, "current", lambda _: seen.pop())
    assert "newer became current meanwhile" in cli("cache", "warm").err


def test_stats_count_by_release(cli: Cli, release: str, cache: ValkeyProcess, start: Start) -> None:
    start(overview())
    cli("cache", "warm")
    with redis.Redis(unix_socket_path=str(cache.socket)) as client:
        client.set("c:2:20200101T000000Z-0123456789ab:ff", "x")
    done = cli("cache", "stats", "--json")
    assert done.code == 0
    said = done.json
    assert said["complete"]
    assert [(one["release"], one["state"], one["entries"]) for one in said["releases"]] == [
        (release, "current", len(names_in(cache)) - 1),
        ("20200101T000000Z-0123456789ab", "gone", 1),
    ]
    (near,) = said["near_caches"]
    assert [worker["entries"] for worker in near["workers"]] == [50_000, 50_000]
    shown = cli("cache", "stats").out
    assert "50,000 entries, 120.0 MB, in worker 4712" in shown
    assert "current" in shown
    assert "no limit" in shown


def test_stats_show_what_is_known_although_the_current_release_is_not(
    cli: Cli, release: str, cache: ValkeyProcess
) -> None:
    cli("cache", "warm")
    (cli.data / "current.json").write_text("{")
    done = cli("cache", "stats")
    assert done.code == 1
    assert release in done.out
    assert "unknown" in done.out
    assert "current.json cannot be read" in done.err
    assert cli("cache", "stats", "--json").json["releases"][0]["state"] == "unknown"


def test_stats_warn_of_instances_with_another_cache_and_of_none(cli: Cli, cache: ValkeyProcess, start: Start) -> None:
    """Their records say `embedded` here: what is shown is not what they use."""
    assert "none: no instance runs on this data folder" in cli("cache", "stats").out
    start(overview())
    done = cli("cache", "stats")
    assert done.code == 0
    assert f"instance 4711 on {HERE} uses another cache, embedded" in done.err
    assert "has no entries" in done.out


def test_a_confirmed_purge_is_sent_to_every_instance(cli: Cli, start: Start) -> None:
    listeners = [start(pid=4711), start(pid=4811)]
    for listener in listeners:
        listener.answer("/caches/purge", Purged(3, 4))
    assert cli("cache", "purge", typed="n\n", operator_write_token=TOKEN).code == 1
    assert [listener.asked for listener in listeners] == [[], []]
    done = cli("cache", "purge", "--yes", operator_write_token=TOKEN)
    assert done.code == 0
    assert f"instance 4711 on {HERE}: 3 near and 4 shared answers were removed." in done.out
    for listener in listeners:
        assert [(said.method, said.path, said.token) for said in listener.asked] == [
            ("POST", "/caches/purge", f"Bearer {TOKEN}")
        ]


def test_an_instance_that_another_one_has_purged_is_not_called(cli: Cli, start: Start) -> None:
    first, second = start(pid=4711), start(pid=4811)
    first.answer("/caches/purge", Purged(3, 4, reached=("4811",)))
    done = cli("cache", "purge", "--yes", operator_write_token=TOKEN)
    assert done.code == 0, done.err
    assert "The near caches of 4811 are also empty." in " ".join(done.out.split())
    assert (len(first.asked), second.asked) == (1, [])


def test_a_purge_that_an_instance_refuses_fails(cli: Cli, start: Start) -> None:
    start(pid=4711).answer("/caches/purge", Purged(3, 4))
    start(pid=4811).refuse(403, "not_permitted")
    done = cli("cache", "purge", "--yes", "--json", operator_write_token=TOKEN)
    assert done.code == 1
    assert [one["purged"] for one in done.json["instances"]] == [
        {"near": 3, "shared": 4, "reached": [], "behind": []},
        None,
    ]
    assert f"instance 4811 on {HERE}: " in done.err


def test_a_purge_without_a_write_token_is_not_sent(cli: Cli, start: Start) -> None:
    without = cli("cache", "purge", typed="y\n", operator_write_token=TOKEN)
    assert (without.code, "Continue?" in without.out + without.err) == (1, False)
    assert "no instance runs" in without.err
    listener = start()
    for words in ((), ("--yes",)):
        done = cli("cache", "purge", *words, typed="y\n")
        assert (done.code, "Continue?" in done.out + done.err) == (1, False)
        assert "set FORECAST_OPERATOR_WRITE_TOKEN" in done.err
        assert listener.asked == []
