"""Publishers that are killed, that meet, that run out of disk: the old release or the new, and a clean next publish."""

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.support.country import make_country
from tests.support.disks import fill, mounted
from tests.support.drops import location, people, write_drop
from tests.support.instance import (
    NO_TLS,
    SHORT_DRAIN,
    children_of,
    environment,
    forecast,
    forecast_here,
    is_alive,
    serving,
    until_all_serve,
)
from tests.support.valkey import ValkeyProcess
from tests.support.waiting import PATIENCE, until
from tests.warehouse.altering import FIGURES, edit
from tests.warehouse.helpers import publish
from warehouse.releases.catalog import Catalog
from warehouse.schema.errors import CatalogError

_KILLS, _MANY_KILLS = 2, 24


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two small drops that differ in a figure."""
    folder = tmp_path_factory.mktemp("drops")
    one, two = (write_drop(folder / str(figure), population=[people("36436", 2023, figure)]) for figure in (1, 2))
    return one, two


@pytest.fixture(scope="module")
def large_drops(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two drops that differ in every figure, and are built in files of many blocks."""
    folder = tmp_path_factory.mktemp("large")
    country = make_country()
    one = country.write(folder / "one")
    edit(FIGURES, lambda figure: figure + 1)(country)
    return one, country.write(folder / "two")


@pytest.fixture
def env(short: Path) -> dict[str, str]:
    # the two drops take turns
    return environment(short / "data", severities="delivered-before=info")


def start(env: dict[str, str], drop: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "service", "extracts", "publish", str(drop)]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def assert_whole(data: Path) -> str:
    """The pointer reads, the release that it names is what was built; returns its id."""
    catalog = Catalog(data)
    current = catalog.current()
    catalog.verify(current)
    for release in catalog.all():
        catalog.verify(release)
    return current.id


@pytest.mark.parametrize("kills", [_KILLS, pytest.param(_MANY_KILLS, marks=pytest.mark.soak)])
def test_a_publisher_killed_at_any_moment_leaves_the_old_release_or_the_new(
    env: dict[str, str], short: Path, drops: tuple[Path, Path], kills: int
) -> None:
    """Moments over the whole of a publish; after each, no reader goes on, and the next publish is clean."""
    data = short / "data"
    one, two = drops
    assert forecast_here(env, "extracts", "publish", str(one)).returncode == 0
    began = time.monotonic()
    assert forecast(env, "extracts", "publish", str(two)).returncode == 0
    seconds = time.monotonic() - began
    for number in range(kills):
        drop = drops[number % 2]
        before = assert_whole(data)
        publisher = start(env, drop)
        with contextlib.suppress(subprocess.TimeoutExpired):
            publisher.wait(seconds * (number + 1) / (kills + 1))
        readers = children_of(publisher.pid)
        publisher.kill()
        publisher.communicate()
        until(lambda readers=readers: not any(map(is_alive, readers)))  # type: ignore[misc]
        after = assert_whole(data)
        assert after == before or publisher.returncode == 0 or (data / "releases" / after).is_dir()
        again = publish(Catalog(data), drop)
        assert again.manifest is not None, again.report
        assert again.manifest.id == assert_whole(data)
        assert list((data / "staging").iterdir()) == []


def test_of_two_publishers_one_wins_and_the_other_gets_an_error(
    env: dict[str, str], short: Path, drops: tuple[Path, Path]
) -> None:
    """Exit code 3 for the loser, at once; a rollback meanwhile is reported as well."""
    assert forecast_here(env, "extracts", "publish", str(drops[0])).returncode == 0
    before = assert_whole(short / "data")
    first = start(env, drops[1])
    until(lambda: any((short / "data" / "staging").iterdir()))
    first.send_signal(signal.SIGSTOP)
    for command in (["publish", str(drops[1])], ["rollback"]):
        second = forecast(env, "extracts", *command)
        assert (second.returncode, second.stdout) == (3, "")
        assert second.stderr.count("\n") == 1
        assert "another publisher" in second.stderr
    assert assert_whole(short / "data") == before
    first.send_signal(signal.SIGCONT)
    out, err = first.communicate(timeout=PATIENCE)
    assert (first.returncode, out.strip()) == (0, assert_whole(short / "data")), err


