"""The encoded entries are, byte by byte, what the contract says."""

from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from tests.support.drops import LOCATIONS, NOWHERE, homes, location, people, write_drop
from tests.warehouse.helpers import entries, keys, publish
from warehouse.areas import forecast
from warehouse.places.match import Match, UnknownCity
from warehouse.releases.catalog import Catalog, Manifest


def encoded(catalog: Catalog) -> dict[str, bytes]:
    path = catalog.folder(catalog.current().id) / forecast.FORECAST_AREA.entries
    return {row["zip_code"]: row["entry"] for row in pq.read_table(path).to_pylist()}


def test_no_entry_is_still_a_body() -> None:
    assert forecast.forecast_body([]) == b'{"total_results":0,"zip_codes":[]}'


def test_a_body_decodes_as_the_structure_that_is_documented(catalog: Catalog, first: Manifest) -> None:
    body = forecast.forecast_body(list(encoded(catalog).values()))
    decoded = msgspec.json.decode(body, type=forecast.ForecastBody)
    assert decoded.total_results == len(LOCATIONS)
    assert msgspec.json.encode(decoded) == body


def test_names_beyond_ascii_are_utf_8_and_not_escaped(catalog: Catalog, tmp_path: Path) -> None:
    place = location("00680", "Mayagüez", "PR", county_name="Doña Ana “County”")
    publish(catalog, write_drop(tmp_path / "drop", locations=[*LOCATIONS, place]))
    entry = encoded(catalog)["00680"]
    assert '"city":"Mayagüez, PR"'.encode() in entry
    assert "Doña Ana “County”".encode() in entry


def test_zero_is_a_figure_and_null_is_none(catalog: Catalog, tmp_path: Path) -> None:
    drop = write_drop(
        tmp_path / "drop",
        population=[people("36436", 2022, 0), people("36436", 2023, None)],
        housing=[homes("36436", tot_home_available_2020=0, tot_home_available_2021=None)],
    )
    publish(catalog, drop)
    served = entries(catalog)["36436"]
    assert served["population"] == [{"year": 2022, "tot_population": 0}]
    assert served["housing"]["tot_home_available_2020"] == 0
    assert served["housing"]["tot_home_available_2021"] is None


def test_the_file_of_entries_is_sorted_in_small_groups(catalog: Catalog, tmp_path: Path) -> None:
    """A look-up reads one group; groups must not overlap."""
    places = [location(f"{number:05}", "Town", "AL") for number in reversed(range(10000, 11290))]
    publish(catalog, write_drop(tmp_path / "drop", locations=[*LOCATIONS, *places]))
    file = pq.ParquetFile(catalog.folder(catalog.current().id) / forecast.FORECAST_AREA.entries)
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    assert [group.num_rows for group in groups] == [512, 512, len(encoded(catalog)) - 1024]
    bounds = [(group.column(0).statistics.min, group.column(0).statistics.max) for group in groups]
    flat = [bound for pair in bounds for bound in pair]
    assert flat == sorted(flat)


def test_the_key_set_is_that_of_the_entries(catalog: Catalog, tmp_path: Path) -> None:
    nowhere = location("09002", "APO", "AE", **NOWHERE)
    publish(catalog, write_drop(tmp_path / "drop", locations=[*LOCATIONS, nowhere]))
    known = keys(catalog)
    assert known.resolve(None, "apo", "AE") == Match("city:AE:apo", ("09001", "09002"))
    assert (known.has_figures(("09001",)), known.has_figures(("36436",))) == (False, True)
    assert known.zip_count == len(encoded(catalog))


def test_only_acceptable_aliases_are_in_the_key_set(catalog: Catalog, first: Manifest) -> None:
    known = keys(catalog)
    assert known.resolve(None, "Hollywood", "CA") == Match("city:CA:hollywood", ("90028",), ("Los Angeles, CA",))
    assert isinstance(known.resolve(None, "Tinseltown", "CA"), UnknownCity)


def test_a_release_without_aliases_has_a_key_set(catalog: Catalog, tmp_path: Path) -> None:
    publish(catalog, write_drop(tmp_path / "drop", aliases=None))
    assert isinstance(keys(catalog).resolve(None, "Hollywood", "CA"), UnknownCity)
