"""Entitlement, quota and rate before an answer; usage after it. Behind the real server, with a real key store."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from config.settings import Settings
from service.base.terms import Quota, Rate, Terms
from service.http.projects import PATH as PROJECTS
from tests.support.caller import Caller
from tests.support.drops import project, write_drop
from tests.support.problems import problem
from tests.support.publishing import publish
from tests.support.served import FORECAST, Served, served
from warehouse.publishing.outcome import PublishOptions
from warehouse.releases.catalog import Catalog

GOOD = f"{FORECAST}?zip_code=36436"
PROJECT = f"{PROJECTS}?zip_code=36436"
MANY = Rate(1000, 1, 1000)
RARE = Rate(1, 3600, 2)


@pytest.fixture(scope="module")
def metered(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A worker whose release has both areas."""
    folder = tmp_path_factory.mktemp("metered")
    drop = write_drop(folder / "drop", projects=[project("A-1")])
    assert publish(Catalog(folder / "data"), [str(drop)], PublishOptions()).result == "published"
    with served(msgspec.structs.replace(settings, data_dir=str(folder / "data"))) as running:
        yield running


# --- entitlement -------------------------------------------------------------------------------------------------


def test_a_key_opens_the_areas_of_its_terms_and_no_other(metered: Served, settings: Settings) -> None:
    """Index, description and usage belong to no area."""
    caller = Caller(metered, settings, Terms(areas=("forecast",)))
    assert caller.ask(GOOD).status == 200
    refused = caller.ask(PROJECT)
    assert problem(refused) == (403, "not_entitled")
    assert "does not include the area projects" in refused.json()["detail"]
    for target in ("/v1/", "/v1/openapi.json", "/v1/usage"):
        assert caller.ask(target).status == 200


def test_entitlement_comes_after_the_method_and_before_the_parameters(metered: Served, settings: Settings) -> None:
    caller = Caller(metered, settings, Terms(areas=("forecast",)))
    assert problem(caller.ask(PROJECT, "POST")) == (405, "method_not_allowed")
    assert problem(caller.ask(PROJECTS)) == (403, "not_entitled")


def test_what_is_cached_is_not_shown_to_who_is_not_entitled(metered: Served, settings: Settings) -> None:
    """Nor confirmed with a 304."""
    owner = Caller(metered, settings, Terms())
    answer = owner.ask(PROJECT)
    assert answer.status == 200
    other = Caller(metered, settings, Terms(areas=("forecast",)))
    assert other.ask(PROJECT, if_none_match=answer.header("etag") or "").status == 403


def test_a_key_without_terms_opens_everything_and_is_told_of_no_limit(metered: Served, settings: Settings) -> None:
    caller = Caller(metered, settings, Terms())
    for target in (GOOD, PROJECT):
        answer = caller.ask(target)
        assert answer.status == 200
        assert answer.header("ratelimit") is answer.header("ratelimit-policy") is None


# --- rates -------------------------------------------------------------------------------------------------------


def test_beyond_its_rate_a_key_is_told_when_to_come_back(metered: Served, settings: Settings) -> None:
    """The burst passes, the next does not; the index goes on."""
    caller = Caller(metered, settings, Terms(rate=RARE))
    assert [caller.ask().status for _ in range(3)] == [200, 200, 429]
    answer = caller.ask()
    assert problem(answer) == (429, "rate_limited")
    wait = int(answer.header("retry-after") or 0)
    assert 3000 < wait <= 3600
    assert answer.header("ratelimit-policy") == '"rate";q=1;w=3600'
    assert answer.header("ratelimit") == f'"rate";r=0;t={wait}'
    assert answer.header("cache-control") == "no-store"
    assert caller.ask("/v1/").status == 200


def test_every_answer_to_a_limited_key_says_what_is_left(metered: Served, settings: Settings) -> None:
    """200, 304, 404 and 400 alike."""
    caller = Caller(metered, settings, Terms(rate=MANY))
    first = caller.ask()
    targets = (f"{FORECAST}?zip_code=99999", f"{FORECAST}?zip_code=x")
    others = [caller.ask(if_none_match=first.header("etag") or ""), *(caller.ask(target) for target in targets)]
    assert [answer.status for answer in (first, *others)] == [200, 304, 404, 400]
    for answer in (first, *others):
        assert answer.header("ratelimit-policy") == '"rate";q=1000;w=1'
        assert (answer.header("ratelimit") or "").startswith('"rate";r=')


# --- quotas ------------------------------------------------------------------------------------------------------


