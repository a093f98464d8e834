"""What a release holds decides its digest, and nothing else does."""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.drops import LOCATIONS, POPULATION, Rows, write_drop, write_table
from tests.warehouse.helpers import entries, publish
from warehouse.publishing.build import ReleaseContents
from warehouse.releases.catalog import Catalog, TableInfo

INFO = TableInfo(rows=3, checksum="123", files=("a.parquet",))
CONTENTS = ReleaseContents({"housing": INFO, "locations": INFO}, ("Somebody",), illustrative=False)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(locations=st.permutations(LOCATIONS), population=st.permutations(POPULATION), cut=st.integers(1, 3))
def test_the_order_of_rows_and_their_split_into_files_change_nothing(
    locations: Rows, population: Rows, cut: int
) -> None:
    """Exports are in no order; the same tables must be the same release, byte by byte."""
    with TemporaryDirectory() as folder:
        catalog = Catalog(Path(folder) / "data")
        first = publish(catalog, write_drop(Path(folder) / "drop"))
        served = entries(catalog)
        shuffled = write_drop(Path(folder) / "shuffled", locations=locations, population=population[:cut])
        write_table(shuffled / "more.parquet", population[cut:])
        again = publish(catalog, shuffled)
        assert (again.result, again.manifest) == ("already_current", first.manifest)
        other = Catalog(Path(folder) / "other")
        publish(other, shuffled)
        assert entries(other) == served
        assert other.current().files == catalog.current().files


def test_the_digest_is_that_of_what_is_served() -> None:
    """Names of files, origin and attribution are not part of it."""
    moved = msgspec.structs.replace(INFO, files=("b.parquet",), carried_from="20200101T000000Z-000000000000")
    same = ReleaseContents({"locations": moved, "housing": moved}, (), illustrative=False)
    assert same.digest == CONTENTS.digest


@pytest.mark.parametrize(
    "other",
    [
        ReleaseContents({"housing": INFO}, ("Somebody",), illustrative=False),
        ReleaseContents({"housing": INFO, "aliases": INFO}, ("Somebody",), illustrative=False),
        ReleaseContents(CONTENTS.tables, ("Somebody",), illustrative=True),
        ReleaseContents(
            {**CONTENTS.tables, "housing": msgspec.structs.replace(INFO, rows=4)}, ("Somebody",), illustrative=False
        ),
        ReleaseContents(
            {**CONTENTS.tables, "housing": msgspec.structs.replace(INFO, checksum="124")},
            ("Somebody",),
            illustrative=False,
        ),
    ],
)
def test_whatever_is_served_otherwise_has_another_digest(other: ReleaseContents) -> None:
    assert other.digest != CONTENTS.digest


def test_the_builder_is_part_of_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tables, encoded otherwise, must be another release, or caches would mix the two."""
    before = CONTENTS.digest
    monkeypatch.setattr("warehouse.publishing.build.BUILDER_VERSION", 999)
    assert CONTENTS.digest != before
