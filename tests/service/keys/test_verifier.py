"""Verified keys: whose are good, for how long, and when they are asked for again."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from service.keys import verifier
from service.keys.suggestions import hint_for_malformed_key
from service.keys.verdict import INVALID, RECHECK_AFTER_SECONDS, Accepted, Rejected, Verified
from service.keys.verifier import UNKNOWN_AFTER_SECONDS
from tests.support.key_store import any_key
from tests.support.verifying import Scene, with_secret_of_another


async def test_a_malformed_key_never_reaches_the_store(scene: Scene) -> None:
    for presented in ("nonsense", scene.presented[:-1], scene.presented + "0", scene.presented.lower()):
        for verdict in (await scene.verifier.check(presented), scene.verifier.judge(presented)):
            assert isinstance(verdict, Rejected)
            assert (verdict.reason, verdict.key_id) == ("invalid", None)
            assert verdict.fault == hint_for_malformed_key(presented)
    assert scene.store.asked == 0


async def test_an_unknown_id_and_a_wrong_secret_get_the_same_answer(scene: Scene) -> None:
    for wrong in (any_key()[0], with_secret_of_another(scene.key.key_id)):
        assert await scene.verifier.check(wrong) == INVALID
    assert await scene.outcome() == "accepted"


async def test_a_wrong_secret_is_wrong_also_while_the_right_one_is_remembered(scene: Scene) -> None:
    await scene.verified()
    wrong = with_secret_of_another(scene.key.key_id)
    assert await scene.outcome(wrong) == "invalid"
    await scene.revoke(push=False)
    assert await scene.outcome(wrong) == "invalid"


async def test_expiry_is_judged_without_the_store(scene: Scene) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=0.1)
    presented, _ = await scene.store.issue("acme", "", moment)
    assert await scene.outcome(presented) == "accepted"
    scene.store.away = True
    await asyncio.sleep((moment - datetime.now(UTC)).total_seconds() + 0.001)
    assert await scene.outcome(presented) == "expired"


async def test_from_three_seconds_a_key_is_checked_behind_the_request(scene: Scene) -> None:
    await scene.verified()
    await scene.revoke(push=False)
    for seconds in (2.9, 0.1):
        await scene.settle()
        assert scene.store.asked == 0
        scene.clock.now += seconds
        assert await scene.outcome() == "accepted"
    await scene.settle()
    assert scene.store.asked == 1
    assert await scene.outcome() == "revoked"


async def test_many_requests_share_one_re_check(scene: Scene) -> None:
    await scene.verified()
    scene.store.holding = True
    scene.clock.now += 3
    for _ in range(20):
        assert await scene.outcome() == "accepted"
    await scene.settle()
    assert scene.store.asked == 1
    scene.store.held[0].set_result(None)


async def test_a_request_waits_no_longer_than_a_quarter_of_a_second(scene: Scene) -> None:
    scene = Scene(scene.store, scene.presented, scene.key, verifier.LONGEST_WAIT_SECONDS)
    await scene.verified()
    scene.store.holding = True
    scene.clock.now += 5
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await scene.outcome() == "accepted"
    assert loop.time() - began > 0.2
    scene.store.held[0].set_result(None)


async def test_age_counts_from_when_the_look_up_was_sent(scene: Scene) -> None:
    scene.store.holding = True
    checking = asyncio.create_task(scene.outcome())
    await scene.settle()
    scene.clock.now += 3
    scene.store.holding = False
    scene.store.held[0].set_result(None)
    assert await checking == "accepted"
    await scene.outcome()
    await scene.settle()
    assert scene.store.asked == 2


async def test_the_age_after_a_re_check_counts_from_when_it_was_sent(scene: Scene) -> None:
    await scene.verified()
    scene.store.holding = True
    scene.clock.now += 3
    await scene.outcome()
    await scene.settle()
    scene.clock.now += 3
    scene.store.holding = False
    scene.store.held[0].set_result(None)
    await scene.settle()
    await scene.outcome()
    await scene.settle()
    assert scene.store.asked == 2


async def test_a_re_check_makes_a_key_young_again(scene: Scene) -> None:
    await scene.verified()
    scene.clock.now += 5
    assert await scene.outcome() == "accepted"
    scene.clock.now += 2.9
    scene.store.away = True
    assert await scene.outcome() == "accepted"
    assert scene.store.asked == 1


async def test_a_verdict_holds_for_as_long_as_the_store_need_not_be_called(scene: Scene) -> None:
    assert scene.verifier.recall(scene.presented) is None
    await scene.verified()
    assert scene.verifier.judge(scene.presented) == Accepted(scene.key)
    scene.store.away = True
    scene.clock.now += 4.9
    assert scene.verifier.judge(scene.presented) == Accepted(scene.key)
    scene.clock.now += 0.2
    assert scene.verifier.judge(scene.presented) is None
    await scene.settle()


async def test_a_verdict_without_invalidations_is_no_longer_good(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A push for its key would not reach it: it made room for another, though its connection still has it."""
    monkeypatch.setattr(verifier, "_MOST_VERIFIED", 1)
    await scene.verified()
    known = scene.verifier.recall(scene.presented)
    assert isinstance(known, Verified)
    other, _ = await scene.store.issue("acme", "", None)
    assert await scene.outcome(other) == "accepted"
    assert scene.clock() >= known.good_before


async def test_what_was_recalled_is_good_for_three_seconds_unless_it_is_revoked(scene: Scene) -> None:
    await scene.verified()
    known = scene.verifier.recall(scene.presented)
    assert isinstance(known, Verified)
    assert known.good_before == scene.clock() + RECHECK_AFTER_SECONDS
    await scene.revoke(push=True)
    await scene.settle()
    assert scene.clock() >= known.good_before


async def test_a_re_check_confirms_that_keys_can_be_verified(scene: Scene) -> None:
    await scene.verified()
    scene.clock.now += UNKNOWN_AFTER_SECONDS - 1
    await scene.outcome()
    await scene.settle()
    scene.clock.now += 2
    assert scene.verifier.can_verify_any_from_memory
