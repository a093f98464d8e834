"""What a drop does not bring stays as it is, unless it was made up."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.drops import HOUSING, LOCATIONS, homes, people, write_drop, write_table
from tests.warehouse.helpers import contents, entries, errors, figures, finding, flip_byte, keys, publish
from warehouse.places.match import Match
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.schema.errors import CatalogError


@pytest.mark.parametrize("table", ["locations", "population", "housing"])
def test_a_first_drop_needs_every_table_of_the_answer(catalog: Catalog, tmp_path: Path, table: str) -> None:
    outcome = publish(catalog, write_drop(tmp_path / "drop", **{table: None}))
    assert errors(outcome) == ["missing-table"]
    assert finding(outcome, "missing-table").table == table


def test_a_table_with_a_broken_file_is_not_called_missing_or_kept(
    catalog: Catalog, drop: Path, first: Manifest
) -> None:
    """Whoever reads the findings should look at the file, not for another."""
    rows = [{"zip_code": "36436", "year": 2023}]
    write_table(drop / "zip_population.parquet", rows)
    outcome = publish(catalog, drop)
    assert errors(outcome) == ["missing-column"]
    assert "carried-table" not in {one.rule for one in outcome.report.findings}


def test_a_partial_drop_keeps_the_other_tables(catalog: Catalog, tmp_path: Path, first: Manifest) -> None:
    """What it brings replaces the whole table; where the others come from stays known over several drops."""
    housing = write_table(tmp_path / "one" / "h.parquet", [homes("36436", tot_home_available_2023=9)])
    outcome = publish(catalog, housing)
    population = write_table(tmp_path / "two" / "p.parquet", [people("00501", 2020, 5)])
    last = publish(catalog, population).manifest
    assert first is not None
    assert last is not None
    assert outcome.manifest is not None
    served = entries(catalog)
    assert served["36436"]["housing"]["tot_home_available_2023"] == 9
    assert set(served["90028"]["housing"].values()) == {None}
    assert (figures(served["36436"]), figures(served["00501"])) == ([], [(2020, 5)])
    origin = {name: info.carried_from for name, info in last.tables.items()}
    assert origin == {"locations": first.id, "aliases": first.id, "housing": outcome.manifest.id, "population": None}
    assert first.id in finding(outcome, "carried-table").message


def test_a_partial_drop_is_held_against_the_locations_that_are_kept(
    catalog: Catalog, tmp_path: Path, first: Manifest
) -> None:
    outcome = publish(catalog, write_table(tmp_path / "h.parquet", [homes("36436"), homes("17270")]))
    assert finding(outcome, "orphan-rows").samples == ("17270",)


def test_figures_of_a_place_that_is_gone_are_not_served(catalog: Catalog, tmp_path: Path, first: Manifest) -> None:
    """Fewer locations with the figures and aliases of before: the rest has nothing to stand on."""
    publish(catalog, write_table(tmp_path / "l.parquet", [row for row in LOCATIONS if row["zip_code"] != "90028"]))
    assert "90028" not in entries(catalog)
    assert not isinstance(keys(catalog).resolve(None, "Hollywood", "CA"), Match)


def test_a_partial_drop_of_the_same_figures_is_already_current(catalog: Catalog, drop: Path, first: Manifest) -> None:
    assert publish(catalog, drop / "zip_housing.parquet").result == "already_current"


@pytest.mark.parametrize("damage", ["flipped", "missing", "replaced"])
def test_a_damaged_table_is_never_carried_over(
    catalog: Catalog, drop: Path, tmp_path: Path, damage: str, first: Manifest
) -> None:
    kept = catalog.folder(first.id) / "tables" / "population.parquet"
    if damage == "flipped":
        flip_byte(kept, at=10)
    elif damage == "missing":
        kept.unlink()
    else:
        table = pq.read_table(kept)
        pq.write_table(table.set_column(2, "tot_population", pa.array([1] * len(table), pa.int64())), kept)
    before = contents(catalog.data)
    with pytest.raises(CatalogError, match=r"population\.parquet is damaged"):
        publish(catalog, write_table(tmp_path / "h.parquet", [homes("36436", tot_home_available_2023=9)]))
    assert contents(catalog.data) == before


def illustrative(folder: Path) -> Path:
    """A whole drop whose files say that their figures are made up, and by whom."""
    marks = {b"forecast.illustrative": b"yes", b"forecast.attribution": b"Made up|Points: someone"}
    for path in write_drop(folder).glob("*.parquet"):
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata(marks), path)
    return folder


def test_nothing_is_carried_over_from_made_up_figures(catalog: Catalog, tmp_path: Path) -> None:
    made_up = publish(catalog, illustrative(tmp_path / "demo"))
    outcome = publish(catalog, write_table(tmp_path / "h.parquet", HOUSING))
    assert made_up.manifest is not None
    assert made_up.manifest.illustrative
    assert errors(outcome) == ["missing-table", "missing-table"]
    assert outcome.manifest == made_up.manifest


def test_made_up_figures_keep_nothing_of_real_ones(catalog: Catalog, tmp_path: Path, first: Manifest) -> None:
    demo = illustrative(tmp_path / "demo")
    outcome = publish(catalog, demo / "zip_housing.parquet")
    assert errors(outcome) == ["missing-table", "missing-table"]


def test_real_figures_are_another_release_than_the_same_made_up(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    publish(catalog, illustrative(tmp_path / "demo"))
    outcome = publish(catalog, drop)
    assert outcome.result == "published"
    assert not catalog.current().illustrative


def test_attribution_travels_in_the_files(catalog: Catalog, tmp_path: Path) -> None:
    manifest = publish(catalog, illustrative(tmp_path / "demo")).manifest
    assert manifest is not None
    assert manifest.attribution == ("Made up", "Points: someone")
