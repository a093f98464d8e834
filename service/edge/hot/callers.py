"""Whom the direct answer knows: keys that connections present, and whether they are good for the moment."""

from service.edge.hot import heads
from service.edge.hot.remembered import Caller
from service.http.head import valid_host
from service.keys.record import ApiKey
from service.keys.verifier import KeyVerifier, Verified

_MOST_RECALLED = 20_000


class KnownCallers:
    """Looks at the keys of callers. One per worker; its `HotAnswers` owns it. Nothing here waits."""

    def __init__(self, verifier: KeyVerifier) -> None:
        self._verifier = verifier
        self._recalled: dict[bytes, Verified] = {}  # by a good key as it was sent: its fingerprint costs more

    def look_at(self, caller: Caller, asked: heads.HeaderValues) -> None:
        """Looks at a host and a key that the connection has not sent before. The caller is known if both are good, and
        `wrong` if the key is known to be."""
        host, presented, before = asked.host, asked.presented, caller.host
        caller.presented = caller.known = caller.host = caller.wrong = None
        if host is None or not presented or (host != before and not valid_host(host)):
            return
        known = self._recalled.get(presented)
        if known is None or known.forgotten:
            found = self._verifier.recall(text_of(presented))
            if not isinstance(found, Verified):
                caller.wrong = found
                return
            known = found
            if len(self._recalled) >= _MOST_RECALLED:
                self._recalled.clear()
            self._recalled[presented] = known
        if not known.key.test:  # what is kept is live
            caller.known, caller.presented, caller.host = known, presented, host

    def good_key(self, caller: Caller, asked: heads.HeaderValues, now: float) -> ApiKey | None:
        """The presented key, if it is known to be good and the host is valid. A forgotten key is looked for again."""
        known = caller.known
        if known is None or known.forgotten or asked.presented != caller.presented or asked.host != caller.host:
            self.look_at(caller, asked)
            known = caller.known
        if known is None:
            return None
        return known.key if now < known.good_before else self._verifier.good(known, now)


def text_of(presented: bytes) -> str:
    """A presented key as the checks read it."""
    return presented.strip().decode("latin-1")
