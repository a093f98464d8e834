"""The release that test keys see: fixed records, in memory. docs/partners/test-keys.md lists them.

Names, ZIP codes and coordinates are real; all figures and projects are made up, and never change in v1. Look-ups go
through key sets of the same kind as those of live releases, so that names match and errors help in the same way.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from service.http.forecast_examples import DICKINSON, MILITARY
from warehouse.areas.forecast import FORECAST_AREA, ForecastEntry, Housing, Location, PopulationYear
from warehouse.areas.projects import FILTERED, PROJECTS_AREA, Project, ProjectFilters, ProjectLocation
from warehouse.following import OpenRelease, ReleaseFollower
from warehouse.lookup.engine import Engine
from warehouse.places.keyset import KeySet
from warehouse.places.keyset_builder import KeySetBuilder
from warehouse.releases.catalog import Manifest
from warehouse.schema.vocabulary import ProjectStatus

RELEASE_ID = "20260101T000000Z-test"

# With the population of 2020, from which all figures are derived.
_PLACES = (
    (Location("00501", "Suffolk County", "36103", "Holtsville, NY", "NY", 40.8154, -73.0451), 1000),
    (Location("62701", "Sangamon County", "17167", "Springfield, IL", "IL", 39.8000, -89.6495), 1100),
    (Location("62702", "Sangamon County", "17167", "Springfield, IL", "IL", 39.8272, -89.6446), 38200),
    (Location("62703", "Sangamon County", "17167", "Springfield, IL", "IL", 39.7618, -89.6275), 31300),
    (Location("62704", "Sangamon County", "17167", "Springfield, IL", "IL", 39.7724, -89.6889), 39400),
    (Location("63101", "St. Louis City", "29510", "Saint Louis, MO", "MO", 38.6315, -90.1934), 2900),
    (Location("88005", "Doña Ana County", "35013", "Las Cruces, NM", "NM", 32.2888, -106.8238), 26500),
    (Location("90028", "Los Angeles County", "06037", "Los Angeles, CA", "CA", 34.0999, -118.3268), 28700),
    (Location("94103", "San Francisco County", "06075", "San Francisco, CA", "CA", 37.7725, -122.4147), 33500),
)
_ALIASES = (("90028", "Hollywood", "CA"),)
_encode = msgspec.json.Encoder().encode


class _Records:
    """The part of an Engine that look-ups use."""

    def __init__(self, entries: dict[str, bytes], projects: dict[str, dict[str, bytes]]) -> None:
        self._entries = entries
        self._projects = projects

    async def entries(self, _lookup: str, keys: Sequence[str]) -> list[bytes]:
        return [self._entries[key] for key in keys]

    async def rows(self, lookup: str, places: Sequence[str], *wanted: Any) -> list[tuple[Any, ...]]:
        *filters, after, most = wanted
        found = sorted({name: entry for place in places for name, entry in self._projects[place].items()}.items())
        page: list[tuple[Any, ...]]
        if lookup != FILTERED:
            page = [row for row in found if row[0] > after]
            return page[:most]
        passing = [row for row in found if _passes(row[1], ProjectFilters(*filters))]
        page = [(*row, len(passing)) for row in passing if row[0] > after]
        return page[:most] or [(None, None, len(passing))]


def _passes(entry: bytes, filters: ProjectFilters) -> bool:
    """Applies the filters as the warehouse's statement does."""
    project = msgspec.json.decode(entry)
    if filters.status not in (None, project["status"]):
        return False
    if filters.project_type is not None and (project["project_type"] or "").lower() != filters.project_type:
        return False
    for name in ("status_date", "start_date", "completion_date"):
        first, last = getattr(filters, f"{name}_from"), getattr(filters, f"{name}_to")
        day = project[name]
        if (first or last) and (day is None or not (first or day) <= day <= (last or day)):
            return False
    return True


