"""GET /v1/development-projects: pages, cursors, what is wrong with a query, and a release without projects."""

import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from config.settings import Settings
from service.http.projects import PATH
from service.request.errors import CODES
from tests.support.drops import Rows, project, write_drop
from tests.support.publishing import publish
from tests.support.served import FORECAST, Served, served
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog

SAINT_LOUIS = [
    project(f"STL-{number:03}", zip_code=None, city_name="Saint Louis", state_code="MO") for number in range(25)
]
OTHER = project("A-2", status="BP Filed", status_date=None, project_type="Mixed Use")
MANY = [project(f"LA-{number:03}", zip_code="90001", city_name="Los Angeles", state_code="CA") for number in range(101)]
PROJECTS: Rows = [project("A-1"), OTHER, *SAINT_LOUIS, *MANY]


def published(data: Path, drop: Path, options: PublishOptions = PublishOptions()) -> str:  # noqa: B008 - frozen
    outcome = publish(Catalog(data), [str(drop)], options)
    assert outcome.result == "published", outcome.report
    assert outcome.manifest is not None
    return outcome.manifest.id


@pytest.fixture(scope="module")
def projects(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A worker whose release has projects, for reading only."""
    folder = tmp_path_factory.mktemp("projects")
    published(folder / "data", write_drop(folder / "drop", projects=PROJECTS))
    with served(msgspec.structs.replace(settings, data_dir=str(folder / "data"))) as running:
        yield running


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the same release, which tests replace. The last test withdraws the projects."""
    folder = tmp_path_factory.mktemp("changing")
    published(folder / "data", write_drop(folder / "drop", projects=PROJECTS))
    return folder / "data"


@pytest.fixture(scope="module")
def changing(settings: Settings, data: Path) -> Iterator[Served]:
    with served(msgspec.structs.replace(settings, data_dir=str(data))) as running:
        yield running


def ask(worker: Served, **parameters: str | int) -> tuple[int, dict[str, object]]:
    answer = worker.ask(f"{PATH}?{urllib.parse.urlencode(parameters)}")
    assert answer.header("content-type") == "application/json"
    body: dict[str, object] = answer.json()
    return answer.status, body


def ids(body: dict[str, object]) -> list[str]:
    found = body["development_projects"]
    assert isinstance(found, list)
    return [one["project_id"] for one in found]


def test_a_query_answers_in_the_contract_s_form(projects: Served) -> None:
    answer = projects.ask(f"{PATH}?zip_code=36436")
    body = answer.json()
    assert list(body) == ["total_results", "total_matching", "next_cursor", "development_projects"]
    assert list(body["development_projects"][0]) == [
        *("project_id", "project_name", "project_type", "status", "status_source", "status_date", "start_date"),
        *("completion_date", "tot_units", "affordable_units", "street_address", "location"),
    ]
    other = projects.ask(f"{FORECAST}?zip_code=36436")
    assert {name for name, _ in answer.headers} == {name for name, _ in other.headers}
    again = projects.ask(f"{PATH}?zip_code=36436", if_none_match=answer.header("etag") or "")
    assert (again.status, again.body) == (304, b"")


def test_an_unknown_parameter_is_an_error_that_names_the_nearest(projects: Served) -> None:
    """A page number would repeat the first page for ever."""
    for query, says in (
        ("zip_code=36436&page=2", "next_cursor"),
        ("zip=36436", "Did you mean zip_code=36436?"),
    ):
        answer = projects.ask(f"{PATH}?{query}")
        assert (answer.status, answer.json()["code"]) == (400, "unknown_parameter")
        assert says in answer.json()["detail"]


def test_the_second_answer_comes_from_the_cache(projects: Served) -> None:
    target = f"{PATH}?city_name=St.+Louis&state_code=mo&limit=10"
    first = projects.ask(target)
    second = projects.ask(f"{PATH}?limit=010&state_code=MO&city_name=SAINT%20LOUIS")
    assert "fwd=uri-miss" in (first.header("cache-status") or "")
    assert "hit" in (second.header("cache-status") or "")
    assert first.body == second.body
    assert "fwd=uri-miss" in (projects.ask(target.replace("10", "11")).header("cache-status") or "")


@pytest.mark.parametrize("limit", [1, 7, 24, 25, 26, 1000])
@pytest.mark.parametrize("filters", [{}, {"status": "completed", "project_type": "housing"}], ids=["all", "filtered"])
def test_walking_the_pages_finds_each_project_once(projects: Served, limit: int, filters: dict[str, str]) -> None:
    query: dict[str, str | int] = {"city_name": "Saint Louis", "state_code": "MO", "limit": limit, **filters}
    found: list[str] = []
    while True:
        status, body = ask(projects, **query)
        assert (status, body["total_matching"]) == (200, 25)
        found += ids(body)
        if body["next_cursor"] is None:
            break
        query["cursor"] = str(body["next_cursor"])
    assert found == [row["project_id"] for row in SAINT_LOUIS]


def test_without_a_limit_a_page_has_a_hundred(projects: Served) -> None:
    _, body = ask(projects, zip_code="90001")
    assert (body["total_results"], body["total_matching"]) == (100, 101)


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", "1.5", "99999999999999999999", "٣", "1 0"])
def test_a_limit_that_is_none_is_named(projects: Served, limit: str) -> None:
    status, body = ask(projects, zip_code="36436", limit=limit)
    assert (status, body["code"], body["parameter"]) == (400, "invalid_parameter", "limit")
    assert body["detail"] == "limit is not a whole number from 1 to 1000. Without it, a page has 100."


def test_an_empty_limit_or_cursor_is_absent(projects: Served) -> None:
    assert ask(projects, zip_code="36436", limit="", cursor="")[0] == 200


def cursor_of(projects: Served, **query: str | int) -> str:
    _, body = ask(projects, limit=1, **query)
    return str(body["next_cursor"])


def test_a_damaged_cursor_is_a_400_that_says_what_to_do(projects: Served) -> None:
    cursor = cursor_of(projects, zip_code="36436")
    for damaged in (cursor[:-1], "é" * 3, cursor * 30):
        status, body = ask(projects, zip_code="36436", cursor=damaged)
        assert (status, body["code"], body["parameter"]) == (400, "invalid_cursor", "cursor")
        assert body["detail"] == CODES["invalid_cursor"][1]


def test_a_cursor_of_another_query_is_a_400(projects: Served) -> None:
    cursor = cursor_of(projects, city_name="Saint Louis", state_code="MO")
    assert ask(projects, zip_code="36436", cursor=cursor)[1]["code"] == "invalid_cursor"
    status, body = ask(projects, city_name="st louis", state_code="mo", cursor=cursor, limit=3)
    assert (status, ids(body)) == (200, ["STL-001", "STL-002", "STL-003"])


@pytest.mark.parametrize(
    ("query", "code", "parameter"),
    [
        ("", "missing_parameter", None),
        ("limit=5", "missing_parameter", None),
        ("zip_code=36436&limit=1&limit=1", "duplicate_parameter", "limit"),
        ("zip_code=36436&cursor=a&cursor=b", "duplicate_parameter", "cursor"),
    ],
)
def test_queries_follow_the_rules_of_forecasts(projects: Served, query: str, code: str, parameter: str | None) -> None:
    body = projects.ask(f"{PATH}?{query}").json()
    assert (body["code"], body.get("parameter")) == (code, parameter)


def test_what_has_no_project_is_a_404_that_says_so(projects: Served) -> None:
    answer = projects.ask(f"{PATH}?zip_code=90028")
    assert (answer.status, answer.json()["code"]) == (404, "no_matching_records")
    assert answer.json()["detail"] == (
        "There are no development projects in ZIP code 90028. Only some cities have them: GET /v1/ lists which."
    )
    assert answer.header("cache-control") == "private, max-age=60"
    elsewhere = ask(projects, city_name="Holtsville", state_code="NY")[1]["detail"]
    assert str(elsewhere).startswith("There are no development projects in Holtsville, NY.")


DICKINSON = {"zip_code": "36436"}
MISSOURI = {"city_name": "Saint Louis", "state_code": "MO"}


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"status": "completed"}, ["A-1"]),
        ({"status": "Proposed"}, ["A-2"]),
        ({"project_type": "mixed use"}, ["A-2"]),
        ({"project_type": "MIXED USE", "status": "completed"}, []),
        ({"status_date_from": "2025-03-04"}, ["A-1"]),
        ({"status_date_from": "2025-03-05"}, []),
        ({"status_date_to": "2025-03-04"}, ["A-1"]),
        ({"status_date_to": "2025-03-03"}, []),
        ({"start_date_from": "2024-01-02", "start_date_to": "2024-01-02"}, ["A-1", "A-2"]),
        ({"completion_date_from": "2025-01-01", "status": "proposed"}, ["A-2"]),
        ({"completion_date_to": "2025-03-03"}, []),
        ({"status": "", "project_type": " "}, ["A-1", "A-2"]),
    ],
    ids=str,
)
def test_filters_leave_those_that_pass_all_of_them(projects: Served, filters: dict[str, str], found: list[str]) -> None:
    status, body = ask(projects, **DICKINSON, **filters)
    assert (status, ids(body), body["total_matching"]) == (200, found, len(found))
    assert body["next_cursor"] is None


