"""What trails know that records do not."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from service.base.terms import Terms
from service.keys.audit import Change, TrailLine
from service.keys.record import ApiKey, KeyState
from service.keys.restore import Replay, merged

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
KEY = ApiKey(key_id="0B1zQmX4ktLw", partner="acme", digest="d" * 64, created_at=NOW)
REVOKED = msgspec.structs.replace(KEY, revoked_at=NOW, revision=1)


def line(what: str, revision: int, key_id: str = KEY.key_id, **after: Any) -> TrailLine:
    change = Change(what=what, by="grace@host", key_id=key_id, revision=revision, after=KeyState(**after))
    return TrailLine("1-1", change)


def replayed(*lines: TrailLine) -> Replay:
    replay = Replay()
    for one in lines:
        replay.note(one)
    return replay


def test_a_trail_that_knows_nothing_newer_changes_nothing() -> None:
    empty = Change(what="adopted", by="grace@host")
    replay = replayed(
        line("issued", 0), TrailLine("1-1", None), TrailLine("1-1", empty), line("revoked", 1, "other", revoked_at=NOW)
    )
    assert replay.bring_up_to_date(KEY) == KEY


def test_the_last_change_counts_whatever_the_order() -> None:
    late = line("extended", 2, expires_at=NOW + timedelta(days=2))
    early = line("extended", 1, expires_at=NOW + timedelta(days=1))
    for lines in ((early, late), (late, early)):
        key = replayed(*lines).bring_up_to_date(KEY)
        assert (key.expires_at, key.revision) == (NOW + timedelta(days=2), 2)


def test_a_record_that_is_as_new_as_the_trail_stays() -> None:
    key = msgspec.structs.replace(KEY, terms=Terms(areas=("forecast",)), revision=2)
    assert replayed(line("extended", 1, expires_at=NOW), line("changed", 2)).bring_up_to_date(key) == key


@pytest.mark.parametrize("revision", [0, 1, 7])
def test_a_revocation_counts_whatever_came_after_it(revision: int) -> None:
    """Also where a record is said to be newer: it was set back by hand, or is of another history."""
    key = msgspec.structs.replace(KEY, revision=revision)
    replay = replayed(line("revoked", 1, revoked_at=NOW), line("extended", 5))
    brought = replay.bring_up_to_date(key)
    assert brought.revoked_at == NOW
    assert brought.revision > revision
    assert replay.revoked == {KEY.key_id: NOW}


def test_the_first_revocation_keeps_its_time() -> None:
    later = line("imported", 3, revoked_at=NOW + timedelta(days=1))
    assert replayed(line("revoked", 1, revoked_at=NOW), later).bring_up_to_date(KEY).revoked_at == NOW


@pytest.mark.parametrize(
    ("existing", "imported", "result"),
    [(None, KEY, KEY), (KEY, KEY, KEY), (KEY, REVOKED, REVOKED), (REVOKED, KEY, REVOKED)],
    ids=["new", "same", "newer in the file", "newer in the store"],
)
def test_of_two_records_the_newer_one_stays(existing: ApiKey | None, imported: ApiKey, result: ApiKey) -> None:
    assert merged(existing, imported) == result


def test_a_revocation_survives_a_newer_record_without_it() -> None:
    newer = msgspec.structs.replace(KEY, label="newer", revision=4)
    for result in (merged(REVOKED, newer), merged(newer, REVOKED)):
        assert result == msgspec.structs.replace(newer, revoked_at=NOW, revision=5)
