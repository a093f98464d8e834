"""Publishing with the cache warmed before the switch: whole, in part, or not at all, and the release goes live."""

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from redis import Redis

from config.settings import Settings
from config.urls import address
from service.cache import entry as envelope
from service.cache import fitting
from service.cache.key import cache_key
from service.cache.key import release_of as release_in
from service.embedded import owner
from service.embedded.runtime import EmbeddedError
from service.publishing.publisher import Published, make_options, publish_and_wait
from service.publishing.releases import FolderReleases, open_releases
from tests.support.drops import POPULATION, people, write_drop
from tests.support.publishing import reading_here
from tests.support.served import served
from tests.support.valkey import ValkeyProcess
from tests.support.wire import Answer
from tests.warehouse.helpers import NO_LIMITS
from warehouse.areas import forecast
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.deliveries import last_delivery
from warehouse.releases.instances import InstanceFile, InstanceRecord
from warehouse.schema.errors import BusyError


@pytest.fixture
def cache(short: Path) -> Iterator[ValkeyProcess]:
    """A server that a test may hurt."""
    server = ValkeyProcess(short / "cache").start()
    yield server
    server.kill()


@pytest.fixture
def ours(short: Path, cache: ValkeyProcess) -> Settings:
    return Settings(
        data_dir=str(short / "data"), keys_url=cache.url, cache_url=cache.url, keys_timeout=1, cache_timeout=1
    )


def published(settings: Settings, *drops: Path, steps: list[str] | None = None) -> Published:
    options = msgspec.structs.replace(make_options(settings), limits=NO_LIMITS)
    tell = (lambda _: None) if steps is None else steps.append
    with reading_here():
        return publish_and_wait(settings, [str(drop) for drop in drops], options, tell)


def newer(short: Path) -> Path:
    return write_drop(short / "newer", population=[*POPULATION, people("36436", 2024, 790)])


def bodies(settings: Settings) -> dict[str, bytes]:
    """Every answer of the current release, by canonical query, worked out from its files."""
    catalog = Catalog(settings.data_path)
    return dict(forecast.forecast_answers_to_warm(catalog.folder(catalog.current().id)))


def warmed(settings: Settings, cache: ValkeyProcess, release: str) -> dict[str, bytes]:
    catalog = Catalog(settings.data_path)
    found = {}
    with Redis(unix_socket_path=str(cache.socket)) as client:
        for query, _ in forecast.forecast_answers_to_warm(catalog.folder(release)):
            key = cache_key(release, "forecast", query)
            data = client.get(key.name)
            entry = envelope.decode(data, key.digest) if isinstance(data, bytes) else None
            if entry is not None:
                found[query] = entry.body
    return found


def release_of(outcome: Published) -> str:
    assert outcome.outcome.manifest is not None
    assert outcome.outcome.result == "published"
    return outcome.outcome.manifest.id


def not_warmed(outcome: Published) -> list[str]:
    return [found.message for found in outcome.outcome.report.findings if found.rule == "not-warmed"]


