"""What a query matches, decided in memory."""

import msgspec
import pytest

from warehouse.places.keyset import KeySet
from warehouse.places.keyset_builder import KeySetBuilder
from warehouse.places.match import Match, OtherCity, UnknownCity, UnknownZip

PLACES = (
    ("36436", "Dickinson", "AL"),
    ("36545", "Jackson", "AL"),
    ("58601", "Dickinson", "ND"),
    ("63102", "Saint Louis", "MO"),
    ("63101", "Saint Louis", "MO"),
    ("63366", "O Fallon", "MO"),
    ("90028", "Los Angeles", "CA"),
    ("90001", "Los Angeles", "CA"),
    ("91601", "North Hollywood", "CA"),
    ("00501", "Holtsville", "NY"),
    ("20001", "Washington", "DC"),
)
ALIASES = (
    ("90028", "Hollywood", "CA"),
    ("90001", "Dickinson", "CA"),
    ("36545", "Dickinson", "AL"),
    ("63101", "Downtown, MO", "MO"),
    ("99999", "Nowhere", "CA"),
)


def having(*places: tuple[str, str, str]) -> KeySetBuilder:
    """A builder with places that have figures."""
    builder = KeySetBuilder()
    for zip_code, city, state in places:
        builder.add(zip_code, f"{city}, {state}", state, has_figures=True)
    return builder


@pytest.fixture(params=["built", "decoded"])
def keys(request: pytest.FixtureRequest) -> KeySet:
    """A key set just built, and the same after it was written and read."""
    builder = KeySetBuilder()
    for zip_code, city, state in PLACES:
        builder.add(zip_code, f"{city}, {state}", state, has_figures=zip_code not in ("00501", "63102"))
    for alias in ALIASES:
        builder.add_alias(*alias)
    built = builder.build()
    return built if request.param == "built" else KeySet.decoded(built.encoded())


@pytest.fixture(params=["built", "decoded"])
def grouped(request: pytest.FixtureRequest) -> KeySet:
    """A key set with cities of its own, which are no unions of ZIP codes, before those of the postal service."""
    builder = KeySetBuilder()
    builder.add_postal("10001", "New York, NY", "NY", 2)
    builder.add_postal("11102", "Astoria, NY", "NY", 1)
    manhattan = builder.add_group("Manhattan, NY", "NY", ["10001"], 5)
    builder.add_part("10001", manhattan, "Manhattan, NY", 2)
    builder.add_group("Queens, NY", "NY", ["11102"], 1)
    builder.add_group("Hoboken, NJ", "NJ", ["10001"], 1)
    builder.add_group("Anywhere, NY", "NY", [], 1)
    builder.add_alias("10001", "Gotham", "NY")
    builder.add_alias("10001", "Astoria", "NY")
    built = builder.build()
    return built if request.param == "built" else KeySet.decoded(built.encoded())


def test_a_city_of_the_area_s_own_is_found_by_its_group(grouped: KeySet) -> None:
    """Also one that lies in no ZIP code."""
    for city, records in (("manhattan", 5), ("anywhere", 1)):
        query = f"city:NY:{city}"
        assert grouped.resolve(None, city, "NY") == Match(query, (query,))
        assert grouped.records((query,)) == records


def test_then_postal_cities_are_consulted_then_aliases(grouped: KeySet) -> None:
    assert grouped.resolve(None, "New York", "NY") == Match("city:NY:newyork", ("10001",))
    assert grouped.resolve(None, "Astoria", "NY") == Match("city:NY:astoria", ("11102",))
    assert grouped.resolve(None, "Gotham", "NY") == Match("city:NY:gotham", ("10001",), ("New York, NY",))


def test_a_zip_code_is_in_each_of_its_cities(grouped: KeySet) -> None:
    """Named by the postal service or an alias it is the whole; named by the area, the part of it that is there."""
    for city in ("New York", "Gotham", "Astoria"):
        found = grouped.resolve("10001", city, "NY")
        assert isinstance(found, Match)
        assert (found.query, found.keys) == ("zip:10001", ("10001",))
    part = "zip:10001+city:NY:manhattan"
    assert grouped.resolve("10001", "Manhattan", "NY") == Match(part, (part,))
    assert grouped.records((part,)) == 2


def test_a_part_that_is_the_whole_is_found_under_the_zip_code(grouped: KeySet) -> None:
    """By a query of its own all the same, which does not change when a release shares the ZIP code."""
    assert grouped.resolve("11102", "Queens", "NY") == Match("zip:11102+city:NY:queens", ("11102",))


