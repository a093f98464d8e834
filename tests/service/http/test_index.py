"""GET /v1/: the release, its sources, its areas."""

import re
import weakref
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from config.settings import Settings
from service.base.terms import Quota, Rate, Terms
from service.http.areas import AREAS
from service.http.index import IndexAnswer
from service.keys.record import ApiKey
from service.request.request import Request
from service.request.respond import CachePolicy
from tests.support.served import FORECAST, Served, served, with_keys
from warehouse.following import OpenRelease
from warehouse.releases.catalog import Catalog


@pytest.mark.parametrize("path", ["/v1/", "/v1/openapi.json", "/v1/usage", "/v1/releases", "/v1/releases.atom"])
def test_an_unknown_parameter_is_an_error_also_where_there_is_no_query(worker: Served, path: str) -> None:
    answer = worker.ask(f"{path}?page=2")
    body = answer.json()
    assert (answer.status, body["code"], body["parameter"]) == (400, "unknown_parameter", "page")


def test_the_index_names_release_sources_and_areas(worker: Served, published: Path) -> None:
    answer = worker.ask("/v1/")
    body = answer.json()
    manifest = Catalog(published).current()
    assert (answer.status, answer.header("content-type")) == (200, "application/json")
    assert list(body) == [
        *("version", "release", "attribution", "areas", "releases"),
        *("key", "usage", "openapi", "documentation"),
    ]
    assert body["version"] == "v1"
    assert body["release"]["id"] == manifest.id == answer.header("x-data-release")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", body["release"]["published_at"])
    assert body["attribution"] == ["The tests"]
    assert [area["name"] for area in body["areas"]] == ["forecast"]
    assert body["areas"][0]["query_forms"] == [["zip_code"], ["city_name", "state_code"]]


def test_the_index_has_the_areas_and_the_end_of_the_key(worker: Served, settings: Settings) -> None:
    until = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
    terms = Terms(("forecast",), Rate(5, 1, 5), Quota(40, "day"))
    issued = with_keys(settings.keys_url, settings.data_path, lambda store: store.issue("acme", "", until, terms))
    key, record = worker.run(lambda: issued)
    assert worker.ask("/v1/", key=key).json()["key"] == {
        "key_id": record.key_id,
        "areas": ["forecast"],
        "rate": "5/s",
        "quota": "40/day",
        "expires_at": "2031-02-03T04:05:06Z",
    }
    unlimited = worker.ask("/v1/").json()["key"]
    assert (unlimited["areas"], unlimited["expires_at"]) == ([*(area.name for area in AREAS), "bulk"], None)


def test_the_index_leads_to_everything_else(documented: Served, worker: Served) -> None:
    body = documented.ask("/v1/").json()
    for member in ("releases", "usage", "openapi", "documentation"):
        assert documented.ask(body[member]).status == 200
    assert worker.ask("/v1/").json()["documentation"] is None


def test_areas_that_cover_some_cities_name_them(documented: Served) -> None:
    covered = {area["name"]: area["cities"] for area in documented.ask("/v1/").json()["areas"]}
    assert covered == {"forecast": None, "projects": ["San Francisco, CA"]}


def test_every_area_that_is_listed_can_be_asked(worker: Served) -> None:
    for area in worker.ask("/v1/").json()["areas"]:
        assert worker.ask(area["path"]).json()["code"] == "missing_parameter"


def test_before_the_first_release_only_the_description_answers(settings: Settings, tmp_path: Path) -> None:
    with served(msgspec.structs.replace(settings, data_dir=str(tmp_path / "empty"))) as empty:
        for target in ("/v1/", f"{FORECAST}?zip_code=36436"):
            answer = empty.ask(target)
            assert (answer.status, answer.json()["code"], answer.header("retry-after")) == (503, "unavailable", "1")
        assert empty.ask("/v1/openapi.json").status == 200
        assert empty.ask("/v1/", key="nonsense").status == 401


class _Release:
    """As much of an OpenRelease as the index reads."""

    def __init__(self, like: OpenRelease, release_id: str) -> None:
        self.id = release_id
        self.manifest = msgspec.structs.replace(like.manifest, id=release_id)
        self.keys = like.keys


def test_the_index_of_a_key_stays_until_its_terms_or_the_release_change(worker: Served) -> None:
    like = worker.app.follower.current
    assert like is not None
    follower: Any = SimpleNamespace(current=_Release(like, "first"))
    index = IndexAnswer(follower, CachePolicy(0), guide=False)
    key = ApiKey(key_id="a", partner="acme", digest="", created_at=datetime(2026, 1, 1, tzinfo=UTC))

    def reported(asking: ApiKey) -> tuple[str, list[str]]:
        body = msgspec.json.decode(index(Request(0.0, b"r", sent_query=b"", key=asking)).body)
        return body["release"]["id"], body["key"]["areas"]

    assert reported(key) == reported(key) == ("first", ["forecast", "projects", "bulk"])
    changed = msgspec.structs.replace(key, terms=Terms(areas=("forecast",)))
    assert reported(changed) == ("first", ["forecast"])
    first, follower.current = weakref.ref(follower.current), _Release(like, "second")
    assert first() is None
    assert reported(changed) == ("second", ["forecast"])
