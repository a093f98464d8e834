"""The encoded entries are, byte by byte, what the contract says."""

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.support.drops import LOCATIONS, NOWHERE, homes, location, people, write_drop
from tests.warehouse.helpers import engine_of, entries, keys, publish
from warehouse.areas import forecast
from warehouse.places.match import Match, UnknownCity
from warehouse.releases.catalog import Catalog, Manifest
from warehouse.schema.errors import LookupFailure


def encoded(catalog: Catalog) -> dict[str, bytes]:
    path = catalog.folder(catalog.current().id) / forecast.FORECAST_AREA.entries
    return {row["zip_code"]: row["entry"] for row in pq.read_table(path).to_pylist()}


def test_the_body_of_the_contract_is_met_byte_by_byte(catalog: Catalog, first: Manifest) -> None:
    """Members, their order, no space between tokens."""
    assert forecast.forecast_body([encoded(catalog)["36436"]]).decode() == (
        '{"total_results":1,"zip_codes":[{"location":{"zip_code":"36436","county_name":"Clarke County",'
        '"county_fips_code":"01025","city":"Dickinson, AL","state_code":"AL","latitude":31.7061,"longitude":-87.9999},'
        '"population":[{"year":2010,"tot_population":531},{"year":2023,"tot_population":783}],'
        '"housing":{"tot_home_available_2020":216,"tot_home_available_2021":333,"tot_home_available_2022":334,'
        '"tot_home_available_2023":281,"est_total_home_demand_2030":467}}]}'
    )


def test_a_place_without_figures_has_every_member(catalog: Catalog, first: Manifest) -> None:
    """Null where there is nothing, no member absent, and no years."""
    assert encoded(catalog)["09001"].decode() == (
        '{"location":{"zip_code":"09001","county_name":null,"county_fips_code":null,"city":"APO, AE",'
        '"state_code":"AE","latitude":null,"longitude":null},"population":[],'
        '"housing":{"tot_home_available_2020":null,"tot_home_available_2021":null,"tot_home_available_2022":null,'
        '"tot_home_available_2023":null,"est_total_home_demand_2030":null}}'
    )


def test_several_entries_are_one_body_in_order(catalog: Catalog, first: Manifest) -> None:
    entry = encoded(catalog)
    body = msgspec.json.decode(forecast.forecast_body([entry["63101"], entry["63102"]]))
    assert list(body) == ["total_results", "zip_codes"]
    assert body["total_results"] == 2
    assert [one["location"]["zip_code"] for one in body["zip_codes"]] == ["63101", "63102"]


def test_no_entry_is_still_a_body() -> None:
    assert forecast.forecast_body([]) == b'{"total_results":0,"zip_codes":[]}'


async def test_an_entry_that_is_not_there_is_a_failure_not_a_shorter_answer(catalog: Catalog, first: Manifest) -> None:
    """The key set said that it is there; half a city must not be served."""
    engine = engine_of(catalog, forecast.FORECAST_AREA)
    with pytest.raises(LookupFailure, match="found 1 of 2 entries"):
        await forecast.look_up_forecast(engine, Match("city:AL:dickinson", ("36436", "99999")))
    engine.close()


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


def test_neither_nan_nor_infinity_can_be_in_an_entry(catalog: Catalog, first: Manifest) -> None:
    """Every number parses as JSON, which knows neither; coordinates at the edges stay numbers."""
    for entry in encoded(catalog).values():
        assert b"NaN" not in entry
        assert b"nfinity" not in entry


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