def test_a_zip_code_is_in_each_state_that_a_city_of_it_is_in(grouped: KeySet) -> None:
    for state in ("NY", "NJ"):
        assert grouped.resolve("10001", None, state) == Match("zip:10001", ("10001",))
    assert grouped.resolve("10001", None, "CT") == OtherCity("10001", "New York, NY")
    assert grouped.resolve("10001", "Anywhere", "NY") == OtherCity("10001", "New York, NY")


def test_hints_name_cities_of_both_kinds(grouped: KeySet) -> None:
    for typed, meant in (("Manhatan", "Manhattan, NY"), ("New Yrok", "New York, NY"), ("Anywhre", "Anywhere, NY")):
        found = grouped.resolve(None, typed, "NY")
        assert isinstance(found, UnknownCity)
        assert found.similar == (meant,)


def test_every_query_that_can_match_is_listed_once(grouped: KeySet) -> None:
    queries = [match.query for match in grouped.matches()]
    names = ("NY:manhattan", "NY:queens", "NY:anywhere", "NY:newyork", "NY:astoria", "NY:gotham", "NJ:hoboken")
    assert sorted(queries) == sorted(["zip:10001", "zip:11102", *(f"city:{name}" for name in names)])
    for match in grouped.matches():
        kind, *place = match.query.split(":")
        asked = (place[0], None, None) if kind == "zip" else (None, place[1], place[0])
        found = grouped.resolve(*asked)
        assert isinstance(found, Match)
        assert (found.query, found.keys) == (match.query, match.keys)


def test_a_key_set_of_an_earlier_version_can_be_read() -> None:
    """Releases that were built before there were groups must still open."""
    stored = [{"36436": ["Dickinson, AL", "AL", True]}, {"AL": {"dickinson": ["36436"]}}, {"AL": {"mill": ["36436"]}}]
    known = KeySet.decoded(msgspec.msgpack.encode(stored))
    assert known.resolve(None, "Dickinson", "AL") == Match("city:AL:dickinson", ("36436",))
    assert known.resolve(None, "Mill", "AL") == Match("city:AL:mill", ("36436",), ("Dickinson, AL",))
    assert known.has_figures(("36436",))


def test_a_zip_code_matches_itself(keys: KeySet) -> None:
    assert keys.resolve("00501", None, None) == Match("zip:00501", ("00501",))


def test_an_unknown_zip_code_is_named(keys: KeySet) -> None:
    assert keys.resolve("99999", None, None) == UnknownZip("99999")


def test_a_city_matches_all_its_zip_codes_in_order(keys: KeySet) -> None:
    assert keys.resolve(None, "Saint Louis", "MO") == Match("city:MO:stlouis", ("63101", "63102"))


@pytest.mark.parametrize(
    ("spelling", "state", "zips"),
    [
        ("st. louis", "MO", ("63101", "63102")),
        ("SAINT  LOUIS", "MO", ("63101", "63102")),
        ("Saint Louis, MO", "MO", ("63101", "63102")),
        ("O’Fallon", "MO", ("63366",)),
        ("washington, dc", "DC", ("20001",)),
        ("Dickinson", "ND", ("58601",)),
    ],
)
def test_equal_spellings_are_one_query(keys: KeySet, spelling: str, state: str, zips: tuple[str, ...]) -> None:
    """The canonical form is part of the cache key: a spelling must not split it."""
    city = next(name for zip_code, name, _ in PLACES if zip_code in zips)
    found = keys.resolve(None, spelling, state)
    assert found == keys.resolve(None, city, state)
    assert isinstance(found, Match)
    assert found.keys == zips


def test_cities_of_one_name_are_different_queries(keys: KeySet) -> None:
    north, south = keys.resolve(None, "Dickinson", "ND"), keys.resolve(None, "Dickinson", "AL")
    assert isinstance(north, Match)
    assert isinstance(south, Match)
    assert north.query != south.query


def test_a_city_of_another_state_is_no_match(keys: KeySet) -> None:
    found = keys.resolve(None, "Dickinson, ND", "AL")
    assert isinstance(found, UnknownCity)


def test_an_alias_is_consulted_where_no_city_has_the_name(keys: KeySet) -> None:
    assert keys.resolve(None, "hollywood", "CA") == Match("city:CA:hollywood", ("90028",), ("Los Angeles, CA",))
    assert keys.resolve(None, "Downtown", "MO") == Match("city:MO:downtown", ("63101",), ("Saint Louis, MO",))


def test_an_alias_never_changes_the_answer_of_a_city(keys: KeySet) -> None:
    """Dickinson is also an alias of Jackson's ZIP code."""
    assert keys.resolve(None, "Dickinson", "AL") == Match("city:AL:dickinson", ("36436",))


