"""The fields `RateLimit-Policy` and `RateLimit`, and `Retry-After` with them.

Their format is that of draft-ietf-httpapi-ratelimit-headers-11 (23 May 2026), as Lists of RFC 9651.
Policies: ``"rate"`` (`q` requests in `w` seconds) and ``"quota"`` (`q` in the `w` seconds of the day or month), and
``"partner-rate"`` and ``"partner-quota"``, which all keys of a partner share. Of two of a kind, `RateLimit` has the one
with less left.
`RateLimit` has for each what is left (`r`) and for how many seconds it must last (`t`, the draft's effective window). A
burst above a window's requests is not advertised: `r` is never more than `q`, `t` never more than `w`. A refusal names
only the policy that refused: `Retry-After` must not end before any `t` sent with it (section 6).
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter

from service.base.terms import Quota, Rate
from service.request.limits import Passed
from service.request.response import Header


def limit_headers(passed: Sequence[Passed]) -> tuple[Header, ...]:
    """Returns the headers of an admitted request; none for a key without limits.

    A limit that is unknown at the moment (its `decision` or `standing` is None) is left out.
    """
    left = [item for item in (_tightest(_rates_left(passed)), _tightest(_quotas_left(passed))) if item is not None]
    return (_policies(passed), (b"ratelimit", b", ".join(left))) if left else ()


def rate_limited_headers(passed: Sequence[Passed], at: int) -> tuple[Header, ...]:
    """Returns the headers of a 429 `rate_limited`: the limit numbered `at` refused."""
    (_, prefix, rate, _), decision, _ = passed[at]
    if rate is None or decision is None:
        return ()
    left = min(decision.remaining, rate.requests)
    return (_policies(passed, refused=True), *_refusal(prefix + b"rate", left, decision.retry_after))


def quota_exhausted_headers(passed: Sequence[Passed], at: int) -> tuple[Header, ...]:
    """Returns the headers of a 429 `quota_exhausted`: the limit numbered `at` refused."""
    limit, _, standing = passed[at]
    if standing is None:
        return ()
    return (
        _policies(passed, refused=True),
        *_refusal(limit.prefix + b"quota", standing.remaining, max(1, standing.resets_in)),
    )


def _rates_left(passed: Sequence[Passed]) -> Iterator[tuple[int, bytes]]:
    for (_, prefix, rate, _), decision, _ in passed:
        if rate is not None and decision is not None:
            remaining, reset = decision.remaining, decision.reset
            if remaining > rate.requests:
                remaining, reset = rate.requests, rate.seconds
            yield remaining, _item(prefix + b"rate", remaining, reset)


def _quotas_left(passed: Sequence[Passed]) -> Iterator[tuple[int, bytes]]:
    for (_, prefix, _, quota), _, standing in passed:
        if quota is not None and standing is not None:
            remaining = max(0, min(standing.remaining, quota.requests))
            resets_in = max(0, min(standing.resets_in, standing.window))
            yield remaining, _item(prefix + b"quota", remaining, resets_in)


def _tightest(left: Iterable[tuple[int, bytes]]) -> bytes | None:
    return min(left, key=itemgetter(0), default=(0, None))[1]


def _refusal(name: bytes, left: int, seconds: int) -> tuple[Header, Header]:
    return (b"ratelimit", _item(name, left, seconds)), (b"retry-after", b"%d" % seconds)


def _item(name: bytes, remaining: int, seconds: int) -> bytes:
    return b'"%s";r=%d;t=%d' % (name, remaining, seconds)


def _policies(passed: Sequence[Passed], *, refused: bool = False) -> Header:
    """Returns the header with every policy of which something is known; of a refusal, with every rate."""
    return _written(
        tuple(
            (
                limit.prefix,
                limit.rate if refused or decision is not None else None,
                *((limit.quota, standing.window) if standing is not None else (None, 0)),
            )
            for limit, decision, standing in passed
        )
    )


@lru_cache(maxsize=1024)
def _written(policies: tuple[tuple[bytes, Rate | None, Quota | None, int], ...]) -> Header:
    """Returns the same bytes for the same terms: the draft wants the field to stay the same across answers."""
    items = []
    for prefix, rate, quota, window in policies:
        if rate is not None:
            items.append(b'"%brate";q=%d;w=%d' % (prefix, rate.requests, rate.seconds))
        if quota is not None:
            items.append(b'"%bquota";q=%d;w=%d' % (prefix, quota.requests, window))
    return (b"ratelimit-policy", b", ".join(items))
