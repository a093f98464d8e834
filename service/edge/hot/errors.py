"""Errors that are told directly: those that follow from the release, and what a key is refused with for the moment.

The bytes are those that the router path would give; tests compare the two.
"""

from collections.abc import Callable
from functools import partial
from time import monotonic

from service.base.telemetry import KEY_CHECKS, LATENCY_BOUNDS, Telemetry
from service.edge.admission.admission import Admission, Allowance
from service.edge.hot import heads
from service.edge.hot.remembered import Caller, Denial, KnownError, Place, Target
from service.edge.hot.told import ToldError, trace_of
from service.edge.hot.waiting import HeldRequest
from service.edge.hot.wire import Headers, closing_tail, lines_of
from service.edge.requests.log import LONG, Made, Make
from service.edge.requests.watch import RequestWatch
from service.http.errors import kept_error, problem
from service.http.head import new_request_id
from service.http.reply import KeptError
from service.keys.record import ApiKey

_MOST_DENIALS, _MOST_FAULTS = 20_000, 1_000
_NO_LIMITS = b"\r\n\r\n"  # the end of a head that tells none
_G = ord("G")  # of a GET
_QUICK_SECONDS = LATENCY_BOUNDS[0]


class ErrorAnswers:
    """Tells errors directly. One per worker; its `HotAnswers` owns it.

    `keep` is told of errors of good keys. `places` are the paths where a refusal is told whatever is asked for there.
    """

    def __init__(
        self, admission: Admission, telemetry: Telemetry, watch: RequestWatch, keep: Callable[[str, Make], None]
    ) -> None:
        self._admission = admission
        self._telemetry = telemetry
        self._watch = watch
        self._keep = keep
        self.told = 0  # to good keys
        self.places: dict[bytes, Place] = {}
        self._denials: dict[tuple[str, str], Denial] = {}  # by key id and area
        self._of_wrong_keys: dict[tuple[str, str | None], KnownError] = {}  # by area and what is said
        self._dates: Headers | None = None  # the server's headers,
        self._date_lines = b""  # and as they travel

    def clear(self) -> None:
        """Forgets refusals. They are found again if they still hold."""
        self._denials.clear()
        self.places.clear()

    def deny(self, key: ApiKey, area: str, kept: KeptError, until: float) -> None:
        """Until then, in monotonic seconds, the key is refused in the area with what is kept."""
        if len(self._denials) >= _MOST_DENIALS:
            self._denials.clear()
        self._denials[key.key_id, area] = Denial(KnownError(kept, area, self._telemetry), key, until)

    def refuse_at(self, path: bytes, area: str) -> None:
        """Whoever is refused in the area whatever they ask for there is told so directly at this path."""
        if path not in self.places:
            self.places[path] = Place(path, area)

    def denied(
        self,
        head: bytes,
        target: Place,
        caller: Caller,
        asked: heads.HeaderValues,
        key: ApiKey | None,
        dates: Headers,
        now: float,
        began: float,
        waited: HeldRequest | None = None,
    ) -> bytes | None:
        """What the key was refused with just now, if that still holds."""
        denial = self._denials.get((key.key_id, target.area)) if key is not None else None
        if denial is None or now >= denial.until or denial.key is not key:
            return None
        error, tally = denial.error, denial.tally
        if tally is None or tally.closed or now >= denial.counts_until:
            denial.tally, denial.counts_until = self._admission.count_denied(key, target.area, error.usage, now)
        else:
            tally.n += 1
        return self._written(head, target, error, caller, asked, key, _NO_LIMITS, dates, began, waited)

    def wrong_key(
        self,
        fault: str | None,
        head: bytes,
        target: Place,
        caller: Caller,
        asked: heads.HeaderValues,
        dates: Headers,
        began: float,
    ) -> bytes:
        """What the checks say of a key that is known to be wrong for the moment."""
        said = (target.area, fault)
        error = self._of_wrong_keys.get(said)
        if error is None:
            if len(self._of_wrong_keys) >= _MOST_FAULTS:
                self._of_wrong_keys.clear()
            kept = kept_error(problem("invalid_api_key", "", fault), "")
            error = self._of_wrong_keys[said] = KnownError(kept, target.area, self._telemetry)
        self._telemetry.count(KEY_CHECKS, "invalid")
        return self._written(head, target, error, caller, asked, None, _NO_LIMITS, dates, began, None)

    def known(
        self,
        head: bytes,
        target: Target,
        caller: Caller,
        asked: heads.HeaderValues,
        allowance: Allowance,
        dates: Headers,
        began: float,
        waited: HeldRequest | None,
    ) -> bytes:
        """The error that the target had before."""
        error: KnownError = target.error  # type: ignore[attr-defined]
        tally = allowance.tallies.get(error.usage)
        if tally is None or tally.closed:
            self._admission.count_allowed(allowance, target.area, error.usage)
        else:
            tally.n += 1
        tail = allowance.unbilled
        return self._written(head, target, error, caller, asked, allowance.key, tail, dates, began, waited)

    def _written(
        self,
        head: bytes,
        target: Place,
        error: KnownError,
        caller: Caller,
        asked: heads.HeaderValues,
        key: ApiKey | None,
        tail: bytes,
        dates: Headers,
        began: float,
        waited: HeldRequest | None,
    ) -> bytes:
        """The bytes of the error, which counts from here on. Without a good key, its caller is a stranger."""
        watch = self._watch
        if caller.reader.news is not None:
            caller.reader.learn(stranger=key is None)
        request_id = asked.request_id or new_request_id()
        counted, ended = error.counted, monotonic()
        seconds = ended - began
        if seconds <= _QUICK_SECONDS:  # inline, as in `AnswerWriter`
            counted.n += 1
            counted.seconds += seconds
        else:
            counted.observe(seconds)
        line = target.line if target.line and head.startswith(target.line) else head[: head.find(b"\r\n")]
        make: Make = ToldError(target, error, caller.address, key, request_id, seconds, line, ended)
        if len(line) > LONG:
            make = Made(make())
        if key is not None:
            self.told += 1
            self._keep(key.key_id, make)
        kind = (error.status, error.outcome, target.area, key.key_id if key is not None else caller.address)
        note = partial(trace_of, head, began, seconds, waited) if watch.tracer is not None else _no_trace
        watch.look_at_error(kind, make, ended, note)
        if dates is not self._dates:
            self._dates, self._date_lines = dates, lines_of(dates)
        if caller.closes:
            tail = closing_tail(tail)
        # most ids are as long as the last one
        fields = error.fields if len(request_id) == error.id_length else error.fields_with(len(request_id))
        if head[0] == _G:
            parts = (error.begin, self._date_lines, fields, request_id, tail, error.before, request_id, error.behind)
            return b"".join(parts)
        return b"".join((error.begin, self._date_lines, fields, request_id, tail))


def _no_trace() -> None:
    """Nobody traces."""
