"""The statement of a look-up has the form that is fastest for its keys, and finds the same in every form."""

from pathlib import Path

import duckdb
import pytest

from tests.support.drops import LOCATIONS, location, write_drop
from tests.warehouse.helpers import publish
from warehouse.areas import projects
from warehouse.areas.forecast import FORECAST_AREA
from warehouse.lookup.query import LookupStatement
from warehouse.releases.catalog import Catalog

TOWN = [f"{number:05}" for number in range(10000, 10040)]


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> LookupStatement:
    folder = tmp_path_factory.mktemp("lookup")
    catalog = Catalog(folder / "data")
    places = [*LOCATIONS, *(location(zip_code, "Town", "AL") for zip_code in TOWN)]
    publish(catalog, write_drop(folder / "drop", locations=places))
    return FORECAST_AREA.lookup_in(catalog.folder(catalog.current().id))


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 40])
def test_any_number_of_keys_is_found(lookup: LookupStatement, count: int) -> None:
    """With a list of keys in the statement up to 32, with one parameter beyond."""
    text, parameters = lookup.by_keys(TOWN[:count])
    assert text.count("?") == len(parameters) == (count if count <= 32 else 1)
    found = duckdb.execute(text, parameters).fetchall()
    assert sorted(zip_code for zip_code, _ in found) == TOWN[:count]


def test_a_look_up_that_is_not_by_key_has_one_form(tmp_path: Path) -> None:
    lookup = projects.PROJECTS_AREA.lookup_in(tmp_path)
    assert (lookup.few, lookup.loaded) == ((), None)
