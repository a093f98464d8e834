"""A flood of wrong keys: bounded look-ups, bounded waiting, little remembered, and good keys go on."""

import asyncio
import hmac

import pytest

from service.keys import form, verifier
from service.keys.verdict import INVALID, Unknown
from tests.support.key_store import any_key
from tests.support.verifying import Scene, with_secret_of_another

LOOKUPS, WAITING = 4, 6


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "_MOST_LOOKUPS", LOOKUPS)
    monkeypatch.setattr(verifier, "_MOST_WAITING", WAITING)


@pytest.fixture
async def flooded(scene: Scene, _small: None) -> Scene:
    """The scene with a verifier that has the small limits."""
    return Scene(scene.store, scene.presented, scene.key)


async def let_go(scene: Scene) -> None:
    """Lets every look-up end, those included that begin meanwhile."""
    scene.store.holding = False
    for held in scene.store.held:
        held.set_result(None)
    scene.store.held.clear()
    await scene.settle()


async def test_look_ups_of_unverified_keys_are_limited(flooded: Scene) -> None:
    flooded.store.holding = True
    checks = [asyncio.create_task(flooded.verifier.check(any_key()[0])) for _ in range(LOOKUPS + WAITING + 3)]
    await flooded.settle()
    assert flooded.store.asked == LOOKUPS
    refused = [check for check in checks if check.done()]
    assert len(refused) == 3
    assert all(isinstance(check.result(), Unknown) for check in refused)
    await let_go(flooded)
    assert [check.result() for check in checks if check not in refused] == [INVALID] * (LOOKUPS + WAITING)
    assert flooded.store.asked == LOOKUPS + WAITING
    assert await flooded.outcome() == "accepted", "the places are free again"


@pytest.mark.parametrize("outcome", ["accepted", "invalid"])
async def test_a_crowd_with_one_key_waits_for_one_look_up(flooded: Scene, outcome: str) -> None:
    flooded.store.holding = True
    presented = flooded.presented if outcome == "accepted" else any_key()[0]
    crowd = [asyncio.create_task(flooded.outcome(presented)) for _ in range(3 * (LOOKUPS + WAITING))]
    await flooded.settle()
    assert flooded.store.asked == 1
    crowd.pop().cancel()
    await let_go(flooded)
    assert set(await asyncio.gather(*crowd)) == {outcome}
    assert flooded.store.asked == 1


async def test_who_presents_a_key_after_a_change_does_not_wait_for_a_look_up_from_before(flooded: Scene) -> None:
    flooded.store.holding = True
    before = asyncio.create_task(flooded.outcome())
    await flooded.settle()
    flooded.verifier.invalidate(None)
    after = asyncio.create_task(flooded.outcome())
    await flooded.settle()
    assert flooded.store.asked == 2
    await let_go(flooded)
    assert await before == await after == "accepted"


async def test_a_good_key_goes_on_and_is_re_checked_while_others_flood(flooded: Scene) -> None:
    await flooded.verified()
    flooded.store.holding = True
    flood = [asyncio.create_task(flooded.verifier.check(any_key()[0])) for _ in range(LOOKUPS + WAITING)]
    await flooded.settle()
    flooded.store.holding = False
    await flooded.revoke(push=True)
    assert await flooded.outcome() == "revoked"
    await let_go(flooded)
    await asyncio.gather(*flood)


async def test_a_wrong_key_is_asked_for_once_a_second(flooded: Scene) -> None:
    both = (any_key()[0], with_secret_of_another(flooded.key.key_id))
    names = await flooded.store.client.keys("*")
    for asked in (2, 4, 6):
        assert [flooded.verifier.judge(presented) for presented in both] == [None, None]
        for _ in range(3):
            assert [await flooded.verifier.check(presented) for presented in both] == [INVALID, INVALID]
            assert [flooded.verifier.judge(presented) for presented in both] == [INVALID, INVALID]
        assert flooded.store.asked == asked
        flooded.clock.now += verifier.WRONG_FOR_SECONDS
    assert (flooded.verifier._verified, flooded.verifier._by_id) == ({}, {})
    assert await flooded.store.client.keys("*") == names


@pytest.mark.parametrize("changed", [None, "k:{another}"])
async def test_a_wrong_key_is_asked_for_again_once_any_key_has_changed(flooded: Scene, changed: str | None) -> None:
    """It may have been restored from a backup. An answer from before the change is not remembered either."""
    wrong, _ = any_key()
    assert await flooded.verifier.check(wrong) == INVALID
    flooded.verifier.invalidate(changed)
    assert flooded.verifier.judge(wrong) is None
    flooded.store.holding = True
    check = asyncio.create_task(flooded.verifier.check(wrong))
    await flooded.settle()
    flooded.verifier.invalidate(changed)
    await let_go(flooded)
    assert await check == INVALID
    assert flooded.verifier.judge(wrong) is None


async def test_many_wrong_keys_are_forgotten_together(flooded: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "_MOST_WRONG", 3)
    keys = [any_key()[0] for _ in range(4)]
    for key in keys:
        assert await flooded.verifier.check(key) == INVALID
    assert [flooded.verifier.judge(key) for key in keys] == [None, None, None, INVALID]


async def test_a_caller_that_goes_away_frees_its_place(flooded: Scene) -> None:
    flooded.store.holding = True
    for _ in range(3):
        checks = [asyncio.create_task(flooded.verifier.check(any_key()[0])) for _ in range(LOOKUPS + WAITING)]
        await flooded.settle()
        for check in checks:
            check.cancel()
        await asyncio.wait(checks)
    flooded.store.holding = False
    assert await flooded.outcome() == "accepted"


@pytest.mark.parametrize("known", [True, False], ids=["known id", "unknown id"])
async def test_a_wrong_key_costs_the_same_whether_its_id_exists(
    flooded: Scene, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look-up, one digest, one comparison."""
    done: list[str] = []
    digest, compare = form.digest, hmac.compare_digest
    presented = with_secret_of_another(flooded.key.key_id) if known else any_key()[0]

    def noted_digest(secret: str, pepper: bytes) -> str:
        done.append("digest")
        return digest(secret, pepper)

    def noted_compare(one: str, other: str) -> bool:
        done.append("compare")
        return compare(one, other)

    monkeypatch.setattr(form, "digest", noted_digest)
    monkeypatch.setattr(hmac, "compare_digest", noted_compare)
    assert await flooded.verifier.check(presented) == INVALID
    # the first comparison is that of the checksum
    assert (flooded.store.asked, done) == (1, ["compare", "digest", "compare"])
