"""The audit trail: a line for every change, no line without one, and nothing secret in any."""

import logging
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from service.base.terms import Terms
from service.keys import audit, changes
from service.keys.audit import AUDIT, Change, TrailLine, describe_change
from service.keys.changes import adopt
from service.keys.edits import RawKey
from service.keys.errors import KeyStoreError
from service.redis.errors import StoreRefused
from tests.support.key_store import HeldKeyStore, parsed

TOMORROW = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)


@pytest.fixture(autouse=True)
def _grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "grace")


async def lines(store: HeldKeyStore) -> list[TrailLine]:
    return [line async for line in audit.oldest_first(store.redis)]


async def changes_in(store: HeldKeyStore) -> list[str]:
    return [line.change.what for line in await lines(store) if line.change]


async def test_every_change_has_its_line(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "batch", None)
    await changes.extend(store, key.key_id, TOMORROW)
    await changes.change_terms(store, key.key_id, lambda _: Terms(areas=("forecast",)))
    revoked = await store.revoke(key.key_id)
    reported = [line.change for line in await lines(store) if line.change]
    assert [one.what for one in reported] == ["issued", "extended", "changed", "revoked"]
    assert {(one.key_id, one.partner, one.by.partition("@")[0]) for one in reported} == {(key.key_id, "acme", "grace")}
    assert [one.revision for one in reported] == [0, 1, 2, 3]
    assert reported[0].before is None
    for earlier, later in pairwise(reported):
        assert later.before == earlier.after
    after = [one.after for one in reported if one.after]
    assert [one.expires_at for one in after] == [None, *[TOMORROW] * 3]
    assert [one.terms.areas for one in after] == [None, None, ("forecast",), ("forecast",)]
    assert after[-1].revoked_at == revoked.revoked_at


async def test_a_rotation_has_two_lines_that_name_each_other(store: HeldKeyStore) -> None:
    _, old = await store.issue("acme", "", None)
    _, new, _ = await changes.rotate(store, old.key_id, timedelta(days=7))
    _, first, second = (line.change for line in await lines(store))
    assert first is not None
    assert second is not None
    assert (first.what, first.key_id, first.rotated) == ("rotated", old.key_id, new.key_id)
    assert (second.what, second.key_id, second.rotated) == ("issued", new.key_id, old.key_id)


