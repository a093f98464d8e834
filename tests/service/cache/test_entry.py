"""The envelope: what is served is exactly what was stored for this very question."""

import gzip
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.cache.entry import CacheEntry, decode, encode_entry
from service.cache.key import cache_key

KEY = cache_key("r1", "forecast", "zip:36436").digest
OTHER = cache_key("r1", "forecast", "zip:00501").digest
SMALL = CacheEntry.of(b'{"total_results":1}')
LARGE = CacheEntry.of(b'{"total_results":1}' * 200)


@given(st.binary(max_size=4000))
def test_what_was_stored_comes_back(body: bytes) -> None:
    entry = CacheEntry.of(body)
    assert decode(encode_entry(entry, KEY), KEY) == entry


@given(st.sampled_from([SMALL, LARGE]), st.data())
def test_a_truncated_or_extended_entry_is_a_miss(entry: CacheEntry, data: st.DataObject) -> None:
    stored = encode_entry(entry, KEY)
    assert decode(stored[: data.draw(st.integers(0, len(stored) - 1))], KEY) is None
    assert decode(stored + data.draw(st.binary(min_size=1, max_size=20)), KEY) is None


@given(st.sampled_from([SMALL, LARGE]), st.data())
def test_any_span_of_other_bytes_is_a_miss(entry: CacheEntry, data: st.DataObject) -> None:
    stored = encode_entry(entry, KEY)
    start = data.draw(st.integers(0, len(stored) - 1))
    other = data.draw(st.binary(min_size=1, max_size=60))
    changed = stored[:start] + other + stored[start + len(other) :]
    assert decode(changed, KEY) == (entry if changed == stored else None)


@pytest.mark.parametrize("length", [0, 4, 10, 11, 2**31, 2**32 - 1])
def test_a_length_beyond_what_is_there_is_a_miss(length: int) -> None:
    """Even if the checksum is of exactly that: nonsense was sealed. Up to it there is a body, or none."""
    inner = b"e" * 16 + length.to_bytes(4, "big") + b"0123456789"
    stored = b"phf\x02" + KEY + crc32(inner).to_bytes(4, "big") + inner
    found = decode(stored, KEY)
    assert found == (CacheEntry(inner[20:][:length], inner[20:][length:], b"e" * 16) if length <= 10 else None)


def test_the_bytes_of_an_envelope() -> None:
    """A change needs a new FORMAT_VERSION: other versions of the code read the same Redis."""
    stored = encode_entry(CacheEntry(b"body", b"packed", b"e" * 16), b"k" * 16)
    inner = b"e" * 16 + b"\0\0\0\x04" + b"body" + b"packed"
    assert stored == b"phf\x02" + b"k" * 16 + crc32(inner).to_bytes(4, "big") + inner


def test_an_entry_of_another_key_is_a_miss() -> None:
    """A reply that belongs to another request is undamaged, and still wrong."""
    assert decode(encode_entry(SMALL, OTHER), KEY) is None


def test_an_entry_of_another_format_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of the code may mean something else by it."""
    stored = encode_entry(SMALL, KEY)
    monkeypatch.setattr("service.cache.entry.FORMAT_VERSION", 99)
    assert decode(stored, KEY) is None


def test_only_large_bodies_are_packed() -> None:
    assert SMALL.gzipped == b""
    assert gzip.decompress(LARGE.gzipped) == LARGE.body
    assert CacheEntry.of(LARGE.body) == LARGE
    assert CacheEntry.of(b"x" * 1399).gzipped == b""
    assert CacheEntry.of(b"x" * 1400).gzipped
