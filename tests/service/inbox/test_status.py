"""The figures of the inbox, kept in the data folder."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from service.inbox.status import StatusFile, read_status
from tests.support.inbox import BAD, CURRENT, GOOD, Site


def test_figures_are_kept_over_restarts(site: Site) -> None:
    for name, answer in (("a", GOOD), ("b", BAD), ("c", CURRENT)):
        site.put(name)
        site.answers = [answer]
        site.watcher().once()
    status = read_status(site.data)
    assert (status.published, status.refused, status.waiting) == (2, 1, 0)


@pytest.mark.parametrize("content", [b"", b"{", b'{"published":"x"}', b"\xff"])
def test_a_damaged_file_of_figures_stops_nothing(site: Site, content: bytes) -> None:
    site.data.mkdir()
    (site.data / "inbox.json").write_bytes(content)
    site.put("2026-10")
    assert site.watcher().once()
    assert read_status(site.data).published == 1


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    watcher, command = StatusFile(tmp_path), StatusFile(tmp_path)
    watcher.count_published("a")
    command.count_approved()
    watcher.count_refused("b", 1.0, ("b", "/in/quarantine/b"))
    command.count_discarded(2.0)
    watcher.set_waiting(waiting=4, ignored=1)
    status = read_status(tmp_path)
    assert (status.published, status.refused, status.last_refusal) == (2, 2, 2.0)
    assert (status.waiting, status.ignored) == (4, 1)
    assert status.untold == ("b", "/in/quarantine/b")


def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each change is made to what is stored, not to what its process remembers."""

    def count() -> None:
        status = StatusFile(tmp_path)
        for _ in range(20):
            status.count_approved()

    writers = [threading.Thread(target=count) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert read_status(tmp_path).published == 80


def test_the_oldest_of_the_held_drops_has_its_time_kept(tmp_path: Path) -> None:
    status = StatusFile(tmp_path)
    status.set_held([datetime(2026, 10, 5, tzinfo=UTC), datetime(2026, 10, 4, tzinfo=UTC)])
    stored = read_status(tmp_path)
    assert (stored.held, stored.held_since) == (2, datetime(2026, 10, 4, tzinfo=UTC).timestamp())
    status.set_held([])
    assert (read_status(tmp_path).held, read_status(tmp_path).held_since) == (0, None)
