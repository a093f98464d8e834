"""The fields `RateLimit-Policy` and `RateLimit`, and `Retry-After` with them.

Their format is that of draft-ietf-httpapi-ratelimit-headers-11 (23 May 2026), as Lists of RFC 9651.
Policies: ``"rate"`` (`q` requests in `w` seconds) and ``"quota"`` (`q` in the `w` seconds of the day or month).
`RateLimit` has for each what is left (`r`) and for how many seconds it must last (`t`, the draft's effective window). A
burst above a window's requests is not advertised: `r` is never more than `q`, `t` never more than `w`. A refusal names
only the policy that refused: `Retry-After` must not end before any `t` sent with it (section 6).
"""

from functools import lru_cache

from service.base.terms import Quota, Rate
from service.quota.gcra import Decision
from service.quota.quota_state import QuotaState
from service.request.response import Header


def limit_headers(
    rate: Rate | None, decision: Decision | None, quota: Quota | None = None, standing: QuotaState | None = None
) -> tuple[Header, ...]:
    """Returns the headers of an admitted request; none for a key without limits.

    A limit that is unknown at the moment (`decision` or `standing` is None) is left out.
    """
    shown = _shown(rate, decision, quota, standing)
    return (shown[0], (b"ratelimit", shown[1])) if shown is not None else ()


def rate_limited_headers(
    rate: Rate, decision: Decision, quota: Quota | None = None, standing: QuotaState | None = None
) -> tuple[Header, ...]:
    """Returns the headers of a 429 `rate_limited`."""
    window = standing.window if standing else 0
    policy = _policy(rate, quota if standing else None, window)
    return (policy, *_refusal(b"rate", min(decision.remaining, rate.requests), decision.retry_after))


def quota_exhausted_headers(rate: Rate | None, quota: Quota, standing: QuotaState) -> tuple[Header, ...]:
    """Returns the headers of a 429 `quota_exhausted`."""
    return (_policy(rate, quota, standing.window), *_refusal(b"quota", standing.remaining, max(1, standing.resets_in)))


def _shown(
    rate: Rate | None, decision: Decision | None, quota: Quota | None, standing: QuotaState | None
) -> tuple[Header, bytes] | None:
    """Returns the policy, and what is left."""
    left = None
    if rate is None or decision is None:
        rate = None
    else:
        remaining, reset = decision.remaining, decision.reset
        if remaining > rate.requests:
            remaining, reset = rate.requests, rate.seconds
        left = _item(b"rate", remaining, reset)
    if quota is None or standing is None:
        return (_policy(rate, None, 0), left) if left is not None else None
    window = standing.window
    remaining = max(0, min(standing.remaining, quota.requests))
    of_quota = _item(b"quota", remaining, max(0, min(standing.resets_in, window)))
    return _policy(rate, quota, window), of_quota if left is None else b"%s, %s" % (left, of_quota)


def _refusal(name: bytes, left: int, seconds: int) -> tuple[Header, Header]:
    return (b"ratelimit", _item(name, left, seconds)), (b"retry-after", b"%d" % seconds)


def _item(name: bytes, remaining: int, seconds: int) -> bytes:
    return b'"%s";r=%d;t=%d' % (name, remaining, seconds)


@lru_cache(maxsize=1024)
def _policy(rate: Rate | None, quota: Quota | None, window: int) -> Header:
    """Returns the same bytes for the same terms: the draft wants the field to stay the same across answers."""
    items = []
    if rate is not None:
        items.append(b'"rate";q=%d;w=%d' % (rate.requests, rate.seconds))
    if quota is not None:
        items.append(b'"quota";q=%d;w=%d' % (quota.requests, window))
    return (b"ratelimit-policy", b", ".join(items))
