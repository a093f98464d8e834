"""Names that people type for a whole city mean cities that there are."""

import zipcodes

from warehouse.places.names import fold_city
from warehouse.places.variants import VARIANTS, variants_among


def test_every_meant_city_is_one_of_the_postal_service() -> None:
    """Another name would be silently without effect."""
    known = {(row["state"], fold_city(row["city"])) for row in zipcodes.list_all()}  # type: ignore[no-untyped-call]
    assert [
        (variant.state_code, meant)
        for variant in VARIANTS
        for meant in variant.meant
        if (variant.state_code, fold_city(meant)) not in known
    ] == []


def test_no_name_means_two_things_and_each_has_its_source() -> None:
    typed = [(variant.state_code, fold_city(name)) for variant in VARIANTS for name in variant.typed]
    assert len(typed) == len(set(typed))
    assert all(variant.source for variant in VARIANTS)


def test_a_name_is_used_only_where_it_is_free_and_its_city_is_there() -> None:
    assert variants_among({"NY": ["newyork"]})["NY"]["nyc"] == ("newyork",)
    assert variants_among({"NY": ["albany"]}) == {}
    assert "nyc" not in variants_among({"NY": ["newyork", "nyc"]})["NY"]
    assert variants_among({"NY": ["jamaica", "bayside"]})["NY"]["queens"] == ("bayside", "jamaica")
