"""A drop becomes the current release."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import publishing as publisher
from tests.support.drops import (
    HOUSING,
    LOCATIONS,
    POPULATION,
    homes,
    location,
    people,
    project,
    wide_people,
    write_drop,
    write_table,
    write_wide_drop,
)
from tests.warehouse.helpers import contents, entries, figures, publish
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.releases.files import AreaContents
from warehouse.schema.errors import CatalogError


def test_the_long_shape_publishes(catalog: Catalog, drop: Path) -> None:
    outcome = publish(catalog, drop)
    assert (outcome.result, outcome.report.findings) == ("published", ())
    served = entries(catalog)
    assert list(served) == sorted(row["zip_code"] for row in LOCATIONS)
    assert figures(served["36436"]) == [(2010, 531), (2023, 783)]
    assert served["36436"]["housing"]["tot_home_available_2023"] == 281


def test_the_wide_shape_publishes(catalog: Catalog, tmp_path: Path) -> None:
    outcome = publish(catalog, write_wide_drop(tmp_path / "drop"))
    assert (outcome.result, outcome.report.count("warning")) == ("published", 0)
    served = entries(catalog)
    assert figures(served["36436"]) == [(2010, 531), (2023, 783), (2030, 801)]
    assert figures(served["90028"]) == [(2023, 30000)]
    assert served["36436"]["housing"]["tot_home_available_2023"] == 281


@pytest.mark.parametrize("wide_first", [False, True])
def test_both_shapes_publish_one_after_the_other(catalog: Catalog, tmp_path: Path, wide_first: bool) -> None:
    """In either order; what only one of them brings stays."""
    long = write_drop(tmp_path / "long", aliases=None, projects=[project("A-1")])
    drops = [long, write_wide_drop(tmp_path / "wide")]
    for path in reversed(drops) if wide_first else drops:
        assert publish(catalog, path).result == "published"
    assert set(catalog.current().tables) == {"locations", "population", "housing", "aliases", "development_projects"}


def test_the_same_figures_in_both_shapes_are_the_same_release(catalog: Catalog, tmp_path: Path) -> None:
    wide = [wide_people("36436", TOT_CENSUS_POP_2010=531, TOT_CENSUS_POP_2023=783)]
    first = publish(catalog, write_wide_drop(tmp_path / "wide", population=wide))
    rows = [people("36436", 2023, 783), people("36436", 2010, 531)]
    again = publish(catalog, write_drop(tmp_path / "long", population=rows))
    assert (again.result, again.manifest) == ("already_current", first.manifest)


def test_the_same_tables_are_already_current_and_nothing_is_written(catalog: Catalog, drop: Path) -> None:
    first = publish(catalog, drop)
    before = contents(catalog.data)
    again = publish(catalog, drop)
    assert (again.result, again.manifest) == ("already_current", first.manifest)
    assert contents(catalog.data) == before


def test_a_changed_figure_is_another_release(catalog: Catalog, tmp_path: Path, first: Manifest) -> None:
    changed = write_drop(tmp_path / "changed", population=[*POPULATION[1:], people("36436", 2023, 784)])
    assert publish(catalog, changed).result == "published"
    assert figures(entries(catalog)["36436"]) == [(2010, 531), (2023, 784)]


def test_figures_that_trade_places_are_another_release(catalog: Catalog, tmp_path: Path) -> None:
    """The checksum of a table knows which value stands in which column."""
    one = homes("36436", tot_home_available_2020=1, tot_home_available_2021=11)
    other = homes("36436", tot_home_available_2020=11, tot_home_available_2021=1)
    publish(catalog, write_drop(tmp_path / "one", housing=[one]))
    assert publish(catalog, write_drop(tmp_path / "other", housing=[other])).result == "published"


def test_text_that_looks_like_a_separator_does_not_hide_a_change(catalog: Catalog, tmp_path: Path) -> None:
    """Neither does a value that is empty in one release and moves into the next column in the other."""
    releases = set()
    for number, (city, county) in enumerate([("A|AL", "B"), ("A", "AL|B"), ("A|AL|B", None)]):
        rows = [*LOCATIONS, location("36437", city, "AL", county_name=county)]
        outcome = publish(catalog, write_drop(tmp_path / str(number), locations=rows))
        assert outcome.manifest is not None
        releases.add(outcome.manifest.tables["locations"].checksum)
    assert len(releases) == 3


def test_the_manifest_says_what_the_release_is_made_of(catalog: Catalog, tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    drop = write_drop(tmp_path / "drop", housing=[*HOUSING, homes("17270")])
    manifest = publish(catalog, drop).manifest
    assert manifest == catalog.current()
    assert manifest is not None
    assert before <= manifest.published_at <= datetime.now(UTC)
    assert manifest.id.startswith(f"{manifest.published_at:%Y%m%dT%H%M%SZ}-")
    assert (manifest.zip_codes, manifest.cities, manifest.areas) == (9, 7, ("forecast",))
    assert (manifest.illustrative, manifest.attribution) == (False, ("Figures: somebody",))
    assert {name: (info.rows, info.files) for name, info in manifest.tables.items()} == {
        "locations": (9, ("zip_locations.parquet",)),
        "population": (4, ("zip_population.parquet",)),
        "housing": (2, ("zip_housing.parquet",)),
        "aliases": (3, ("zip_city_aliases.parquet",)),
    }
    assert manifest.findings == {"error": 0, "warning": 1, "info": 0}
    folder = catalog.folder(manifest.id)
    bulk = ("bulk/forecast.parquet", "bulk/forecast.csv.gz", "bulk/forecast.changes")
    assert {name: info.bytes for name, info in manifest.files.items()} == {
        name: (folder / name).stat().st_size for name in ("forecast.parquet", "forecast.keys", *bulk)
    }
    assert (manifest.previous, manifest.contents) == (None, {"forecast": AreaContents(rows=9, changed=9)})


def test_two_releases_of_one_second_are_distinguished(catalog: Catalog, drop: Path, tmp_path: Path) -> None:
    """A, B and A again, faster than the clock of the ids: the third is the first."""
    changed = write_drop(tmp_path / "changed", population=[people("36436", 2023, 1)])
    outcomes = [publish(catalog, path) for path in (drop, changed, drop)]
    assert [outcome.result for outcome in outcomes] == ["published"] * 3
    assert figures(entries(catalog)["36436"]) == [(2010, 531), (2023, 783)]


def test_unknown_units_of_a_project_become_null(catalog: Catalog, tmp_path: Path) -> None:
    rows = [project("A-1", total_units=-1), project("A-2", zip_code=None)]
    publish(catalog, write_drop(tmp_path / "drop", projects=rows))
    path = catalog.folder(catalog.current().id) / "tables" / "development_projects.parquet"
    kept = {row["project_id"]: (row["total_units"], row["affordable_units"]) for row in pq.read_table(path).to_pylist()}
    assert kept == {"A-1": (None, 3), "A-2": (12, 3)}


def test_an_instant_is_the_same_day_wherever_it_is_published(catalog: Catalog, tmp_path: Path) -> None:
    started = datetime(2024, 1, 2, 1, 30, tzinfo=UTC)
    folder = write_drop(tmp_path / "drop")
    write_table(folder / "p.parquet", [project("A-1", start_date=started)], {"start_date": pa.timestamp("us", "UTC")})
    code = (
        "import sys; from pathlib import Path; from tests.support.publishing import publish; "
        "from warehouse.releases.catalog import Catalog; publish(Catalog(Path(sys.argv[1])), [sys.argv[2]])"
    )
    west = {**os.environ, "TZ": "America/Los_Angeles"}
    subprocess.run([sys.executable, "-c", code, str(catalog.data), str(folder)], check=True, env=west)
    path = catalog.folder(catalog.current().id) / "tables" / "development_projects.parquet"
    assert pq.read_table(path).to_pylist()[0]["start_date"] == date(2024, 1, 2)


def test_steps_are_reported_as_they_begin(catalog: Catalog, drop: Path) -> None:
    reported: list[str] = []
    publisher.publish(catalog, [str(drop)], progress=reported.append)
    assert reported[0] == "reading zip_city_aliases.parquet"
    assert reported[-1] == "switching"
    assert {"validating", "writing population", "encoding entries"} <= set(reported)


@pytest.mark.parametrize("lost", ["", "manifest.json"])
def test_the_only_release_can_be_published_again_if_it_is_lost(
    catalog: Catalog, drop: Path, first: Manifest, lost: str
) -> None:
    """The error says how."""
    folder = catalog.folder(first.id)
    (folder / lost).unlink() if lost else shutil.rmtree(folder)
    with pytest.raises(CatalogError, match=r"no other release is whole: remove \S+/current\.json, and publish"):
        publish(catalog, drop)
    catalog.pointer_file.unlink()
    assert publish(catalog, drop).result == "published"
