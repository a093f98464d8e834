"""A drop of an old month is recognised by the dates that its tables carry, whatever releases came between."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.support.drops import homes
from tests.support.publishing import publish
from tests.warehouse.helpers import NO_LIMITS, a_month_apart, errors
from tests.warehouse.spoiling import AT, good_drop, only
from warehouse.drops.messages import ReadResult
from warehouse.publishing.history import delivered_before, older_than_current
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.releases.catalog import Catalog, Manifest, TableInfo
from warehouse.releases.changes import roll_back
from warehouse.rules.all_rules import make_finding

Dates = tuple[str | None, int | None]
UNDATED: Dates = (None, None)
OCTOBER: Dates = ("2026-10-05", 10)


def housing(dates: Dates, rows: int = 1) -> dict[str, TableInfo]:
    return {"housing": TableInfo(rows=rows, checksum="0", files=(), as_of=dates[0], month=dates[1])}


def release(number: int, dates: Dates) -> Manifest:
    return Manifest(
        id=f"release-{number}",
        published_at=datetime(2026, 11, 22, tzinfo=UTC),
        builder_version=2,
        illustrative=False,
        areas=(),
        zip_codes=1,
        cities=1,
        tables=housing(dates),
        attribution=(),
        findings={},
        files={},
    )


def reported(drop: Dates, *kept: Dates) -> dict[str, tuple[str, ...]]:
    """What is found in a drop after these releases, newest first: samples by rule."""
    manifests = [release(number, dates) for number, dates in enumerate(kept)]
    return {one.rule: one.samples for one in older_than_current(manifests, ReadResult(tables=housing(drop)))}


@pytest.mark.parametrize(
    ("drop", "kept", "sample"),
    [
        (("2026-06-05", None), [OCTOBER], "housing: 2026-06-05, after 2026-10-05"),
        (("2026-06-05", None), [UNDATED, UNDATED, OCTOBER], "housing: 2026-06-05, after 2026-10-05"),
        ((None, 9), [UNDATED, OCTOBER], "housing: month 9, after month 10"),
        ((None, 12), [(None, 1)], "housing: month 12, after month 1"),
        (("2026-09-05", None), [(None, 10), OCTOBER], "housing: 2026-09-05, after 2026-10-05"),
        (("2027-10-05", 10), [UNDATED, OCTOBER], "housing: month 10 again, updated 2027-10-05, after 2026-10-05"),
    ],
)
def test_a_date_before_the_newest_that_is_known_is_an_old_export(drop: Dates, kept: list[Dates], sample: str) -> None:
    """A release without dates, or with one of its two, hides no date of the releases before it."""
    assert reported(drop, *kept)["older-than-current"] == (sample,)


@pytest.mark.parametrize(
    ("drop", "kept"),
    [
        (OCTOBER, [OCTOBER]),
        (OCTOBER, [UNDATED]),
        (("2026-11-05", 11), [OCTOBER]),
        (("2027-01-05", 1), [UNDATED, ("2026-12-05", 12)]),
        (("2026-07-05", 7), [("2026-06-05", 6), OCTOBER]),  # June was accepted over October
        (("2026-10-05", 10), [(None, 10), ("2026-09-05", 9)]),  # not October again: that day was September's
        (UNDATED, [UNDATED, OCTOBER]),
    ],
)
def test_a_date_that_goes_on_is_none(drop: Dates, kept: list[Dates]) -> None:
    assert reported(drop, *kept) == {}


@pytest.mark.parametrize(
    ("current", "sample"), [(OCTOBER, "housing: none, after 2026-10-05"), ((None, 10), "housing: none, after month 10")]
)
def test_a_table_that_lost_its_date_is_reported(current: Dates, sample: str) -> None:
    """Unless another finding says already that it cannot be read."""
    assert reported(UNDATED, current) == {"missing-date": (sample,)}
    unreadable = make_finding("unreadable-date", "06/05/2026 is no date", table="housing")
    read = ReadResult(tables=housing(UNDATED), findings=(unreadable,))
    assert older_than_current([release(1, current)], read) == []


@pytest.mark.parametrize(
    ("dates", "others", "found"),
    [(("2026-11-05", 11), 2, ["unchanged-table"]), (OCTOBER, 2, []), (("2026-11-05", 11), 1, [])],
)
def test_a_table_with_the_rows_of_the_release_and_a_new_date_is_reported(
    dates: Dates, others: int, found: list[str]
) -> None:
    """Unless the whole drop is that of the release."""
    people = {"population": housing(OCTOBER, rows=1)["housing"]}
    current = msgspec.structs.replace(release(1, OCTOBER), tables=housing(OCTOBER) | people)
    brought = housing(dates) | {"population": msgspec.structs.replace(people["population"], rows=others)}
    assert [one.rule for one in delivered_before([current], brought)] == found


def test_a_table_without_rows_has_no_date_to_carry() -> None:
    """That it has none is an error already."""
    assert older_than_current([release(1, OCTOBER)], ReadResult(tables=housing(UNDATED, rows=0))) == []


def test_a_corrected_drop_follows_a_rollback_and_the_bad_one_does_not_return(catalog: Catalog, tmp_path: Path) -> None:
    """The wrong date of the withdrawn release refuses neither the corrected drop nor the next one."""

    def published(name: str, day: str, figure: int) -> PublishOutcome:
        drop = good_drop(tmp_path / name)
        only("zip_housing", [{**homes(AT, tot_home_available_2023=figure), "UPDATED_AT": day}])(drop)
        return publish(catalog, [str(drop)], PublishOptions(limits=NO_LIMITS))

    with a_month_apart():
        assert published("september", "2026-09-05", 100).result == "published"
        assert published("bad", "2026-10-30", 120).result == "published"
        roll_back(catalog)
        assert published("corrected", "2026-10-05", 130).result == "published"
        assert errors(published("bad-again", "2026-10-30", 120)) == ["delivered-before"]
        assert published("november", "2026-11-05", 140).result == "published"