def test_a_full_disk_is_one_line_and_the_next_publish_is_clean(short: Path, large_drops: tuple[Path, Path]) -> None:
    """At every stage: from no room at all to all but the last step. The release before stays current."""
    with mounted(short / "disk", 16_384) as disk:
        data = disk / "data"
        env = environment(data)
        assert forecast_here(env, "extracts", "publish", str(large_drops[0])).returncode == 0
        before = assert_whole(data)
        release = sum(path.stat().st_size for path in (data / "releases").rglob("*") if path.is_file())
        said = set()
        for share in (0.0, 0.3, 0.9):
            filler = disk / "filler"
            with filler.open("wb") as stream, contextlib.suppress(OSError):
                while True:
                    os.write(stream.fileno(), bytes(4096))
            os.truncate(filler, filler.stat().st_size - int(release * share) // 4096 * 4096)
            full = forecast(env, "extracts", "publish", str(large_drops[1]))
            assert (full.returncode, full.stdout) == (1, ""), (share, full.stderr)
            assert "Traceback" not in full.stderr
            assert full.stderr.count("\n") == 1, full.stderr
            said.add(full.stderr)
            assert assert_whole(data) == before
            filler.unlink()
        assert all("No space left" in line and "{" not in line for line in said), said
        assert all("`forecast extracts retire" in line for line in said), said
        assert forecast_here(env, "extracts", "publish", str(large_drops[1])).returncode == 0
        assert list((data / "staging").iterdir()) == []
        assert assert_whole(data) != before


def test_a_full_disk_is_no_obstacle_to_going_back(short: Path) -> None:
    """Again and again, by the command and over HTTP; the instance follows and says so. Then retiring makes room."""
    with mounted(short / "disk", 40_960, ext4=True) as disk, contextlib.ExitStack() as stack:
        keys, cache = (ValkeyProcess(short / role).start() for role in ("keys", "cache"))
        for server in (keys, cache):
            stack.callback(server.kill)
        data = disk / "data"
        token = "t" * 32
        env = environment(
            data, keys_url=keys.url, cache_url=cache.url, operator_write_token=token, drain=SHORT_DRAIN, warm="off"
        )
        drops = [write_drop(short / str(figure), population=[people("36436", 2023, figure)]) for figure in (1, 2)]
        drops.append(write_drop(short / "three", locations=[location("10000", "City", "NY")], aliases=None))
        made = [publish(Catalog(data), drop).manifest for drop in drops]
        first, second, third = (manifest.id for manifest in made if manifest)
        with serving(env, short / "serve.log") as instance:
            until_all_serve(data, third)
            until(lambda: any((data / "instances").glob(".*.spare")))  # blocks for its next record
            fill(disk)
            back = forecast_here(env, "extracts", "rollback", "--json")
            assert back.returncode == 0, back.stderr
            assert json.loads(back.stdout)["release"] == second
            until_all_serve(data, second)
            asked = {"authorization": f"Bearer {token}"}
            reply = httpx.post(f"{instance.operators}/releases/rollback", headers=asked, timeout=30, verify=NO_TLS)
            assert (reply.status_code, reply.json()["release"]) == (200, third)
            until_all_serve(data, third)
            assert forecast_here(env, "extracts", "rollback").stdout.strip() == second
        full = forecast_here(env, "extracts", "publish", str(drops[0]))
        assert (full.returncode, "`forecast extracts retire" in full.stderr) == (1, True), full.stderr
        retired = forecast_here(env, "extracts", "retire", first)
        assert retired.stdout.strip() == first, retired
        assert shutil.disk_usage(disk).free > 0


def test_nothing_is_named_before_it_is_on_disk(
    short: Path, drops: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of flushes and renames is what a power loss leaves a choice of: never a name without its contents."""
    calls: list[tuple[str, str]] = []
    flush, rename, replace = os.fsync, Path.rename, Path.replace

    def fsync(descriptor: int) -> None:
        calls.append(("flush", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        flush(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        calls.append(("rename", str(target)))
        return rename(path, target)

    def replaced(path: Path, target: Path) -> Path:
        calls.append(("replace", str(target)))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "replace", replaced)
    catalog = Catalog(short / "data")
    manifest = publish(catalog, drops[0]).manifest
    assert manifest is not None
    named = calls.index(("rename", str(catalog.folder(manifest.id))))
    switched = calls.index(("replace", str(short / "data" / "current.json")))
    flushed = {path.partition("/staging/")[2].partition("/")[2] for call, path in calls[:named] if call == "flush"}
    files = {str(path.relative_to(catalog.folder(manifest.id))) for path in catalog.folder(manifest.id).rglob("*")}
    assert files <= flushed, "every file and folder of a release, before it has its name"
    assert ("flush", str(catalog.releases)) in calls[named:switched], "its name, before anything points to it"
    call, aside = calls[switched - 1]
    assert (call, Path(aside).parent) == ("flush", short / "data")
    assert Path(aside).name.startswith(".current.json.")
    assert calls[switched + 1] == ("flush", str(short / "data")), "the pointer itself"


def test_a_disk_that_fails_at_any_flush_leaves_the_old_release_or_the_new(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first flush of a file and each of the last: an error, a whole release, nothing staged."""
    catalog = Catalog(short / "data")
    publish(catalog, write_drop(short / "first"))
    flush, calls, failing = os.fsync, 0, 0

    def fsync(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        flush(descriptor)

    def changed(figure: int) -> Path:
        return write_drop(short / str(figure), population=[people("36436", 2023, figure)])

    monkeypatch.setattr(os, "fsync", fsync)
    publish(catalog, changed(1))
    flushes = calls
    assert flushes > 8
    for number in (1, *range(flushes - 3, flushes + 1)):
        drop = changed(1000 + number)
        before = catalog.current().id
        calls, failing = 0, number
        with pytest.raises(CatalogError, match="Input/output error"):
            publish(catalog, drop)
        switched = assert_whole(short / "data") != before
        assert switched == (number == flushes), "only the last flush comes after the switch"
        assert list(catalog.staging.iterdir()) == []
    failing = 0
    assert publish(catalog, changed(1)).result == "published"


def test_the_overview_right_after_publishing_shows_the_release(env: dict[str, str], drops: tuple[Path, Path]) -> None:
    """Not of what was seen up to a second before; and a release is never said to come before an older one."""
    with serving(env, Path(env["FORECAST_DATA_DIR"]).parent / "serve.log", workers=2) as instance:

        def reported() -> tuple[str, list[tuple[str, bool]]]:
            seen = httpx.get(f"{instance.operators}/overview", timeout=PATIENCE).json()
            return seen["verdict"]["sentence"], [(one["id"], one["current"]) for one in seen["releases"]]

        first = forecast_here(env, "extracts", "publish", str(drops[0])).stdout.strip()
        assert reported() == ("All is well.", [(first, True)])
        second = forecast_here(env, "extracts", "publish", str(drops[1])).stdout.strip()
        assert reported() == ("All is well.", [(second, True), (first, False)])
        assert forecast_here(env, "extracts", "rollback").returncode == 0
        assert reported() == ("All is well.", [(first, True), (second, False)])


def test_an_instance_says_that_it_serves_when_all_its_workers_do(env: dict[str, str], drops: tuple[Path, Path]) -> None:
    """So whoever waited for that finds nothing wrong."""
    assert forecast_here(env, "extracts", "publish", str(drops[0])).returncode == 0
    with serving(env, Path(env["FORECAST_DATA_DIR"]).parent / "serve.log", workers=2):
        done = forecast_here(env, "status")
        assert (done.returncode, done.stdout.splitlines()[0].partition(" (")[0]) == (0, "All is well.")
