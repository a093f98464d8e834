"""The first line of an error."""

import pytest

from config.text import first_line


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no number"), "no number"),
        (ValueError("\n  no number \nhint: write one"), "no number "),
        (ValueError("one\r\ntwo"), "one"),
        (ValueError(), "ValueError"),
        (ValueError(" \n "), "ValueError"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
    ],
    ids=repr,
)
def test_an_error_is_printed_in_one_line(error: Exception, line: str) -> None:
    assert first_line(error) == line
