"""Verifies API keys. Verified keys are cached in the process, so that a hot key costs no round trip (Decision 4).

The age of a cached key counts from when its look-up was sent, or from the last time that the Sentinels, if there are
any, agreed on the primary, if that is earlier: a worker cut off with an old primary misses revocations. Until 3 s, a
verified key is valid, unless it expires. From 3 s, it is re-checked in the background; from 5 s, the request waits for
that (250 ms). While the store is unreachable, a key is valid until 60 s old; after that its state is unknown, which is
not its owner's error.

A wrong key is rejected for 3 s without another look-up, unless any key changes: a repeated one costs the store one
look-up in that time. Different wrong keys cost one each; a bounded number of look-ups run or wait at a time, and the
rest get a 503 at once. Requests with a key that is being looked up wait for that look-up.
"""

import asyncio
import hmac
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b

from service.base.single_flight import SingleFlight
from service.base.tasks import hold_until_done
from service.base.timeouts import within
from service.keys import form
from service.keys.errors import ForeignStoreError
from service.keys.lost_writes import LostWrites
from service.keys.reader import Found
from service.keys.record import ApiKey, KeyStatus, Partner, Plan, key_id_of
from service.keys.store import KeyStore
from service.keys.store_watch import StoreWatch
from service.keys.suggestions import hint_for_malformed_key
from service.keys.verdict import INVALID, RECHECK_AFTER_SECONDS, Accepted, KeyVerdict, Rejected, Unknown, Verified
from service.redis.errors import StoreUnavailable

WAIT_AFTER_SECONDS = 5.0
UNKNOWN_AFTER_SECONDS = 60.0
LONGEST_WAIT_SECONDS = 0.25
WRONG_FOR_SECONDS = RECHECK_AFTER_SECONDS
_MOST_VERIFIED, _MOST_WRONG = 100_000, 10_000
# Look-ups of keys that are not verified yet: a flood of wrong ones must neither use the connections that re-checks of
# valid keys need, nor pile up.
_MOST_LOOKUPS = 64
_MOST_WAITING = 1024
# Matches no key's digest.
_NOBODY = "0" * 64


