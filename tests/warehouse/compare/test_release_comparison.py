"""Two releases side by side: what came, went and changed, in numbers."""

import csv
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.support.drops import (
    HOUSING,
    LOCATIONS,
    POPULATION,
    homes,
    location,
    people,
    project,
    write_drop,
    write_wide_drop,
)
from tests.warehouse.comparisons import UNCHANGED, figure
from tests.warehouse.helpers import connect, publish
from warehouse.compare.release_comparison import compare, compare_releases, write_release_changes
from warehouse.drops.messages import ReadRequest
from warehouse.drops.pipeline import read_drop
from warehouse.releases.catalog import Catalog
from warehouse.schema.comparison import CHANGE_STEPS, SIZE_STEPS, Comparison, FigureChange, Mover, RecordChanges
from warehouse.schema.errors import CatalogError


def published(catalog: Catalog, folder: Path, **tables: Any) -> str:
    manifest = publish(catalog, write_drop(folder, **tables)).manifest
    assert manifest is not None
    return manifest.id


def tables_of(folder: Path, **tables: Any) -> Path:
    """The tables of a drop as a release would hold them."""
    out = folder / "tables"
    out.mkdir(parents=True)
    drop = write_drop(folder / "drop", **tables)
    assert read_drop(ReadRequest(paths=(str(drop),), out=str(out), before=None)).tables
    return out


def differing(tmp_path: Path, **tables: Any) -> Comparison:
    """The usual drop against one that differs from it in `tables`."""
    return differing_drops(tmp_path, {}, tables)


