"""The names of cached answers."""

import re

from hypothesis import given
from hypothesis import strategies as st

from service.cache.key import cache_key

_PART = st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=12)


def test_a_name_has_the_format_and_the_release_in_it() -> None:
    """So a switch needs no flush, and two versions of the code share nothing."""
    key = cache_key("r1", "forecast", "zip:36436")
    assert re.fullmatch(r"c:2:r1:[0-9a-f]{32}", key.name)
    assert key.release == "r1"


@given(st.tuples(_PART, _PART, _PART), st.tuples(_PART, _PART, _PART))
def test_different_questions_have_different_keys(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (cache_key(*one).digest == cache_key(*other).digest) is (one == other)
    assert (cache_key(*one).name == cache_key(*other).name) is (one == other)
