"""Validators, codings and cache headers of answers that may be kept."""

import gzip

import msgspec
import pytest

from service.cache.entry import CacheEntry, Found, Tier
from service.request.request import Request
from service.request.respond import CachePolicy, accepts_gzip
from service.request.targets import Route, Target
from tests.support.served import FORECAST, Served
from tests.support.wire import Answer

SMALL = f"{FORECAST}?zip_code=36436"
LARGE = f"{FORECAST}?city_name=Springfield&state_code=IL"


def etag(answer: Answer) -> str:
    value = answer.header("etag")
    assert value is not None
    return value


def test_an_answer_carries_what_caches_need(worker: Served) -> None:
    answer = worker.ask(SMALL)
    assert etag(answer).startswith('"')
    assert answer.header("cache-control") == "private, max-age=60"
    assert answer.header("vary") == "accept, accept-encoding, x-api-key"
    assert answer.header("x-data-release")


@pytest.mark.parametrize(
    ("tier", "bypassed", "said"),
    [
        ("near", False, b"forecast; hit; detail=near"),
        ("shared", False, b"forecast; hit; detail=shared"),
        ("warehouse", False, b"forecast; fwd=uri-miss; detail=warehouse"),
        ("warehouse", True, b"forecast; fwd=bypass; detail=warehouse"),
    ],
)
def test_cache_status_names_the_tier_and_the_reason(tier: Tier, bypassed: bool, said: bytes) -> None:
    found = Found(CacheEntry.of(b"{}"), tier, "r1", bypassed=bypassed)
    response = CachePolicy(60).found_response(Request(0.0, b""), found)
    assert dict(response.headers)[b"cache-status"] == said


def test_a_caller_who_has_the_bytes_gets_a_304(worker: Served) -> None:
    full = worker.ask(SMALL)
    with worker.wire() as wire:
        answer = wire.send(worker.head(SMALL, If_None_Match=etag(full))).answer()
        assert (answer.status, answer.header("content-length"), answer.header("content-type")) == (304, None, None)
        for name in ("etag", "cache-control", "vary", "x-data-release"):
            assert answer.header(name) == full.header(name)
        # the connection is in step: no body was sent
        assert wire.send(worker.head(SMALL)).answer().status == 200


def test_gzip_is_sent_where_it_is_asked_for_and_worth_it(worker: Served) -> None:
    plain, packed = worker.ask(LARGE), worker.ask(LARGE, Accept_Encoding="gzip, deflate, br")
    assert (plain.header("content-encoding"), packed.header("content-encoding")) == (None, "gzip")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body)
    assert packed.header("content-length") == str(len(packed.body))
    assert etag(plain) != etag(packed)


def test_each_coding_has_its_own_304(worker: Served) -> None:
    tags = {coding: etag(worker.ask(LARGE, Accept_Encoding=coding)) for coding in ("gzip", "identity")}
    for coding, tag in tags.items():
        for other in tags:
            status = worker.ask(LARGE, Accept_Encoding=other, If_None_Match=tag).status
            assert status == (304 if other == coding else 200)


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (b"", False), (b"gzip", True), (b"GZIP", True), (b"x-gzip", True), (b"deflate, gzip", True), (b"*", True),
        (b"br", False), (b"gzip;q=0", False), (b"gzip; q=0.000", False), (b"gzip;q=0.001", True),
        (b"*;q=0", False), (b"gzip;q=0, *", False), (b"*;q=0, gzip", True), (b"identity", False),
        (b"gzip;q=0.5, identity", False), (b"gzip;q=1.0, identity;q=0.5", True), (b"gzip, identity", True),
        (b"gzip;q=nonsense", False), (b"gzip;level=9", True), (b";;,,", False),
        # RFC 9110 12.4.2: at most 1, three digits, nothing around the equals sign
        (b"gzip;q=1.5", False), (b"gzip;q=2", False), (b"*;q=2", False), (b"x-gzip;q=1.001", False),
        (b"gzip;q=0.0001", False), (b"gzip;q=1.0000", False), (b"gzip;q=", False), (b"gzip;q", False),
        (b"gzip;q=-1", False), (b"gzip;q=+1", False), (b"gzip;q=nan", False), (b"gzip;q=inf", False),
        (b"gzip;q=1e0", False), (b"gzip;q=.5", False), (b"gzip;q=01", False), (b"gzip;q= 1", False),
        (b"gzip;q =1", False), (b'gzip;q="1"', False), (b"gzip;level=9;q=0", False), (b"gzip;q=1;q=0", False),
        (b"gzip;q=1.5, *", False), (b"identity;q=1.5, gzip", True), (b"gzip;q=1.", True), (b"gzip;q=1.000", True),
        (b"gzip ;\tQ=0.5", True),
    ],
)  # fmt: skip
def test_accept_encoding_is_weighed(header: bytes, accepted: bool) -> None:
    """RFC 9110, 12.5.3: zero forbids, the asterisk is everything not named, a preferred identity is preferred."""
    assert accepts_gzip(header) is accepted


def test_max_age_is_settable() -> None:
    response = CachePolicy(0).own_response(Request(0.0, b""), CacheEntry.of(b"{}"), "r1")
    assert (b"cache-control", b"private, max-age=0") in response.headers


def test_an_etag_is_a_digest_of_the_bytes() -> None:
    def tag_of(body: bytes, release: str) -> bytes:
        response = CachePolicy(0).own_response(Request(0.0, b""), CacheEntry.of(body), release)
        return dict(response.headers)[b"etag"]

    assert tag_of(b"a", "r1") == tag_of(b"a", "r2") != tag_of(b"b", "r1")


@pytest.mark.parametrize("body", [b"{}", b'{"total_results":1}' * 100, b""], ids=["small", "large", "empty"])
@pytest.mark.parametrize("coding", [None, b"gzip"])
def test_prepared_header_lines_equal_freshly_written_ones(body: bytes, coding: bytes | None) -> None:
    policy = CachePolicy(60)
    target = Target(Route(area="forecast"), "forecast", "/x", "", "r1", b"", "answered")
    for release in ("r1", "r2", "r1"):
        for entry in (CacheEntry.of(b"[]" * 1000), CacheEntry.of(body)):
            found = Found(entry, "near", release)
            request = Request(0.0, b"r", target=target, accept_encoding=coding, found=found)
            written = policy.respond(request)
            request.found = msgspec.structs.replace(found, heads=policy.prepare(release, entry))
            assert policy.respond(request) == written
            etag = dict(written.headers)[b"etag"]
            for known, status in ((etag, 304), (b'"another", ' + etag, 304), (b'"another"', 200)):
                request.if_none_match = known
                assert policy.respond(request).status == status
