"""Verified keys: how long they are good, when they are asked for again, and what a failing store means."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.keys import form
from service.keys.record import ApiKey
from service.keys.store import CONTROL, record_name
from service.keys.verifier import INVALID, Accepted, KeyVerifier, Rejected, Unknown
from tests.support.key_store import PEPPER, Clock, HeldKeyStore


class Scene:
    """One store, one verifier, one key that is good."""

    def __init__(self, store: HeldKeyStore, presented: str, key: ApiKey) -> None:
        self.store = store
        self.clock = Clock()
        self.verifier = KeyVerifier(store, PEPPER, self.clock)
        self.presented = presented
        self.key = key

    async def outcome(self, presented: str | None = None) -> str:
        """`accepted`, the reason of a rejection, or `unknown`."""
        match await self.verifier.check(presented or self.presented):
            case Accepted():
                return "accepted"
            case Rejected(reason, _):
                return reason
            case Unknown():
                return "unknown"

    async def verified(self) -> None:
        assert await self.outcome() == "accepted"
        self.store.asked = 0

    async def settle(self) -> None:
        """Lets everything that can go on without the test go on."""
        for _ in range(50):
            await asyncio.sleep(0)

    async def revoke(self, *, push: bool) -> None:
        holding, self.store.holding = self.store.holding, False
        await self.store.revoke(self.key.key_id)
        self.store.holding = holding
        if push:
            self.verifier.invalidate(record_name(self.key.key_id))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    store = HeldKeyStore(tmp_path)
    made = Scene(store, *await store.issue("acme", "", None))
    store.asked = 0
    yield made
    await store.client.aclose()


# --- whose key is good -------------------------------------------------------------------------------------------


async def test_a_malformed_key_never_reaches_the_store(scene: Scene) -> None:
    """Its checksum tells."""
    for presented in ("nonsense", scene.presented[:-1], scene.presented + "0", scene.presented.lower()):
        assert await scene.verifier.check(presented) == INVALID
    assert scene.store.asked == 0


async def test_an_unknown_id_and_a_wrong_secret_are_told_apart_by_nobody(scene: Scene) -> None:
    """The same verdict, without the id."""
    unknown, parts = form.generate()
    body = f"{form.PREFIX}_{scene.key.key_id}_{parts.secret}"
    assert await scene.verifier.check(unknown) == INVALID
    assert await scene.verifier.check(f"{body}_{form._checksum(body)}") == INVALID
    assert await scene.outcome() == "accepted"


async def test_a_wrong_secret_is_wrong_also_while_the_right_one_is_remembered(scene: Scene) -> None:
    """What is remembered is the whole key, not its id."""
    await scene.verified()
    _, parts = form.generate()
    body = f"{form.PREFIX}_{scene.key.key_id}_{parts.secret}"
    assert await scene.outcome(f"{body}_{form._checksum(body)}") == "invalid"
    await scene.revoke(push=False)
    assert await scene.outcome(f"{body}_{form._checksum(body)}") == "invalid"


async def test_expiry_is_judged_without_the_store(scene: Scene) -> None:
    """A remembered key stops working at its instant."""
    moment = datetime.now(UTC) + timedelta(seconds=0.1)
    presented, _ = await scene.store.issue("acme", "", moment)
    assert await scene.outcome(presented) == "accepted"
    scene.store.away = True
    await asyncio.sleep((moment - datetime.now(UTC)).total_seconds() + 0.001)
    assert await scene.outcome(presented) == "expired"


# --- age ---------------------------------------------------------------------------------------------------------


async def test_a_young_key_costs_no_look_up(scene: Scene) -> None:
    """Below 3 s."""
    await scene.verified()
    scene.clock.now += 2.9
    assert await scene.outcome() == "accepted"
    await scene.settle()
    assert scene.store.asked == 0


async def test_from_three_seconds_a_key_is_checked_behind_the_request(scene: Scene) -> None:
    """The request is answered before the store is; the next one knows more."""
    await scene.verified()
    await scene.revoke(push=False)
    scene.clock.now += 3
    assert await scene.outcome() == "accepted"
    await scene.settle()
    assert scene.store.asked == 1
    assert await scene.outcome() == "revoked"


async def test_many_requests_share_one_re_check(scene: Scene) -> None:
    """A busy key does not become a busy store."""
    await scene.verified()
    scene.store.holding = True
    scene.clock.now += 3
    for _ in range(20):
        assert await scene.outcome() == "accepted"
    await scene.settle()
    assert scene.store.asked == 1
    scene.store.held[0].set_result(None)


async def test_from_five_seconds_a_request_waits_for_the_store(scene: Scene) -> None:
    """A revocation that was not pushed takes effect within 5 s."""
    await scene.verified()
    await scene.revoke(push=False)
    scene.clock.now += 5
    assert await scene.outcome() == "revoked"


async def test_a_request_waits_no_longer_than_a_quarter_of_a_second(scene: Scene) -> None:
    """A store that does not answer is treated as away."""
    await scene.verified()
    scene.store.holding = True
    scene.clock.now += 5
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await scene.outcome() == "accepted"
    assert 0.2 < loop.time() - began < 1
    scene.store.held[0].set_result(None)


async def test_age_counts_from_when_the_look_up_was_sent(scene: Scene) -> None:
    """A reply under way for 3 s is 3 s old when it comes."""
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


async def test_a_re_check_makes_a_key_young_again(scene: Scene) -> None:
    """The age is that of the newest look-up."""
    await scene.verified()
    scene.clock.now += 5
    assert await scene.outcome() == "accepted"
    scene.clock.now += 2.9
    scene.store.away = True
    assert await scene.outcome() == "accepted"
    assert scene.store.asked == 1


async def test_a_key_that_was_removed_is_not_known_any_more(scene: Scene) -> None:
    """As if it had never been."""
    await scene.verified()
    await scene.store.client.delete(record_name(scene.key.key_id))
    scene.clock.now += 5
    assert await scene.outcome() == "invalid"
    assert await scene.outcome() == "invalid"


# --- the store is away -------------------------------------------------------------------------------------------


async def test_while_the_store_is_away_a_key_is_good_for_a_minute(scene: Scene) -> None:
    """After that nothing can be said about it: never that it is invalid."""
    await scene.verified()
    scene.store.away = True
    scene.clock.now += 59.9
    assert await scene.outcome() == "accepted"
    assert scene.verifier.remembers_somebody
    scene.clock.now += 0.1
    assert await scene.outcome() == "unknown"
    assert not scene.verifier.remembers_somebody


async def test_a_key_that_nobody_verified_yet_is_unknown_while_the_store_is_away(scene: Scene) -> None:
    """503, not 401."""
    scene.store.away = True
    assert await scene.outcome() == "unknown"
    assert not scene.verifier.remembers_somebody


async def test_a_store_that_comes_back_is_asked_at_once(scene: Scene) -> None:
    """By the next request."""
    await scene.verified()
    scene.store.away = True
    scene.clock.now += 61
    assert await scene.outcome() == "unknown"
    scene.store.away = False
    assert await scene.outcome() == "accepted"


@pytest.mark.parametrize("loss", ["emptied", "another pepper"])
async def test_a_foreign_store_is_unknown_and_an_alarm(
    scene: Scene, loss: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every key missing, or none matching, is our mistake: 503 for all, 401 for nobody."""
    await scene.verified()
    control = await scene.store.client.get(CONTROL)
    assert isinstance(control, bytes)
    if loss == "emptied":
        await scene.store.client.flushall()
    else:
        await scene.store.client.set(CONTROL, control.replace(b'fingerprint":"', b'fingerprint":"0'))
    for presented in (form.generate()[0], form.generate()[0]):
        assert await scene.outcome(presented) == "unknown"
    assert scene.verifier.problem
    assert len(caplog.records) == 1, "said once, not per request"
    scene.clock.now += 5
    assert await scene.outcome() == "accepted", "a remembered key goes on for its minute"
    await scene.store.client.set(CONTROL, control)
    assert await scene.outcome(form.generate()[0]) == "invalid"
    assert scene.verifier.problem is None


# --- pushed changes ----------------------------------------------------------------------------------------------


async def test_a_pushed_revocation_takes_effect_with_the_next_request(scene: Scene) -> None:
    """Whatever the age."""
    await scene.verified()
    await scene.revoke(push=True)
    assert await scene.outcome() == "revoked"


async def test_the_name_of_another_record_changes_nothing(scene: Scene) -> None:
    """Nor does the sentinel's, nor one that is no record."""
    await scene.verified()
    for name in (record_name("0" * 12), CONTROL, "", "k:{"):
        scene.verifier.invalidate(name)
    assert await scene.outcome() == "accepted"
    await scene.settle()
    assert scene.store.asked == 0


async def test_a_push_while_the_store_is_away_keeps_the_key_for_its_minute(scene: Scene) -> None:
    """What was known keeps its age; nobody can say better."""
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
    """A first look-up was under way when the key was revoked: its answer is not trusted by the next request."""
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
    """The same for two first look-ups that overtake each other."""
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
