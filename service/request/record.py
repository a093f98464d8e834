"""Records a request that was answered: its metrics, its usage, its line in the access log, its trace."""

import os
import time
from collections.abc import Callable

import msgspec

from service.base.ipc import AccessLogEntry
from service.base.masking import masked
from service.base.telemetry import ANSWERS, REJECTED, REQUEST_SECONDS, REQUESTS, TEST_REQUESTS, JointCount, Telemetry
from service.keys.record import ApiKey
from service.request.access_log import LONG, Made, Make
from service.request.admit import Admission
from service.request.errors import problem
from service.request.request import NO_AREA, Request
from service.request.response import Response
from service.request.sampling import RequestWatch, shortened, stamp

# Longest registered method (RFC 9110, 16.1), in characters. A longer one could be a part of a key.
_LONGEST_METHOD = len("UPDATEREDIRECTREF")
# Area, status, outcome; for a found answer, also the tier and the release.
_JointKey = tuple[str | int, ...]


class Recorder:
    """Records the requests of one worker, which owns it.

    `keep_error` is called with the errors of valid keys: the key's id, and the Make of the line.
    """

    def __init__(
        self, telemetry: Telemetry, watch: RequestWatch, admission: Admission, keep_error: Callable[[str, Make], None]
    ) -> None:
        self._telemetry = telemetry
        self._watch = watch
        self._admission = admission
        self._keep_error = keep_error
        self._joints: dict[_JointKey, JointCount] = {}

    def switch(self) -> None:
        """Switches the release, and with it the figures that answers count in."""
        self._joints.clear()

    def record(self, request: Request, status: int, outcome: str, seconds: float) -> None:
        """Counts and logs a request that was answered with `status`, `seconds` after its head had arrived."""
        if request.is_test:  # a deliberate 503 must raise no alarm
            self._telemetry.count(TEST_REQUESTS, str(status), outcome)
            self._watch.sample_now(AccessRecord.of(request, status, outcome, seconds)(), seconds, request.trace)
            return
        found = request.found
        if request.counted:
            self._count_several(request, status, outcome, seconds)
        else:
            kind: _JointKey = (request.area, status, outcome)
            if found is not None:
                kind = (request.area, status, outcome, found.tier, found.release)
            joint = self._joints.get(kind) or self._joint(kind, request, status, outcome)
            joint.observe(seconds)
            self._admission.count(request, status, outcome)
        if status >= 400:
            self._record_error(request, status, outcome, seconds)
            return
        watch = self._watch
        is_missed = found is not None and found.tier == "warehouse"
        if watch.skip > 0 and seconds < watch.slow and not is_missed and request.trace is None:
            watch.skip -= 1
        else:
            make = AccessRecord.of(request, status, outcome, seconds)
            if is_missed or request.trace is not None:
                watch.sample_now(make(), seconds, request.trace)
            else:
                watch.sample_in_turn(make, slow=seconds >= watch.slow)

    def rejected(self, code: str) -> None:
        """Counts a request that was refused before it could be read."""
        self._telemetry.count(REJECTED, code)

    def refusal(self, code: str, request_id: bytes, address: str | None, detail: str | None = None) -> Response:
        """Returns the answer to such a request, and counts and logs it. Its method and path may not have arrived."""
        response = problem(code, detail)
        self._telemetry.count(REQUESTS, NO_AREA, str(response.status), code)
        line = AccessLogEntry(
            time=stamp(time.time()),
            request_id=request_id.decode(),
            status=response.status,
            method="-",
            path="-",
            outcome=code,
            milliseconds=0.0,
            pid=os.getpid(),
            address=address,
            detail=detail,
        )
        self._watch.sample_now(line, 0.0)
        return response

    def _record_error(self, request: Request, status: int, outcome: str, seconds: float) -> None:
        make: Make = AccessRecord.of(request, status, outcome, seconds)
        if len(request.sent_path) + len(request.query) > LONG:
            make = Made(make())
        if request.key is not None:
            self._keep_error(request.key.key_id, make)
            self._watch.samples.add_error(request.key.key_id, make)
        if request.trace is not None:
            self._watch.sample_now(make(), seconds, request.trace)
            return
        area = request.area if request.area != NO_AREA else None
        self._watch.log_error_in_turn(
            (status, outcome, area, request.key_id or request.address), make, time.monotonic()
        )

    def _count_several(self, request: Request, status: int, outcome: str, seconds: float) -> None:
        area = request.area
        self._telemetry.count(REQUESTS, area, str(status), outcome)
        self._telemetry.observe(REQUEST_SECONDS, seconds, area)
        for one in request.counted:
            if one.tier is not None and request.found is not None:
                self._telemetry.count(ANSWERS, area, one.tier, request.found.release, amount=one.number)
            self._admission.count(request, one.status, one.outcome, one.number)

    def _joint(self, kind: _JointKey, request: Request, status: int, outcome: str) -> JointCount:
        area, found = request.area, request.found
        counted = [(REQUESTS, (area, str(status), outcome))]
        if found is not None and status < 400:
            counted.append((ANSWERS, (area, found.tier, found.release)))
        joint = self._joints[kind] = self._telemetry.joint((REQUEST_SECONDS, (area,)), *counted)
        return joint


class AccessRecord(msgspec.Struct, gc=False):
    """The parts of a request that its line needs. Thousands are kept, so the garbage collector skips them."""

    request_id: bytes
    status: int
    method: str
    path: str
    query: str | bytes  # canonical, or as it was sent, in bytes
    outcome: str
    seconds: float
    at: float  # seconds since 1970
    area: str
    tier: str | None
    release: str | None
    key: ApiKey | None
    key_id: str | None
    address: str | None

    @classmethod
    def of(cls, request: Request, status: int, outcome: str, seconds: float) -> "AccessRecord":
        target, found = request.target, request.found if status < 400 else None
        query: str | bytes = request.query
        if request.shown_query is not None:
            query = request.shown_query
        elif target is not None and found is not None:
            query = target.query
        return cls(
            request.request_id,
            status,
            request.method,
            request.sent_path,
            query,
            outcome,
            seconds,
            time.time(),
            request.area,
            found.tier if found is not None else None,
            found.release if found is not None else None,
            request.key,
            request.key_id,
            request.address,
        )

    def __call__(self) -> AccessLogEntry:
        # the address may contain a key by mistake, and may be long
        query = self.query if isinstance(self.query, str) else self.query.decode("latin-1")
        key = self.key
        return AccessLogEntry(
            time=stamp(self.at),
            request_id=self.request_id.decode(),
            status=self.status,
            method=masked(self.method)[:_LONGEST_METHOD],
            path=shortened(self.path),
            outcome=self.outcome,
            milliseconds=round(self.seconds * 1000, 3),
            pid=os.getpid(),
            area=self.area if self.area != NO_AREA else None,
            query=shortened(query) or None,
            tier=self.tier,
            release=self.release,
            key_id=self.key_id,
            partner=key.partner if key is not None else None,
            test=(key is not None and key.test) or None,
            address=self.address,
        )
