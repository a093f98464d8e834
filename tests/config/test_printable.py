"""Nothing that a client wrote commands a terminal, hides itself, or fills a report."""

import msgspec
import pytest

from config.text import MAX_CHARACTERS, printable, printable_struct
from warehouse.schema.findings import Finding


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\x1b[2Jfigures", "\\u001b[2Jfigures"),
        ("two\nlines\r\tand a tab", "two\\nlines\\r\\tand a tab"),
        ("\x9b31mred", "\\u009b31mred"),
        ("txt\u202egnp", "txt\\u202egnp"),
        ("half \udcff", "half \\udcff"),
        ("line\u2028separator", "line\\u2028separator"),
        ("\x00\x7f", "\\u0000\\u007f"),
    ],
)
def test_what_is_unfit_to_be_shown_is_escaped(written: str, shown: str) -> None:
    assert printable(written) == shown


@pytest.mark.parametrize("text", ["", "Doña Ana", "größe–é", "[bold]x[/]", "日本", "C:\\new", "👍"])
def test_all_other_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("text", ["a" * 100_000, "\x1b" * 100_000])
def test_long_text_is_cut_and_says_so(text: str) -> None:
    """Also where escapes make it longer; cut once, it stays as it is."""
    cut = printable(text)
    assert (len(cut), cut[-1]) == (MAX_CHARACTERS, "…")
    assert printable(cut) == cut


def test_all_text_of_a_struct_becomes_plain_and_nothing_else_changes() -> None:
    finding = Finding(severity="error", rule="not-parquet", message="\x1b", file="\n", samples=("\r", "x"))
    escaped = Finding(severity="error", rule="not-parquet", message="\\u001b", file="\\n", samples=("\\r", "x"))
    assert printable_struct(finding) == escaped
    assert msgspec.json.encode(printable_struct(escaped)) == msgspec.json.encode(escaped)
