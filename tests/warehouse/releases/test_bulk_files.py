"""The list of changed records is read page by page, from positions that the pages name."""

from pathlib import Path

import msgspec
import pytest

from warehouse.releases.files import read_changes, write_changes

IDS = ("a", "two\nlines", 'a "quoted" one', "é", "last")


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 100])
def test_the_pages_together_are_the_list(tmp_path: Path, limit: int) -> None:
    write_changes(tmp_path / "list", IDS)
    found: list[str] = []
    position: int | None = 0
    while position is not None:
        page = read_changes(tmp_path / "list", position, limit)
        assert len(page.ids) <= limit
        found += page.ids
        position = page.following
    assert tuple(found) == IDS


def test_an_empty_list_is_one_empty_page(tmp_path: Path) -> None:
    write_changes(tmp_path / "list", ())
    page = read_changes(tmp_path / "list", 0, 10)
    assert (page.ids, page.following) == ((), None)


def test_what_is_not_a_list_of_changes_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"36436\n\xff")
    with pytest.raises(msgspec.DecodeError):
        read_changes(tmp_path / "list", 0, 10)