class KeyVerifier:
    """The verified keys of one worker, for as long as it lives.

    `trust`: whether the store is ours. `lost_writes`: changes that this worker has seen and the store lost.
    """

    def __init__(
        self,
        store: KeyStore,
        pepper: bytes,
        clock: Callable[[], float] = time.monotonic,
        longest_wait: float = LONGEST_WAIT_SECONDS,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        self.store_watch = StoreWatch(store, self._note_acceptance)
        self.lost_writes = LostWrites()
        self._decided = 0  # the newest look-up before an operator accepted the store
        self._store = store
        self._pepper = pepper
        self._clock = clock
        self._longest_wait = longest_wait
        self._time_of_day = time_of_day
        # presented keys are kept as fingerprints that are worthless outside this process
        self._hashing = blake2b(key=os.urandom(32), digest_size=16)
        self._verified: dict[bytes, Verified] = {}
        self._by_id: dict[str, Verified] = {}
        self._wrong: dict[bytes, tuple[float, Rejected]] = {}  # by fingerprint, each until a time
        self._changes = 0
        self._lookups = 0
        self._last_confirmed = -UNKNOWN_AFTER_SECONDS
        self._slots = asyncio.Semaphore(_MOST_LOOKUPS)
        self._rechecking: set[asyncio.Task[None]] = set()
        self._flights: SingleFlight[KeyVerdict] = SingleFlight(abandons=True)
        self._new = 0

    def judge(self, presented: str) -> KeyVerdict | None:
        """Returns the verdict on a presented key, if it is known without waiting; otherwise call `check`.

        Needs a running loop.
        """
        fingerprint = self._fingerprint(presented)
        cached = self._verified.get(fingerprint)
        if cached is not None:
            return self._judge_cached(cached)
        wrong = self._cached_rejection(fingerprint)
        return wrong if wrong is not None or form.parse(presented) is not None else self._malformed(presented)

    async def check(self, presented: str) -> KeyVerdict:
        """Returns the verdict on a presented key, within the key store's budget."""
        fingerprint = self._fingerprint(presented)
        cached = self._verified.get(fingerprint)
        return await self._check_new(presented, fingerprint) if cached is None else await self._check_cached(cached)

    def _judge_cached(self, cached: Verified) -> KeyVerdict | None:
        age, is_unreachable = self._clock() - cached.checked_at, self._store.redis.is_unreachable
        if age >= (UNKNOWN_AFTER_SECONDS if is_unreachable else WAIT_AFTER_SECONDS):
            return None
        if age >= RECHECK_AFTER_SECONDS and not is_unreachable:
            self._start_recheck(cached)
        return self._judge(cached.key)

    async def _check_cached(self, cached: Verified) -> KeyVerdict:
        verdict = self._judge_cached(cached)
        if verdict is not None:
            return verdict
        with suppress(TimeoutError):
            await within(self._longest_wait, asyncio.wait([self._start_recheck(cached)]))
        return self._judge_again(cached)

    def recall(self, presented: str) -> Verified | None:
        """Returns the cached key, if it was valid."""
        return self._verified.get(self._fingerprint(presented))

    def invalidate(self, name: str | None) -> None:
        """Handles a change of the record `name`: looks it up at once.

        None, or a record that many share: any key may have changed, so each is looked up when next used.
        """
        self._changes += 1
        self._wrong.clear()
        if name is None or name.startswith((Plan.PREFIX, Partner.PREFIX)):
            for cached in self._verified.values():
                cached.checked(min(cached.checked_at, self._clock() - RECHECK_AFTER_SECONDS))
            return
        changed = self._by_id.get(key_id_of(name) or "")
        if changed is not None:
            # requests wait for the reply; without one, the cached record keeps its age
            changed.checked(min(changed.checked_at, self._clock() - WAIT_AFTER_SECONDS))
            changed.recheck = None
            self._start_recheck(changed)

    @property
    def can_verify_any(self) -> bool:
        """Whether any key can be verified, by the store or from memory."""
        return (self.store_watch.is_ours and self._store.redis.healthy) or self.can_verify_any_from_memory

    @property
    def can_verify_any_from_memory(self) -> bool:
        """Whether any key may still be verified without the store."""
        return self._clock() - self._last_confirmed < UNKNOWN_AFTER_SECONDS

    async def _check_new(self, presented: str, fingerprint: bytes) -> KeyVerdict:
        parts = form.parse(presented)
        if parts is None:
            return self._malformed(presented)
        # a look-up from before a change may miss it
        flight = (fingerprint, self._changes)
        return await self._flights.run(flight, lambda: self._look_up_in_turn(parts, fingerprint))

    async def _look_up_in_turn(self, parts: form.PresentedKey, fingerprint: bytes) -> KeyVerdict:
        if self._new >= _MOST_LOOKUPS + _MOST_WAITING:
            return Unknown("too many keys that are not verified yet")
        self._new += 1
        try:
            async with self._slots:
                # a look-up from after a change may have ended meanwhile
                cached = self._verified.get(fingerprint)
                if cached is not None:
                    return await self._check_cached(cached)
                return self._cached_rejection(fingerprint) or await self._look_up(parts, fingerprint)
        finally:
            self._new -= 1

    async def _look_up(self, parts: form.PresentedKey, fingerprint: bytes) -> KeyVerdict:
        now, changes, lookup = self._clock(), self._changes, self._next_number()
        sent = min(now, self._store.redis.agreed_at)
        key = await self._find(parts.key_id)
        if isinstance(key, StoreUnavailable):
            return Unknown(str(key))
        # the same work whether the id exists or not
        expected = key.digest if key is not None else _NOBODY
        matches = hmac.compare_digest(form.digest(parts.secret, self._pepper), expected)
        if key is None or not matches or key.test is not parts.test:
            if changes == self._changes:
                self._remember_wrong(fingerprint, INVALID, now + WRONG_FOR_SECONDS)
            return INVALID
        if changes != self._changes:  # this reply may be from before the change
            sent -= WAIT_AFTER_SECONDS
        seen = self._by_id.get(key.key_id)
        if seen is not None:
            key = self._newest(seen, key)
        kept = self._verified.get(fingerprint)
        if kept is None or kept.lookup < lookup:
            self._keep(Verified(fingerprint, key, sent, lookup))
        return self._confirmed(key, sent)

    def _fingerprint(self, presented: str) -> bytes:
        hashing = self._hashing.copy()  # half the cost of one with the salt
        hashing.update(presented.encode())
        return hashing.digest()

    def _next_number(self) -> int:
        self._lookups += 1
        return self._lookups

    async def _find(self, key_id: str) -> ApiKey | StoreUnavailable | None:
        """Returns the record of a key, or why it is unknown: also if the store is not ours or the record damaged."""
        found: Found
        try:
            found = await self._store.find(key_id)
        except (StoreUnavailable, ForeignStoreError) as error:
            found = error
        return self.store_watch.trusted_record(key_id, found)

    def _start_recheck(self, cached: Verified) -> asyncio.Task[None]:
        if cached.recheck is None:
            cached.recheck = asyncio.create_task(self._recheck(cached), name="check a key again")
            hold_until_done(cached.recheck, self._rechecking)
        return cached.recheck

    async def _recheck(self, cached: Verified) -> None:
        sent = min(self._clock(), self._store.redis.agreed_at)
        changes, lookup = self._changes, self._next_number()
        try:
            self._rechecked(cached, await self._find(cached.key.key_id), sent, changes, lookup)
        finally:
            if cached.recheck is asyncio.current_task():
                cached.recheck = None

    def _rechecked(
        self, cached: Verified, key: ApiKey | StoreUnavailable | None, sent: float, changes: int, lookup: int
    ) -> None:
        """Handles the end of the look-up `lookup` of a cached key, sent after so many `changes`."""
        if isinstance(key, StoreUnavailable) or lookup < cached.lookup:
            return
        if key is None and cached.lookup > self._decided:
            self.lost_writes.vanished(cached.key)
        if key is None or not hmac.compare_digest(key.digest, cached.key.digest):
            self._forget(cached)
            return
        key = self._newest(cached, key)
        if key != cached.key:  # otherwise it stays the same object, and so values derived from it stay valid
            cached.key = key
        cached.lookup = lookup
        cached.checked(sent if changes == self._changes else sent - WAIT_AFTER_SECONDS)
        self._confirmed(cached.key, sent)

    def _note_acceptance(self) -> None:
        self._decided = self._lookups
        self.lost_writes.decided()

    def _newest(self, seen: Verified, found: ApiKey) -> ApiKey:
        """Returns the valid record of a key, of which the store may have lost changes."""
        return self.lost_writes.newest(seen.key, found, decided=seen.lookup <= self._decided)

    def _confirmed(self, key: ApiKey, sent: float) -> KeyVerdict:
        verdict = self._judge(key)
        if isinstance(verdict, Accepted):
            self._last_confirmed = sent
        return verdict

    def _judge_again(self, cached: Verified) -> KeyVerdict:
        if self._verified.get(cached.fingerprint) is not cached:
            return INVALID
        if self._clock() - cached.checked_at >= UNKNOWN_AFTER_SECONDS:
            return Unknown("the key store is unreachable")
        return self._judge(cached.key)

    def _keep(self, cached: Verified) -> None:
        while len(self._verified) >= _MOST_VERIFIED:
            self._forget(next(iter(self._verified.values())))
        if cached.fingerprint in self._verified:
            self._forget(self._verified[cached.fingerprint])
        self._verified[cached.fingerprint] = cached
        self._by_id[cached.key.key_id] = cached

    def _malformed(self, presented: str) -> Rejected:
        verdict = Rejected("invalid", fault=hint_for_malformed_key(presented))
        self._remember_wrong(self._fingerprint(presented), verdict, float("inf"))
        return verdict

    def _cached_rejection(self, fingerprint: bytes) -> Rejected | None:
        wrong = self._wrong.get(fingerprint)
        return wrong[1] if wrong is not None and self._clock() < wrong[0] else None

    def _remember_wrong(self, fingerprint: bytes, verdict: Rejected, until: float) -> None:
        if len(self._wrong) >= _MOST_WRONG:
            self._wrong.clear()
        self._wrong[fingerprint] = (until, verdict)

    def _forget(self, cached: Verified) -> None:
        cached.forgotten = True
        cached.checked(cached.checked_at)
        self._verified.pop(cached.fingerprint, None)
        if self._by_id.get(cached.key.key_id) is cached:
            del self._by_id[cached.key.key_id]

    def _judge(self, key: ApiKey) -> KeyVerdict:
        status: KeyStatus = "active"
        if not key.is_always_active:
            status = key.status(datetime.fromtimestamp(self._time_of_day(), UTC))
        return Accepted(key) if status == "active" else Rejected(status, key.key_id, key.since(status))