def sandbox_follower() -> ReleaseFollower:
    """Returns a follower that is never started, so that its release stays."""
    follower = ReleaseFollower(Path("sandbox"), _open_nothing)
    follower.current = _release()
    return follower


def _release() -> OpenRelease:
    entries = _forecasts()
    forecast_keys, project_keys, projects = KeySetBuilder(), KeySetBuilder(), _projects()
    for entry in entries:
        place, has_figures = entry.location, bool(entry.population)
        county = place.county_fips_code
        forecast_keys.add(place.zip_code, place.city, place.state_code, has_figures=has_figures, county=county)
        if county is not None and place.county_name is not None:
            forecast_keys.add_county(county, place.county_name)
    for alias in _ALIASES:
        forecast_keys.add_alias(*alias)
    keys: dict[str, KeySet] = {FORECAST_AREA.name: forecast_keys.build()}
    places: dict[str, dict[str, bytes]] = defaultdict(dict)
    located = [project for project in projects if project.location.zip_code is not None]
    zip_code, city = "94103", "San Francisco, CA"
    project_keys.add_postal(zip_code, city, "CA", len(located))
    group = project_keys.add_group(city, "CA", [zip_code], len(projects))
    places[zip_code] = {project.project_id: _encode(project) for project in located}
    places[group] = {project.project_id: _encode(project) for project in projects}
    project_keys.add_types(sorted({project.project_type for project in projects if project.project_type}))
    keys[PROJECTS_AREA.name] = project_keys.build()
    records = _Records({entry.location.zip_code: _encode(entry) for entry in entries}, places)
    return OpenRelease(_manifest(keys), keys, cast("Engine", records))


def _manifest(keys: dict[str, KeySet]) -> Manifest:
    return Manifest(
        id=RELEASE_ID,
        published_at=datetime(2026, 1, 1, tzinfo=UTC),
        builder_version=0,
        illustrative=True,
        attribution=("Test data: the figures are made up",),
        areas=tuple(keys),
        zip_codes=keys[FORECAST_AREA.name].zip_count,
        cities=keys[FORECAST_AREA.name].city_count,
        tables={},
        files={},
        findings={},
    )


def _forecasts() -> list[ForecastEntry]:
    found = [DICKINSON, MILITARY]
    for place, people in _PLACES:
        years = tuple(PopulationYear(year, people + 100 * (year - 2020)) for year in (2020, 2021, 2022, 2023, 2030))
        homes = people // 2
        housing = Housing(homes, homes + 10, homes + 20, None, homes + 100)
        found.append(ForecastEntry(place, years, housing))
    return sorted(found, key=lambda entry: entry.location.zip_code)


def _projects() -> list[Project]:
    statuses: tuple[ProjectStatus, ...] = ("proposed", "permitted", "under_construction", "completed")
    found = [
        Project(
            project_id=f"TEST-{number}",
            project_name=f"{number} Test Street",
            project_type="Residential",
            status=status,
            status_source=status.upper(),
            status_date=date(2025, number, 1),
            start_date=date(2025, number, 15),
            completion_date=date(2027, number, 1) if status == "completed" else None,
            tot_units=10 * number,
            affordable_units=number,
            street_address=f"{number} TEST ST",
            location=_site("94103", 37.7725),
        )
        for number, status in enumerate(statuses, 1)
    ]
    nothing = dict.fromkeys(("project_name", "project_type", "status_source", "status_date", "start_date"), None)
    nothing |= dict.fromkeys(("completion_date", "tot_units", "affordable_units", "street_address"), None)
    more: dict[str, Any] = {"status": "unknown", "location": _site(None, None), **nothing}
    return [*found, Project(project_id="TEST-5", **more)]


def _site(zip_code: str | None, latitude: float | None) -> ProjectLocation:
    longitude = None if latitude is None else -122.4147
    return ProjectLocation(zip_code, "San Francisco County", "06075", "San Francisco, CA", "CA", latitude, longitude)


def _open_nothing(*_: Any) -> Engine:
    raise LookupError("the release of test keys is never opened")
