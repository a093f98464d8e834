"""The limits that hold for a request: those of its key, and those that its partner's keys share."""

from typing import NamedTuple

from service.base.terms import Quota, Rate
from service.keys.record import ApiKey
from service.quota.gcra import Decision, pace_of
from service.quota.names import partner_id
from service.quota.quota_state import QuotaState

OF_KEY, OF_PARTNER = b"", b"partner-"


class Limit(NamedTuple):
    """The rate and quota of one holder. `holder` is the id that they are kept under: a key's, or `partner_id`."""

    holder: str
    prefix: bytes  # of the policies' names in header fields
    rate: Rate | None
    quota: Quota | None


class Passed(NamedTuple):
    """A limit that a request has passed, and what is left of it; None if it is unknown, or there is none."""

    limit: Limit
    decision: Decision | None = None
    standing: QuotaState | None = None


def limits_of_key(key: ApiKey) -> tuple[Limit, ...]:
    """Returns the limits of a key, its own first: those of a partner apply only to what the key itself may do."""
    terms, shared = key.terms, key.shared
    own = Limit(key.key_id, OF_KEY, terms.rate, terms.quota)
    if shared is None:
        return (own,) if terms.rate is not None or terms.quota is not None else ()
    others = Limit(partner_id(shared.name), OF_PARTNER, shared.terms.rate, shared.terms.quota)
    return tuple(limit for limit in (own, others) if limit.rate is not None or limit.quota is not None)


def most_together(limits: tuple[Limit, ...]) -> int:
    """Returns how many requests could ever pass together."""
    rates = [pace_of(limit.rate).burst for limit in limits if limit.rate is not None]
    return min([*rates, *(limit.quota.requests for limit in limits if limit.quota is not None)])
