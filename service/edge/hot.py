"""The direct answer: a hot GET is answered when its head is there, without scope, task, router or handler.

It is the answer that the ordinary way would give (tests hold the two against each other). Whatever is out of the
ordinary, or would have to be waited for, takes the ordinary way: another method, a body, an unusual header, a key that
is not known to be good at this moment, a limit that is reached, an answer that is not near.
"""

import time
from functools import lru_cache

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from service.cache.near import NearCache, NearEntry
from service.cache.sieve import Sieve
from service.edge import plain
from service.edge.metering import Allowance, Meter
from service.http.caching import accepts_gzip, matches
from service.http.head import new_request_id, valid_host, valid_request_id
from service.http.reply import Header, Kept
from service.keys.verifier import KeyVerifier, Verified
from service.quota.usage import Outcome, outcome_of
from service.telemetry import REQUEST_SECONDS, REQUESTS, Telemetry

MOST_TARGETS = 100_000
MOST_TARGET_BYTES = 32 << 20
_OVERHEAD_BYTES = 700

Headers = list[Header]
_accepts_gzip = lru_cache(maxsize=256)(accepts_gzip)


class Caller:
    """What a connection showed last, and was found to be good: most send the same again."""

    __slots__ = ("host", "known", "presented", "reader")

    def __init__(self, fields: plain.Fields) -> None:
        self.reader = plain.HeadReader(fields)
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

    Each call of ours costs as much as half a look-up, so there are few.
    """

    def __init__(self, near: NearCache, verifier: KeyVerifier, meter: Meter, telemetry: Telemetry) -> None:
        self._find_near = near.find
        self._verifier = verifier
        self._meter = meter
        self._telemetry = telemetry
        self.answered = 0
        self._release: str | None = None
        self._targets: Sieve[bytes, _Target] = Sieve(MOST_TARGET_BYTES, MOST_TARGETS)
        self._find_target = self._targets.find
        self.fields = plain.Fields()
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

    def answer(self, head: bytes, caller: Caller, dates: Headers, now: float) -> bytes | None:
        """The whole answer as it travels, counted; None if the request has to take the ordinary way.

        `head` is what arrived, from its request line on; `dates` are the server's own headers; `now` is in monotonic
        seconds.
        """
        end = head.find(b"\r\n")
        node = self._find_target(head[:end])
        if node is None or node.value.release != self._release:
            return None
        node.visited = True
        target: _Target = node.value
        node = self._find_near(target.digest)
        asked = caller.reader.read(head, end) if node is not None else None
        if node is None or asked is None:
            return None
        if asked.presented != caller.presented or asked.host != caller.host:
            self._look_at(caller, asked)
        known = caller.known
        if known is None:
            return None
        key = known.key if now < known.good_before else self._verifier.good(known, now)
        allowance = self._meter.admit(key, target.area, now) if key is not None else None
        if allowance is None:
            return None
        # from here on it is answered: a token of the key's rate may have been taken
        if caller.reader.news is not None:
            caller.reader.learn()
        if dates is not self._dates:
            self._dated(dates)
        node.visited = True
        self.answered += 1
        return self._written(target, node.value, allowance, asked, now)

    def _written(self, target: _Target, kept: NearEntry, allowance: Allowance, asked: plain.Asked, now: float) -> bytes:
        accept = asked.accept_encoding
        if accept is not None and len(kept.heads) > 1 and _accepts_gzip(accept):
            (head, not_modified, etag), body = kept.heads[1], kept.entry.gzipped
        else:
            (head, not_modified, etag), body = kept.heads[0], kept.entry.body
        request_id = asked.request_id
        if request_id is None or not valid_request_id(request_id):
            request_id = new_request_id().encode()
        usage, counter, ok = target.usage, target.answered, self._ok
        if asked.if_none_match and matches(asked.if_none_match, etag):
            usage, counter, ok = "not_modified", target.not_modified, self._not_modified
            head, body = not_modified, b""
        counter.value += 1
        tally = allowance.tallies.get(usage)
        if tally is None or tally.closed:
            self._meter.count_allowed(allowance, target.area, usage)
        else:
            tally.n += 1
        target.seconds.observe(time.monotonic() - now)
        return b"".join((ok, head, request_id, allowance.tail, body))

    def _look_at(self, caller: Caller, asked: plain.Asked) -> None:
        """At a host and a key that the connection did not show before: they are known if both are good."""
        caller.presented = caller.known = caller.host = None
        host, presented = asked.host, asked.presented
        if host is not None and valid_host(host) and presented is not None:
            caller.known = self._verifier.recall(presented.decode("latin-1").strip())
            caller.presented, caller.host = presented, host

    def _dated(self, dates: Headers) -> None:
        lines = b"".join(b"%s: %s\r\n" % field for field in dates)
        self._ok, self._not_modified = STATUS_LINE[200] + lines, STATUS_LINE[304] + lines
        self._dates = dates
