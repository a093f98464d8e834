"""What partners download of a release says what its answers say; its list of changes is what differs."""

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq

from tests.support.drops import HOUSING, LOCATIONS, POPULATION, homes, location, people, project, write_drop
from tests.warehouse.helpers import entries, publish
from warehouse.areas import entry_file
from warehouse.areas.projects import PROJECTS_AREA
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.files import read_changes

ODD = 'A "quoted", name\nof two lines'
PROJECTS = (
    project("P-1"),
    project("P-2", project_name="", zip_code=None, status="on hold", total_units=None, start_date=None),
    project("P-3", project_name=ODD, city_name=None, state_code=None, status="who knows"),
    project("P-4", city_name=None, state_code=None, zip_code=None),  # nowhere: no answer has it
)


def bulk(catalog: Catalog, name: str) -> Path:
    return catalog.folder(catalog.current().id) / "bulk" / name


def changes(catalog: Catalog, area: str = "forecast") -> tuple[str, ...]:
    return read_changes(bulk(catalog, f"{area}.changes"), 0, 1000).ids


def published(catalog: Catalog, folder: Path, **tables: Any) -> Manifest:
    manifest = publish(catalog, write_drop(folder, **tables)).manifest
    assert manifest is not None
    return manifest


def flat_entry(entry: dict[str, Any], years: list[int]) -> dict[str, Any]:
    figures = {one["year"]: one["tot_population"] for one in entry["population"]}
    return {**entry["location"], **{f"tot_population_{year}": figures.get(year) for year in years}, **entry["housing"]}


def test_a_row_for_each_zip_code_says_what_its_answer_says(catalog: Catalog, first: Manifest) -> None:
    expected = [flat_entry(entry, [2010, 2023]) for _, entry in sorted(entries(catalog).items())]
    table = pq.read_table(bulk(catalog, "forecast.parquet"))
    assert table.column_names == list(expected[0])
    assert table.to_pylist() == expected


def test_a_row_for_each_project_says_what_its_answer_says(catalog: Catalog, tmp_path: Path) -> None:
    manifest = published(catalog, tmp_path / "drop", projects=PROJECTS)
    rows = entry_file.read_entries(catalog.folder(manifest.id) / PROJECTS_AREA.entries)
    served = {project_id: msgspec.json.decode(entry) for _, project_id, entry in rows}
    table = pq.read_table(bulk(catalog, "projects.parquet")).to_pylist()
    dates = ("status_date", "start_date", "completion_date")
    shown = [row | {name: row[name] and row[name].isoformat() for name in dates} for row in table]
    expected = []
    for _, entry in sorted(served.items()):
        place = entry.pop("location")
        expected.append(entry | place)
    assert shown == expected
    assert [row["project_id"] for row in shown] == ["P-1", "P-2", "P-3"]
    assert [row["status"] for row in shown] == ["completed", "stalled", "unknown"]
    assert manifest.contents["projects"].rows == 3


def test_the_csv_file_has_the_same_rows(catalog: Catalog, tmp_path: Path) -> None:
    """What is not known is an empty field."""
    published(catalog, tmp_path / "drop", projects=PROJECTS)
    for area in ("forecast", "projects"):
        table = pq.read_table(bulk(catalog, f"{area}.parquet")).to_pylist()
        text = gzip.decompress(bulk(catalog, f"{area}.csv.gz").read_bytes()).decode()
        rows = list(csv.DictReader(io.StringIO(text)))
        assert [list(row.values()) for row in rows] == [
            ["" if value is None else str(value) for value in row.values()] for row in table
        ]
    assert not bulk(catalog, "forecast.csv").exists()


def test_places_without_any_population_are_rows_too(catalog: Catalog, tmp_path: Path) -> None:
    published(catalog, tmp_path / "drop", population=[people("17270", 2023, 5)])
    table = pq.read_table(bulk(catalog, "forecast.parquet"))
    assert table.num_rows == len(LOCATIONS)
    assert [name for name in table.column_names if name.startswith("tot_population")] == []


def test_all_of_a_first_release_is_new(catalog: Catalog, first: Manifest) -> None:
    assert changes(catalog) == tuple(sorted(row["zip_code"] for row in LOCATIONS))
    assert catalog.current().previous is None


def test_what_differs_is_listed_and_what_came_and_went(catalog: Catalog, tmp_path: Path) -> None:
    first = published(catalog, tmp_path / "first", projects=[project("P-1"), project("P-2")])
    manifest = published(
        catalog,
        tmp_path / "second",
        locations=[*LOCATIONS[:-1], location("10001", "New York", "NY")],  # 09001 is gone
        population=[*POPULATION[:-1], people("63101", 2023, 2621)],
        housing=[HOUSING[0], homes("90028")],
        projects=[project("P-1", total_units=13), project("P-3")],
    )
    assert changes(catalog) == ("09001", "10001", "63101", "90028")
    assert changes(catalog, "projects") == ("P-1", "P-2", "P-3")
    assert (manifest.previous, manifest.contents["forecast"].changed) == (first.id, 4)


def test_a_release_that_brings_an_area_lists_all_of_it(catalog: Catalog, tmp_path: Path, first: Manifest) -> None:
    published(catalog, tmp_path / "second", projects=PROJECTS)
    assert (changes(catalog), changes(catalog, "projects")) == ((), ("P-1", "P-2", "P-3"))


def test_a_damaged_release_does_not_stand_in_the_way_of_the_next(
    catalog: Catalog, tmp_path: Path, first: Manifest
) -> None:
    """Publishing is how somebody mends it. What changed cannot be known then, and nothing else says so."""
    (catalog.folder(first.id) / "forecast.parquet").write_bytes(b"PAR1 damaged PAR1")
    manifest = published(catalog, tmp_path / "second", population=POPULATION[:-1])
    assert (manifest.previous, manifest.contents["forecast"].changed) == (first.id, None)
    assert "bulk/forecast.changes" not in manifest.files
