"""Which releases partners hear of: those that led to the current one."""

from datetime import UTC, datetime

import pytest

from service.http.releases.shelf import led_to
from warehouse.releases.catalog import Manifest


def release(number: int, previous: int | None = None) -> Manifest:
    return Manifest(
        id=named(number),
        published_at=datetime(2026, 1, number, tzinfo=UTC),
        builder_version=1,
        illustrative=False,
        attribution=(),
        areas=(),
        zip_codes=0,
        cities=0,
        tables={},
        files={},
        findings={},
        previous=None if previous is None else named(previous),
    )


def named(number: int) -> str:
    return f"202601{number:02}T000000Z-0"


@pytest.mark.parametrize(
    ("current", "kept", "history"),
    [
        (release(3, 2), [release(1), release(2, 1), release(3, 2)], [3, 2, 1]),
        # 3 was rolled back to 2
        (release(2, 1), [release(1), release(2, 1), release(3, 2)], [2, 1]),
        # and 4 came after that
        (release(4, 2), [release(1), release(2, 1), release(3, 2), release(4, 2)], [4, 2, 1]),
        # an earlier version did not say which came before
        (release(3), [release(1), release(2), release(3)], [3, 2, 1]),
        # the one before is not kept any more
        (release(4, 3), [release(1), release(2, 1), release(4, 3)], [4, 2, 1]),
        # nothing can be read
        (release(4, 3), [], [4]),
        # somebody's clock was wrong: 2 came before 1
        (release(1, 2), [release(1, 2), release(2)], [1, 2]),
    ],
)
def test_history_leads_to_the_oldest_release(current: Manifest, kept: list[Manifest], history: list[int]) -> None:
    assert [manifest.id for manifest in led_to(current, kept)] == [named(number) for number in history]
