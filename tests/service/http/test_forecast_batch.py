"""GET .../batch: each ZIP code as if asked for alone, from the same entries, counted as one request each."""

import gzip
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote_plus

import pytest

from config.settings import Settings
from service.base.telemetry import ANSWERS, LOOKUPS, QUERY_SECONDS
from service.base.terms import Quota, Rate, Terms
from service.cache.removing import remove_entries
from service.http.forecast_batch import MOST, weigh
from tests.support.caller import Caller
from tests.support.problems import problem
from tests.support.served import FORECAST, Served
from tests.support.wire import Answer
from warehouse.schema.errors import LookupBusy, LookupFailure

BATCH = f"{FORECAST}/batch"
SPRINGFIELD = [str(zip_code) for zip_code in range(62701, 62709)]


def target(*zip_codes: str) -> str:
    return f"{BATCH}?{'&'.join(f'zip_code={quote_plus(one)}' for one in zip_codes)}"


def results(answer: Answer) -> list[dict[str, Any]]:
    assert answer.status == 200
    body = answer.json()
    assert list(body) == ["total_results", "total_found", "results"]
    assert body["total_results"] == len(body["results"])
    assert body["total_found"] == sum(one["status"] == 200 for one in body["results"])
    found: list[dict[str, Any]] = body["results"]
    return found


def test_each_zip_code_is_answered_in_the_order_asked(worker: Served) -> None:
    asked = ["90028", "36436", "09001", "36436"]
    answer = worker.ask(target(*asked))
    found = results(answer)
    assert [one["zip_code"] for one in found] == asked
    for one in found:
        assert list(one) == ["zip_code", "status", "result", "code"]
        alone = worker.forecast(zip_code=one["zip_code"])
        assert (one["status"], one["code"], one["result"]) == (200, None, alone.json()["zip_codes"][0])
        entry = alone.body.removeprefix(b'{"total_results":1,"zip_codes":[').removesuffix(b"]}")
        assert entry in answer.body


@pytest.mark.parametrize(
    ("bad", "status", "code"),
    [
        ("99999", 404, "no_matching_records"),
        ("501", 400, "invalid_parameter"),
        ("", 400, "invalid_parameter"),
        ("36436,90028", 400, "invalid_parameter"),
        ("\u00e9", 400, "invalid_parameter"),
        ("x" * 101, 400, "invalid_parameter"),
    ],
)
def test_a_bad_one_spoils_nothing_else(worker: Served, bad: str, status: int, code: str) -> None:
    first, middle, last = results(worker.ask(target("36436", bad, "90028")))
    assert middle == {"zip_code": bad[:100], "status": status, "result": None, "code": code}
    assert (first["status"], last["status"]) == (200, 200)


def test_what_no_text_is_is_one_that_is_bad(worker: Served) -> None:
    for bad in ("%ff", "%00"):
        first, second = results(worker.ask(f"{BATCH}?zip_code={bad}&zip%5Fcode=36436"))
        assert (first["status"], second["status"]) == (400, 200)


def test_zip_plus_four_means_its_first_five_digits(worker: Served) -> None:
    (one,) = results(worker.ask(target(" 36436-1234 ")))
    assert (one["zip_code"], one["result"]["location"]["zip_code"]) == ("36436-1234", "36436")


@pytest.mark.parametrize(
    ("query", "code", "says"),
    [
        ("", "missing_parameter", "zip_code=36436&zip_code=90210"),
        ("zip_codes=36436", "unknown_parameter", "Did you mean zip_code=36436?"),
        ("zip_code=36436&city_name=Dickinson", "unknown_parameter", "no parameter city_name"),
        ("zip_code=36436,90028", "invalid_parameter", "zip_code=36436&zip_code=90028?"),
        ("zip_code=10001;10002", "invalid_parameter", "zip_code=10001&zip_code=10002?"),
        ("zip_code=10001+10002", "invalid_parameter", "zip_code=10001&zip_code=10002?"),
        ("zip_code=1,2", "invalid_parameter", "Repeat the parameter"),
        ("&".join(["zip_code=36436"] * 101), "invalid_parameter", "101 ZIP codes are too many"),
    ],
    ids=["none", "misnamed", "another", "commas", "semicolons", "spaces", "of-none", "many"],
)
def test_what_is_wrong_with_all_of_it_is_named(worker: Served, query: str, code: str, says: str) -> None:
    answer = worker.ask(f"{BATCH}?{query}")
    assert problem(answer) == (400, code)
    assert says in answer.json()["detail"]


