"""What changes for partners: answers of ZIP codes and cities, and a few of them field by field."""

from pathlib import Path

from tests.support.drops import LOCATIONS, POPULATION, alias, homes, location, people
from tests.warehouse.compare.test_release_comparison import differing
from warehouse.schema.comparison import AnswerChanges, Comparison, FieldChange


def answers(comparison: Comparison) -> AnswerChanges:
    assert comparison.answers is not None
    return comparison.answers


def test_no_answer_changes_where_nothing_does(tmp_path: Path) -> None:
    found = answers(differing(tmp_path))
    assert (found.gained, found.lost, found.changed, found.without) == (0, 0, 0, 0)
    assert (found.cities_gained, found.cities_lost, found.cities_changed) == (0, 0, 0)
    assert found.old_figures == found.new_figures
    assert found.examples == ()


def test_a_city_changes_with_any_of_its_zip_codes(tmp_path: Path) -> None:
    """Saint Louis loses one of two ZIP codes, Dickinson, AL, gets other figures, Jackson is new, the APO is gone."""
    places = [row for row in LOCATIONS if row["zip_code"] not in ("63102", "09001")]
    rows = [people("36436", 2023, 784), *POPULATION[1:]]
    found = answers(differing(tmp_path, locations=[*places, location("36437", "Jackson", "AL")], population=rows))
    assert (found.gained, found.lost, found.changed) == (1, 2, 1)
    assert (found.cities_gained, found.cities_lost, found.cities_changed) == (1, 1, 2)


def test_an_alias_is_a_city_only_if_no_city_is_called_so(tmp_path: Path) -> None:
    """New: a name for 58601, one that Missouri has already, and one that is not acceptable. Hollywood is as it was."""
    names = [
        alias("90028", "Hollywood", "CA"),
        alias("58601", "New Hradec", "ND"),
        alias("63366", "Saint Louis", "MO"),
        alias("63366", "Ofallon Mills", "MO", "not acceptable"),
    ]
    found = answers(differing(tmp_path, aliases=names))
    assert (found.changed, found.cities_gained, found.cities_changed) == (0, 1, 0)


def test_examples_show_changed_fields_first_and_name_why(tmp_path: Path) -> None:
    """The largest change, which is typical as well; one that loses figures, one that gains them, one that moved."""
    places = [
        *(row for row in LOCATIONS if row["zip_code"] != "63366"),
        location("63366", "O'Fallon", "MO", latitude=38.8),
    ]
    rows = [
        people("36436", 2023, 800),
        people("36436", 2010, 531),
        people("36436", 2024, 801),
        people("00501", 2024, 5),
        people("00501", 2025, 5),
        people("63101", 2023, 2620),
    ]
    found = answers(differing(tmp_path, locations=places, population=rows, housing=[homes("36436"), homes("90028")]))
    examples = {one.zip_code: one for one in found.examples}
    assert examples["36436"].why == "the largest change"
    assert examples["36436"].fields[:2] == (
        FieldChange("population 2023", 783, 800),
        FieldChange("population 2024", None, 801),
    )
    assert examples["90028"].why == "most figures gone"
    assert FieldChange("population 2023", 30000, None) in examples["90028"].fields
    assert examples["00501"].why == "most figures new"
    assert examples["63366"].why == "another location"
    assert FieldChange("city_name", "O Fallon", "O'Fallon") in examples["63366"].fields
    assert FieldChange("latitude", 31.7061, 38.8) in examples["63366"].fields


def test_an_example_shows_at_most_eight_fields(tmp_path: Path) -> None:
    rows = [*POPULATION, *(people("36436", year, 5) for year in range(1990, 2010))]
    (example,) = answers(differing(tmp_path, population=rows)).examples
    assert (len(example.fields), example.more) == (8, 12)
