"""A key store that went back: a worker goes by the newest record that it has seen, and says what is missing."""

import msgspec
import pytest

from service.base.terms import Terms
from service.keys import changes
from service.keys.record import record_name
from service.keys.verdict import Verified
from tests.support.verifying import Scene


async def raw(scene: Scene) -> bytes:
    [found] = await scene.store.raw([scene.key.key_id])
    assert found.record is not None
    return found.record


async def goes_back_to(scene: Scene, record: bytes) -> None:
    """A failover, which is not announced."""
    await scene.store.client.set(record_name(scene.key.key_id), record)


def other_areas(terms: Terms) -> Terms:
    return msgspec.structs.replace(terms, areas=None if terms.areas else ("forecast",))


async def checked_again(scene: Scene) -> str:
    scene.clock.now += 5
    return await scene.outcome()


async def loses_revocation(scene: Scene) -> None:
    """One that the worker has seen."""
    await scene.verified()
    before = await raw(scene)
    await scene.revoke(push=False)
    assert await checked_again(scene) == "revoked"
    await goes_back_to(scene, before)


async def test_a_lost_revocation_revives_no_key_and_is_an_alarm_until_it_is_made_again(scene: Scene) -> None:
    """The second look-up decides, because the first may have been overtaken."""
    await loses_revocation(scene)
    lost_writes = scene.verifier.lost_writes
    assert (await checked_again(scene), lost_writes.problem) == ("revoked", None)
    assert await checked_again(scene) == "revoked"
    assert lost_writes.problem is not None
    assert "changes of a key" in lost_writes.problem
    assert lost_writes.revoked == {scene.key.key_id}
    await scene.store.revoke(scene.key.key_id)
    assert await checked_again(scene) == "revoked"
    found: tuple[str | None, set[str]] = (scene.verifier.lost_writes.problem, scene.verifier.lost_writes.revoked)
    assert found == (None, set())


async def test_a_revoked_key_stays_so_whatever_is_done_later(scene: Scene) -> None:
    """A change after the loss has the revision of the revocation, or a higher one. An operator may adopt the store."""
    await loses_revocation(scene)
    for _ in range(3):
        await changes.change_terms(scene.store, scene.key.key_id, other_areas)
        assert await checked_again(scene) == "revoked"
    await changes.adopt(scene.store)
    for _ in range(2):
        assert await checked_again(scene) == "revoked"
    assert scene.verifier.lost_writes.revoked == {scene.key.key_id}


async def test_lost_terms_hold_where_they_were_seen_until_an_operator_decides(scene: Scene) -> None:
    await scene.verified()
    before = await raw(scene)
    await changes.change_terms(scene.store, scene.key.key_id, other_areas)
    await checked_again(scene)
    await goes_back_to(scene, before)
    for _ in range(2):
        assert await checked_again(scene) == "accepted"
    assert terms_kept(scene) == ("forecast",)
    assert scene.verifier.lost_writes.problem is not None
    await changes.adopt(scene.store)
    assert await checked_again(scene) == "accepted"
    assert terms_kept(scene) is None
    assert scene.verifier.lost_writes.problem is None


def terms_kept(scene: Scene) -> tuple[str, ...] | None:
    known = scene.verifier.recall(scene.presented)
    assert isinstance(known, Verified)
    return known.key.terms.areas


async def test_a_key_that_vanished_is_an_alarm(scene: Scene) -> None:
    await scene.verified()
    record = await raw(scene)
    await scene.store.client.delete(record_name(scene.key.key_id))
    assert await checked_again(scene) == "invalid"
    assert scene.verifier.lost_writes.problem is not None
    await goes_back_to(scene, record)
    scene.clock.now += 5
    assert await scene.outcome() == "accepted"


async def test_another_worker_believes_what_the_store_says(scene: Scene) -> None:
    before = await raw(scene)
    await scene.revoke(push=False)
    await goes_back_to(scene, before)
    assert await scene.outcome() == "accepted"
    assert scene.verifier.lost_writes.problem is None


async def test_an_agreement_that_is_old_makes_what_is_heard_old(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is cut off with an old primary asks it in vain: 60 s after the last agreement, nothing is known."""
    agreed = scene.clock.now
    monkeypatch.setattr(type(scene.store.redis), "agreed_at", property(lambda _: agreed))
    await scene.verified()
    scene.clock.now += 59.9
    assert await scene.outcome() == "accepted"
    scene.clock.now += 0.2
    assert await scene.outcome() == "unknown"
    assert scene.store.asked
    agreed = scene.clock.now
    assert await scene.outcome() == "accepted"