def test_an_answer_is_compressed_like_any_other(worker: Served) -> None:
    batch = target("36436", *SPRINGFIELD)
    answer, small = worker.ask(batch), worker.ask(batch.replace("?", "/?"), accept_encoding="gzip")
    assert small.header("content-encoding") == "gzip"
    assert gzip.decompress(small.body) == answer.body
    alone = worker.forecast(zip_code="36436")
    assert {name for name, _ in answer.headers} == {name for name, _ in alone.headers}


def test_nothing_found_is_not_kept(worker: Served) -> None:
    answer = worker.ask(target("99999", "1"))
    assert [one["status"] for one in results(answer)] == [404, 400]
    assert (answer.header("cache-control"), answer.header("etag")) == ("no-store", None)


def counted(worker: Served, family: Any, *labels: str) -> int:
    async def read() -> int:
        return sum(
            value
            for name, found, value in worker.app.figures().counters
            if name == family.name and found[: len(labels)] == labels
        )

    return worker.run(read)


def queries(worker: Served) -> int:
    async def read() -> int:
        return sum(sum(one.counts) for name, _, one in worker.app.figures().histograms if name == QUERY_SECONDS.name)

    return worker.run(read)


def purge(worker: Served, *, shared: bool) -> None:
    worker.wait_until_stored()

    async def drop() -> None:
        for _ in worker.app.near.purge():
            pass
        if shared:
            release = worker.app.follower.current
            assert release is not None
            await remove_entries(worker.app._settings.cache_url, [release.id], 10)
        worker.app._cache._flights._landed.clear()

    worker.run(drop)


def test_batches_and_single_requests_share_their_entries(worker: Served) -> None:
    everything = [*SPRINGFIELD, "36436"]
    purge(worker, shared=True)
    before, looked_up = queries(worker), counted(worker, LOOKUPS, "shared", "miss")
    answer = worker.ask(target(*everything))
    assert answer.header("cache-status") == "forecast; fwd=uri-miss; detail=warehouse"
    assert queries(worker) == before + 1
    assert counted(worker, LOOKUPS, "shared", "miss") == looked_up + len(everything)
    assert worker.forecast(zip_code="62701").header("cache-status") == "forecast; hit; detail=near"
    assert worker.ask(target(*everything)).header("cache-status") == "forecast; hit; detail=near"
    purge(worker, shared=False)
    assert worker.forecast(zip_code="62701").header("cache-status") == "forecast; hit; detail=shared"
    near = counted(worker, ANSWERS, "forecast", "near")
    again = worker.ask(target(*everything))
    assert (again.header("cache-status"), again.body) == ("forecast; hit; detail=shared", answer.body)
    assert counted(worker, ANSWERS, "forecast", "near") == near + 1


def failing(worker: Served, monkeypatch: pytest.MonkeyPatch, error: LookupFailure, *bad: str) -> None:
    release = worker.app.follower.current
    assert release is not None
    real = release.engine.entries

    async def entries(area: str, keys: Sequence[str]) -> list[bytes]:
        if set(keys) & set(bad):
            raise error
        return await real(area, keys)

    monkeypatch.setattr(release.engine, "entries", entries)