def test_everything_is_warm_before_the_pointer_switches(
    ours: Settings, cache: ValkeyProcess, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every ZIP code, city and alias of the release: at the moment of the switch, and none before it was built."""
    at_switch: list[dict[str, bytes]] = []
    switch = Catalog.switch

    def observed(catalog: Catalog, release: str, by: str | None = None) -> object:
        at_switch.append(warmed(ours, cache, release))
        return switch(catalog, release, by)

    monkeypatch.setattr(Catalog, "switch", observed)
    for drop in (write_drop(short / "drop"), newer(short)):
        outcome = published(ours, drop)
        assert at_switch[-1] == bodies(ours)
        assert {"zip:36436", "city:MO:stlouis", "city:CA:hollywood"} <= set(at_switch[-1])
        assert not_warmed(outcome) == []
    assert len(at_switch) == 2


def test_the_first_request_after_a_publish_is_a_hit(ours: Settings, cache: ValkeyProcess, short: Path) -> None:
    """ZIP code, city and alias, with the right bytes, from the shared cache; without warming, each is a miss."""
    for mode, expected in (("off", "miss"), ("all", "hit")):
        settings = msgspec.structs.replace(ours, warm=mode, data_dir=str(short / mode))
        published(settings, write_drop(short / mode / "drop"))
        expectations = bodies(settings)
        with served(settings) as running:
            for query, parameters in (
                ("zip:36436", {"zip_code": "36436"}),
                ("city:MO:stlouis", {"city_name": "St. Louis", "state_code": "MO"}),
                ("city:CA:hollywood", {"city_name": "Hollywood", "state_code": "CA"}),
            ):
                answer = running.forecast(**parameters)
                assert answer.status == 200
                assert (answer.body, _tier(answer)) == (expectations[query], expected)


def _tier(answer: Answer) -> str:
    """`hit` for what a cache had, `miss` for what was looked up."""
    status = answer.header("cache-status") or ""
    return "hit" if "; hit" in status else "miss"


def test_an_unreachable_cache_is_a_warning_and_the_release_goes_live(
    ours: Settings, cache: ValkeyProcess, short: Path
) -> None:
    """Listed first, so that nobody overlooks why it is slow."""
    cache.kill()
    outcome = published(ours, write_drop(short / "drop"))
    assert release_of(outcome) == Catalog(ours.data_path).current().id
    assert len(not_warmed(outcome)) == 1
    assert outcome.outcome.report.findings[0].severity == "warning"


def test_warming_that_takes_too_long_is_a_warning_too(
    ours: Settings, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.publishing.warming._WARM_SECONDS", -1.0)
    outcome = published(ours, write_drop(short / "drop"))
    assert release_of(outcome) == Catalog(ours.data_path).current().id
    assert "longer than" in not_warmed(outcome)[0]


def test_an_embedded_cache_without_an_instance_is_not_warmed(short: Path) -> None:
    """It begins empty with the next instance: no warning, nothing started."""
    outcome = published(Settings(data_dir=str(short / "data")), write_drop(short / "drop"))
    assert not_warmed(outcome) == []
    assert not (short / "data" / "embedded").exists()


def test_an_embedded_cache_that_cannot_be_trusted_is_a_warning(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder belongs to another user: the release goes live without it."""

    def refuse(*_: object) -> None:
        raise EmbeddedError("the folder is not private")

    monkeypatch.setattr(owner, "running_url", refuse)
    outcome = published(Settings(data_dir=str(short / "data")), write_drop(short / "drop"))
    assert release_of(outcome)
    assert not_warmed(outcome) == ["the folder is not private"]


@contextmanager
def serving(settings: Settings, cache: str | None, host: str = "") -> Iterator[None]:
    """The record of an instance that is alive."""
    file = InstanceFile(settings.data_path, "a")
    file.write(InstanceRecord("a", 4711, host or socket.gethostname(), "http://127.0.0.1:1", (), cache))
    try:
        yield
    finally:
        file.close()


def reported(outcome: Published) -> list[tuple[str, str]]:
    return [(found.rule, found.message) for found in outcome.outcome.report.findings if "warm" in found.rule]


def test_another_cache_than_the_instances_use_is_a_warning_that_names_both(
    ours: Settings, cache: ValkeyProcess, short: Path
) -> None:
    """With what it means and how to mend it, in what is kept as well; the cache that was named is warm."""
    with serving(ours, "redis://cache.example.org:6379/0"):
        outcome = published(ours, write_drop(short / "drop"))
    (found,) = [one for one in outcome.outcome.report.findings if one.rule == "warmed-elsewhere"]
    assert (found.severity, found.count) == ("warning", 1)
    assert found.message.startswith(f"unix://{cache.socket}?db=0 was warmed, but not every running instance uses")
    assert "the first requests to 1 running instance are slower" in found.message
    assert found.samples == (f"instance a on {socket.gethostname()}: redis://cache.example.org:6379/0",)
    assert "FORECAST_CACHE_URL" in (found.remedy or "")
    release = release_of(outcome)
    assert found in Catalog(ours.data_path).findings(release).findings
    assert warmed(ours, cache, release) == bodies(ours)


def test_the_cache_of_the_instances_is_no_warning(ours: Settings, cache: ValkeyProcess, short: Path) -> None:
    """However its URL is written; of an instance of before nobody knows."""
    url = f"unix://user:secret@{cache.socket}?db=0"
    for number, used in enumerate((address(ours.cache_url), address(url), None)):
        with serving(ours, used):
            assert (
                reported(published(ours, write_drop(short / "drop", population=[people("36436", 2023, number)]))) == []
            )


def test_the_same_socket_of_another_host_is_another_cache(ours: Settings, short: Path) -> None:
    with serving(ours, address(ours.cache_url), host="elsewhere"):
        assert [rule for rule, _ in reported(published(ours, write_drop(short / "drop")))] == ["warmed-elsewhere"]


def test_nothing_warmed_while_instances_run_is_said(ours: Settings, short: Path) -> None:
    """A shell without the URL of the instances takes an embedded cache that nobody runs, which nobody noticed."""
    embedded_, off = (msgspec.structs.replace(ours, cache_url="embedded"), msgspec.structs.replace(ours, warm="off"))
    with serving(ours, "redis://cache:6379/0"):
        ((rule, message),) = reported(published(embedded_, write_drop(short / "drop")))
        assert (rule, "no cache was warmed" in message, "slower" in message) == ("not-warmed", True, True)
        ((rule, message),) = reported(published(off, newer(short)))
        assert (rule, "FORECAST_WARM is off" in message, "slower" in message) == ("warming-off", True, True)
    again = write_drop(short / "again", population=[people("36436", 2023, 5)])
    assert reported(published(off, again)) == [], "nobody serves, so nobody is slow"


def test_a_cache_that_is_too_small_is_warmed_in_part_with_both_figures(
    ours: Settings, cache: ValkeyProcess, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "_OVERHEAD_BYTES", 1 << 20)
    with Redis(unix_socket_path=str(cache.socket)) as client:
        client.config_set("maxmemory", 8_000_000)
    outcome = published(ours, write_drop(short / "drop"))
    (said,) = not_warmed(outcome)
    every = len(bodies(ours))
    assert every > 8
    assert re.match(r"all answers take about \d+\.\d MB, and the cache's maxmemory is 8\.0 MB: only 3 answers", said)
    assert len(warmed(ours, cache, release_of(outcome))) == 3


def test_a_refused_drop_warms_nothing(ours: Settings, cache: ValkeyProcess, short: Path) -> None:
    published(ours, write_drop(short / "drop"))
    with Redis(unix_socket_path=str(cache.socket)) as client:
        before = client.dbsize()
        refused = published(ours, write_drop(short / "bad", population=[people("36436", 2023, -1)]))
        assert (refused.outcome.result, client.dbsize()) == ("refused", before)


def test_progress_says_that_it_warms_and_then_that_it_switches(ours: Settings, short: Path) -> None:
    steps: list[str] = []
    published(ours, write_drop(short / "drop"), steps=steps)
    warming = [step for step in steps if step.startswith("warming the cache")]
    assert warming
    assert steps.index(warming[-1]) < steps.index("switching")


def test_surplus_releases_are_retired_and_the_one_to_roll_back_to_stays(ours: Settings, short: Path) -> None:
    settings = msgspec.structs.replace(ours, keep_releases=2, warm="off")
    made = []
    for number in range(4):
        drop = write_drop(short / str(number), population=[people("36436", 2023, 1000 + number)])
        outcome = published(settings, drop)
        made.append(release_of(outcome))
    catalog = Catalog(settings.data_path)
    assert set(made[-2:]) <= set(catalog.names())
    # releases of one second are not told apart by their age
    assert len(catalog.names()) <= 3
    assert not set(outcome.retired) & set(catalog.names())


def months(settings: Settings, short: Path, numbers: Sequence[int]) -> list[str]:
    """The ids of releases that were published one after the other, of figures that differ."""
    drops = {each: write_drop(short / f"m{each}", population=[people("36436", 2023, each)]) for each in numbers}
    return [release_of(published(settings, drop)) for drop in drops.values()]


def warm_ones(cache: ValkeyProcess) -> set[str]:
    """The ids of the releases that have entries in the cache."""
    with Redis(unix_socket_path=str(cache.socket)) as client:
        found = {release_in(name) for name in client.scan_iter()}
    return {release.decode() for release in found if release is not None}


def test_two_releases_stay_warm_the_current_one_and_the_one_to_roll_back_to(
    ours: Settings, cache: ValkeyProcess, short: Path
) -> None:
    """Of those kept on disk. A release of another data folder stays as well."""
    with Redis(unix_socket_path=str(cache.socket)) as client:
        client.set(cache_key("elsewhere", "forecast", "x").name, "x")
    made = months(ours, short, range(3))
    assert set(Catalog(ours.data_path).names()) == set(made)
    assert warm_ones(cache) == {*made[-2:], "elsewhere"}


def test_releases_go_from_the_cache_although_another_publisher_keeps_them_from_being_retired(
    ours: Settings, cache: ValkeyProcess, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise BusyError("another publisher is at work")

    monkeypatch.setattr("warehouse.releases.changes.retire_all_but", busy)
    made = months(ours, short, range(3))
    assert warm_ones(cache) == set(made[-2:])


def test_a_release_that_an_instance_serves_stays_warm(
    ours: Settings, cache: ValkeyProcess, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until no instance serves it any more."""
    monkeypatch.setattr(FolderReleases, "served_within", 0.1)  # it never follows
    (first,) = months(ours, short, [0])
    file = InstanceFile(ours.data_path, "a")
    record = InstanceRecord("a", 4711, socket.gethostname(), "http://127.0.0.1:1", (first,), address(ours.cache_url))
    file.write(record)
    made = [first, *months(ours, short, [1, 2])]
    file.close()
    assert warm_ones(cache) == set(made)
    (last,) = months(ours, short, [3])
    assert warm_ones(cache) == {made[2], last}


def test_after_a_rollback_both_releases_stay_warm(ours: Settings, cache: ValkeyProcess, short: Path) -> None:
    """And then the next one and the one that was rolled back to."""
    made = months(ours, short, [0, 1])
    open_releases(ours).roll_back(None, "ops")
    assert warm_ones(cache) == set(made)
    (last,) = months(ours, short, [2])
    assert warm_ones(cache) == {made[0], last}


def test_a_cache_that_goes_away_after_the_switch_keeps_no_release_from_going_live(
    ours: Settings, cache: ValkeyProcess, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch = Catalog.switch

    def dying(catalog: Catalog, release: str, by: str | None = None) -> object:
        cache.kill()
        return switch(catalog, release, by)

    months(ours, short, [0, 1])
    monkeypatch.setattr(Catalog, "switch", dying)
    (last,) = months(ours, short, [2])
    assert Catalog(ours.data_path).current().id == last


def test_the_key_set_names_every_answer_that_is_warmed(ours: Settings, short: Path) -> None:
    """Whatever a request can resolve to has been warmed under the very name that it will look for."""
    manifest: Manifest | None = published(ours, write_drop(short / "drop")).outcome.manifest
    assert manifest is not None
    folder = Catalog(ours.data_path).folder(manifest.id)
    keys = forecast.FORECAST_AREA.keys_in(folder)
    assert {match.query for match in keys.matches()} == set(bodies(ours))


def test_a_drop_is_delivered_when_it_goes_live_or_was_already_current(ours: Settings, short: Path) -> None:
    """A refusal delivers nothing, and a rollback neither."""
    drop = write_drop(short / "drop")
    published(ours, drop)
    published(ours, newer(short))

    def delivered_by(act: Callable[[], object]) -> bool:
        before = last_delivery(ours.data_path)
        act()
        return last_delivery(ours.data_path) != before

    bad = write_drop(short / "bad", population=[people("36436", 2023, -1)])
    assert published(ours, bad).outcome.result == "refused"
    assert not delivered_by(lambda: published(ours, bad))
    assert not delivered_by(lambda: open_releases(ours).roll_back(None, "ops"))
    assert delivered_by(lambda: published(ours, drop))
    assert published(ours, drop).outcome.result == "already_current"
