"""The direct answer: a hot GET is answered when its headers have been parsed, without scope, task, router or handler.

It is the answer that the ordinary way would give (tests hold the two against each other). Whatever is out of the
ordinary, or would have to be waited for, takes the ordinary way: another method, a body, an unusual header, a key that
is not known to be good at this moment, a limit that is reached, an answer that is not near.
"""

import time
from functools import lru_cache

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.cache.near import NearCache
from service.cache.sieve import Sieve
from service.edge.metering import Meter
from service.http.caching import accepts_gzip, matches
from service.http.head import REQUEST_ID, new_request_id, valid_host
from service.http.reply import Header, Kept
from service.keys.verifier import KeyVerifier, Verified
from service.telemetry import KEY_CHECKS, REQUEST_SECONDS, REQUESTS, Sample, Telemetry

MOST_TARGETS = 100_000
MOST_TARGET_BYTES = 32 << 20
_OVERHEAD_BYTES = 700
# How many of an entry's heads are of the plain coding (wire.py).
_PLAIN = 3
_ID = b"x-request-id: "
_ACCEPTED = (KEY_CHECKS.name, ("accepted",))

_KEY, _HOST, _REQUEST_ID, _ACCEPT, _MATCH, _CONNECTION, _UNUSUAL = range(7)
_KINDS = {
    b"x-api-key": _KEY,
    b"host": _HOST,
    b"x-request-id": _REQUEST_ID,
    b"accept-encoding": _ACCEPT,
    b"if-none-match": _MATCH,
    b"connection": _CONNECTION,
    **dict.fromkeys((b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"te", b"trailer"), _UNUSUAL),
}
Headers = list[Header]
_accepts_gzip = lru_cache(maxsize=256)(accepts_gzip)


class Caller:
    """What a connection showed last, and was found to be good: most send the same again."""

    __slots__ = ("host", "known", "presented")

    def __init__(self) -> None:
        self.presented: bytes | None = None
        self.known: Verified | None = None
        self.host: bytes | None = None


class _Target:
    """A request target that was answered from what is kept. The samples are what an answer counts as."""

    __slots__ = ("answered", "area", "digest", "not_modified", "outcome", "release")

    def __init__(self, area: str, kept: Kept) -> None:
        self.area = area
        self.digest = kept.digest
        self.release = kept.release
        self.outcome = kept.outcome
        self.answered = (REQUESTS.name, (area, "200", kept.outcome))
        self.not_modified = (REQUESTS.name, (area, "304", "not_modified"))


def _read(headers: Headers) -> tuple[bytes, bytes, bytes | None, bytes | None, bytes | None] | None:
    """Host, presented key, request id, Accept-Encoding, If-None-Match; None if anything is out of the ordinary."""
    host = presented = request_id = accept = if_none_match = None
    for name, value in headers:
        kind = _KINDS.get(name)
        if kind is None:
            continue
        if kind == _KEY and presented is None:
            presented = value
        elif kind == _HOST and host is None:
            host = value
        elif kind == _REQUEST_ID and request_id is None:
            request_id = value
        elif kind == _ACCEPT and accept is None:
            accept = value
        elif kind == _MATCH and if_none_match is None:
            if_none_match = value
        elif kind != _CONNECTION or value.lower() != b"keep-alive":
            return None
    if host is None or presented is None:
        return None
    return host, presented, request_id, accept, if_none_match


class HotAnswers:
    """Of one worker; `answered` counts. What targets lead to, the near cache keeps; older releases' lead nowhere."""

    def __init__(
        self,
        near: NearCache,
        verifier: KeyVerifier,
        meter: Meter,
        telemetry: Telemetry,
    ) -> None:
        self._near = near
        self._verifier = verifier
        self._meter = meter
        self._telemetry = telemetry
        self.answered = 0
        self._release: str | None = None
        self._targets: Sieve[bytes, _Target] = Sieve(MOST_TARGET_BYTES, MOST_TARGETS)
        self._dates: Headers | None = None
        self._ok = self._not_modified = b""

    def switched(self, release: str) -> None:
        """From now on requests are answered from `release`."""
        self._release = release

    def remember(self, target: bytes, area: str, kept: Kept) -> None:
        """The request `target` was answered in the ordinary way, with what is kept."""
        if kept.release == self._release:
            self._targets.put(target, _Target(area, kept), len(target) + _OVERHEAD_BYTES)

    def answer(self, url: bytes, headers: Headers, caller: Caller, dates: Headers) -> bytes | None:
        """The whole answer as it travels, counted; None if the request has to take the ordinary way.

        `headers` are those of a GET without a body, names in lower case; `dates` are the server's own headers.
        """
        target = self._targets.get(url)
        if target is None or target.release != self._release:
            return None
        started = time.perf_counter()
        asked = _read(headers)
        kept = self._near.get(target.digest)
        if asked is None or kept is None:
            return None
        host, presented, request_id, accept, if_none_match = asked
        if host != caller.host and not self._host(caller, host):
            return None
        if presented != caller.presented and not self._recall(caller, presented):
            return None
        key = self._verifier.good(caller.known) if caller.known is not None else None
        limits = self._meter.admit(key, target.area) if key is not None else None
        if key is None or limits is None:
            return None
        # from here on it is answered: a token of the key's rate may have been taken
        if request_id is None or REQUEST_ID.fullmatch(request_id) is None:
            request_id = new_request_id().encode()
        if dates is not self._dates:
            self._dated(dates)
        zipped = accept is not None and len(kept.heads) > _PLAIN and _accepts_gzip(accept)
        head, not_modified, etag = kept.heads[_PLAIN:] if zipped else kept.heads[:_PLAIN]
        if if_none_match and matches(if_none_match, etag):
            self._meter.count(key, target.area, 304, "not_modified")
            self._count(target.not_modified, target.area, started)
            return b"".join((self._not_modified, not_modified, _ID, request_id, b"\r\n", limits, b"\r\n"))
        self._meter.count(key, target.area, 200, target.outcome)
        self._count(target.answered, target.area, started)
        body = kept.entry.gzipped if zipped else kept.entry.body
        return b"".join((self._ok, head, _ID, request_id, b"\r\n", limits, b"\r\n", body))

    def _count(self, sample: Sample, area: str, started: float) -> None:
        self.answered += 1
        counters = self._telemetry.counters
        counters[sample] += 1
        counters[_ACCEPTED] += 1
        self._telemetry.observe(REQUEST_SECONDS, time.perf_counter() - started, area)

    def _host(self, caller: Caller, host: bytes) -> bool:
        if not valid_host(host):
            return False
        caller.host = host
        return True

    def _recall(self, caller: Caller, presented: bytes) -> bool:
        caller.presented = caller.known = None
        known = self._verifier.recall(presented.decode("latin-1").strip())
        if known is None:
            return False
        caller.presented, caller.known = presented, known
        return True

    def _dated(self, dates: Headers) -> None:
        lines = b"".join(b"%s: %s\r\n" % field for field in dates)
        self._ok, self._not_modified = STATUS_LINE[200] + lines, STATUS_LINE[304] + lines
        self._dates = dates