def test_a_look_up_that_fails_spoils_no_other(worker: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    purge(worker, shared=True)
    failing(worker, monkeypatch, LookupBusy("no"), "62702")
    answer = worker.ask(target("62701", "62702", "62703"))
    assert [(one["status"], one["code"]) for one in results(answer)] == [(200, None), (503, "unavailable"), (200, None)]
    assert (answer.header("cache-control"), answer.header("etag")) == ("no-store", None)


def test_if_every_look_up_fails_the_batch_does(worker: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that retries a 503 does the right thing then."""
    purge(worker, shared=True)
    failing(worker, monkeypatch, LookupBusy("no"), "62701", "62702")
    assert problem(worker.ask(target("62701", "62702", "99999"))) == (503, "unavailable")


def test_it_weighs_as_much_as_it_may_ask_for() -> None:
    """Whatever is not ours is a 400, so it may weigh something; too many are one as a whole, and weigh as one."""
    queries = (b"", b"zip_code=1", b"&zip%5Fcode=1&&zip_code=2&", b"a&" * MOST, b"a&" * (MOST + 1))
    assert [weigh(query) for query in queries] == [1, 1, 2, MOST, 1]


def test_each_zip_code_is_counted_as_its_own_request_would_be(worker: Served, settings: Settings) -> None:
    caller = Caller(worker, settings, Terms())
    batch = target("36436", "90028", "09001", "99999", "1")
    etag = caller.ask(batch).header("etag") or ""
    assert caller.ask(batch, if_none_match=etag).status == 304
    assert caller.counted() == {"answered": 3, "not_modified": 3, "not_found": 2, "rejected": 2}


def test_a_batch_that_is_refused_counts_as_one_request(worker: Served, settings: Settings) -> None:
    caller = Caller(worker, settings, Terms())
    caller.ask(f"{BATCH}?zip_codes=36436&zip_codes=90028")
    assert caller.counted() == {"answered": 0, "not_modified": 0, "not_found": 0, "rejected": 1}


def test_of_a_rate_it_takes_as_many_requests_or_none(worker: Served, settings: Settings) -> None:
    caller = Caller(worker, settings, Terms(rate=Rate(1, 3600, 5)))
    passed = caller.ask(target(*SPRINGFIELD[:3]))
    assert (passed.status, passed.header("ratelimit")) == (200, '"rate";r=1;t=3600')
    refused = caller.ask(target(*SPRINGFIELD[:4]))
    assert problem(refused) == (429, "rate_limited")
    assert "counts as 4 requests; 2 are left" in refused.json()["detail"]
    assert 7100 < int(refused.header("retry-after") or 0) <= 7200
    assert caller.ask(target(*SPRINGFIELD[:2])).status == 200
    assert problem(caller.ask(target("36436"))) == (429, "rate_limited")


def test_of_a_quota_it_takes_as_many_requests_or_none(worker: Served, settings: Settings) -> None:
    caller = Caller(worker, settings, Terms(quota=Quota(6, "day")))
    passed = caller.ask(target(*SPRINGFIELD[:3], "99999"))
    assert (passed.status, (passed.header("ratelimit") or "").split(";")[1]) == (200, "r=3")
    caller.counted()
    refused = caller.ask(target(*SPRINGFIELD[:4]))
    assert problem(refused) == (429, "quota_exhausted")
    assert "counts as 4 requests; 3 are left" in refused.json()["detail"]
    assert (refused.header("ratelimit") or "").startswith('"quota";r=3;t=')
    assert caller.ask(target(*SPRINGFIELD[:3])).status == 200
    caller.counted()
    assert problem(caller.ask(target("36436"))) == (429, "quota_exhausted")


@pytest.mark.parametrize("terms", [Terms(rate=Rate(500, 1, 4)), Terms(quota=Quota(4, "month"))], ids=["rate", "quota"])
def test_a_batch_that_could_never_pass_gets_the_largest_size(worker: Served, settings: Settings, terms: Terms) -> None:
    """Waiting would not help, so it is no 429."""
    caller = Caller(worker, settings, terms)
    answer = caller.ask(target(*SPRINGFIELD[:5]))
    assert problem(answer) == (400, "invalid_parameter")
    assert "Ask for at most 4 at a time." in answer.json()["detail"]
    assert answer.json()["parameter"] == "zip_code"
    assert caller.ask(target(*SPRINGFIELD[:4])).status == 200


def test_who_is_not_entitled_gets_no_batch(worker: Served, settings: Settings) -> None:
    assert problem(Caller(worker, settings, Terms(areas=("projects",))).ask(target("36436"))) == (403, "not_entitled")
