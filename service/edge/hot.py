"""The direct answer: a hot GET is answered when its head is there, without scope, task, router or handler.

It is the answer that the ordinary way would give (tests hold the two against each other). Whatever is out of the
ordinary, or would have to be waited for, takes the ordinary way: another method, a body, an unusual header, a key that
is not known to be good at this moment, a limit that is reached, an answer that is not near.
"""

import time
from collections.abc import Callable
from functools import lru_cache

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.cache.near import NearCache, NearEntry
from service.cache.sieve import Sieve
from service.edge import plain
from service.edge.metering import Allowance, Meter
from service.http.caching import accepts_gzip, matches
from service.http.head import REQUEST_ID, new_request_id, valid_host
from service.http.reply import Header, Kept
from service.keys.verifier import KeyVerifier, Verified
from service.quota.usage import Outcome, outcome_of
from service.telemetry import KEY_CHECKS, REQUEST_SECONDS, REQUESTS, Telemetry

MOST_TARGETS = 100_000
MOST_TARGET_BYTES = 32 << 20
_OVERHEAD_BYTES = 700
# How many of an entry's heads are of the plain coding (wire.py).
_PLAIN = 3

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
    """A request target that was answered from what is kept, and where its answers are counted."""

    __slots__ = ("answered", "area", "digest", "not_modified", "release", "seconds", "usage")

    def __init__(self, area: str, kept: Kept, telemetry: Telemetry) -> None:
        self.area = area
        self.digest = kept.digest
        self.release = kept.release
        self.usage: Outcome = outcome_of(200, kept.outcome) or "answered"
        self.answered = telemetry.counter(REQUESTS, area, "200", kept.outcome)
        self.not_modified = telemetry.counter(REQUESTS, area, "304", "not_modified")
        self.seconds = telemetry.histogram(REQUEST_SECONDS, area)


class HotAnswers:
    """Of one worker; `answered` counts. What targets lead to, the near cache keeps; older releases' lead nowhere.

    `clock`, in seconds, is that of the verifier and the limiter: each request reads it once for all.
    """

    def __init__(
        self,
        near: NearCache,
        verifier: KeyVerifier,
        meter: Meter,
        telemetry: Telemetry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._near = near
        self._verifier = verifier
        self._meter = meter
        self._telemetry = telemetry
        self._clock = clock
        self.answered = 0
        self._accepted = telemetry.counter(KEY_CHECKS, "accepted")
        self._release: str | None = None
        self._targets: Sieve[bytes, _Target] = Sieve(MOST_TARGET_BYTES, MOST_TARGETS)
        self._names = plain.Names()
        self._dates: Headers | None = None
        self._ok = self._not_modified = b""

    def switched(self, release: str) -> None:
        """From now on requests are answered from `release`."""
        self._release = release

    def remember(self, url: bytes, area: str, kept: Kept) -> None:
        """The request for `url` was answered in the ordinary way, with what is kept."""
        if kept.release == self._release:
            line = plain.request_line(url)
            self._targets.put(line, _Target(area, kept, self._telemetry), len(line) + _OVERHEAD_BYTES)

    def answer(self, lines: list[bytes], caller: Caller, dates: Headers) -> bytes | None:
        """The whole answer as it travels, counted; None if the request has to take the ordinary way.

        `lines` are a GET's request line and headers (plain.py); `dates` are the server's own headers.
        """
        target = self._targets.get(lines[0])
        if target is None or target.release != self._release:
            return None
        now = self._clock()
        kept = self._near.get(target.digest)
        if kept is None:
            return None
        asked = self._read(lines)
        if asked is None:
            return None
        host, presented, request_id, accept, if_none_match = asked
        if host != caller.host and not self._host(caller, host):
            return None
        if presented != caller.presented and not self._recall(caller, presented):
            return None
        key = self._verifier.good(caller.known, now) if caller.known is not None else None
        allowance = self._meter.admit(key, target.area, now) if key is not None else None
        if allowance is None:
            return None
        # from here on it is answered: a token of the key's rate may have been taken
        if request_id is None or REQUEST_ID.fullmatch(request_id) is None:
            request_id = new_request_id().encode()
        if dates is not self._dates:
            self._dated(dates)
        answer = self._written(target, kept, allowance, request_id, accept, if_none_match)
        self.answered += 1
        self._accepted.value += 1
        target.seconds.observe(self._clock() - now)
        return answer

    def _written(
        self,
        target: _Target,
        kept: NearEntry,
        allowance: Allowance,
        request_id: bytes,
        accept: bytes | None,
        if_none_match: bytes | None,
    ) -> bytes:
        zipped = accept is not None and len(kept.heads) > _PLAIN and _accepts_gzip(accept)
        head, not_modified, etag = kept.heads[_PLAIN:] if zipped else kept.heads[:_PLAIN]
        limits = allowance.lines or b""
        if if_none_match and matches(if_none_match, etag):
            target.not_modified.value += 1
            self._meter.count_allowed(allowance, target.area, "not_modified")
            return b"".join((self._not_modified, not_modified, request_id, b"\r\n", limits, b"\r\n"))
        target.answered.value += 1
        self._meter.count_allowed(allowance, target.area, target.usage)
        body = kept.entry.gzipped if zipped else kept.entry.body
        return b"".join((self._ok, head, request_id, b"\r\n", limits, b"\r\n", body))

    def _read(self, lines: list[bytes]) -> tuple[bytes, bytes, bytes | None, bytes | None, bytes | None] | None:
        """Host, presented key, request id, Accept-Encoding, If-None-Match; None if anything is out of the ordinary."""
        host = presented = request_id = accept = if_none_match = None
        known = self._names.known
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            kind = known.get(name) or self._names.kind_of(name)
            if kind == plain.OTHER and colon:
                continue
            value = value.strip()
            if not colon:
                return None
            if kind == plain.KEY and presented is None:
                presented = value
            elif kind == plain.HOST and host is None:
                host = value
            elif kind == plain.REQUEST_ID and request_id is None:
                request_id = value
            elif kind == plain.ACCEPT and accept is None:
                accept = value
            elif kind == plain.MATCH and if_none_match is None:
                if_none_match = value
            elif kind != plain.CONNECTION or value.lower() != b"keep-alive":
                return None
        if host is None or presented is None:
            return None
        return host, presented, request_id, accept, if_none_match

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
