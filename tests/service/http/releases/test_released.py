"""Releases as partners ask for them over HTTP: the list, what changed, whole areas as files."""

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from service.base.terms import Terms
from service.http.releases.controller import find_route
from tests.support.caller import Caller
from tests.support.served import Served
from tests.support.waiting import eventually
from warehouse.releases.catalog import Catalog, Manifest

FILE = "/v1/releases/current/forecast.parquet"
CHANGES = "/v1/releases/current/changes"


@pytest.fixture(scope="module")
def current(published: Path) -> Manifest:
    return Catalog(published).current()


@pytest.fixture(scope="module")
def content(published: Path, current: Manifest) -> bytes:
    return (published / "releases" / current.id / "bulk" / "forecast.parquet").read_bytes()


def test_the_list_names_releases_with_their_areas_and_files(worker: Served, current: Manifest, content: bytes) -> None:
    answer = worker.ask("/v1/releases")
    (listed,) = answer.json()["releases"]
    assert (listed["id"], listed["current"], listed["illustrative"]) == (current.id, True, False)
    (area,) = listed["areas"]
    assert (area["name"], area["rows"], area["changed"]) == ("forecast", 17, 17)
    file = area["files"][0]
    assert file == {"path": f"/v1/releases/{current.id}/forecast.parquet", "bytes": len(content)}
    assert worker.ask(file["path"]).body == content
    assert worker.ask("/v1/releases/").json() == answer.json()
    assert worker.ask("/v1/").json()["releases"] == "/v1/releases"


@pytest.mark.parametrize("target", ["/v1/releases", "/v1/releases.atom", f"{CHANGES}?area=forecast", FILE])
def test_what_is_known_already_is_not_sent_again(worker: Served, target: str, current: Manifest) -> None:
    answer = worker.ask(target)
    etag = answer.header("etag")
    assert answer.status == 200
    assert etag is not None
    again = worker.ask(target, If_None_Match=etag)
    assert (again.status, again.header("etag"), again.header("x-data-release")) == (304, etag, current.id)
    head = worker.ask(target, "HEAD")
    assert (head.status, head.header("content-length")) == (200, str(len(answer.body)))
    assert worker.ask(target, "POST").header("allow") == "GET, HEAD"
    assert worker.ask(target, key=None).status == 401


def test_a_file_is_a_table_that_can_be_kept(worker: Served, current: Manifest, content: bytes) -> None:
    answer = worker.ask(FILE)
    assert answer.body == content
    assert answer.header("content-type") == "application/vnd.apache.parquet"
    assert answer.header("content-disposition") == f'attachment; filename="{current.id}-forecast.parquet"'
    assert pq.read_table(io.BytesIO(answer.body)).num_rows == 17
    packed = worker.ask(FILE.replace("parquet", "csv.gz"), Accept_Encoding="gzip")
    assert (packed.header("content-type"), packed.header("content-encoding")) == ("application/gzip", None)


def test_a_part_of_a_file_is_sent_if_the_file_is_still_the_same(worker: Served, content: bytes) -> None:
    etag = worker.ask(FILE, "HEAD").header("etag") or ""
    part = worker.ask(FILE, Range="bytes=4-9")
    assert (part.status, part.body, part.header("content-length")) == (206, content[4:10], "6")
    assert part.header("content-range") == f"bytes 4-9/{len(content)}"
    assert worker.ask(FILE, Range="bytes=4-9", If_Range=etag).status == 206
    assert worker.ask(FILE, Range="bytes=4-9", If_Range='"of an older release"').body == content
    assert worker.ask(FILE, "HEAD", Range="bytes=4-9").status == 200
    assert worker.ask(FILE, Range="bytes=4-9", If_None_Match=etag).status == 304
    behind = worker.ask(FILE, Range=f"bytes={len(content)}-")
    assert (behind.status, behind.json()["code"]) == (416, "range_not_satisfiable")
    assert behind.header("content-range") == f"bytes */{len(content)}"


def test_changes_come_in_pages(worker: Served, current: Manifest) -> None:
    found: list[str] = []
    cursor = ""
    while True:
        page = worker.ask(f"{CHANGES}?area=forecast&limit=5{cursor}").json()
        assert (page["release"], page["previous"], page["total_matching"]) == (current.id, None, 17)
        assert page["total_results"] == len(page["zip_codes"]) <= 5
        found += page["zip_codes"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert (found, len(found)) == (sorted(set(found)), 17)


@pytest.mark.parametrize(
    ("query", "code", "parameter"),
    [
        ("", "missing_parameter", "area"),
        ("area=forcast", "invalid_parameter", "area"),
        ("area=forecast&area=forecast", "duplicate_parameter", "area"),
        ("area=forecast&limit=1001", "invalid_parameter", "limit"),
        ("area=forecast&curser=a", "unknown_parameter", "curser"),
        ("area=forecast&cursor=NDI", "invalid_cursor", "cursor"),
        ("area=projects", "not_found", None),
    ],
)
def test_a_wrong_query_for_changes_gets_an_error(worker: Served, query: str, code: str, parameter: str | None) -> None:
    problem = worker.ask(f"{CHANGES}?{query}").json()
    assert (problem["code"], problem.get("parameter")) == (code, parameter)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/releases/nosuch/forecast.parquet",
        "/v1/releases/nosuch/changes?area=forecast",
        "/v1/releases/..%2Fcurrent/forecast.parquet",
        "/v1/releases/current/forecast.keys",
        "/v1/releases/current",
        "/v1/releases//forecast.parquet",
    ],
)
def test_there_is_nothing_else(worker: Served, path: str) -> None:
    assert worker.ask(path).json()["code"] == "not_found"


def test_a_file_needs_the_area_bulk_and_its_own(worker: Served, settings: Any) -> None:
    for areas, file, changes in (
        (("bulk", "forecast"), 200, 200),
        (("forecast",), 403, 200),
        (("bulk", "projects"), 403, 403),
    ):
        caller = Caller(worker, settings, Terms(areas))
        assert caller.ask(FILE).status == file
        assert caller.ask(f"{CHANGES}?area=forecast").status == changes
        assert caller.ask("/v1/releases").status == 200


async def test_requests_count_in_their_area(worker: Served, settings: Any) -> None:
    """A part and a file count alike; the list of releases does not count."""
    caller = Caller(worker, settings, Terms(("bulk", "forecast")))
    for target, more in (
        (FILE, {}),
        (FILE, {"Range": "bytes=0-1"}),
        (f"{CHANGES}?area=forecast", {}),
        ("/v1/releases", {}),
    ):
        assert caller.ask(target, **more).status in (200, 206)

    def counted() -> list[tuple[str, int]]:
        return [(day["area"], day["answered"]) for day in caller.ask("/v1/usage").json()["days"]]

    await eventually(lambda: counted() == [("bulk", 2), ("forecast", 1)])


@pytest.mark.parametrize(
    ("path", "query", "area"),
    [
        ("/v1/releases/x/forecast.parquet", b"", "bulk"),
        ("/v1/releases/x/projects.csv.gz", b"area=forecast", "bulk"),
        ("/v1/releases/x/changes", b"area=projects&limit=5", "projects"),
        ("/v1/releases/x/changes", b"area=nosuch", "releases"),
        ("/v1/releases/x/nosuch", b"", None),
        ("/v1/releases/x/y/changes", b"", None),
        ("/v2/v1/releases/x/changes", b"", None),
    ],
)
def test_a_path_has_its_area(path: str, query: bytes, area: str | None) -> None:
    route = find_route(path, query)
    assert (route.area if route is not None else None) == area
