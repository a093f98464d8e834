"""Projects by ZIP code and city, page by page, byte by byte."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.drops import LOCATIONS, Rows, location, project, write_drop, write_table
from tests.warehouse.helpers import engine_of, finding, publish
from warehouse.areas import projects
from warehouse.areas.paging import DEFAULT_PAGE_SIZE, Cursors, Page
from warehouse.places.keyset import KeySet
from warehouse.places.match import Match, OtherCity, UnknownCity, UnknownZip
from warehouse.releases.catalog import Catalog, Manifest

NEW_YORK = (
    location("10001", "New York", "NY", county_name="New York County", county_fips_code="36061"),
    location("10463", "Bronx", "NY", county_name="Bronx County", county_fips_code="36005"),
    location("11101", "Long Island City", "NY", county_name="Queens County", county_fips_code="36081"),
    location("11102", "Astoria", "NY", county_name="Queens County", county_fips_code="36081"),
)
ALIASES = (
    {"zip_code": "11101", "city_name": "Hunters Point", "state_code": "NY", "usps_status": "acceptable"},
    {"zip_code": "10463", "city_name": "Astoria", "state_code": "NY", "usps_status": "acceptable"},
)

CURSORS = Cursors(b"a secret")


def at(project_id: str, zip_code: str | None, city: str | None, state: str | None = "NY", **over: Any) -> Any:
    return project(project_id, zip_code=zip_code, city_name=city, state_code=state, **over)


PROJECTS: Rows = (
    at("M-1", "10001", "Manhattan"),
    at("M-2", "10463", "Manhattan"),
    at("M-3", None, "MANHATTAN"),
    at("B-1", "10463", "Bronx"),
    at("Q-1", "11101", "Queens"),
    at("Q-2", "11102", "Queens"),
    at("Q-3", None, "Queens"),
    at("Z-1", "11102", None, None),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """A release that no test may change."""
    folder = tmp_path_factory.mktemp("projects")
    drop = write_drop(folder / "drop", locations=(*LOCATIONS, *NEW_YORK), aliases=ALIASES, projects=PROJECTS)
    catalog = Catalog(folder / "data")
    assert publish(catalog, drop).result == "published"
    return catalog


@pytest.fixture
def current(catalog: Catalog, made: Catalog) -> Catalog:
    shutil.copytree(made.data, catalog.data)
    return catalog


def keys(catalog: Catalog) -> KeySet:
    return projects.PROJECTS_AREA.keys_in(catalog.folder(catalog.current().id))


def match(catalog: Catalog, zip_code: str | None = None, city: str | None = None, state: str | None = "NY") -> Match:
    found = keys(catalog).resolve(zip_code, city, state if city else None)
    assert isinstance(found, Match), found
    return found


async def asked(catalog: Catalog, found: Match, page: Page = Page()) -> Any:  # noqa: B008 - frozen
    engine = engine_of(catalog, projects.PROJECTS_AREA)
    try:
        return msgspec.json.decode(await projects.look_up_projects(engine, keys(catalog), found, page, CURSORS))
    finally:
        engine.close()


async def ids(catalog: Catalog, zip_code: str | None = None, city: str | None = None) -> list[str]:
    body = await asked(catalog, match(catalog, zip_code, city))
    assert body["total_results"] == body["total_matching"] == len(body["development_projects"])
    assert body["next_cursor"] is None
    return [one["project_id"] for one in body["development_projects"]]


async def test_the_body_of_the_contract_is_met_byte_by_byte(catalog: Catalog, tmp_path: Path) -> None:
    """Members, their order, dates, the place of the ZIP code with the project's own coordinates."""
    publish(catalog, write_drop(tmp_path / "drop", projects=[project("A-1", status="BP ISSUED", total_units=-1)]))
    engine = engine_of(catalog, projects.PROJECTS_AREA)
    body = await projects.look_up_projects(engine, keys(catalog), match(catalog, "36436"), Page(), CURSORS)
    engine.close()
    assert body.decode() == (
        '{"total_results":1,"total_matching":1,"next_cursor":null,"development_projects":[{"project_id":"A-1",'
        '"project_name":"Mill Lofts","project_type":"Housing","status":"permitted","status_source":"BP ISSUED",'
        '"status_date":"2025-03-04","start_date":"2024-01-02","completion_date":"2025-03-04","tot_units":null,'
        '"affordable_units":3,"street_address":"1 MILL ST","location":{"zip_code":"36436",'
        '"county_name":"Clarke County","county_fips_code":"01025","city":"Dickinson, AL","state_code":"AL",'
        '"latitude":31.7,"longitude":-87.9}}]}'
    )
    assert msgspec.json.encode(msgspec.json.decode(body, type=projects.ProjectsBody)) == body


