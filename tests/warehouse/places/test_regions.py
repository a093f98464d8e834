"""Which ZIP codes a county and a state have, and what is said of one that is not there."""

from warehouse.places.keyset import KeySet
from warehouse.places.keyset_builder import KeySetBuilder
from warehouse.places.regions import Region, Regions
from warehouse.schema.counties import COUNTY_NAMES, related_counties

PLACES = [
    ("36436", "AL", "01025"),
    ("00501", "NY", "36103"),
    ("36446", "AL", "01025"),
    ("36451", "AL", "01099"),
    ("35004", "AL", "01115"),
    ("09001", "AE", None),
]


def test_zip_codes_of_a_region_ascend() -> None:
    """In whatever order the places came; one without a county is in its state."""
    regions = Regions(PLACES, {})
    assert regions.county("01025") == Region("county:01025", ("36436", "36446"))
    assert regions.state("AL") == Region("state:AL", ("35004", "36436", "36446", "36451"))
    assert regions.county("01098") is regions.state("ZZ") is None
    assert regions.state("AE") == Region("state:AE", ("09001",))


def test_a_county_is_found_by_its_name_in_a_state_or_in_all() -> None:
    regions = Regions(PLACES, {"01025": "Clarke County", "13059": "Clarke County", "02261": "Valdez"})
    assert regions.counties_named("clarke", "AL") == ["01025"]
    assert regions.counties_named("Clarke County", "") == ["01025", "13059"]
    assert regions.counties_named("Clarke", "AE") == regions.counties_named("Clark", "") == []
    assert (regions.name_of("13059"), regions.name_of("09110")) == ("Clarke County", "Capitol Planning Region")
    assert regions.name_of("99999") is None


def test_a_key_set_keeps_its_regions_in_its_file() -> None:
    builder = KeySetBuilder()
    builder.add("36436", "Dickinson, AL", "AL", has_figures=True, county="01025")
    again = KeySet.decoded(builder.build().encoded())
    assert again.regions.county("01025") == Region("county:01025", ("36436",))


def test_a_release_of_an_earlier_builder_has_states_and_no_counties() -> None:
    """It opens all the same."""
    builder = KeySetBuilder()
    builder.add("36436", "Dickinson, AL", "AL", has_figures=True)
    old = builder.build()
    assert not old.regions.has_counties
    assert old.regions.state("AL") == Region("state:AL", ("36436",))


def test_counties_that_share_an_area_name_each_other() -> None:
    for code in COUNTY_NAMES:
        related = related_counties(code)
        assert related
        assert code not in related
        assert all(code in related_counties(other) for other in related)
    assert related_counties("09003")[0] == "09110"
    assert related_counties("17031") == []