def test_a_cursor_is_bound_to_its_filters(projects: Served) -> None:
    _, body = ask(projects, **MISSOURI, status="completed", project_type="Housing", limit=5)
    cursor = str(body["next_cursor"])
    assert ask(projects, project_type="HOUSING", status="Completed", **MISSOURI, cursor=cursor)[0] == 200
    for others in ({"status": "completed"}, {}, {"status": "completed", "project_type": "mixed use"}):
        status, problem = ask(projects, **MISSOURI, **others, cursor=cursor)
        assert (status, problem["code"]) == (400, "invalid_cursor")


def test_a_filtered_answer_is_cached_and_another_one(projects: Served) -> None:
    plain = projects.ask(f"{PATH}?zip_code=36436")
    projects.ask(f"{PATH}?zip_code=36436&status=permitted")
    again = projects.ask(f"{PATH}?status=PERMITTED&zip_code=36436")
    assert (again.header("cache-status") or "").startswith("forecast; hit")
    assert again.header("etag") != plain.header("etag")


@pytest.mark.parametrize(
    ("filters", "parameter", "said"),
    [
        ({"status": "complete"}, "status", "Did you mean completed?"),
        ({"status": "under constuction"}, "status", "Did you mean under_construction?"),
        ({"status": "x"}, "status", "approved, completed"),
        ({"project_type": "Huosing"}, "project_type", "No project has the project_type Huosing. Did you mean housing?"),
        ({"project_type": "mixed"}, "project_type", "Did you mean mixed use?"),
        ({"project_type": "castle"}, "project_type", "Give one of housing, mixed use."),
        ({"status_date_from": "2025-13-01"}, "status_date_from", "like 2026-11-01"),
        ({"start_date_to": "01/02/2025"}, "start_date_to", "Did you mean 2025-01-02 or 2025-02-01?"),
        ({"start_date_from": "2025-02-01", "start_date_to": "2025-01-31"}, "start_date_from", "Exchange them"),
        ({"status_date": "2025-01-01"}, "status_date", "status_date_"),
    ],
    ids=str,
)
def test_a_filter_that_cannot_be_is_named(projects: Served, filters: dict[str, str], parameter: str, said: str) -> None:
    status, problem = ask(projects, **DICKINSON, **filters)
    assert (status, problem["parameter"]) == (400, parameter)
    assert said in str(problem["detail"])


