"""Rotating, extending and changing keys."""

import re
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from service.base.terms import Terms, parse_rate
from service.keys import audit, changes, form
from service.keys.errors import ForeignStoreError, KeyStoreError
from service.keys.record import IDENTITY, ApiKey, MoreOfKey, record_name
from service.redis.errors import StoreUnavailable
from tests.support.key_store import PEPPER, HeldKeyStore, found, parsed

NOW = datetime.now(UTC).replace(microsecond=0)
WEEK = timedelta(days=7)
TERMS = Terms(areas=("forecast",), rate=parse_rate("500/s"))


async def test_a_rotated_key_has_a_successor_with_the_same_terms(store: HeldKeyStore) -> None:
    _, old = await store.issue("acme", "batch", NOW + 4 * WEEK, TERMS)
    presented, new, ended = await changes.rotate(store, old.key_id, WEEK)
    parts = parsed(presented)
    assert (parts.key_id, form.digest(parts.secret, PEPPER)) == (new.key_id, new.digest)
    assert (new.partner, new.label, new.terms, new.expires_at) == ("acme", "batch", TERMS, old.expires_at)
    assert new.digest != old.digest
    assert (new.rotated_from, ended.rotated_to) == (old.key_id, new.key_id)
    assert (await found(store, old.key_id), await found(store, new.key_id)) == (ended, new)


@pytest.mark.parametrize(
    ("expires", "ends"),
    [(None, WEEK), (4 * WEEK, WEEK), (timedelta(days=2), timedelta(days=2))],
    ids=["never", "later", "earlier"],
)
async def test_the_old_key_ends_with_the_overlap_and_never_later_than_it_would_have(
    store: HeldKeyStore, expires: timedelta | None, ends: timedelta
) -> None:
    began = datetime.now(UTC)
    _, old = await store.issue("acme", "", None if expires is None else began + expires)
    _, _, ended = await changes.rotate(store, old.key_id, WEEK)
    assert ended.expires_at is not None
    assert abs(ended.expires_at - (began + ends)) < timedelta(minutes=1)
    assert ended.status() == "active"


async def test_without_overlap_the_old_key_ends_at_once_and_the_new_key_can_have_another_end(
    store: HeldKeyStore,
) -> None:
    _, old = await store.issue("acme", "", NOW + WEEK)
    _, new, ended = await changes.rotate(store, old.key_id, timedelta(0), NOW + 9 * WEEK)
    assert (ended.status(), new.status()) == ("expired", "active")
    assert new.expires_at == NOW + 9 * WEEK


async def test_a_key_is_rotated_again_only_when_its_successor_is_gone(store: HeldKeyStore) -> None:
    _, old = await store.issue("acme", "", None)
    _, first, _ = await changes.rotate(store, old.key_id, WEEK)
    with pytest.raises(KeyStoreError, match=f"rotated to {first.key_id} already"):
        await changes.rotate(store, old.key_id, WEEK)
    await changes.suspend(store, first.key_id, "not paid")
    with pytest.raises(KeyStoreError, match=f"rotated to {first.key_id} already"):
        await changes.rotate(store, old.key_id, WEEK)
    assert len(await store.client.keys("k:{*")) == 2
    await store.revoke(first.key_id)
    _, second, ended = await changes.rotate(store, old.key_id, WEEK)
    assert ended.rotated_to == second.key_id
    await store.client.delete(record_name(second.key_id))  # as a backup from before it was issued would
    _, third, _ = await changes.rotate(store, old.key_id, WEEK)
    assert third.status() == "active"


@pytest.mark.parametrize("ends", [None, NOW + 4 * WEEK], ids=["never", "in 4 weeks"])
@pytest.mark.parametrize("overlap", [WEEK, timedelta(0)], ids=["7d", "0s"])
async def test_a_key_that_is_rotated_again_passes_on_the_end_that_it_was_given(
    store: HeldKeyStore, ends: datetime | None, overlap: timedelta
) -> None:
    """Not the one that the first rotation left it, also where that has passed; its own is never later again."""
    _, old = await store.issue("acme", "", ends)
    _, first, once = await changes.rotate(store, old.key_id, overlap)
    await store.revoke(first.key_id)
    _, second, twice = await changes.rotate(store, old.key_id, 2 * WEEK)
    assert (first.expires_at, second.expires_at) == (ends, ends)
    assert twice.expires_at == once.expires_at


async def test_an_end_that_was_set_after_a_rotation_is_the_one_that_counts(store: HeldKeyStore) -> None:
    _, old = await store.issue("acme", "", None)
    _, first, _ = await changes.rotate(store, old.key_id, WEEK)
    await changes.extend(store, old.key_id, NOW + 2 * WEEK)
    await store.revoke(first.key_id)
    _, second, _ = await changes.rotate(store, old.key_id, WEEK)
    assert second.expires_at == NOW + 2 * WEEK


