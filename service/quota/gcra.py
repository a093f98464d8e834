"""The generic cell rate algorithm: how many requests of a key may pass now.

Source: ITU-T Recommendation I.371, annex A, the virtual scheduling algorithm. A bucket is one number, the theoretical
arrival time (TAT): the time when all granted tokens are paid for at the key's rate. No code runs between decisions, and
a refusal changes no state.

Pure: it uses neither clock nor store. `lease.lua` decides the same inside Redis.
"""

from functools import lru_cache
from math import ceil, gcd

import msgspec

from service.base.terms import Rate


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The answer of the rate limiter to one request."""

    allowed: bool
    remaining: int  # whole requests that may come at once, by this worker's data; without other workers' leases
    reset: int  # seconds over which they may be spread without ever being limited, at least 1
    retry_after: int  # whole seconds, at least 1 where not `allowed`, else 0


def allowed(rate: Rate, remaining: int) -> Decision:
    return Decision(True, remaining, -(-(remaining or 1) * rate.seconds // rate.requests), 0)


def refused(seconds: float, remaining: int = 0) -> Decision:
    """Returns a refusal: retry in `seconds`. `remaining` requests could pass now, but this one counts as more."""
    whole = max(1, ceil(seconds))
    return Decision(False, remaining, whole, whole)


# Below this, a double (the only number of Lua) holds every product and every time in microseconds exactly.
_EXACT = 2**52


class Pace(msgspec.Struct, frozen=True):
    """A rate as exact whole numbers: `requests` in `micros` microseconds (lowest terms), `burst` at once."""

    requests: int
    micros: int
    burst: int

    def cost(self, tokens: int) -> int:
        """Returns the microseconds of `tokens` at this pace, rounded up: a decision never grants more than the rate,
        and at most a microsecond's worth less.
        """
        return -(-tokens * self.micros // self.requests)


class GcraDecision(msgspec.Struct, frozen=True):
    """The result of `decide`."""

    granted: int  # tokens
    remaining: int  # whole tokens left
    retry_after: int  # microseconds until there are `least`; 0 if all `wanted` were granted
    tat: int  # of the bucket after it


@lru_cache(maxsize=1024)
def pace_of(rate: Rate) -> Pace:
    """Returns the rate as exact numbers. A burst too large for that (over a million per hour) is capped."""
    micros = rate.seconds * 1_000_000
    common = gcd(micros, rate.requests)
    micros //= common
    return Pace(rate.requests // common, micros, max(1, min(rate.burst, _EXACT // micros)))


def decide(tat: int | None, rate: Rate, now: int, wanted: int, least: int = 1) -> GcraDecision:
    """Grants as many of `wanted` tokens as there are at `now`, none if there are fewer than `least`.

    `tat` is that of the bucket, None for a full one; it and `now` are microseconds of one clock. A TAT further ahead
    than the burst allows (the clock went back, the rate was raised, the burst was lowered, the record is damaged)
    counts as an empty bucket, which fills from now on.

    Raises:
        ValueError: if `least` is not positive, or more than `wanted`.
    """
    if not 1 <= least <= wanted:
        raise ValueError("ask for at least 1 token")
    pace = pace_of(rate)
    horizon = pace.cost(pace.burst)
    owed = 0 if tat is None else min(max(tat - now, 0), horizon)
    granted = min(wanted, _whole(pace, horizon - owed))
    if granted < least:
        granted = 0
    owed += pace.cost(granted)
    free = horizon - owed
    retry_after = 0 if granted == wanted else max(pace.cost(least) - free, 1)
    return GcraDecision(granted, _whole(pace, free), retry_after, now + owed)


def _whole(pace: Pace, free: int) -> int:
    """Returns the whole tokens in `free` microseconds of a bucket."""
    return min(free * pace.requests // pace.micros, pace.burst)
