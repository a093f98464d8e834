"""`forecast cache explain`: what a partner would be answered, from where and why, and nothing changed by asking."""

from urllib.parse import quote_plus

import pytest

from config.settings import Settings
from tests.service.conftest import Cli
from tests.support.served import FORECAST, PEPPER, Served
from tests.support.waiting import until
from tests.support.wire import Answer
from warehouse.releases.catalog import Catalog

PROJECTS = "/v1/development-projects"


@pytest.fixture
def explained(cli: Cli, settings: Settings) -> Cli:
    """Commands with the settings of the session's worker."""
    cli.data = settings.data_path
    cli.settings = {"keys_url": settings.keys_url, "cache_url": settings.cache_url}
    return cli


@pytest.fixture
def uncached(explained: Cli, settings: Settings) -> Cli:
    """The same with an empty shared cache."""
    explained.settings["cache_url"] = f"{settings.cache_url}?db=1"
    return explained


def headers_of(answer: Answer) -> dict[str, str]:
    """Headers that describe the content of an answer."""
    names = ("etag", "cache-control", "vary", "x-data-release")
    return {name: value for name, value in answer.headers if name in names}


@pytest.mark.parametrize(
    ("query", "status", "canonical"),
    [
        ({"zip_code": "36436"}, 200, "zip:36436"),
        ({"zip_code": "36436-1234", "colour": "red"}, 200, "zip:36436"),
        ({"city_name": "St. Louis", "state_code": "mo"}, 200, "city:MO:stlouis"),
        ({"city_name": "SPRINGFIELD", "state_code": "IL"}, 200, "city:IL:springfield"),
        ({"city_name": "Springfeld", "state_code": "IL"}, 404, None),
        ({"zip_code": "99999"}, 404, None),
        ({"zip_code": "1"}, 400, None),
        ({}, 400, None),
    ],
    ids=str,
)
def test_it_says_what_a_partner_is_answered(
    explained: Cli, worker: Served, query: dict[str, str], status: int, canonical: str | None
) -> None:
    query_string = "&".join(f"{name}={quote_plus(value)}" for name, value in query.items())
    answer = worker.ask(f"{FORECAST}?{query_string}")

    def is_stored() -> bool:
        if explained("cache", "explain", query_string, "--json").json["shared"] == "hit":
            return True
        for _ in worker.app.near.purge():  # it was not stored in time when it was asked for first, and is near since
            pass
        worker.ask(f"{FORECAST}?{query_string}")
        return False

    if canonical is not None:
        until(is_stored)
    said = explained("cache", "explain", query_string, "--json").json
    assert (answer.status, said["status"], said["query"]) == (status, status, canonical)
    assert headers_of(answer).items() <= said["headers"].items()
    if status == 200:
        assert (said["tier"], said["body_bytes"]) == ("shared", len(answer.body))
    else:
        assert (said["outcome"], said["detail"]) == (answer.json()["code"], answer.json()["detail"])


def test_a_page_of_a_region_is_explained_by_its_path(explained: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.keys.pepper.obtain", lambda *_, **__: PEPPER)
    explained.settings["keys_pepper"] = PEPPER.decode()
    target = f"{FORECAST}/by-county?county_fips_code=17167&limit=2"
    said = explained("cache", "explain", target, "--json").json
    assert (said["area"], said["status"], said["entries"]) == ("forecast", 200, ["62701", "62702"])
    assert said["query"].startswith("county:17167\n2\n")


def test_explaining_changes_nothing(uncached: Cli, settings: Settings) -> None:
    for _ in range(2):
        said = uncached("cache", "explain", "zip_code=62705", "--json").json
        assert (said["shared"], said["tier"]) == ("miss", "warehouse")
    release = Catalog(settings.data_path).current().id
    assert said["file"] == str(settings.data_path / "releases" / release / "forecast.parquet")
    assert said["entries"] == ["62705"]
    assert said["cache_key"].startswith(f"c:2:{release}:")
    assert "etag" not in said["headers"]
    assert said["headers"]["cache-status"] == "forecast; fwd=uri-miss; detail=warehouse"


def test_a_person_reads_why(uncached: Cli) -> None:
    done = uncached("cache", "explain", "zip_code=62704")
    assert done.code == 0
    said = dict(line.split(maxsplit=1) for line in done.out.splitlines() if not line.startswith(" "))
    assert said["canonical"].strip() == "zip:62704"
    assert "miss: a look-up stores the answer" in done.out
    assert "the warehouse; both caches store the answer" in done.out


def test_a_query_can_be_copied_from_where_it_was_seen(explained: Cli) -> None:
    query = "zip_code=36436"
    for typed in (f"?{query}", f"{FORECAST}?{query}", f"https://api.example.org{FORECAST}?{query}", f" {query}"):
        assert explained("cache", "explain", typed, "--json").json["query"] == "zip:36436"


def test_an_area_that_cannot_be_is_wrong_usage(cli: Cli) -> None:
    for arguments, says in (
        (("/v1/nothing?zip_code=1",), "/v1/nothing is not a data area"),
        ((f"{PROJECTS}?zip_code=1", "--area", "forecast"), "is the area projects"),
        (("zip_code=1", "--area", "weather"), "'weather' is not one of"),
        ((f"{FORECAST}/batch?zip_code=1",), f"explain '{FORECAST}?zip_code=...'"),
    ):
        done = cli("cache", "explain", *arguments)
        assert done.code == 2
        assert says in done.err


def test_an_area_that_the_release_lacks_is_not_found(explained: Cli) -> None:
    said = explained("cache", "explain", f"{PROJECTS}?zip_code=36436", "--json").json
    assert (said["status"], said["outcome"], said["tier"]) == (404, "not_found", None)


def test_without_a_release_there_is_nothing_to_explain(cli: Cli) -> None:
    done = cli("cache", "explain", "zip_code=36436")
    assert done.code == 1
    assert "nothing has been published yet" in done.error()


def test_an_unreachable_cache_is_part_of_the_answer(cli: Cli, release: str) -> None:
    done = cli("cache", "explain", "zip_code=36436", "--json")
    assert done.code == 0
    said = done.json
    assert (said["release"], said["shared"], said["tier"]) == (release, "away", "warehouse")
    assert said["problem"].startswith("no embedded cache answers on ")
    assert said["headers"]["cache-status"] == "forecast; fwd=bypass; detail=warehouse"
