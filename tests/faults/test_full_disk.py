"""The disk under the embedded key store is full: the server stays, the cause is named, and what is urgent works."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.redis.server import disk_full
from tests.faults.conftest import Site
from tests.support.disks import fill, mounted
from tests.support.drops import people, write_drop
from tests.support.instance import Instance, children_of, environment, forecast, issue_key, serving
from tests.support.waiting import until

KIB = 60 << 10


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", KIB) as made:
        yield made


@pytest.fixture
def env(disk: Path, tmp_path: Path) -> dict[str, str]:
    env = environment(disk / "data", drain=0.4)
    for figure in (2001, 2002):
        drop = write_drop(tmp_path / f"drop-{figure}", population=[people("36436", 2023, figure)])
        done = forecast(env, "extracts", "publish", str(drop))
        assert done.returncode == 0, done.stderr
    return env


def id_of(key: str) -> str:
    return key.split("_")[2][:12]


def said(instance: Instance) -> tuple[str, str]:
    ready = instance.ready().json()
    return ready["status"], " ".join(ready["reasons"])


def ended(instance: Instance) -> int:
    return sum("starting the embedded server" in line["message"] for line in instance.log())


def test_a_full_disk_ends_no_key_store_and_lets_what_is_urgent_pass(
    env: dict[str, str], disk: Path, tmp_path: Path
) -> None:
    """It is named at once and steadily, by readiness, by `status`, in the log and by each command that is refused. Keys
    are revoked and rotated, and a release is rolled back. When there is space again, all works again."""
    served, leaked, old = (issue_key(env, partner) for partner in ("served", "leaked", "old"))
    with serving(env, tmp_path / "serve.log") as instance:
        until(lambda: said(instance)[0] == "ready")
        filler = fill(disk)
        folder = disk / "data" / "embedded" / "keys"
        full = disk_full(str(folder))
        assert "free space there" in full
        for _ in range(40):
            assert instance.zip_code(served).status_code == 200
            status, reasons = said(instance)
            assert (status, reasons.startswith(f"The key store: {full}"), "maxmemory" in reasons) == (
                "degraded",
                True,
                False,
            )
        until(lambda: full in forecast(env, "status", "--json").stdout)
        done = forecast(env, "keys", "issue", "--partner", "acme")
        assert (done.returncode, full in done.stderr) == (1, True), done.stderr
        for command in (("revoke", id_of(leaked)), ("rotate", id_of(old), "--overlap", "0s", "--json")):
            done = forecast(env, "keys", *command)
            assert done.returncode == 0, done.stderr
        until(lambda: instance.zip_code(leaked).status_code == 401)
        assert instance.zip_code(json.loads(done.stdout)["key"]).status_code == 200
        done = forecast(env, "extracts", "rollback")
        assert done.returncode == 0, done.stderr
        assert any(full in line["message"] for line in instance.log())
        filler.unlink()
        until(lambda: said(instance)[0] == "ready")
        issue_key(env, "again")
        assert ended(instance) == 0


def test_a_command_on_a_full_disk_without_an_instance_can_revoke(env: dict[str, str], disk: Path) -> None:
    """The server that it starts knows that the disk is full."""
    leaked = issue_key(env, "leaked")
    fill(disk)
    done = forecast(env, "keys", "issue", "--partner", "acme")
    assert (done.returncode, "is full" in done.stderr) == (1, True)
    done = forecast(env, "keys", "revoke", id_of(leaked))
    assert done.returncode == 0, done.stderr


def test_a_full_disk_with_nothing_on_it_names_itself(disk: Path) -> None:
    (disk / "data").mkdir()
    fill(disk)
    done = forecast(environment(disk / "data"), "keys", "issue", "--partner", "acme")
    assert (done.returncode, "disk" in done.stderr or "space" in done.stderr) == (1, True), done.stderr


def test_a_key_store_that_does_not_stay_is_restarted_later_and_later(published: Site, short: Path) -> None:
    """And is said not to, until a minute has passed without a restart; the first time it is back at once."""
    env = {**published.env, "FORECAST_KEYS_URL": "embedded"}
    (published.data / "key-store-seen").unlink()
    issue_key(env)
    with serving(env, short / "serve.log") as instance:
        until(lambda: said(instance)[0] == "ready")

        def kill() -> None:
            def server() -> list[int]:
                return children_of(instance.process.pid, "keys.sock")

            until(lambda: bool(server()))
            os.kill(server()[0], signal.SIGKILL)

        for times in (1, 2):
            kill()
            until(lambda times=times: ended(instance) == times)  # type: ignore[misc]
        until(lambda: "The embedded server for keys keeps ending: signal 9 ended it" in said(instance)[1])
        until(lambda: "Restarted in the last minute" in forecast(env, "status", "--json").stdout)
        assert "All is well" not in forecast(env, "status", "--json").stdout
