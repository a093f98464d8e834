"""Cursors: what was made comes back, and nothing else is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.areas.paging import MAX_CURSOR_CHARACTERS, CursorError, Cursors, Page

IDS = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=95)
CURSORS = Cursors(b"a secret")
QUERIES = st.sampled_from(["city:NY:brooklyn", "city:CA:sanfrancisco", "zip:11201", ""])


@given(QUERIES, IDS)
def test_a_cursor_is_its_position_in_its_query(query: str, last: str) -> None:
    cursor = CURSORS.encode(query, last)
    assert CURSORS.decode(query, cursor) == last
    assert len(cursor) <= MAX_CURSOR_CHARACTERS
    assert cursor.replace("-", "").replace("_", "").isalnum(), "needs no percent-encoding"


@given(QUERIES, QUERIES, IDS)
def test_a_cursor_of_another_query_is_refused(query: str, other: str, last: str) -> None:
    if query != other:
        with pytest.raises(CursorError):
            CURSORS.decode(other, CURSORS.encode(query, last))


@given(IDS, st.data())
def test_a_cursor_with_any_character_changed_is_refused(last: str, data: st.DataObject) -> None:
    """Also where base64 would read the same: spare bits, other alphabets, padding."""
    cursor = CURSORS.encode("zip:11201", last)
    at = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.characters(max_codepoint=0x2FF))
    changed = cursor[:at] + other + cursor[at + 1 :]
    if changed != cursor:
        with pytest.raises(CursorError):
            CURSORS.decode("zip:11201", changed)


@given(st.text(max_size=60))
def test_whatever_is_sent_is_refused_and_breaks_nothing(text: str) -> None:
    with pytest.raises(CursorError):
        CURSORS.decode("zip:11201", text)


@pytest.mark.parametrize("change", ["=", "\n", " ", "A"])
def test_nothing_may_be_appended(change: str) -> None:
    with pytest.raises(CursorError):
        CURSORS.decode("zip:11201", CURSORS.encode("zip:11201", "A-1") + change)


def test_every_page_of_a_query_has_its_own_name_in_the_cache() -> None:
    pages = [Page(), Page(7), Page(7, "A-1"), Page(7, "A-2"), Page(1, "1"), Page(11, "")]
    assert len({page.of("zip:11201") for page in pages}) == len(pages)


def test_a_cursor_of_another_secret_is_refused() -> None:
    """Nobody can make one without it."""
    with pytest.raises(CursorError):
        CURSORS.decode("zip:11201", Cursors(b"another secret").encode("zip:11201", "A-1"))


def test_pages_of_another_secret_have_other_names_in_the_cache() -> None:
    """Their cursors would be refused."""
    names = {Cursors(secret).name("zip:11201", Page()) for secret in (b"a secret", b"another secret")}
    assert len(names) == 2
    assert not any("secret" in name for name in names)
