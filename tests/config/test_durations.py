"""Durations as people write them, and as they read them."""

from datetime import timedelta

import pytest

from config.text import in_words, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("45s", timedelta(seconds=45)),
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("31d", timedelta(days=31)),
        ("2w", timedelta(weeks=2)),
    ],
)
def test_a_number_and_a_unit_are_a_duration(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "31", "d", "-1d", "1.5d", "1 d", "1d2h", "31D", "monthly", "١d", "9999999d"])
def test_anything_else_is_none(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (5400, "1.5 hours"),
        (86_400, "1 day"),
        (31 * 86_400, "31 days"),
        (200_000, "2.3 days"),
    ],
)
def test_seconds_are_said_in_the_largest_unit_that_they_fill(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