def test_an_alias_of_a_place_that_is_not_there_matches_nothing(keys: KeySet) -> None:
    assert isinstance(keys.resolve(None, "Nowhere", "CA"), UnknownCity)


def test_a_zip_code_in_the_city_given_is_the_zip_code(keys: KeySet) -> None:
    alone = keys.resolve("63101", None, None)
    assert keys.resolve("63101", "St Louis", "MO") == alone
    assert keys.resolve("63101", None, "MO") == alone
    assert keys.resolve("63101", "Saint Louis, MO", "MO") == alone


def test_an_alias_of_a_zip_code_counts_as_its_city(keys: KeySet) -> None:
    """Even where another ZIP code is the city of that name."""
    assert keys.resolve("90028", "Hollywood", "CA") == Match("zip:90028", ("90028",), ("Los Angeles, CA",))
    assert keys.resolve("36545", "Dickinson", "AL") == Match("zip:36545", ("36545",), ("Jackson, AL",))


@pytest.mark.parametrize(
    ("zip_code", "city", "state", "real"),
    [
        ("36436", "Jackson", "AL", "Dickinson, AL"),
        ("36436", "Dickinson", "ND", "Dickinson, AL"),
        ("36436", None, "ND", "Dickinson, AL"),
        ("90001", "Hollywood", "CA", "Los Angeles, CA"),
        ("36436", "Atlantis", "ZZ", "Dickinson, AL"),
    ],
)
def test_a_zip_code_in_another_city_is_no_match_and_says_where_it_is(
    keys: KeySet, zip_code: str, city: str | None, state: str, real: str
) -> None:
    assert keys.resolve(zip_code, city, state) == OtherCity(zip_code, real)


def test_an_unknown_zip_code_is_unknown_in_every_city(keys: KeySet) -> None:
    assert keys.resolve("99999", "Dickinson", "AL") == UnknownZip("99999")


def test_hints_are_cities_with_similar_names_and_states_that_have_the_name(keys: KeySet) -> None:
    assert keys.resolve(None, "Dickinsonn", "AL") == UnknownCity("Dickinsonn", "AL", ("Dickinson, AL",), ())
    assert keys.resolve(None, "Dickinson", "MO") == UnknownCity("Dickinson", "MO", (), ("AL", "ND"))
    assert keys.resolve(None, "Los Angelse", "CA") == UnknownCity("Los Angelse", "CA", ("Los Angeles, CA",), ())


def test_hints_are_at_most_three() -> None:
    builder = having(*((f"1000{number}", f"Springfield {number}", "IL") for number in range(9)))
    found = builder.build().resolve(None, "Springfield", "IL")
    assert isinstance(found, UnknownCity)
    assert found.similar == ("Springfield 0, IL", "Springfield 1, IL", "Springfield 2, IL")


@pytest.mark.parametrize("name", ["", "-", "Xy", "北京", "Zzyzx"])
def test_a_name_like_no_other_has_no_hints(keys: KeySet, name: str) -> None:
    assert keys.resolve(None, name, "AL") == UnknownCity(name, "AL", (), ())


@pytest.mark.parametrize(
    ("typed", "state", "meant"),
    [
        ("Saint Louis MO", "MO", "city:MO:stlouis"),
        ("City of Saint Louis", "MO", "city:MO:stlouis"),
        ("St Louis, Missouri", "MO", "city:MO:stlouis"),
        ("N Hollywood", "CA", "city:CA:northhollywood"),
        ("L.A.", "CA", "city:CA:losangeles"),
        ("Washington D.C.", "DC", "city:DC:washington"),
    ],
)
def test_a_name_as_people_type_it_is_the_whole_city(keys: KeySet, typed: str, state: str, meant: str) -> None:
    """And says which city it is."""
    found = keys.resolve(None, typed, state)
    assert isinstance(found, Match)
    assert (found.query, len(found.cities)) == (meant, 1)


def test_a_variant_of_a_city_s_name_comes_before_an_alias_of_one_zip_code() -> None:
    builder = having(("10001", "New York", "NY"), ("10002", "New York", "NY"))
    builder.add_alias("10001", "New York City", "NY")
    found = builder.build().resolve(None, "New York City", "NY")
    assert found == Match("city:NY:newyork", ("10001", "10002"), ("New York, NY",))


