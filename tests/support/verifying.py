"""A verifier with one good key, a store that a test holds, and a clock that it turns."""

from service.base import masking
from service.keys import form
from service.keys.record import ApiKey, record_name
from service.keys.verdict import Accepted, Rejected, Unknown
from service.keys.verifier import KeyVerifier
from tests.support.key_store import PEPPER, Clock, HeldKeyStore, any_key
from tests.support.waiting import settled


def with_secret_of_another(key_id: str) -> str:
    """A key of perfect form for `key_id`, with a secret that is not its own."""
    body = f"{masking.LIVE_PREFIX}_{key_id}_{any_key()[1].secret}"
    return f"{body}_{form._checksum(body)}"


class Scene:
    """One store, one verifier, one key that is good.

    The verifier waits for a re-check as long as a busy machine needs, unless a test says how long.
    """

    def __init__(self, store: HeldKeyStore, presented: str, key: ApiKey, longest_wait: float = 30) -> None:
        self.store = store
        self.clock = Clock()
        self.verifier = KeyVerifier(store, PEPPER, self.clock, longest_wait)
        self.presented = presented
        self.key = key

    async def outcome(self, presented: str | None = None) -> str:
        """`accepted`, the reason of a rejection, or `unknown`."""
        match await self.verifier.check(presented or self.presented):
            case Accepted():
                return "accepted"
            case Rejected(reason, _, _):
                return reason
            case Unknown():
                return "unknown"

    async def verified(self) -> None:
        assert await self.outcome() == "accepted"
        self.store.asked = 0

    async def settle(self) -> None:
        """Lets everything that can go on without the test go on."""
        await settled()

    async def revoke(self, *, push: bool) -> None:
        holding, self.store.holding = self.store.holding, False
        await self.store.revoke(self.key.key_id)
        self.store.holding = holding
        if push:
            self.verifier.invalidate(record_name(self.key.key_id))
