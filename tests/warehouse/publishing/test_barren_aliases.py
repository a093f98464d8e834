"""Aliases that answer without figures although their town has some are reported, and hold nothing."""

from pathlib import Path

from tests.support.drops import HOUSING, LOCATIONS, alias, homes, location, write_drop
from tests.support.publishing import publish
from tests.warehouse.helpers import NO_LIMITS, finding
from warehouse.places.keyset_builder import KeySetBuilder
from warehouse.publishing.build import barren_aliases
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog


def reported(aliases: list[tuple[str, str, str]]) -> tuple[int, str, tuple[str, ...]] | None:
    """Of Fairbanks, whose 99711 has no figures, New York, whose 10118 has none, and Nome, which has none at all."""
    keys = KeySetBuilder()
    for zip_code, city, state, has_figures in (
        ("99701", "Fairbanks", "AK", True),
        ("99711", "Fairbanks", "AK", False),
        ("99762", "Nome", "AK", False),
        ("10001", "New York", "NY", True),
        ("10118", "New York", "NY", False),
    ):
        keys.add(zip_code, f"{city}, {state}", state, has_figures=has_figures)
    for one in aliases:
        keys.add_alias(*one)
    found = barren_aliases(keys.build(), aliases)
    return (found[0].count, found[0].message, found[0].samples) if found else None


def test_an_alias_of_only_zip_codes_without_figures_is_reported_if_its_town_has_some() -> None:
    found = reported([("99711", "Badger", "AK"), ("99711", "BADGER", "AK")])
    assert found is not None
    assert found[0] == 1
    assert found[1].endswith("although their town has figures")
    assert found[2] == ("Badger, AK finds 99711 in Fairbanks, AK",)


def test_other_aliases_are_not_reported() -> None:
    """With figures somewhere, of a ZIP code that is not served, in a town without any, hidden by a city, or a common
    name for the whole city."""
    assert reported([("99711", "Badger", "AK"), ("99701", "Badger", "AK")]) is None
    assert reported([("99799", "Badger", "AK")]) is None
    assert reported([("99762", "Front Street", "AK")]) is None
    assert reported([("99711", "Nome", "AK")]) is None
    assert reported([("10118", "New York City", "NY")]) is None
    assert reported([("10118", "Empire State", "NY")]) is not None


def test_many_are_counted_and_a_hundred_named() -> None:
    found = reported([("99711", f"Badger {number:03}", "AK") for number in range(150)])
    assert found is not None
    assert (found[0], len(found[2])) == (150, 100)
    assert "Badger" not in found[1]


def test_publishing_notes_it_with_the_release_and_holds_nothing(catalog: Catalog, tmp_path: Path) -> None:
    """Even if the operator holds drops for the rule."""
    drop = write_drop(
        tmp_path,
        locations=(*LOCATIONS, location("36437", "Dickinson", "AL")),
        housing=[*HOUSING, homes("36437", **dict.fromkeys(key for key in HOUSING[0] if key != "zip_code"))],
        aliases=[alias("36437", "Mill Town", "AL")],
    )
    outcome = publish(catalog, [str(drop)], PublishOptions(limits=NO_LIMITS, hold=("barren-alias",)))
    assert outcome.result == "published"
    found = finding(outcome, "barren-alias")
    assert (found.severity, found.count) == ("info", 1)
    assert found in catalog.findings(catalog.current().id).findings
    assert catalog.current().findings["info"] >= 1