def differing_drops(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    with connect() as connection:
        return compare(connection, tables_of(tmp_path / "old", **old), tables_of(tmp_path / "new", **new), 2024)


def change(comparison: Comparison, figure: str) -> FigureChange:
    return next(one for one in comparison.figures if one.figure == figure)


def test_a_release_does_not_differ_from_itself(catalog: Catalog, tmp_path: Path) -> None:
    release = published(catalog, tmp_path / "old")
    comparison = compare_releases(catalog, release, release)
    assert (comparison.changed_zip_codes, comparison.movers) == (0, ())
    assert {(one.changed, one.gained, one.lost, one.drift) for one in comparison.figures} == {(0, 0, 0, 0.0)}
    assert (comparison.places.gained, comparison.places.lost, comparison.places.changed) == ({}, {}, 0)
    assert set(comparison.rows.values()) == {(9, 9), (4, 4), (2, 2), (3, 3)}


def test_places_are_counted_by_state_and_sampled(tmp_path: Path) -> None:
    """Gone: St. Louis twice and the military. New: two in Alabama. Renamed: one; moved: one."""
    kept = [row for row in LOCATIONS if row["zip_code"] not in ("63101", "63102", "09001", "90001", "58601")]
    renamed, moved = location("90001", "Florence", "CA"), location("58601", "Dickinson", "ND", latitude=46.9)
    new = [location("36437", "Jackson", "AL"), location("36438", "Jackson", "AL")]
    found = differing(tmp_path, locations=[*kept, renamed, moved, *new]).places
    assert (found.old_count, found.new_count, found.changed) == (9, 8, 2)
    assert (found.gained, found.lost) == ({"AL": 2}, {"AE": 1, "MO": 2})
    assert (found.gained_samples, found.lost_samples) == (("36437", "36438"), ("09001", "63101", "63102"))


def test_projects_are_compared_by_their_ids(tmp_path: Path) -> None:
    """One is new, one is gone, one has another status, one is as it was."""
    old = [project("A-1"), project("A-2"), project("A-3", status="Proposed")]
    new = [project("A-3"), project("A-1"), project("A-4")]
    with connect() as connection:
        folders = tables_of(tmp_path / "old", projects=old), tables_of(tmp_path / "new", projects=new)
        found = compare(connection, *folders, 2024).records
    assert found == {
        "development_projects": RecordChanges(
            old_count=3,
            gained=1,
            lost=1,
            changed=1,
            columns={"status": 1},
            moves={"status": ("Proposed to Completed (1)",)},
            lost_samples=("A-2",),
        )
    }


def test_states_that_lose_all_their_projects_are_counted(tmp_path: Path) -> None:
    """If they had 50 or more."""
    old = [project(f"A-{number}") for number in range(50)] + [project("B-1", state_code="NY", zip_code=None)]
    new = [project("A-100"), project("B-2", state_code="NY", zip_code=None)]
    with connect() as connection:
        folders = tables_of(tmp_path / "old", projects=old), tables_of(tmp_path / "new", projects=new)
        (found,) = compare(connection, *folders, 2024).records.values()
    assert found.emptied == {old[0]["state_code"]: 50}


def test_two_values_that_became_a_third_count_once(tmp_path: Path) -> None:
    counts = (("Proposed", 30), ("Planned", 30), ("Completed", 40))
    old = [project(f"{status}-{number}", status=status) for status, count in counts for number in range(count)]
    new = [{**one, "status": "Completed"} for one in old]
    (found,) = differing_drops(tmp_path, {"projects": old}, {"projects": new}).records.values()
    assert found.changed == found.columns["status"] == found.suspects["status"] == 60
    assert found.moves["status"] == ("Planned to Completed (30)", "Proposed to Completed (30)")
    why = "all that had Planned have another value now; a default may have replaced it; nearly all in Dickinson"
    assert found.suspicions["status"] == why


def test_counts_that_grew_a_little_are_not_shuffled(tmp_path: Path) -> None:
    """Every new count is an old one of another record, because there are so many."""
    old = [project(f"A-{number}", total_units=number % 100 + 20) for number in range(200)]
    new = [{**one, "total_units": one["total_units"] + 2} for one in old]
    (found,) = differing_drops(tmp_path, {"projects": old}, {"projects": new}).records.values()
    assert found.columns == {"total_units": 200}
    assert found.suspicions == {}


def test_a_table_that_only_one_of_both_has_is_not_compared(tmp_path: Path) -> None:
    assert differing(tmp_path, projects=[project("A-1")]).records == {}


def test_a_figure_has_totals_and_counts_of_what_changed(tmp_path: Path) -> None:
    """2023: one changed, one lost, one new. 2010 is gone, 2024 is new."""
    rows = [
        people("36436", 2023, 800),
        people("90028", 2023, 30000),
        people("00501", 2023, 5),
        people("36436", 2024, 1),
    ]
    found = differing(tmp_path, population=rows)
    in_2023 = change(found, "population 2023")
    assert (in_2023.old_total, in_2023.new_total) == (783 + 30000 + 2620, 800 + 30000 + 5)
    assert (in_2023.old_count, in_2023.new_count) == (3, 3)
    assert (in_2023.changed, in_2023.gained, in_2023.lost) == (1, 1, 1)
    gone, new = change(found, "population 2010"), change(found, "population 2024")
    assert (gone.old_total, gone.new_total, gone.lost, gone.drift) == (531, None, 1, None)
    assert (new.old_total, new.new_total, new.gained, new.drift) == (None, 1, 1, None)
    assert found.changed_zip_codes == 4 - 1  # 90028 is as it was; 36436, 00501 and 63101 are not


def test_people_stand_before_homes_and_years_in_their_order(tmp_path: Path) -> None:
    """Then demand."""
    names = [one.figure for one in differing(tmp_path).figures]
    assert names[:3] == ["population 2010", "population 2023", "tot_home_available_2020"]
    assert names[-1] == "est_total_home_demand_2030"


def test_a_missing_home_figure_is_none_and_not_zero(tmp_path: Path) -> None:
    """Of a figure that nobody has there is no total."""
    rows = [homes("36436", tot_home_available_2023=None), homes("90028", tot_home_available_2023=None)]
    found = differing(tmp_path, housing=rows)
    assert change(found, "tot_home_available_2023").new_total is None
    assert change(found, "tot_home_available_2020").gained == 1


def test_the_largest_movers_come_first_in_either_direction(tmp_path: Path) -> None:
    rows = [people("36436", 2023, 790), people("90028", 2023, 10000), people("63101", 2023, 5000)]
    found = differing(tmp_path, population=rows)
    assert found.movers == (
        Mover("90028", "population 2023", 30000, 10000, 0, "Los Angeles", "CA"),
        Mover("63101", "population 2023", 2620, 5000, 0, "Saint Louis", "MO"),
        Mover("36436", "population 2023", 783, 790, 0, "Dickinson", "AL"),
    )


def test_a_zip_code_is_one_mover_however_many_of_its_figures_moved(tmp_path: Path) -> None:
    """With its largest change, and the number of the others; of equal changes, the first figure counts."""
    rows = [people("36436", 2023, 793), people("36436", 2010, 541), people("90028", 2023, 29999)]
    housing = [homes("36436", tot_home_available_2023=282), HOUSING[1]]
    found = differing(tmp_path, population=rows, housing=housing)
    assert found.movers == (
        Mover("36436", "population 2010", 531, 541, 2, "Dickinson", "AL"),
        Mover("90028", "population 2023", 30000, 29999, 0, "Los Angeles", "CA"),
    )


def test_figures_that_moved_most_are_distributed_among_steps(tmp_path: Path) -> None:
    """Of change: one by half, one not at all, one by a little. Of size: hundreds, thousands, tens of thousands."""
    rows = [
        people("36436", 2023, 391),
        people("90028", 2023, 30000),
        people("63101", 2023, 2621),
        people("36436", 2010, 531),
    ]
    (found,) = differing(tmp_path, population=rows).distributions
    assert found.figure == "population 2023"
    assert dict(zip(CHANGE_STEPS, found.changes, strict=True)) == {
        **dict.fromkeys(CHANGE_STEPS, 0),
        "below −50%": 1,
        "same": 1,
        "0 to +1%": 1,
    }
    sizes = dict(zip(SIZE_STEPS, found.old_sizes, strict=True))
    assert (sizes["100 to 999"], sizes["1,000 to 9,999"], sizes["10,000 to 99,999"], sum(sizes.values())) == (
        1,
        1,
        1,
        3,
    )
    assert found.new_sizes == found.old_sizes


def test_a_year_that_cannot_be_is_compared_with_nothing(tmp_path: Path) -> None:
    rows = [*POPULATION, people("36436", 20223, 5), people("36436", -1, 5)]
    assert differing(tmp_path, population=rows).changed_zip_codes == 0


def test_reports_of_earlier_versions_can_still_be_read() -> None:
    """They have movers without a place, and neither states nor answers."""
    kept = msgspec.to_builtins(UNCHANGED)
    for member in ("key_figures", "states", "distributions", "answers"):
        del kept[member]
    kept["movers"] = [{"zip_code": "36436", "figure": "population 2023", "old": 1, "new": 2}]
    kept["figures"] = [{name: value for name, value in msgspec.to_builtins(figure()).items() if name != "moved"}]
    read = msgspec.convert(kept, Comparison)
    assert (read.states, read.answers, read.movers[0].others) == ((), None, 0)


def test_at_most_ten_movers_are_named(tmp_path: Path) -> None:
    places = [location(f"{zip_code}", "Springfield", "IL") for zip_code in range(62701, 62713)]

    def drop(factor: int) -> Any:
        rows = [people(place["zip_code"], 2023, number * factor) for number, place in enumerate(places, 1)]
        return {"locations": [*LOCATIONS, *places], "population": rows}

    with connect() as connection:
        folders = tables_of(tmp_path / "old", **drop(1)), tables_of(tmp_path / "new", **drop(2))
        found = compare(connection, *folders, 2024)
    assert [mover.new - mover.old for mover in found.movers] == list(range(12, 2, -1))


def test_rows_of_a_table_that_one_release_lacks_are_none(tmp_path: Path) -> None:
    found = differing(tmp_path, aliases=None)
    assert found.rows["aliases"] == (3, None)
    assert found.rows["population"] == (4, 4)


def test_long_and_wide_shapes_of_the_same_country_compare(catalog: Catalog, tmp_path: Path) -> None:
    old = published(catalog, tmp_path / "long")
    wide = publish(catalog, write_wide_drop(tmp_path / "wide")).manifest
    assert wide is not None
    found = compare_releases(catalog, old, wide.id)
    same = {one.figure for one in found.figures if not (one.changed or one.gained or one.lost)}
    assert same >= {"population 2010", "population 2023", "tot_home_available_2021"}


@pytest.mark.parametrize("ending", ["csv", "parquet", "CSV"])
def test_every_difference_is_written_out(catalog: Catalog, tmp_path: Path, ending: str) -> None:
    """By ZIP code and figure, with nothing where a release has no such figure; what is the same is left out."""
    old = published(catalog, tmp_path / "old")
    rows = [*POPULATION[1:], people("36436", 2023, 784), people("00501", 2023, 5)]
    housing = [homes("36436", tot_home_available_2023=None), HOUSING[1]]
    new = published(catalog, tmp_path / "new", population=rows, housing=housing)
    out = tmp_path / f"with 'quotes' {ending}.{ending}"
    assert write_release_changes(catalog, old, new, out) == 3
    expected = [
        ("00501", "population 2023", None, 5),
        ("36436", "population 2023", 783, 784),
        ("36436", "tot_home_available_2023", 281, None),
    ]
    if ending == "parquet":
        assert [tuple(row.values()) for row in pq.read_table(out).to_pylist()] == expected
    else:
        with out.open(newline="") as lines:
            written = [tuple(row) for row in csv.reader(lines)]
        texts = [tuple("" if value is None else str(value) for value in row) for row in expected]
        assert written == [("zip_code", "figure", "old", "new"), *texts]


def test_changes_that_cannot_be_written_are_one_line(catalog: Catalog, tmp_path: Path) -> None:
    release = published(catalog, tmp_path / "old")
    with pytest.raises(CatalogError, match=r"^[^\n]*nowhere[^\n]*$"):
        write_release_changes(catalog, release, release, tmp_path / "nowhere" / "changes.csv")


def test_an_unknown_release_is_named(catalog: Catalog, tmp_path: Path) -> None:
    release = published(catalog, tmp_path / "old")
    with pytest.raises(CatalogError, match="no release 2026"):
        compare_releases(catalog, release, "20261005T090000Z-0123456789ab")


def test_a_release_whose_tables_are_damaged_is_named(catalog: Catalog, tmp_path: Path) -> None:
    release = published(catalog, tmp_path / "old")
    (catalog.folder(release) / "tables" / "population.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(CatalogError, match=rf"^{release} and {release} cannot be compared: [^\n]*$"):
        compare_releases(catalog, release, release)


def test_projects_that_nothing_would_find_any_more_are_gone(tmp_path: Path) -> None:
    """Whether they lost their place themselves, or their ZIP code its location."""
    old = [project("A-1"), project("A-2"), project("A-3", zip_code="58601", city_name=None), project("A-4")]
    new = [project("A-1"), project("A-2", zip_code=None, city_name="-"), old[2], {**project("A-4"), "project_id": None}]
    places = [row for row in LOCATIONS if row["zip_code"] != "58601"]
    with connect() as connection:
        before = tables_of(tmp_path / "old", projects=old)
        found = compare(connection, before, tables_of(tmp_path / "new", projects=new, locations=places), 2024).records
    assert found["development_projects"].lost_samples == ("A-2", "A-3", "A-4")
    assert (found["development_projects"].lost, found["development_projects"].gained) == (3, 0)