async def test_what_changes_nothing_has_no_line(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    await changes.extend(store, key.key_id, None)
    await changes.change_terms(store, key.key_id, lambda terms: terms)
    await store.revoke(key.key_id)
    await store.revoke(key.key_id)
    with pytest.raises(KeyStoreError, match="is revoked"):
        await changes.extend(store, key.key_id, TOMORROW)
    assert await changes_in(store) == ["issued", "revoked"]


async def test_adopting_a_store_is_reported_each_time(store: HeldKeyStore) -> None:
    for _ in range(2):
        await adopt(store)
    reported = [line.change for line in await lines(store) if line.change]
    assert [(change.what, change.key_id) for change in reported] == [("adopted", None)] * 2


async def test_a_line_holds_neither_secret_nor_digest(store: HeldKeyStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    presented, key = await store.issue("acme", "", None)
    await changes.rotate(store, key.key_id, timedelta(0))
    parts = parsed(presented)
    reported = repr(await store.client.xrange(AUDIT)) + "".join(repr(vars(record)) for record in caplog.records)
    assert key.key_id in reported
    for secret in (parts.secret, key.digest, presented):
        assert secret not in reported


async def test_the_log_says_the_same(store: HeldKeyStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    _, key = await store.issue("acme", "", TOMORROW)
    (record,) = caplog.records
    assert record.name == "forecast.keys.audit"
    assert record.getMessage().startswith(f"key {key.key_id} was issued by grace@")
    members = vars(record)
    assert (members["what"], members["partner"]) == ("issued", "acme")
    assert members["after"] == {"expires_at": TOMORROW.isoformat().replace("+00:00", "Z")}


async def test_without_a_trail_nothing_is_changed_but_a_leaked_key_is_stopped(
    store: HeldKeyStore, caplog: pytest.LogCaptureFixture
) -> None:
    _, key = await store.issue("acme", "", None)
    await store.client.delete(AUDIT)
    await store.client.set(AUDIT, "x")
    with pytest.raises(StoreRefused, match=f"{AUDIT}.*nothing was issued"):
        await store.issue("acme", "", None)
    assert (await store.find(key.key_id)).key == key
    assert len(await store.client.keys("k:{*")) == 1
    assert (await store.revoke(key.key_id)).status() == "revoked"
    assert "and lacks this change" in caplog.text
    assert await store.client.get(AUDIT) == b"x"


async def test_a_record_that_was_changed_meanwhile_is_read_again(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    meddled = False
    read = store.raw

    async def raw(key_ids: list[str]) -> list[RawKey]:
        nonlocal meddled
        records = await read(key_ids)
        if not meddled:
            meddled = True
            await store.revoke(key.key_id)
        return records

    store.raw = raw  # type: ignore[method-assign]
    with pytest.raises(KeyStoreError, match="is revoked"):
        await changes.change_terms(store, key.key_id, lambda _: Terms(areas=("forecast",)))
    assert await changes_in(store) == ["issued", "revoked"]


async def test_a_change_that_was_sent_twice_is_made_once(store: HeldKeyStore) -> None:
    """A client sends a command again when its answer was lost."""
    _, key = await store.issue("acme", "", None)
    run = store.client.eval

    async def twice(*words: object) -> object:
        await run(*words)  # type: ignore[arg-type]
        return await run(*words)  # type: ignore[arg-type]

    store.client.eval = twice  # type: ignore[assignment]
    assert (await store.revoke(key.key_id)).revision == 1
    assert await changes_in(store) == ["issued", "revoked"]


async def test_a_damaged_line_does_not_hide_the_others(store: HeldKeyStore) -> None:
    await store.issue("acme", "", None)
    for fields in ({"line": "damaged"}, {"other": "x"}, {"line": '{"what":"x","by":"y","restored":"never"}'}):
        await store.client.xadd(AUDIT, fields)  # type: ignore[arg-type]
    await store.issue("acme", "", None)
    found = await lines(store)
    assert [line.change is None for line in found] == [False, True, True, True, False]
    await store.client.xadd(AUDIT, {"line": "x"}, id="18446744073709551614-1")
    found = await lines(store)
    assert [(line.at is None, line.change is None) for line in found[-2:]] == [(False, False), (True, True)]
    assert [line async for line in audit.newest_first(store.redis)] == found[::-1]


def test_a_line_is_described_in_a_few_words() -> None:
    for what, words in (("published", "was published"), ("rolled-back", "was made current again")):
        assert describe_change(Change(what=what, by="me", release="r1")) == f"release r1 {words} by me"


async def test_a_long_trail_is_read_page_by_page(store: HeldKeyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_PAGE", 3)
    for _ in range(10):
        await store.issue("acme", "", None)
    forward = await lines(store)
    assert len({line.id for line in forward}) == 10
    assert [line async for line in audit.newest_first(store.redis)] == forward[::-1]
    assert [line async for line in audit.oldest_first(store.redis, forward[5].id)] == forward[6:]
    assert await audit.last_id(store.redis) == forward[-1].id


async def test_lines_have_the_time_of_the_server(store: HeldKeyStore) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    await store.issue("acme", "", None)
    (line,) = await lines(store)
    assert line.at is not None
    assert before < line.at < before + timedelta(minutes=1)
    assert [one async for one in audit.newest_first(store.redis, before)] == [line]
    assert [one async for one in audit.newest_first(store.redis, before + timedelta(days=1))] == []
    # the server knows no time before 1970
    assert [one async for one in audit.newest_first(store.redis, datetime(1960, 1, 1, tzinfo=UTC))] == [line]


def test_text_that_is_no_id_or_no_time_is_refused() -> None:
    for text in ("", "1", "1-", "-1", "a-1", "1-1-1", "٣-1"):
        with pytest.raises(ValueError, match="is no id"):
            audit.order_of(text)
    with pytest.raises(ValueError, match="is no time"):
        audit.time_of("18446744073709551615-1")
