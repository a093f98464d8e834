"""What tests of the warehouse ask of drops, reports and releases."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, tzinfo
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow.parquet as pq
import pytest

from tests.support import publishing as publisher
from warehouse.areas import forecast
from warehouse.areas.data_area import DataArea
from warehouse.drops.collection import collect
from warehouse.drops.exact_copies import exact_copies
from warehouse.drops.recognition import recognise
from warehouse.drops.staging import stage, staged_name
from warehouse.drops.validation import validate
from warehouse.lookup.engine import Engine
from warehouse.lookup.query import LookupStatement
from warehouse.places.keyset import KeySet
from warehouse.publishing import build
from warehouse.publishing.outcome import PublishOptions, PublishOutcome
from warehouse.releases.catalog import Catalog
from warehouse.rules.all_rules import NO_LIMIT, RULES
from warehouse.schema.findings import Finding, ValidationReport, make_report
from warehouse.schema.tables import LOCATIONS
from warehouse.sql import connections

ATTRIBUTION = ("Figures: somebody",)
NO_LIMITS = {rule.name: NO_LIMIT for rule in RULES.values() if rule.limit is not None and rule.name != "too-many-rows"}


@contextmanager
def a_month_apart() -> Iterator[None]:
    """Releases are of October 2026, November and so on: those of one second have no order."""

    class Months:
        published = 0

        @classmethod
        def now(cls, tz: tzinfo) -> datetime:
            cls.published += 1
            return datetime(2026, 9, 5, 8, tzinfo=tz) + timedelta(days=30 * cls.published)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "datetime", Months)
        yield


def drops_of(kinds: Iterable[str], together: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The drops in which all kinds of faults or changes are tried: those `together`, and each other one by itself."""
    taken = [kind for drop in together for kind in drop]
    assert len(set(taken)) == len(taken)
    return [*together, *((kind,) for kind in kinds if kind not in taken)]


def publish(catalog: Catalog, *paths: Path | str) -> PublishOutcome:
    """Publishes in this process, with limits that small drops cannot exceed; the limits have tests of their own."""
    options = PublishOptions(attribution=ATTRIBUTION, limits=NO_LIMITS, severities={"delivered-before": "info"})
    return publisher.publish(catalog, [str(path) for path in paths], options)


class Examined:
    """A drop that was staged and validated, but not built: its findings, and its tables as they were read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, found: ValidationReport) -> None:
        self._connection = connection
        self.report = found

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        chosen = ", ".join(columns)
        return self._connection.execute(f"SELECT {chosen} FROM staged_{table} ORDER BY ALL").fetchall()

    def values(self, table: str, column: str) -> list[Any]:
        return [value for (value,) in self.rows(table, column)]


# Opening one takes longer than to examine a small drop. Each connection to it has temporary tables of its own.
_database = cache(connections.connect)


def connect() -> duckdb.DuckDBPyConnection:
    return _database().cursor()


def examine(*paths: Path) -> Examined:
    connection = connect()
    recognised = recognise(connection, collect([str(path) for path in paths]))
    with exact_copies(recognised.extracts, Path(tempfile.gettempdir())) as extracts:
        tables, findings = stage(connection, extracts)
    findings = [*recognised.findings, *findings]
    locations = staged_name(LOCATIONS) if LOCATIONS in tables else None
    validated = validate(connection, tables, locations, findings)
    return Examined(connection, make_report([*findings, *validated.findings]))


def finding(found: ValidationReport | PublishOutcome, rule: str) -> Finding:
    """The one finding of `rule` that there must be."""
    listed = (found.report if isinstance(found, PublishOutcome) else found).findings
    matching = [one for one in listed if one.rule == rule]
    assert len(matching) == 1, f"{rule}: {listed}"
    return matching[0]


def errors(found: ValidationReport | PublishOutcome) -> list[str]:
    listed = (found.report if isinstance(found, PublishOutcome) else found).findings
    return [one.rule for one in listed if one.severity == "error"]


def entries(catalog: Catalog) -> dict[str, Any]:
    """What the current release answers, by ZIP code."""
    path = catalog.folder(catalog.current().id) / forecast.FORECAST_AREA.entries
    rows = pq.read_table(path).to_pylist()
    return {row["zip_code"]: msgspec.json.decode(row["entry"]) for row in rows}


def open_engine(folder: Path, lookups: Mapping[str, LookupStatement]) -> Engine:
    return Engine(folder, lookups, memory=64 << 20, timeout=30, queue=8)


def engine_of(catalog: Catalog, *areas: DataArea) -> Engine:
    """On the current release."""
    folder = catalog.folder(catalog.current().id)
    return open_engine(folder, {name: lookup for area in areas for name, lookup in area.lookups_in(folder).items()})


def figures(entry: Any) -> list[tuple[int, int]]:
    """The years and figures of an entry, in its order."""
    return [(year["year"], year["tot_population"]) for year in entry["population"]]


def keys(catalog: Catalog) -> KeySet:
    return forecast.FORECAST_AREA.keys_in(catalog.folder(catalog.current().id))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below `folder`, except the lock that publishers leave, and the blocks that they set aside."""
    left = ("publish.lock", ".current.json.spare")
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in left)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def shorten(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def flip_byte(path: Path, at: int | None = None) -> None:
    """Damages one byte, by default in the middle, and leaves the size as it is."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 0xFF
    path.write_bytes(data)