def test_a_release_without_projects_does_not_have_the_path(worker: Served) -> None:
    for method in ("GET", "HEAD", "POST"):
        answer = worker.ask(f"{PATH}?zip_code=36436", method)
        assert answer.status == 404
    assert worker.ask(PATH).json()["code"] == "not_found"
    assert worker.ask(PATH, key=None).status == 401
    assert [area["name"] for area in worker.ask("/v1/").json()["areas"]] == ["forecast"]


def test_a_walk_goes_on_across_a_switch(changing: Served, data: Path, tmp_path: Path) -> None:
    _, first = ask(changing, city_name="Saint Louis", state_code="MO", limit=10)
    rows = [
        *PROJECTS,
        *(project(name, zip_code=None, city_name="Saint Louis", state_code="MO") for name in ("STL-0001", "STL-0201")),
    ]
    changing.wait_for(published(data, write_drop(tmp_path / "newer", projects=rows)))
    _, rest = ask(changing, city_name="Saint Louis", state_code="MO", cursor=str(first["next_cursor"]))
    expected = [f"STL-{number:03}" for number in range(10, 25)]
    expected.insert(expected.index("STL-020") + 1, "STL-0201")
    assert ids(rest) == expected
    assert rest["total_matching"] == 27


def test_the_path_comes_and_goes_with_releases(changing: Served, data: Path, tmp_path: Path) -> None:
    assert [area["name"] for area in changing.ask("/v1/").json()["areas"]] == ["forecast", "projects"]
    drop = write_drop(tmp_path / "newer")
    options = PublishOptions(withdrawn=("development_projects",))
    changing.wait_for(published(data, drop, options))
    assert changing.ask(f"{PATH}?zip_code=36436").json()["code"] == "not_found"
