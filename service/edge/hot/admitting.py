"""The key of a hot request, and a token of its rate and quota: where they have to be asked for, the request waits.

It waits here, and not on the router path. There, thousands of requests take longer than a key is good without being
asked for, and than the tokens leased for them live; then all would wait for ever.
"""

from collections.abc import Callable
from time import monotonic
from typing import Protocol

from service.edge.admission.admission import Admission, Allowance
from service.edge.hot.callers import KnownCallers, text_of
from service.edge.hot.errors import ErrorAnswers
from service.edge.hot.heads import HeaderValues
from service.edge.hot.remembered import Caller, FoundOut, Place
from service.edge.hot.targets import Targets
from service.edge.hot.waiting import FOR_ROUTER, WAITING, HeldRequest, Holder, HotOutcome
from service.edge.hot.wire import Headers
from service.http.head import valid_host
from service.keys.record import ApiKey
from service.keys.verdict import KeyVerdict, Rejected
from service.keys.verifier import KeyVerifier


class Answer(Protocol):
    """`HotAnswers.answer`."""

    def __call__(
        self, head: bytes, caller: Caller, dates: Headers, now: float, began: float, holder: Holder | None
    ) -> HotOutcome: ...


class Admitting:
    """Lets hot requests wait until they may pass. One per worker; its `HotAnswers` owns it.

    `answer` answers a request whose key is known by now.
    """

    def __init__(
        self,
        verifier: KeyVerifier,
        callers: KnownCallers,
        admission: Admission,
        errors: ErrorAnswers,
        targets: Targets,
        answer: Answer,
    ) -> None:
        self._verifier = verifier
        self._callers = callers
        self._admission = admission
        self._errors = errors
        self._targets = targets
        self._answer = answer

    def stranger(
        self,
        head: bytes,
        target: Place,
        caller: Caller,
        asked: HeaderValues,
        dates: Headers,
        began: float,
        holder: Holder | None,
    ) -> HotOutcome:
        """What a key is told that is known to be wrong for the moment. One that is not known is asked for."""
        wrong = caller.wrong
        if wrong is None:
            return self.for_key(head, caller, asked, dates, holder)
        return self._errors.wrong_key(wrong.fault, head, target, caller, asked, dates, began)

    def for_key(
        self, head: bytes, caller: Caller, asked: HeaderValues, dates: Headers, holder: Holder | None
    ) -> HotOutcome:
        """The request waits until the key store was asked about its key, or asked again if that was too long ago."""
        known, host, presented = caller.known, asked.host, asked.presented
        if holder is None:
            return FOR_ROUTER

        def told(verdict: KeyVerdict | None) -> None:
            is_there = holder.told(lambda: self._with_key(head, caller, asked, dates, holder, verdict))
            if not is_there and isinstance(verdict, Rejected):  # a scan counts, also one that hangs up
                self._with_key(head, caller, asked, dates, None, verdict)

        if known is not None:
            waits = self._verifier.when_rechecked(known, told)
            if waits:
                self._admission.expect(known.key)
        elif presented and host is not None and valid_host(host):
            waits = self._verifier.when_checked(text_of(presented), told)
        else:
            return FOR_ROUTER
        return WAITING if waits else FOR_ROUTER

    def for_token(
        self, waiting: HeldRequest, key: ApiKey | None, now: float, finish: Callable[[Allowance], HotOutcome]
    ) -> HotOutcome:
        """The request waits for a token, or first of all for its key. With the token, `finish` makes its outcome."""
        area, holder = waiting.target.area, waiting.holder
        if key is None:
            return self.for_key(waiting.head, waiting.caller, waiting.asked, waiting.dates, holder)
        if holder is None:
            return FOR_ROUTER

        def told(allowance: Allowance | None) -> None:
            holder.told(lambda: self._with_token(waiting, key, allowance, finish))

        return WAITING if self._admission.ask(key, area, now, told) else FOR_ROUTER

    def _with_key(
        self,
        head: bytes,
        caller: Caller,
        asked: HeaderValues,
        dates: Headers,
        holder: Holder | None,
        verdict: KeyVerdict | None,
    ) -> HotOutcome:
        now = monotonic()
        if self._callers.good_key(caller, asked, now) is None and caller.wrong is None:
            # the checks need not ask again, and wait as long again for a store that is away
            caller.found_out = FoundOut(head, verdict)
            return FOR_ROUTER
        return self._answer(head, caller, dates, now, caller.arrived_at, holder)

    def _with_token(
        self, waiting: HeldRequest, key: ApiKey, allowance: Allowance | None, finish: Callable[[Allowance], HotOutcome]
    ) -> HotOutcome:
        waiting.admitted = now = monotonic()
        target, caller, asked = waiting.target, waiting.caller, waiting.asked
        if self._callers.good_key(caller, asked, now) != key:
            return FOR_ROUTER
        if target.release != self._targets.release:
            caller.found_out = FoundOut(waiting.head, allowance=allowance)  # the token is taken
            return FOR_ROUTER
        if allowance is not None:
            return finish(allowance)
        # of all who waited together, the first is refused by the checks
        dates, began = waiting.dates, waiting.began
        return self._errors.denied(waiting.head, target, caller, asked, key, dates, now, began, waiting) or FOR_ROUTER