async def test_a_successor_s_successor_that_works_is_an_obstacle_too(store: HeldKeyStore) -> None:
    _, old = await store.issue("acme", "", None)
    _, first, _ = await changes.rotate(store, old.key_id, WEEK)
    _, second, _ = await changes.rotate(store, first.key_id, timedelta(0))
    with pytest.raises(KeyStoreError, match=f"rotated to {second.key_id} already"):
        await changes.rotate(store, old.key_id, WEEK)


async def test_an_unconfirmed_rotation_says_what_to_do_about_both_keys(
    store: HeldKeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, old = await store.issue("acme", "", None)

    async def lost(*_: object) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(audit, "confirmed", lost)
    with pytest.raises(StoreUnavailable) as reported:
        await changes.rotate(store, old.key_id, WEEK)
    assert "finds a key, it has no owner: revoke it" in str(reported.value)
    assert re.search(f"key {old.key_id} then ends .* UTC: rotate it again", str(reported.value))


@pytest.mark.parametrize(("dead", "said"), [("expired", "has expired"), ("revoked", "is revoked"), ("void", "is void")])
async def test_a_key_that_does_not_work_is_not_rotated(store: HeldKeyStore, dead: str, said: str) -> None:
    _, key = await store.issue("acme", "", NOW - WEEK if dead == "expired" else None)
    await make_dead(store, key, dead)
    with pytest.raises(KeyStoreError, match=said):
        await changes.rotate(store, key.key_id, WEEK)
    assert len(await store.client.keys("k:{*")) == 1


async def test_a_key_that_has_not_begun_is_rotated_once_and_to_a_key_that_will_work(store: HeldKeyStore) -> None:
    _, old = await store.issue("acme", "", None, more=MoreOfKey(not_before=NOW + 2 * WEEK))
    with pytest.raises(KeyStoreError, match="cannot end before that"):
        await changes.rotate(store, old.key_id, WEEK, NOW + WEEK)
    _, new, _ = await changes.rotate(store, old.key_id, WEEK, NOW + 3 * WEEK)
    with pytest.raises(KeyStoreError, match=f"rotated to {new.key_id} already"):
        await changes.rotate(store, old.key_id, WEEK)


async def make_dead(store: HeldKeyStore, key: ApiKey, dead: str) -> None:
    if dead == "revoked":
        await store.revoke(key.key_id)
    if dead == "void":
        other = msgspec.structs.replace(key, pepper="another")
        await store.client.set(record_name(key.key_id), msgspec.json.encode(other))


async def test_an_expired_key_works_again_when_it_is_extended(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", NOW - WEEK)
    before, after = await changes.extend(store, key.key_id, NOW + WEEK)
    assert (before, before.status()) == (key, "expired")
    assert (after.status(), after.expires_at) == ("active", NOW + WEEK)
    _, forever = await changes.extend(store, key.key_id, None)
    assert forever.expires_at is None
    assert await found(store, key.key_id) == forever


@pytest.mark.parametrize("dead", ["revoked", "void"])
async def test_a_key_that_is_gone_for_good_is_not_changed(store: HeldKeyStore, dead: str) -> None:
    _, key = await store.issue("acme", "", None)
    await make_dead(store, key, dead)
    for attempt in (
        changes.extend(store, key.key_id, NOW + WEEK),
        changes.change_terms(store, key.key_id, lambda _: TERMS),
    ):
        with pytest.raises(KeyStoreError, match="issue a new one"):
            await attempt
    assert (await found(store, key.key_id)).terms == Terms()


async def test_terms_are_changed_and_nothing_else(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "batch", NOW + WEEK, TERMS)
    _, changed = await changes.change_terms(store, key.key_id, lambda terms: msgspec.structs.replace(terms, rate=None))
    assert changed == msgspec.structs.replace(key, terms=Terms(areas=("forecast",)), revision=1)


async def test_what_the_editor_refuses_changes_nothing(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)

    def refuse(_: Terms) -> Terms:
        raise KeyStoreError("not like this")

    with pytest.raises(KeyStoreError, match="not like this"):
        await changes.change_terms(store, key.key_id, refuse)
    assert await found(store, key.key_id) == key


async def test_an_unknown_key_is_reported(store: HeldKeyStore) -> None:
    await store.issue("acme", "", None)
    for attempt in (
        changes.extend(store, "0" * 12, None),
        changes.change_terms(store, "0" * 12, lambda _: TERMS),
        changes.rotate(store, "0" * 12, WEEK),
    ):
        with pytest.raises(KeyStoreError, match="no key 000000000000"):
            await attempt


async def test_in_a_foreign_store_only_revoking_is_possible(store: HeldKeyStore) -> None:
    _, key = await store.issue("acme", "", None)
    await store.client.delete(IDENTITY)
    for attempt in (
        changes.extend(store, key.key_id, None),
        changes.change_terms(store, key.key_id, lambda _: TERMS),
        changes.rotate(store, key.key_id, WEEK),
    ):
        with pytest.raises(ForeignStoreError):
            await attempt
    assert (await store.revoke(key.key_id)).status() == "revoked"