async def test_what_is_not_known_is_null_and_no_member_absent(catalog: Catalog, tmp_path: Path) -> None:
    empty = dict.fromkeys(project("A-1"))
    row = {**empty, "project_id": "A-1", "city_name": "Nowhere", "state_code": "AL"}
    publish(catalog, write_drop(tmp_path / "drop", projects=[project("A-0"), row]))
    body = await asked(catalog, match(catalog, None, "Nowhere", "AL"))
    assert msgspec.convert(body, projects.ProjectsBody, strict=False).development_projects[0] == projects.Project(
        "A-1", None, None, "unknown", None, None, None, None, None, None, None,
        projects.ProjectLocation(None, None, None, "Nowhere, AL", "AL", None, None),
    )  # fmt: skip


async def test_a_project_is_found_by_its_zip_code_and_by_the_city_that_its_source_names(current: Catalog) -> None:
    """However it is spelt, and with or without a ZIP code."""
    assert await ids(current, "10463") == ["B-1", "M-2"]
    assert await ids(current, city="manhattan") == ["M-1", "M-2", "M-3"]
    assert await ids(current, city="Queens, NY") == ["Q-1", "Q-2", "Q-3"]


async def test_a_postal_city_answers_where_no_source_names_one_so(current: Catalog) -> None:
    """New York is where Manhattan's ZIP codes are; the Bronx is named by a source, so it stays what that says."""
    assert await ids(current, city="New York") == ["M-1"]
    assert await ids(current, city="Long Island City") == ["Q-1"]
    assert await ids(current, city="Bronx") == ["B-1"]


async def test_an_alias_answers_last(current: Catalog) -> None:
    """Astoria is a city, and beside that an alias of a ZIP code in the Bronx."""
    assert await ids(current, city="Hunters Point") == ["Q-1"]
    assert await ids(current, city="Astoria") == ["Z-1"]


async def test_a_project_without_a_city_has_the_one_of_its_zip_code(current: Catalog) -> None:
    (entry,) = (await asked(current, match(current, None, "Astoria")))["development_projects"]
    assert (entry["project_id"], entry["location"]["city"]) == ("Z-1", "Astoria, NY")


async def test_a_zip_code_beside_a_city_is_what_lies_in_both(current: Catalog) -> None:
    """Manhattan and the Bronx share one; of the postal service's names, and of an alias, it is the whole."""
    for city, expected in (("Manhattan", ["M-2"]), ("Bronx", ["B-1"]), ("Astoria", ["B-1", "M-2"])):
        assert await ids(current, "10463", city) == expected
    assert keys(current).resolve("10001", "Queens", "NY") == OtherCity("10001", "New York, NY")


async def test_a_project_s_state_is_that_of_its_zip_code_if_it_has_none(catalog: Catalog, tmp_path: Path) -> None:
    """Its city stays what its source says."""
    rows = [at("A-1", "10001", "Manhattan", None), at("A-2", "10001", "---"), at("A-3", None, "...")]
    outcome = publish(catalog, write_drop(tmp_path / "drop", locations=(*LOCATIONS, *NEW_YORK), projects=rows))
    assert finding(outcome, "unplaced-project").count == 1
    assert await ids(catalog, city="Manhattan") == ["A-1"]
    assert await ids(catalog, city="New York") == ["A-2"]


async def test_a_city_that_repeats_its_state_is_printed_and_found_without(catalog: Catalog, tmp_path: Path) -> None:
    rows = [at("A-1", "10001", "Manhattan, NY"), at("A-2", None, "Manhattan")]
    publish(catalog, write_drop(tmp_path / "drop", locations=(*LOCATIONS, *NEW_YORK), projects=rows))
    body = await asked(catalog, match(catalog, None, "manhattan"))
    assert [one["location"]["city"] for one in body["development_projects"]] == ["Manhattan, NY"] * 2


def test_a_zip_code_without_a_location_lies_in_a_city_that_a_project_names(catalog: Catalog, tmp_path: Path) -> None:
    """A city and its state, never those of two projects."""
    rows = [at("A-1", "99998", "Zed", "AK"), at("A-2", "99998", "Abc", "WY")]
    publish(catalog, write_drop(tmp_path / "drop", projects=rows))
    assert keys(catalog).resolve("99998", "Dickinson", "AL") == OtherCity("99998", "Abc, WY")
    assert isinstance(keys(catalog).resolve(None, "Abc", "AK"), UnknownCity)


def test_what_has_no_project_matches_nothing_and_hints_at_what_has(current: Catalog) -> None:
    assert keys(current).resolve("36436", None, None) == UnknownZip("36436")
    found = keys(current).resolve(None, "Manhatten", "NY")
    assert isinstance(found, UnknownCity)
    assert found.similar == ("Manhattan, NY",)


def many(number: int) -> Rows:
    return [at(f"P-{index:05}", "10001", "Manhattan") for index in range(number)]


