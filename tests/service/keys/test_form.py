"""The form of a key: recognisable, checkable without asking anybody, and not reversible from what is stored."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.keys import form
from tests.support.key_store import any_key

KEY, PARTS = any_key()


def test_a_new_key_has_the_documented_form_and_differs_from_others() -> None:
    assert re.fullmatch(r"phf_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}", KEY)
    assert form.is_key_id(PARTS.key_id)
    assert form.parse(KEY) == PARTS
    made = [any_key()[1] for _ in range(50)]
    assert len({parts.key_id for parts in made}) == len({parts.secret for parts in made}) == 50


def test_a_test_key_is_recognised_by_its_prefix() -> None:
    key, parts = any_key(test=True)
    assert re.fullmatch(r"phf_test_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}", key)
    assert form.parse(key) == parts
    assert parts.test
    assert form.parse(key.replace("phf_test", "phf_live")) is None


@given(st.integers(0, len(KEY) - 1), st.sampled_from("0aZ_- é"))
def test_a_mistyped_key_is_distinguished_from_a_good_one(position: int, character: str) -> None:
    mistyped = KEY[:position] + character + KEY[position + 1 :]
    assert (form.parse(mistyped) is not None) is (mistyped == KEY)


@pytest.mark.parametrize(
    "presented",
    ["", KEY[:-1], KEY + "0", KEY + "\n", " " + KEY, KEY.swapcase(), "phf_test" + KEY[8:]],
    ids=["empty", "truncated", "extended", "line end", "blank", "other case", "other kind"],
)
def test_what_is_not_exactly_a_key_is_none(presented: str) -> None:
    assert form.parse(presented) is None


@given(st.text(max_size=100))
def test_no_text_breaks_the_parser(presented: str) -> None:
    assert form.parse(presented) is None


def test_two_swapped_characters_are_noticed() -> None:
    for at in range(22, 60):
        swapped = KEY[:at] + KEY[at + 1] + KEY[at] + KEY[at + 2 :]
        assert (form.parse(swapped) is not None) is (swapped == KEY)


def test_a_digest_depends_on_secret_and_pepper_and_shows_neither() -> None:
    pepper = b"pepper of the tests"
    digest = form.digest(PARTS.secret, pepper)
    assert digest == form.digest(PARTS.secret, pepper)
    assert digest not in (form.digest(PARTS.secret, b"another pepper"), form.digest("x" * 43, pepper))
    assert re.fullmatch(r"[0-9a-f]{64}", digest)


@pytest.mark.parametrize(("text", "is_id"), [("0B1zQmX4ktLw", True), ("0B1zQmX4ktL", False), ("0B1zQmX4kt{}", False)])
def test_a_key_id_is_distinguished_from_other_text(text: str, is_id: bool) -> None:
    assert form.is_key_id(text) is is_id
