"""A state is known by its name, its abbreviations and its number, and by a name that is misspelt a little."""

import pytest

from warehouse.places.names import STATE_NAMES, fold_city, nearest_state, state_of
from warehouse.schema.states import STATES


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("California", "CA"),
        ("calif.", "CA"),
        ("ca", "CA"),
        ("C.A.", "CA"),
        ("US-CA", "CA"),
        ("06", "CA"),
        ("6", "CA"),
        ("D.C.", "DC"),
        ("N. Carolina", "NC"),
        ("US Virgin Islands", "VI"),
        ("Kalifornia", None),
        ("99", None),
        ("US", None),
        ("", None),
    ],
)
def test_a_state_is_known_by_what_people_write(text: str, code: str | None) -> None:
    assert state_of(text) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [("Kalifornia", "CA"), ("Pensylvania", "PA"), ("Ilinois", "IL"), ("Ohir", None), ("Bavaria", None), ("", None)],
)
def test_a_misspelt_state_is_the_nearest_one(text: str, code: str | None) -> None:
    """A short name is not guessed: one letter makes it another."""
    assert nearest_state(text) == code


def test_every_state_has_a_name_and_no_name_is_of_two() -> None:
    assert set(STATE_NAMES) == {state.code for state in STATES}
    folded = [fold_city(name) for names in STATE_NAMES.values() for name in names]
    assert len(folded) == len(set(folded))
    for code, names in STATE_NAMES.items():
        assert {state_of(name) for name in names} == {code}
