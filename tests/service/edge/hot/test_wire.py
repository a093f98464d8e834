"""Heads that are made once are those that the router path writes."""

import pytest

from service.cache.entry import CacheEntry
from service.cache.read_through import Fetched, Tier
from service.request.request import RequestHead
from service.request.respond import CachePolicy, HeadMaker

POLICY = CachePolicy(60)
SMALL, LARGE = CacheEntry.of(b"{}"), CacheEntry.of(b'{"total_results":1}' * 100)


def ordinary(release: str, entry: CacheEntry, accepted: bytes, tier: Tier = "near") -> tuple[bytes, ...]:
    """Of a 200, of a 304, both with the name of what comes next, and the ETag."""
    head = RequestHead("", 0.0, accept_encoding=accepted)
    whole = POLICY.answer(head, Fetched(entry, tier, bypassed=False), release, "answered")
    head.if_none_match = etag = dict(whole.headers)[b"etag"]
    not_modified = POLICY.answer(head, Fetched(entry, tier, bypassed=False), release, "answered")
    assert (whole.status, not_modified.status) == (200, 304)
    lines = (
        b"".join(b"%b: %b\r\n" % field for field in reply.fields()) + b"x-request-id: "
        for reply in (whole, not_modified)
    )
    return (*lines, etag)


@pytest.mark.parametrize("entry", [SMALL, LARGE, CacheEntry.of(b"")], ids=["small", "large", "empty"])
@pytest.mark.parametrize("tier", ["near", "shared"])
def test_heads_are_those_of_the_ordinary_way(entry: CacheEntry, tier: Tier) -> None:
    """Of every release and coding, whatever was asked for before."""
    maker = HeadMaker(POLICY, tier)
    for release in ("r1", "r2", "r1"):
        plain = ordinary(release, entry, b"", tier)
        codings = [plain, ordinary(release, entry, b"gzip", tier)] if entry.gzipped else [plain]
        assert maker.all_of(release, entry, gzip=False) == (plain[0],)
        assert maker.all_of(release, entry) == tuple(whole for whole, _, _ in codings)
        for zipped, (_, unchanged, etag) in enumerate(codings):
            assert maker.unchanged(release, entry, etag, zipped=bool(zipped)) == unchanged
            assert maker.unchanged(release, entry, b'"another", ' + etag, zipped=bool(zipped)) == unchanged
            assert maker.unchanged(release, entry, b'"another"', zipped=bool(zipped)) is None


def test_entries_have_their_own_heads() -> None:
    """Nothing of one is left in the template."""
    maker = HeadMaker(POLICY, "near")
    maker.all_of("r1", LARGE)
    whole, unchanged, etag = ordinary("r1", SMALL, b"")
    assert maker.all_of("r1", SMALL) == (whole,)
    assert maker.unchanged("r1", SMALL, etag, zipped=False) == unchanged
