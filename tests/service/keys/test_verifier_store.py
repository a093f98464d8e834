"""Verified keys while the store is unreachable, is not ours, or says that something changed."""

import asyncio

import msgspec
import pytest

from service.keys.record import IDENTITY, record_name
from tests.support.key_store import any_key
from tests.support.verifying import Scene


async def test_while_the_store_is_unreachable_a_key_is_good_for_a_minute(scene: Scene) -> None:
    """Then it is unknown, as a key is that was never verified: 503, not 401."""
    await scene.verified()
    scene.store.away = True
    scene.clock.now += 59.9
    assert await scene.outcome() == "accepted"
    assert await scene.outcome(any_key()[0]) == "unknown"
    assert scene.verifier.can_verify_any_from_memory
    scene.clock.now += 0.1
    assert await scene.outcome() == "unknown"
    assert not scene.verifier.can_verify_any_from_memory
    scene.store.away = False
    assert await scene.outcome() == "accepted"


@pytest.mark.parametrize("loss", ["emptied", "recreated", "another pepper"])
async def test_a_foreign_store_is_unknown_and_an_alarm(
    scene: Scene, loss: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every key missing, or none matching, is our mistake: 503 for all, 401 for nobody."""
    await scene.verified()
    control = await scene.store.client.get(IDENTITY)
    assert isinstance(control, bytes)
    if loss == "emptied":
        await scene.store.client.flushall()
    elif loss == "recreated":
        begun = scene.store.new_identity()
        await scene.store.client.set(IDENTITY, msgspec.json.encode(begun))
    else:
        await scene.store.client.set(IDENTITY, control.replace(b'fingerprint":"', b'fingerprint":"0'))
    for presented in (any_key()[0], any_key()[0]):
        assert await scene.outcome(presented) == "unknown"
    assert scene.verifier.store_watch.problem
    assert len(caplog.records) == 1, "said once, not per request"
    scene.clock.now += 5
    assert await scene.outcome() == "accepted", "a remembered key goes on for its minute"
    await scene.store.client.set(IDENTITY, control)
    assert await scene.outcome(any_key()[0]) == "invalid"
    assert scene.verifier.store_watch.problem is None


async def test_a_pushed_revocation_takes_effect_with_the_next_request(scene: Scene) -> None:
    await scene.verified()
    await scene.revoke(push=True)
    assert await scene.outcome() == "revoked"


async def test_the_name_of_another_record_changes_nothing(scene: Scene) -> None:
    await scene.verified()
    for name in (record_name("0" * 12), IDENTITY, "", "k:{"):
        scene.verifier.invalidate(name)
    assert await scene.outcome() == "accepted"
    await scene.settle()
    assert scene.store.asked == 0


async def test_a_push_while_the_store_is_unreachable_keeps_the_key_for_its_minute(scene: Scene) -> None:
    await scene.verified()
    scene.store.away = True
    scene.verifier.invalidate(record_name(scene.key.key_id))
    assert await scene.outcome() == "accepted"


async def test_after_a_lost_connection_every_key_is_checked_again(scene: Scene) -> None:
    """None means that any record may have changed; requests do not wait for it."""
    await scene.verified()
    await scene.revoke(push=False)
    scene.verifier.invalidate(None)
    assert await scene.outcome() == "accepted"
    await scene.settle()
    assert await scene.outcome() == "revoked"


async def test_an_answer_from_before_a_push_is_asked_for_again(scene: Scene) -> None:
    scene.store.holding = True
    checking = asyncio.create_task(scene.outcome())
    await scene.settle()
    await scene.revoke(push=True)
    scene.store.holding = False
    scene.store.held[0].set_result(None)
    assert await checking == "accepted"
    assert await scene.outcome() == "revoked"


async def test_an_old_answer_never_undoes_a_newer_one(scene: Scene) -> None:
    """A re-check from before a revocation ends after the one from behind it, and the store goes away."""
    await scene.verified()
    scene.store.holding = True
    scene.clock.now += 3
    await scene.outcome()
    await scene.settle()
    await scene.revoke(push=True)
    await scene.settle()
    old, new = scene.store.held
    new.set_result(None)
    await scene.settle()
    old.set_result(None)
    await scene.settle()
    scene.store.away = True
    assert await scene.outcome() == "revoked"


async def test_an_old_first_answer_never_undoes_a_newer_one(scene: Scene) -> None:
    scene.store.holding = True
    before = asyncio.create_task(scene.outcome())
    await scene.settle()
    await scene.revoke(push=True)
    behind = asyncio.create_task(scene.outcome())
    await scene.settle()
    old, new = scene.store.held
    new.set_result(None)
    assert await behind == "revoked"
    old.set_result(None)
    await before
    scene.store.away = True
    assert await scene.outcome() == "revoked"
