"""Times as people type them, for `--expires`."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from service.cli.durations import NEVER, duration, future_time, future_time_or_never, past_time


def test_a_span_counts_from_now() -> None:
    for text, span in (
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("90d", timedelta(days=90)),
        ("2w", timedelta(weeks=2)),
    ):
        before = datetime.now(UTC).replace(microsecond=0)
        assert before + span <= future_time(text) <= datetime.now(UTC) + span


def test_a_date_is_its_first_moment_in_utc() -> None:
    assert future_time("2999-01-31") == datetime(2999, 1, 31, tzinfo=UTC)
    assert future_time("2999-01-31T12:00") == datetime(2999, 1, 31, 12, tzinfo=UTC)
    assert future_time("2999-01-31T12:00+02:00") == datetime(2999, 1, 31, 10, tzinfo=UTC)


def test_a_time_that_no_key_can_end_at_is_refused() -> None:
    for text in ("2020-01-01", "0d", "0m"):
        with pytest.raises(click.BadParameter, match="is in the past"):
            future_time(text)
    # not taken for `never`
    with pytest.raises(click.BadParameter, match="no key can end then"):
        future_time_or_never("9999-12-31T23:59:59.999999")


def test_text_that_is_no_time_is_refused_with_examples() -> None:
    for text in ("", "soon", "90", "90 d", "-1d", "1.5d", "2999-13-01", "999999w", "9999999d"):
        with pytest.raises(click.BadParameter, match="is not a time; give 90d, 12h or 2027-01-31"):
            future_time(text)
    for text in ("", "7", "d", "-7d", "7 d", "1.5d", "2027-01-31", "never"):
        with pytest.raises(click.BadParameter, match="give 7d, 12h or 0s"):
            duration(text)


def test_never_is_a_time_only_where_it_is_allowed() -> None:
    assert future_time_or_never("never") == NEVER
    assert future_time_or_never("2999-01-31") == future_time("2999-01-31")
    with pytest.raises(click.BadParameter, match="12h, 2027-01-31 or never"):
        future_time_or_never("ever")
    with pytest.raises(click.BadParameter, match="'never' is not a time"):
        future_time("never")


def test_a_span_is_a_number_and_a_unit_up_to_a_hundred_years() -> None:
    for text, span in (("0s", timedelta(0)), ("90s", timedelta(seconds=90)), ("36500d", timedelta(days=36_500))):
        assert duration(text) == span
    for text in ("999999w", "36501d"):
        with pytest.raises(click.BadParameter, match="longer than a hundred years"):
            duration(text)


def test_a_past_time_counts_back_from_now() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    assert before - timedelta(days=30) <= past_time("30d") <= datetime.now(UTC) - timedelta(days=30)
    assert past_time("2026-10-01") == datetime(2026, 10, 1, tzinfo=UTC)
    with pytest.raises(click.BadParameter, match="is not a time"):
        past_time("999999w")
