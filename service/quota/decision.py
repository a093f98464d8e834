"""What a request is told about the rate of its key."""

from math import ceil

import msgspec

from service.base.terms import Rate


class Decision(msgspec.Struct, frozen=True, gc=False):
    """The answer of the rate limiter to one request."""

    allowed: bool
    remaining: int  # whole requests that may come at once, as far as this worker knows; without other workers' leases
    reset: int  # seconds over which they may be spread without ever being limited, at least 1
    retry_after: int  # whole seconds, at least 1 where not `allowed`, else 0


def allowed(rate: Rate, remaining: int) -> Decision:
    return Decision(True, remaining, -(-(remaining or 1) * rate.seconds // rate.requests), 0)


def refused(seconds: float, remaining: int = 0) -> Decision:
    """Refuses the request; it may pass in `seconds`. `remaining`: as many could pass now, but it counts as more."""
    whole = max(1, ceil(seconds))
    return Decision(False, remaining, whole, whole)
