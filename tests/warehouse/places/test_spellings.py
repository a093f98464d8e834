"""Other ways to write a city's name lead to its own, and never to more forms than a look-up can bear."""

import pytest

from warehouse.places.spellings import abbreviates, other_forms, plain_name, split_state


@pytest.mark.parametrize(
    ("typed", "state", "form"),
    [
        ("Salem, OR", "OR", "salem"),
        ("Salem Oregon", "OR", "salem"),
        ("Salem OR USA", "OR", "salem"),
        ("Washington D.C.", "DC", "washington"),
        ("City of Chicago", "IL", "chicago"),
        ("The Dalles", "OR", "dalles"),
        ("Worth Hts", "TX", "worthheights"),
        ("Long Bch", "CA", "longbeach"),
        ("Colorado Spgs", "CO", "coloradosprings"),
        ("N Las Vegas", "NV", "northlasvegas"),
        ("South Coffeyville", "OK", "scoffeyville"),
    ],
)
def test_a_form_is_the_citys_own_name(typed: str, state: str, form: str) -> None:
    assert form in list(other_forms(typed, state))


def test_a_name_without_other_forms_has_none() -> None:
    """Nor is it a form of itself, or one that belongs to another state."""
    assert list(other_forms("Chicago", "IL")) == []
    assert "salem" not in list(other_forms("Salem, OR", "MA"))
    assert "tonawanda" not in list(other_forms("Town of Tonawanda", "NY"))


def test_forms_are_few_whatever_is_typed() -> None:
    for typed in ("the city of n ft bch spgs", "n " * 40, "the " * 20 + "city of x", "", ",.-"):
        assert len(list(other_forms(typed, "CA"))) <= 8


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("Salem, OR", ("Salem", "OR")),
        ("Salem Oregon", ("Salem", "OR")),
        ("New York, New York, USA", ("New York", "NY")),
        ("Fargo North Dakota", ("Fargo", "ND")),
        ("Washington, District of Columbia", ("Washington", "DC")),
        ("Oregon", None),
        ("Salem 41", None),
        ("Springfield", None),
        ("", None),
    ],
)
def test_a_state_behind_a_city_is_split_off(text: str, split: tuple[str, str] | None) -> None:
    assert split_state(text) == split


def test_a_plain_name_has_no_kind_of_municipality() -> None:
    assert plain_name("Township of Franklin") == plain_name("Franklin Township") == "franklin"
    assert plain_name("Carson City") == "carsoncity"
    assert plain_name("Village") == "village"


@pytest.mark.parametrize(
    ("name", "city"),
    [
        ("Va Bch", "Virginia Beach"),
        ("W Plm Bch", "West Palm Beach"),
        ("NLR", "North Little Rock"),
        ("Jeff", "Jeffersonville"),
        ("Valpo", "Valparaiso"),
        ("Mirada", "La Mirada"),
    ],
)
def test_a_name_with_letters_left_out_abbreviates_its_city(name: str, city: str) -> None:
    assert abbreviates(name, city)


@pytest.mark.parametrize(
    ("name", "city"),
    [
        ("Virginia Beach", "Virginia Beach"),
        ("St. Louis", "Saint Louis"),  # the same name
        ("Princess Anne", "Virginia Beach"),
        ("Beach", "Virginia Beach"),
        ("Dallas", "Melcher Dallas"),  # a part of it is a place of its own
        ("La Jolla", "Jolla"),
        ("Virginia Beaches", "Virginia Beach"),
        ("", "Virginia Beach"),
    ],
)
def test_any_other_name_does_not(name: str, city: str) -> None:
    assert not abbreviates(name, city)
