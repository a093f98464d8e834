"""The key of a request and the key store: who waits, for how long a verified key is good, and when it ends."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.base.telemetry import KEY_CHECKS, Telemetry
from service.keys import form
from service.keys.verifier import WAIT_AFTER_SECONDS
from service.request.authenticate import Authenticator
from service.request.request import Request
from tests.support.key_store import HeldKeyStore
from tests.support.verifying import Scene

MANY = 200


class Checked:
    """An authenticator over a store that a test holds."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.telemetry = Telemetry()
        self.authenticator = Authenticator(scene.verifier, self.telemetry)

    async def check(self, presented: str | None = None) -> str:
        """`accepted`, or the code of the error."""
        key = presented or self.scene.presented
        request = Request(self.scene.clock(), b"r1", sent_query=b"", presented=key.encode())
        outcome = self.authenticator.authenticate(request)
        refusal = await outcome if asyncio.iscoroutine(outcome) else outcome
        assert (request.key is None) is (refusal is not None)
        return refusal.outcome if refusal is not None else "accepted"

    async def crowd(self, presented: str | None = None) -> set[str]:
        return set(await asyncio.gather(*(self.check(presented) for _ in range(MANY))))


@pytest.fixture
async def checked(tmp_path: Path) -> AsyncIterator[Checked]:
    store = HeldKeyStore(tmp_path)
    scene = Scene(store, *await store.issue("acme", "", None))
    store.asked = 0
    yield Checked(scene)
    await store.client.aclose()


async def test_any_number_wait_for_one_look_up_of_a_key(checked: Checked) -> None:
    """Of a good one, and of one that there is not. Each is counted."""
    for presented, outcome in ((None, "accepted"), (form.generate()[0], "invalid_api_key")):
        checked.scene.store.asked = 0
        assert await checked.crowd(presented) == {outcome}
        assert checked.scene.store.asked == 1
    assert checked.telemetry.sum(KEY_CHECKS, outcome="accepted") == MANY
    assert checked.telemetry.sum(KEY_CHECKS, outcome="invalid") == MANY


@pytest.mark.parametrize("push", [True, False])
async def test_a_revoked_key_is_refused_within_its_bound(checked: Checked, push: bool) -> None:
    """At once where the worker hears of it, else with the next look-up; though its header was accepted before."""
    assert [await checked.check() for _ in range(2)] == ["accepted"] * 2
    await checked.scene.revoke(push=push)
    if push:
        await checked.scene.settle()
    else:
        checked.scene.clock.now += WAIT_AFTER_SECONDS
    assert await checked.check() == "revoked_api_key"
