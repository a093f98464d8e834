"""The inbox of a running instance: drops go live, half ones do not, and no death of the watcher leaves a half."""

import json
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.support.disks import fill, mounted
from tests.support.drops import people, write_drop, write_swelling
from tests.support.instance import Instance, children_of, forecast_here, is_alive, serving
from tests.support.waiting import until
from warehouse.releases.catalog import Catalog

Env = dict[str, str]


@pytest.fixture
def inbox(short: Path) -> Path:
    folder = short / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def env(published: Site, inbox: Path) -> Env:
    return watching(published, inbox)


def watching(site: Site, inbox: Path) -> Env:
    """Drops go live when they have their marker, or have been quiet for a moment."""
    return {**site.env, "FORECAST_INBOX": str(inbox), "FORECAST_INBOX_QUIET": "1.5"}


@dataclass(frozen=True)
class Watched:
    """An instance that tests share. It publishes what they bring, and each begins with what others left."""

    site: Site
    instance: Instance
    inbox: Path
    data: Path
    reported: Path  # a file for the path of the last report


@pytest.fixture(scope="module")
def watched(common: Site) -> Iterator[Watched]:
    """Its watcher may be killed."""
    folder = common.data.parent
    inbox, reported = folder / "inbox", folder / "reported"
    inbox.mkdir()
    program = "import os, sys; open(sys.argv[1], 'w').write(os.environ['DROP_REPORT'])"
    command = f'{sys.executable} -c "{program}" {reported}'
    env = watching(common, inbox) | {"FORECAST_INBOX_ON_REFUSAL": command}
    with serving(env, folder / "serve.log") as instance:
        yield Watched(common, instance, inbox, common.data, reported)


@pytest.fixture(scope="module")
def cramped(common: Site) -> Iterator[Watched]:
    """Its data is on a disk of its own."""
    folder = common.data.parent / "cramped"
    inbox = folder / "inbox"
    inbox.mkdir(parents=True)
    with mounted(folder / "disk", 196_608) as disk:
        shutil.copytree(common.data, disk / "data")
        env = watching(common, inbox) | {"FORECAST_DATA_DIR": str(disk / "data")}
        with serving(env, folder / "serve.log") as instance:
            yield Watched(common, instance, inbox, disk / "data", folder / "reported")


def put(inbox: Path, name: str, figure: int, *, marker: bool = True) -> None:
    """A drop that makes `figure` the population of 36436; a negative one is refused."""
    write_drop(inbox / name, population=[people("36436", 2023, figure)])
    if marker:
        (inbox / name / "_SUCCESS").touch()


def figure(instance: Instance, site: Site) -> int | None:
    """The population served for 36436, or None while there is no answer."""
    answer = instance.zip_code(site.key)
    if answer.status_code != 200:
        return None
    served: int = answer.json()["zip_codes"][0]["population"][-1]["tot_population"]
    return served


def watchers(instance: Instance) -> list[int]:
    return instance.descendants("forecast-inbox")


def settled(inbox: Path) -> dict[str, list[str]]:
    """The drops of each place, by name."""
    return {
        place: sorted(path.name.rpartition("-")[0] for path in inbox.glob(f"{place}/*"))
        for place in ("published", "quarantine")
    }


def test_a_drop_goes_live_by_itself(published: Site, env: Env, inbox: Path, short: Path) -> None:
    """Within seconds with a marker, after the quiet time without; each is moved away and counted.

    While there is no inbox, the instance is degraded: partners are answered, readiness names the folder, it heals.
    """
    inbox.rmdir()
    with serving(env, short / "serve.log") as instance:
        until(lambda: instance.ready().json()["status"] == "degraded")
        assert instance.ready().json()["reasons"] == [f"Drops are not published: the inbox {inbox} does not exist."]
        assert instance.zip_code(published.key).status_code == 200
        inbox.mkdir()
        until(lambda: instance.ready().json()["status"] == "ready")
        put(inbox, "marked", 1001)
        until(lambda: figure(instance, published) == 1001)
        put(inbox, "quiet", 1002, marker=False)
        until(lambda: figure(instance, published) == 1002)
        until(lambda: instance.metric("forecast_inbox_published_total") == 2)
        until(lambda: settled(inbox) == {"published": ["marked", "quiet"], "quarantine": []})
        assert instance.ready().json()["status"] == "ready"
        assert instance.stop() == 0
    trail = json.loads(forecast_here(env, "log", "--what", "published", "--json").stdout)
    assert [line["via"] for line in trail] == ["inbox", "inbox", "command"]
    assert "nanobind" not in (short / "serve.log").read_text(), "an orderly end says nothing"


