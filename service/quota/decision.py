"""What a request is told about the rate of its key."""

from math import ceil

import msgspec

from service.base.terms import Rate


class Decision(msgspec.Struct, frozen=True, gc=False):
    """`remaining`: whole requests that this worker believes are left at once, other workers' leases not among them.

    `reset`: seconds over which they may be spread without ever being limited, at least 1. `retry_after`: whole seconds,
    at least 1, where not `allowed`; else 0.
    """

    allowed: bool
    remaining: int
    reset: int
    retry_after: int


def allowed(rate: Rate, remaining: int) -> Decision:
    return Decision(True, remaining, -(-(remaining or 1) * rate.seconds // rate.requests), 0)


def refused(seconds: float) -> Decision:
    """Until the next request may pass in `seconds`."""
    whole = max(1, ceil(seconds))
    return Decision(False, 0, whole, whole)
