"""The figures of the inbox, kept in the data folder."""

from pathlib import Path

import pytest

from service.publishing.inbox_status import read_status
from tests.support.inbox import BAD, CURRENT, GOOD, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_figures_are_kept_over_restarts(site: Site) -> None:
    for name, answer in (("a", GOOD), ("b", BAD), ("c", CURRENT)):
        site.put(name)
        site.answers = [answer]
        site.watcher().once()
    status = read_status(site.data)
    assert (status.published, status.refused, status.waiting) == (2, 1, 0)


@pytest.mark.parametrize("content", [b"", b"{", b'{"published":"x"}', b"\xff"])
def test_a_damaged_file_of_figures_stops_nobody(site: Site, content: bytes) -> None:
    """It is written anew."""
    site.data.mkdir()
    (site.data / "inbox.json").write_bytes(content)
    site.put("2026-10")
    assert site.watcher().once()
    assert read_status(site.data).published == 1
