"""Rights on the operators' listener: one token may read, one may read and write, and one may manage keys."""

import hmac
from enum import Flag
from hashlib import sha256

from service.operators.origins import Hosts, is_cross_site
from service.request.response import Header

_SCHEME = b"bearer"


class Right(Flag):
    """What a request may do. An endpoint needs one right of several."""

    NONE = 0
    READ = 1
    WRITE = 2
    KEYS = 4


class Access:
    """Decides which requests may read and write. The operators' listener owns it. Tokens are stored as digests only.

    Without a read token, reading needs no token if the listener is `open_to_all`, and the write token otherwise.
    Without a write token, every change is refused; without a keys token, every change of keys but a revocation is.
    `hosts` are the host names that are accepted for requests that need a right; None: any name.
    """

    def __init__(
        self,
        read: str | None = None,
        write: str | None = None,
        keys: str | None = None,
        *,
        open_to_all: bool = True,
        hosts: Hosts | None = None,
    ) -> None:
        given = ((read, Right.READ), (write, Right.READ | Right.WRITE), (keys, Right.KEYS))
        self._rights = [(_digest(token.encode()), rights) for token, rights in given if token is not None]
        self._open = Right.READ if read is None and open_to_all else Right.NONE
        self._hosts = hosts

    def can_grant(self, right: Right) -> bool:
        """Whether any caller can have the right."""
        return bool(right & self._open) or any(right & rights for _, rights in self._rights)

    def refusal(self, needed: Right, headers: list[Header]) -> str | None:
        """Returns the error code for a request with `headers`; None if it has one of the rights `needed`."""
        if self._hosts is not None and not self._hosts.know(headers):
            return "misdirected_request"
        if Right.READ not in needed and is_cross_site(headers):
            return "cross_site"
        if not needed or needed & self._open:
            return None
        if needed == Right.READ and not self.can_grant(needed):
            return "token_not_set"
        presented = _bearer(headers)
        if presented is None:
            return "missing_token"
        granted = self._rights_of(presented)
        if not granted:
            return "invalid_token"
        return None if granted & needed else "not_permitted"

    def _rights_of(self, presented: bytes) -> Right:
        # all digests have the same length, and the number of matching bytes reveals nothing about the token
        digest = _digest(presented)
        return next((rights for known, rights in self._rights if hmac.compare_digest(digest, known)), Right.NONE)


def _bearer(headers: list[Header]) -> bytes | None:
    """Returns the token of the Authorization header (RFC 6750 2.1); None unless there is exactly one."""
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        return None
    scheme, _, token = values[0].partition(b" ")
    return token.strip() or None if scheme.lower() == _SCHEME else None


def _digest(token: bytes) -> bytes:
    return sha256(token).digest()