def test_a_quota_ends_with_its_last_billable_answer(metered: Served, settings: Settings) -> None:
    """200 and 304 use it up, 404 and 400 do not."""
    caller = Caller(metered, settings, Terms(quota=Quota(3, "month")))
    first = caller.ask()
    for target in (f"{FORECAST}?zip_code=99999", f"{FORECAST}?zip_code=x"):
        caller.ask(target)
    assert caller.ask(if_none_match=first.header("etag") or "").status == 304
    assert caller.ask(PROJECT).status == 200
    answer = caller.ask()
    assert problem(answer) == (429, "quota_exhausted")
    assert int(answer.header("retry-after") or 0) >= 1
    assert (answer.header("ratelimit") or "").startswith('"quota";r=0;t=')
    assert caller.counted() == {"answered": 1, "not_modified": 1, "not_found": 1, "rejected": 2}
    assert caller.usage()["limits"] == {"rate": None, "quota": "3/month", "remaining": 0}


def test_what_is_left_of_a_quota_is_told_without_this_answer(metered: Served, settings: Settings) -> None:
    """The first of 40 leaves 39; what is not billed takes nothing off."""
    caller = Caller(metered, settings, Terms(quota=Quota(40, "day")))
    answers = [caller.ask(target) for target in (GOOD, GOOD, f"{FORECAST}?zip_code=99999", f"{FORECAST}?zip_code=x")]
    assert [answer.status for answer in answers] == [200, 200, 404, 400]
    left = [(answer.header("ratelimit") or "").split(";")[1] for answer in answers]
    assert left == ["r=39", "r=38", "r=38", "r=38"]


def test_a_quota_that_is_nearly_used_up_is_told(metered: Served, settings: Settings) -> None:
    """From the answer on that reaches the level that the key has for it."""
    caller = Caller(metered, settings, Terms(quota=Quota(4, "day", warn_at=0.5)))
    warnings = [caller.ask().header("x-quota-warning") for _ in range(4)]
    assert warnings == [None, "2 of 4 used this day", "3 of 4 used this day", "4 of 4 used this day"]


def test_an_answer_that_is_not_billed_warns_of_what_was_used_before(metered: Served, settings: Settings) -> None:
    caller = Caller(metered, settings, Terms(quota=Quota(4, "day", warn_at=0.5)))
    unknown = f"{FORECAST}?zip_code=99999"
    warnings = [caller.ask(target).header("x-quota-warning") for target in (GOOD, unknown, unknown, GOOD, unknown)]
    assert warnings == [None, None, None, "2 of 4 used this day", "2 of 4 used this day"]


def test_what_a_quota_refuses_takes_nothing_from_the_rate(metered: Served, settings: Settings) -> None:
    caller = Caller(metered, settings, Terms(rate=RARE, quota=Quota(1, "day")))
    assert caller.ask().status == 200
    assert [problem(caller.ask())[1] for _ in range(3)] == ["quota_exhausted"] * 3


# --- usage -------------------------------------------------------------------------------------------------------


def test_usage_tells_what_became_of_every_request(metered: Served, settings: Settings) -> None:
    """By area; what is not of an area is not counted, and a wrong key never is."""
    caller = Caller(metered, settings, Terms(areas=("forecast",)))
    first = caller.ask()
    caller.ask(method="HEAD")
    caller.ask(f"{FORECAST}?zip_code=09001")
    caller.ask(if_none_match=first.header("etag") or "")
    caller.ask(f"{FORECAST}?zip_code=99999")
    caller.ask(f"{FORECAST}?zip_code=x")
    caller.ask(GOOD, "POST")
    caller.ask(PROJECT)
    caller.ask("/v1/")
    caller.ask("/nowhere")
    assert caller.counted() == {"answered": 3, "not_modified": 1, "not_found": 1, "rejected": 2}
    assert caller.counted("projects") == {"answered": 0, "not_modified": 0, "not_found": 0, "rejected": 1}


def test_usage_is_of_the_key_that_asks(metered: Served, settings: Settings) -> None:
    one, other = (Caller(metered, settings, Terms()) for _ in range(2))
    one.ask()
    assert one.counted()["answered"] == 1
    assert other.usage()["days"] == []
    assert other.usage()["key_id"] == other.record.key_id


def test_stopping_a_worker_loses_no_count(settings: Settings, published: Path) -> None:
    """What was counted in the last moment is in the store when it has stopped."""
    with served(settings) as worker:
        caller = Caller(worker, settings, Terms())
        for _ in range(5):
            caller.ask()
        key = caller.key
    with served(settings) as worker:
        (day,) = worker.ask("/v1/usage", key=key).json()["days"]
        assert day["answered"] == 5
