"""Names of usage records, in both directions."""

from datetime import date

import pytest

from service.quota.names import (
    MONTH_TOTAL,
    CountsName,
    Field,
    counts_name,
    day_total,
    field_name,
    parse_counts_name,
    parse_field,
    sequences_name,
)


def test_records_of_a_key_lie_together() -> None:
    """They have the hash tag of the key's own record, so that a cluster keeps them on one node."""
    assert counts_name("abc", "2026-11") == "u:{abc}:2026-11"
    assert sequences_name("abc") == "s:{abc}"


def test_what_is_written_is_read() -> None:
    assert parse_counts_name(counts_name("abc", "2026-11")) == CountsName("abc", "2026-11")
    assert parse_field(field_name(date(2026, 11, 5), "forecast", "answered")) == Field(5, "forecast", "answered")


@pytest.mark.parametrize("name", ["u:{abc}", "u:{abc}:2026-13", "u:{abc}:2026-1", "k:{abc}:2026-11", "u:{}:2026-11"])
def test_other_names_are_no_records_of_usage(name: str) -> None:
    assert parse_counts_name(name) is None


@pytest.mark.parametrize("name", [MONTH_TOTAL, day_total(date(2026, 11, 5)), "5:forecast:answered", "05:forecast", ""])
def test_totals_and_other_fields_are_no_counts(name: str) -> None:
    """A total among the counts would bill twice."""
    assert parse_field(name) is None
