"""Who is alive on a data folder, and what it serves."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from warehouse.releases.instances import InstanceFile, InstanceRecord, live_instances, wait_until_served

OLD, NEW = "20260901T000000Z-000000000000", "20261001T000000Z-111111111111"


def record(name: str, *releases: str | None) -> InstanceRecord:
    return InstanceRecord(name, os.getpid(), "here", "http://127.0.0.1:9090", releases)


def test_a_live_instance_is_listed_with_what_it_wrote_last(tmp_path: Path) -> None:
    file = InstanceFile(tmp_path, "a")
    assert live_instances(tmp_path) == []
    file.write(record("a", None))
    file.write(record("a", OLD, NEW))
    assert live_instances(tmp_path) == [record("a", OLD, NEW)]
    file.close()


def test_an_instance_that_left_is_listed_no_more_and_leaves_nothing(tmp_path: Path) -> None:
    file = InstanceFile(tmp_path, "a")
    file.write(record("a", OLD))
    file.close()
    assert live_instances(tmp_path) == []
    assert list((tmp_path / "instances").iterdir()) == []


def test_an_instance_that_was_killed_is_cleared(tmp_path: Path) -> None:
    """Its lock went with its process, whoever has its process id now."""
    code = (
        "import sys; from pathlib import Path; from warehouse.releases.instances import *; "
        "file = InstanceFile(Path(sys.argv[1]), 'a'); "
        "file.write(InstanceRecord('a', 1, 'here', 'url', ('x',))); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [one.instance for one in live_instances(tmp_path)] == ["a"]
        process.kill()
    assert live_instances(tmp_path) == []
    assert list((tmp_path / "instances").iterdir()) == []


def test_a_data_folder_without_instances_has_none(tmp_path: Path) -> None:
    assert live_instances(tmp_path / "nothing") == []


def test_an_instance_that_starts_is_never_cleared_away(tmp_path: Path) -> None:
    """While others look, without a pause, who is alive."""
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            live_instances(tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for number in range(150):
            file = InstanceFile(tmp_path, str(number))
            file.write(record(str(number), OLD))
            listed = [one.instance for one in live_instances(tmp_path)]
            file.close()
            assert listed == [str(number)]
    finally:
        stop.set()
        for looker in lookers:
            looker.join()


def test_an_instance_serves_a_release_when_all_its_workers_do() -> None:
    assert record("a", NEW, NEW).serves(NEW)
    for releases in ((NEW, OLD), (NEW, None), ()):
        assert not record("a", *releases).serves(NEW)


def test_waiting_ends_when_all_serve_the_release(tmp_path: Path) -> None:
    files = {name: InstanceFile(tmp_path, name) for name in ("a", "b")}
    files["a"].write(record("a", NEW))
    files["b"].write(record("b", OLD))

    def switch(_: str) -> None:
        files["b"].write(record("b", NEW))

    assert wait_until_served(lambda: live_instances(tmp_path), NEW, 30, switch) == []
    for file in files.values():
        file.close()


@pytest.mark.parametrize("late", [(OLD, NEW), (None,)])
def test_who_is_behind_is_named_when_time_is_up(tmp_path: Path, late: tuple[str | None, ...]) -> None:
    """One whose workers have no release at all is behind too."""
    files = {name: InstanceFile(tmp_path, name) for name in ("a", "b")}
    files["a"].write(record("a", NEW))
    files["b"].write(record("b", *late))
    assert wait_until_served(lambda: live_instances(tmp_path), NEW, 0.05) == [record("b", *late)]
    for file in files.values():
        file.close()


def test_without_instances_a_publish_does_not_wait(tmp_path: Path) -> None:
    reported: list[str] = []
    assert wait_until_served(lambda: live_instances(tmp_path), NEW, 30, reported.append) == []
    assert reported == []