@pytest.mark.parametrize("alias", ["Va Beach", "Va Bch", "VB", "Virg Beach"])
def test_an_abbreviation_that_some_zip_codes_of_a_city_list_means_all_of_them(alias: str) -> None:
    builder = having(*((zip_code, "Virginia Beach", "VA") for zip_code in ("23450", "23451", "23452")))
    builder.add_alias("23451", alias, "VA")
    builder.add_alias("23452", "Princess Anne", "VA")
    keys = builder.build()
    found = keys.resolve(None, alias, "VA")
    assert isinstance(found, Match)
    assert (found.keys, found.cities) == (("23450", "23451", "23452"), ("Virginia Beach, VA",))
    assert keys.resolve("23450", alias, "VA") == Match("zip:23450", ("23450",), ("Virginia Beach, VA",))
    other = keys.resolve(None, "Princess Anne", "VA")
    assert isinstance(other, Match)
    assert other.keys == ("23452",)


def test_in_an_area_with_its_own_cities_an_abbreviation_means_the_postal_city() -> None:
    builder = KeySetBuilder()
    for zip_code in ("23450", "23451"):
        builder.add_postal(zip_code, "Virginia Beach, VA", "VA", 1)
    builder.add_group("Oceana, VA", "VA", ["23450"], 1)
    builder.add_alias("23451", "Va Beach", "VA")
    found = builder.build().resolve(None, "Va Beach", "VA")
    assert isinstance(found, Match)
    assert found.keys == ("23450", "23451")


def test_a_misspelt_variant_suggests_the_city_that_it_means() -> None:
    found = having(("10001", "New York", "NY")).build().resolve(None, "Manhatten", "NY")
    assert found == UnknownCity("Manhatten", "NY", ("New York, NY",), ())


def test_a_right_name_with_a_kind_of_municipality_suggests_that_city_alone() -> None:
    """And not those that other states have."""
    builder = having(("02445", "Brookline", "MA"), ("02446", "Brooklines", "MA"), ("03033", "Brookline", "NH"))
    found = builder.build().resolve(None, "Town of Brookline", "MA")
    assert found == UnknownCity("Town of Brookline", "MA", ("Brookline, MA",), ())


@pytest.mark.parametrize("typed", ["St. Louis City", "Saint Louis Town", "Village of St Louis"])
def test_a_right_name_with_city_behind_it_suggests_that_city_alone(keys: KeySet, typed: str) -> None:
    found = keys.resolve(None, typed, "MO")
    assert isinstance(found, UnknownCity)
    assert found.similar == ("Saint Louis, MO",)


def test_the_name_of_a_county_is_not_taken_for_a_city() -> None:
    """With and without what it is called, and not in another state."""
    builder = KeySetBuilder()
    builder.add("92612", "Irvine, CA", "CA", has_figures=True, county="06059")
    builder.add_county("06059", "Orange County")
    keys = builder.build()
    for typed, state, code in (
        ("Orange County", "CA", "06059"),
        ("orange co.", "CA", "06059"),
        ("County of Orange", "CA", "06059"),
        ("Orange", "CA", "06059"),
        ("Orange County, CA", "CA", "06059"),
        ("Orange County", "FL", None),
        ("Irvine County", "CA", None),
    ):
        found = keys.resolve(None, typed, state)
        assert isinstance(found, UnknownCity)
        assert found.county == code


def test_an_unknown_state_is_no_match(keys: KeySet) -> None:
    assert keys.resolve(None, "Dickinson", "ZZ") == UnknownCity("Dickinson", "ZZ", (), ("AL", "ND"))


def test_unknown_names_leave_no_trace(keys: KeySet) -> None:
    """Made-up names must not make the key set grow."""
    before = keys.encoded()
    for number in range(50):
        keys.resolve(f"{number:05}", None, None)
        keys.resolve(None, f"city {number}", f"{number:02}")
    assert keys.encoded() == before


def test_answers_without_figures_are_distinguished(keys: KeySet) -> None:
    assert keys.has_figures(("36436",))
    assert not keys.has_figures(("00501",))
    assert keys.has_figures(("63101", "63102"))


def test_zip_codes_and_cities_are_counted(keys: KeySet) -> None:
    assert (keys.zip_count, keys.city_count) == (11, 9)


def test_a_query_without_a_city_and_state_is_a_mistake_of_the_caller(keys: KeySet) -> None:
    for query in ((None, None, None), (None, "Dickinson", None), (None, None, "AL")):
        with pytest.raises(ValueError, match="neither"):
            keys.resolve(*query)


@pytest.mark.parametrize(
    "data", [b"", b"\x93", b"\x93\x80\x80", b"not a key set", b"\x93\x81\xa1\xff\x93\xa1a\xa1b\xc3\x80\x80"]
)
def test_damaged_bytes_are_a_decode_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        KeySet.decoded(data)
