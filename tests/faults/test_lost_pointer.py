"""`current.json`, or what it names, is damaged or gone: what partners and operators read, and the way back."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import Site
from tests.support.drops import people, write_drop
from tests.support.instance import forecast_here, serving
from tests.support.waiting import until


def _zero(pointer: Path) -> None:
    pointer.write_bytes(b"\0" * pointer.stat().st_size)


def _truncate(pointer: Path) -> None:
    pointer.write_bytes(pointer.read_bytes()[:20])


def _other_type(pointer: Path) -> None:
    pointer.write_text("[]")


def _no_zone(pointer: Path) -> None:
    pointer.write_text(json.dumps(json.loads(pointer.read_text()) | {"switched_at": "2026-10-05T09:00:00"}))


def _gone_release(pointer: Path) -> None:
    shutil.rmtree(pointer.parent / "releases" / json.loads(pointer.read_text())["release"])


DAMAGES = (_zero, _truncate, _other_type, _no_zone, Path.unlink)


@pytest.fixture
def twice(published: Site, short: Path) -> Site:
    """With two releases."""
    published.publish(write_drop(short / "other", population=(people("36436", 2023, 784),)))
    return published


def _go_back(site: Site, reported: str) -> str:
    """Does what a message says; the release that is current then. `list` shows the releases all the same."""
    assert re.search(r"`forecast extracts rollback RELEASE` (writes a new one|makes another one current)", reported)
    listed = forecast_here(site.env, "extracts", "list", "--json")
    releases: list[str] = [one["id"] for one in json.loads(listed.stdout)]
    done = forecast_here(site.env, "extracts", "rollback", releases[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_an_instance_that_has_a_release_open_serves_on_and_says_how_to_repair_the_pointer(
    twice: Site, short: Path
) -> None:
    pointer = twice.data / "current.json"
    with serving(twice.env, short / "serve.log") as instance:
        until(lambda: instance.ready().json()["status"] == "ready")
        for damage in DAMAGES:
            damage(pointer)
            until(lambda: instance.ready().json()["status"] == "degraded")
            (reason,) = instance.ready().json()["reasons"]
            assert str(pointer) in reason
            assert instance.zip_code(twice.key).status_code == 200
            failed = forecast_here(twice.env, "extracts", "list")
            assert (failed.returncode, str(pointer) in failed.stderr) == (1, True)
            release = _go_back(twice, reason)
            until(lambda: instance.ready().json()["status"] == "ready")
            assert instance.zip_code(twice.key).headers["x-data-release"] == release


@pytest.mark.parametrize("damage", [_zero, _gone_release])
def test_an_instance_that_starts_without_its_pointer_or_release_does_not_say_that_nothing_was_published(
    twice: Site, short: Path, damage: Callable[[Path], None]
) -> None:
    damage(twice.data / "current.json")
    with serving(twice.env, short / "serve.log") as instance:
        until(lambda: "No worker can open a release: " in instance.ready().text)
        answer = instance.zip_code(twice.key)
        assert answer.status_code == 503
        assert answer.json()["detail"] == "The data is unavailable at the moment. Try again as Retry-After says."
        assert "retry-after" in answer.headers
        (reason,) = instance.ready().json()["reasons"]
        release = _go_back(twice, reason)
        until(lambda: instance.zip_code(twice.key).status_code == 200)
        assert instance.zip_code(twice.key).headers["x-data-release"] == release


def test_nothing_is_retired_or_rolled_back_while_the_current_release_is_unknown(twice: Site) -> None:
    (twice.data / "current.json").unlink()
    for command in (("rollback",), ("retire", "--keep", "1"), ("publish", str(twice.data.parent / "other"))):
        failed = forecast_here(twice.env, "extracts", *command)
        assert failed.returncode == 1
        assert "current.json is gone; `forecast extracts rollback RELEASE` writes a new one" in failed.stderr
    _go_back(twice, failed.stderr)