def test_half_a_drop_is_never_published_nor_a_refused_one(watched: Watched, short: Path) -> None:
    """While it grows, however slowly, it waits; then it is published whole, as one release."""
    instance, site, inbox = watched.instance, watched.site, watched.inbox
    whole = short / "whole"
    write_drop(whole, population=[people("36436", 2023, 2001)])
    before, there = figure(instance, site), settled(inbox)
    drop = inbox / "slow"
    drop.mkdir()
    for file in sorted(whole.iterdir()):
        content = file.read_bytes()
        for part in (content[: len(content) // 2], content[len(content) // 2 :]):
            with (drop / file.name).open("ab") as stream:
                stream.write(part)
            time.sleep(0.3)  # how slow the writer is: less than the quiet time, all of it together more
            assert settled(inbox) == there
            assert figure(instance, site) == before
    until(lambda: "slow" in settled(inbox)["published"])
    assert figure(instance, site) == 2001
    _refused(watched)
    assert str(watched.reported) not in instance.log_file.read_text(), "the command may name a token"


def _refused(watched: Watched) -> None:
    """Quarantine with its report, metrics, the command; partners see what they saw, and readiness is not concerned."""
    instance, reported = watched.instance, watched.reported
    before = instance.metric("forecast_inbox_refused_total")
    put(watched.inbox, "bad", -1)
    until(lambda: reported.exists() and reported.read_text() != "")
    report = Path(reported.read_text())
    assert "out-of-range" in report.read_text()
    assert "Refused" in report.with_suffix(".txt").read_text()
    assert (report.parent / "bad" / "zip_population.parquet").exists()
    until(lambda: instance.metric("forecast_inbox_waiting") == 0)
    assert instance.metric("forecast_inbox_refused_total") == before + 1
    assert abs(time.time() - instance.metric("forecast_inbox_last_refusal_timestamp_seconds")) < 60
    assert figure(instance, watched.site) == 2001
    # on a busy machine, other causes may degrade it for a moment
    until(lambda: instance.ready().json()["status"] == "ready")


# As many as `moments` tells.
_MOMENTS = 4


def moments(inbox: Path, data: Path) -> list[Callable[[], bool]]:
    """On the way of the next drop: claimed, being read, built and not current yet, current and not moved yet."""
    pointer, releases = data / "current.json", len(list((data / "releases").iterdir()))
    before = pointer.read_bytes()
    return [
        lambda: any(inbox.glob(".claimed/*/*")),
        lambda: any(data.glob("staging/*/tables/*.parquet")),
        lambda: len(list((data / "releases").iterdir())) > releases,
        lambda: pointer.read_bytes() != before,
    ]


def _kill_at(moment: Callable[[], bool], over: Callable[[], bool], pid: int, readers: list[int]) -> bool:
    """Whether the moment was met: each lasts for milliseconds, and a busy machine may look away until it is over."""
    while not moment():
        if over():
            return False
        time.sleep(0.0005)
    readers.extend(children_of(pid))
    os.kill(pid, signal.SIGKILL)
    return True


def test_a_killed_watcher_leaves_nothing_half_done(watched: Watched) -> None:
    """The supervisor starts another, which publishes the drop; it is counted once, and all that is there is whole."""
    instance, inbox = watched.instance, watched.inbox
    counted, there = instance.metric("forecast_inbox_published_total"), settled(inbox)
    names: list[str] = []
    met = 0  # moments
    while met < _MOMENTS:
        assert len(names) < 10 * _MOMENTS, "the moments cannot be met"
        until(lambda: len(watchers(instance)) == 1)
        (pid,) = watchers(instance)
        readers: list[int] = []
        moment = moments(inbox, watched.data)[met]
        names.append(f"drop-{len(names):02}")
        put(inbox, names[-1], 3000 + len(names))
        met += _kill_at(moment, lambda: names[-1] in settled(inbox)["published"], pid, readers)
        until(lambda: not any(map(is_alive, readers)))  # noqa: B023 - done with in this turn
        until(lambda: names[-1] in settled(inbox)["published"])
        until(lambda: figure(instance, watched.site) == 3000 + len(names))
    until(lambda: instance.ready().json()["status"] == "ready")
    assert instance.metric("forecast_inbox_published_total") == counted + len(names)
    assert settled(inbox) == there | {"published": sorted([*there["published"], *names])}
    assert not any(inbox.glob(".claimed/*/"))
    assert list((watched.data / "staging").iterdir()) == []
    catalog = Catalog(watched.data)
    for release in catalog.names():
        catalog.verify(catalog.manifest(release))


def test_nothing_survives_a_killed_supervisor_in_the_middle(
    published: Site, env: Env, inbox: Path, short: Path
) -> None:
    """Neither the watcher nor the reader of the drop; the next instance publishes what was claimed.

    What the first one refused is still counted.
    """
    with serving(env, short / "serve.log") as instance:
        until(lambda: len(watchers(instance)) == 1)
        (pid,) = watchers(instance)
        put(inbox, "bad", -1)
        until(lambda: instance.metric("forecast_inbox_refused_total") == 1 and not children_of(pid))
        put(inbox, "2026-10", 4001)
        until(lambda: bool(children_of(pid)))
        family = [pid, *children_of(pid)]
        instance.process.kill()
        instance.process.wait()
        until(lambda: not any(map(is_alive, family)))
    with serving(env, short / "again.log") as instance:
        until(lambda: figure(instance, published) == 4001)
        until(lambda: settled(inbox) == {"published": ["2026-10"], "quarantine": ["bad"]})
        assert instance.metric("forecast_inbox_refused_total") == 1


def test_of_two_instances_one_watches_and_the_other_takes_over(
    published: Site, env: Env, inbox: Path, short: Path
) -> None:
    """Each drop is published once, whoever lives.

    What a watcher counted when it ended is no news of an inbox that nobody watches; what it published stays.
    """

    def waits(instance: Instance) -> bool:
        return any("another watcher" in line["message"] for line in instance.log())

    with (
        serving(published.env, short / "other.log") as other,
        serving(env, short / "first.log") as first,
        serving(env, short / "second.log") as second,
    ):
        until(lambda: waits(first) or waits(second))
        if waits(first):
            first, second = second, first
        for number in range(3):
            put(inbox, f"drop-{number}", 5000 + number)
        until(lambda: len(settled(inbox)["published"]) == 3)
        assert first.metric("forecast_inbox_published_total") == second.metric("forecast_inbox_published_total") == 3
        first.process.kill()
        first.process.wait()
        put(inbox, "last", 5999)
        until(lambda: figure(second, published) == 5999)
        refused = [line for line in second.log() if line.get("event") in ("refused", "failed")]
        assert refused == []
        (inbox / "arriving").mkdir()
        for each in (second, other):
            until(lambda each=each: each.metric("forecast_inbox_published_total") == 4)  # type: ignore[misc]
            until(lambda each=each: each.metric("forecast_inbox_waiting") == 1)  # type: ignore[misc]
        second.process.kill()
        until(lambda: other.metric("forecast_inbox_waiting") == 0)
        assert other.metric("forecast_inbox_published_total") == 4


def test_a_drop_that_swells_beyond_the_disk_is_refused_and_others_go_live(cramped: Watched) -> None:
    """Small as it is, decoded it is larger than the disk: its own fault, told with sizes; the disk is never full."""
    instance, inbox = cramped.instance, cramped.inbox
    until(lambda: instance.ready().json()["status"] == "ready")
    refused = instance.metric("forecast_inbox_refused_total")
    put(inbox, "swelling", 7000, marker=False)
    write_swelling(inbox / "swelling" / "projects.parquet", 40_000)
    (inbox / "swelling" / "_SUCCESS").touch()
    put(inbox, "good", 7001)
    least = [shutil.disk_usage(cramped.data).free]

    def live() -> bool:
        least.append(shutil.disk_usage(cramped.data).free)
        return figure(instance, cramped.site) == 7001

    until(live)
    until(lambda: "good" in settled(inbox)["published"] and settled(inbox)["quarantine"] == ["swelling"])
    until(lambda: instance.metric("forecast_inbox_refused_total") == refused + 1)
    assert instance.metric("forecast_inbox_failing") == 0
    assert min(least) > 8 << 20
    (report,) = inbox.glob("quarantine/swelling-*/report.txt")
    assert re.search(r"needed more than \d+\.\d MB of disk; \d+\.\d MB were free", " ".join(report.read_text().split()))


def test_a_disk_that_others_filled_is_no_fault_of_a_drop(cramped: Watched) -> None:
    """It is tried again, as readiness says, and published when there is room; newer ones come after it."""
    instance, inbox = cramped.instance, cramped.inbox
    until(lambda: len(watchers(instance)) == 1)
    until(lambda: instance.metric("forecast_ready") == 1)
    there = settled(inbox)
    filler = fill(cramped.data.parent)
    put(inbox, "older", 7002)
    until(lambda: any("No space left" in reason for reason in instance.ready().json()["reasons"]))
    put(inbox, "newer", 7003)
    assert settled(inbox) == there
    filler.unlink()
    until(lambda: settled(inbox) == there | {"published": sorted([*there["published"], "newer", "older"])})
    until(lambda: figure(instance, cramped.site) == 7003)
    until(lambda: instance.ready().json()["status"] == "ready")
