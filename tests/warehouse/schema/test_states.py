"""The states: each once, each prefix and county code of whom it belongs to, each box round its places."""

from collections import Counter
from itertools import pairwise

import pytest

from warehouse.publishing.illustrative import DemoPlace, read_places
from warehouse.schema.states import STATES, State

BY_CODE = {state.code: state for state in STATES}
# 969 is of all islands of Micronesia, 340 of Miami and the military; the others serve a few places of a neighbour.
SHARED = {
    63: {"CT", "NY"},
    201: {"DC", "VA"},
    205: {"DC", "MD", "VA"},
    340: {"AA", "FL"},
    726: {"AR", "MO"},
    733: {"OK", "TX"},
    739: {"OK", "TX"},
    834: {"ID", "WY"},
    967: {"AS", "HI"},
    969: {"FM", "GU", "MH", "MP", "PW"},
}


def prefixes(state: State) -> list[int]:
    return [prefix for first, last in state.prefixes for prefix in range(first, last + 1)]


def test_every_state_is_there_once() -> None:
    """Fifty, the District of Columbia, five territories, three associated states, and three military areas."""
    assert len(STATES) == len(BY_CODE) == 50 + 1 + 5 + 3 + 3
    assert {"DC", "PR", "VI", "GU", "AS", "MP", "FM", "MH", "PW", "AA", "AE", "AP"} <= set(BY_CODE)


def test_county_codes_are_of_one_state_each() -> None:
    """Numbers leave out 3, 7, 14, 43 and 52, which were kept for territories; those of territories come after."""
    known = [state.fips for state in STATES if state.fips is not None]
    assert len(known) == len(set(known)) == 50 + 1 + 5
    assert sorted(known)[:51] == [f"{at:02}" for at in range(1, 57) if at not in (3, 7, 14, 43, 52)]
    assert sorted(known)[51:] == ["60", "66", "69", "72", "78"]


def test_those_without_counties_are_military_or_associated() -> None:
    assert {state.code for state in STATES if state.fips is None} == {"AA", "AE", "AP", "FM", "MH", "PW"}


def test_prefixes_have_three_digits_in_order() -> None:
    for state in STATES:
        assert state.prefixes
        assert all(0 < first <= last < 1000 for first, last in state.prefixes)
        assert all(one[1] < other[0] for one, other in pairwise(state.prefixes))


def test_hardly_a_prefix_belongs_to_two_states() -> None:
    owners: dict[int, set[str]] = {}
    for state in STATES:
        for prefix in prefixes(state):
            owners.setdefault(prefix, set()).add(state.code)
    assert {prefix: codes for prefix, codes in owners.items() if len(codes) > 1} == SHARED


def test_boxes_are_south_west_north_east_to_half_a_degree() -> None:
    for state in (state for state in STATES if state.box):
        assert state.box is not None
        south, west, north, east = state.box
        assert -15 <= south < north <= 72
        assert -180 <= west < east <= 180
        assert all(2 * degrees == round(2 * degrees) for degrees in state.box)
        assert (north - south) * (east - west) < 1100, "no larger than Alaska"


def test_only_the_military_have_no_place() -> None:
    assert {state.code for state in STATES if state.box is None} == {"AA", "AE", "AP"}


@pytest.fixture(scope="module")
def real_places() -> list[DemoPlace]:
    """Of packages that do not know our table."""
    return read_places()


def test_nearly_all_real_zip_codes_begin_as_their_state_does(real_places: list[DemoPlace]) -> None:
    odd = [one.zip_code for one in real_places if int(one.zip_code[:3]) not in prefixes(BY_CODE[one.state])]
    assert 41_000 < len(real_places) < 43_000, "the whole country"
    assert len(odd) < len(real_places) / 5_000, odd


def test_nearly_all_real_places_are_in_the_box_of_their_state(real_places: list[DemoPlace]) -> None:
    """A few of the packages' own places are wrong."""
    outside = Counter(one.state for one in real_places if not is_inside(one))
    assert outside.total() < len(real_places) / 1_000, outside


def test_real_counties_have_the_number_of_their_state(real_places: list[DemoPlace]) -> None:
    assert [one for one in real_places if one.fips is not None and one.fips[:2] != BY_CODE[one.state].fips] == []


def is_inside(place: DemoPlace) -> bool:
    box = BY_CODE[place.state].box
    if box is None or place.latitude is None or place.longitude is None:
        return True
    south, west, north, east = box
    return south <= place.latitude <= north and west <= place.longitude <= east
