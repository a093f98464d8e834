"""Which bytes a request asks for (RFC 9110, 13.1.5 and 14.2)."""

import pytest

from service.http.releases.ranges import Part, Unsatisfiable, requested_part

ETAG = b'"abc"'


def asked(ranges: str, *more: tuple[bytes, bytes]) -> Part | None:
    return requested_part([(b"range", ranges.encode()), *more], ETAG, 1000)


@pytest.mark.parametrize(
    ("ranges", "first", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=990-", 990, 1000),
        ("bytes=-10", 990, 1000),
        ("bytes=-5000", 0, 1000),
        ("bytes=999-99999999999999999999999", 999, 1000),
        ("Bytes= 5-7 ", 5, 8),
    ],
)
def test_one_range_is_a_part(ranges: str, first: int, end: int) -> None:
    assert asked(ranges) == Part(first, end)


@pytest.mark.parametrize(
    "ranges",
    [
        "bytes=-",
        "bytes=5-2",
        "bytes=0-1,4-5",
        "rows=0-5",
        "bytes=a-b",
        "bytes 0-5",
        "bytes=0x0-5",
        "bytes=" + "9" * 99 + "-",
        "",
    ],
)
def test_what_is_no_single_range_of_bytes_is_ignored(ranges: str) -> None:
    assert asked(ranges) is None


def test_two_range_fields_are_ignored() -> None:
    assert asked("bytes=0-1", (b"range", b"bytes=2-3")) is None


@pytest.mark.parametrize("ranges", ["bytes=1000-", "bytes=1000-2000", "bytes=-0"])
def test_a_range_behind_the_end_cannot_be_satisfied(ranges: str) -> None:
    with pytest.raises(Unsatisfiable):
        asked(ranges)


@pytest.mark.parametrize("condition", [b'"other"', b'W/"abc"', b"Wed, 21 Oct 2026 07:28:00 GMT", b'"abc", "other"'])
def test_a_part_of_another_file_is_not_wanted(condition: bytes) -> None:
    """Not even one that could not be satisfied: the whole file is what helps then."""
    assert asked("bytes=0-1", (b"if-range", condition)) is None
    assert asked("bytes=5000-", (b"if-range", condition)) is None


def test_a_part_of_the_same_file_is() -> None:
    assert asked("bytes=0-1", (b"if-range", ETAG)) == Part(0, 2)