@pytest.fixture(scope="module")
def with_a_thousand(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("thousand")
    catalog = Catalog(folder / "data")
    publish(catalog, write_drop(folder / "drop", locations=(*LOCATIONS, *NEW_YORK), projects=many(1000)))
    return catalog


@pytest.mark.parametrize("limit", [1000, 999, 500, 300])
async def test_pages_hold_every_project_once_in_order(with_a_thousand: Catalog, limit: int) -> None:
    """Also where a page ends exactly at the end."""
    catalog, total = with_a_thousand, 1000
    found = match(catalog, None, "Manhattan")
    pages: list[Sequence[str]] = []
    page = Page(limit)
    while True:
        body = await asked(catalog, found, page)
        pages.append([one["project_id"] for one in body["development_projects"]])
        assert (body["total_results"], body["total_matching"]) == (len(pages[-1]), total)
        if body["next_cursor"] is None:
            break
        page = Page(limit, CURSORS.decode(projects.cursor_scope(found.query), body["next_cursor"]))
    assert [one for shown in pages for one in shown] == [row["project_id"] for row in many(total)]
    assert [len(shown) for shown in pages[:-1]] == [limit] * (len(pages) - 1)
    assert len(pages) == -(-total // limit)


async def test_a_page_after_the_last_project_is_empty(current: Catalog) -> None:
    """As it can be when a release in between took the rest away."""
    body = await asked(current, match(current, None, "Manhattan"), Page(5, "M-9"))
    assert body == {"total_results": 0, "total_matching": 3, "next_cursor": None, "development_projects": []}


async def test_ids_are_in_the_order_of_their_characters(catalog: Catalog, tmp_path: Path) -> None:
    names = ["a-1", "B-1", "B-10", "B-2", "É-1", "\U0001f3e0", "~"]
    publish(catalog, write_drop(tmp_path / "drop", projects=[project(name) for name in reversed(names)]))
    assert await ids(catalog, "36436") == sorted(names)


def test_a_project_without_a_place_is_left_out_and_reported(catalog: Catalog, tmp_path: Path) -> None:
    rows = [
        project("A-1"),
        at("A-2", None, "Dickinson", None),
        at("A-3", "99999", None, "AL"),
        at("A-4", "36436", None),
    ]
    outcome = publish(catalog, write_drop(tmp_path / "drop", projects=rows))
    found = finding(outcome, "unplaced-project")
    assert (found.severity, found.count) == ("warning", 2)
    assert keys(catalog).records(("36436",)) == 2
    assert keys(catalog).resolve("99999", None, None) == UnknownZip("99999")


def test_unknown_words_of_a_status_are_reported(catalog: Catalog, tmp_path: Path) -> None:
    """Each with how often it occurs; a status that is empty is unknown, and no word."""
    words = ["Completed", "Plan check", "Plan check", "It's on!", None]
    rows = [project(f"A-{index}", status=word) for index, word in enumerate(words)]
    found = finding(publish(catalog, write_drop(tmp_path / "drop", projects=rows)), "unmapped-status")
    assert (found.severity, found.count, found.column) == ("warning", 3, "status")
    assert found.samples == ("Plan check (2 rows)", "It's on! (1 rows)")


async def test_projects_stay_when_a_drop_does_not_bring_them(current: Catalog, tmp_path: Path) -> None:
    """Their places follow the new locations."""
    renamed = [row if row["zip_code"] != "10001" else {**row, "city_name": "Gotham"} for row in NEW_YORK]
    drop = write_drop(tmp_path / "newer", locations=(*LOCATIONS, *renamed))
    assert publish(current, drop).result == "published"
    assert current.current().areas == ("forecast", "projects")
    assert await ids(current, city="Gotham") == ["M-1"]
    assert await ids(current, city="Manhattan") == ["M-1", "M-2", "M-3"]


def test_a_release_without_projects_lacks_the_area(catalog: Catalog, first: Manifest) -> None:
    manifest = catalog.current()
    assert manifest.areas == ("forecast",)
    assert not [name for name in manifest.files if name.startswith("projects")]


def test_a_drop_of_projects_alone_publishes_on_top_of_a_release(
    catalog: Catalog, tmp_path: Path, first: Manifest
) -> None:
    write_table(tmp_path / "only" / "projects.parquet", [project("A-1")])
    assert publish(catalog, tmp_path / "only").result == "published"
    assert catalog.current().areas == ("forecast", "projects")


async def test_the_first_page_of_every_single_place_is_worth_warming(current: Catalog) -> None:
    """Byte by byte what a request would be answered."""
    folder = current.folder(current.current().id)
    warmed = dict(projects.projects_answers_to_warm(folder, CURSORS))
    engine = engine_of(current, projects.PROJECTS_AREA)
    expected = {
        CURSORS.name(one.query, Page(DEFAULT_PAGE_SIZE)): await projects.look_up_projects(
            engine, keys(current), one, Page(), CURSORS
        )
        for one in keys(current).matches()
        if len(one.keys) == 1
    }
    engine.close()
    assert warmed == expected
    assert CURSORS.name("city:NY:newyork", Page()) in warmed
