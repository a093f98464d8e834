"""Rights on the operators' listener: one token may read, the other may read and write."""

import hmac
from enum import IntEnum
from hashlib import sha256

from service.operators.origins import Hosts, is_cross_site
from service.request.errors import ApiError
from service.request.response import Header

_SCHEME = b"bearer"


class Right(IntEnum):
    """Each right includes the lower ones."""

    NONE = 0
    READ = 1
    WRITE = 2


class Tokens:
    """The operators' tokens, stored as digests only. The operators' listener owns it.

    Without a read token, reading needs no token if the listener is `open_to_all`, and the write token otherwise.
    Without a write token, every change is refused.
    """

    def __init__(self, read: str | None = None, write: str | None = None, *, open_to_all: bool = True) -> None:
        self._read = None if read is None else _digest(read.encode())
        self._write = None if write is None else _digest(write.encode())
        self._open = Right.READ if read is None and open_to_all else Right.NONE

    @property
    def writable(self) -> bool:
        """Whether there is a write token."""
        return self._write is not None

    @property
    def readable(self) -> bool:
        """Whether any caller can read."""
        return self._open >= Right.READ or self._read is not None or self._write is not None

    def refusal(self, needed: Right, headers: list[Header]) -> str | None:
        """Returns the error code for a request with `headers`; None if its token grants the right `needed`."""
        if needed <= self._open:
            return None
        if needed is Right.READ and not self.readable:
            return "token_not_set"
        presented = _bearer(headers)
        if presented is None:
            return "missing_token"
        granted = self._right_of(presented)
        if granted is Right.NONE:
            return "invalid_token"
        return None if granted >= needed else "not_permitted"

    def _right_of(self, presented: bytes) -> Right:
        # all digests have the same length, and the number of matching bytes reveals nothing about the token
        digest = _digest(presented)
        writes = self._write is not None and hmac.compare_digest(digest, self._write)
        reads = self._read is not None and hmac.compare_digest(digest, self._read)
        return Right.WRITE if writes else Right.READ if reads else Right.NONE


class Access:
    """Decides which requests may read and write. The operators' application owns it.

    `hosts` are the host names that are accepted for requests that need a right; None: any name.
    """

    def __init__(self, tokens: Tokens | None = None, hosts: Hosts | None = None) -> None:
        self._tokens = tokens or Tokens()
        self._hosts = hosts

    @property
    def is_writable(self) -> bool:
        """Whether there is a write token."""
        return self._tokens.writable

    def require(self, needed: Right, headers: list[Header]) -> None:
        """Raises ApiError unless a request with `headers` has the right `needed`."""
        refusal = self.refusal(needed, headers)
        if refusal is not None:
            raise ApiError(refusal)

    def refusal(self, needed: Right, headers: list[Header]) -> str | None:
        """Returns the error code for a request with `headers`; None if it has the right `needed`."""
        if self._hosts is not None and not self._hosts.know(headers):
            return "misdirected_request"
        if needed is Right.WRITE and is_cross_site(headers):
            return "cross_site"
        return self._tokens.refusal(needed, headers)


def _bearer(headers: list[Header]) -> bytes | None:
    """Returns the token of the Authorization header (RFC 6750 2.1); None unless there is exactly one."""
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        return None
    scheme, _, token = values[0].partition(b" ")
    return token.strip() or None if scheme.lower() == _SCHEME else None


def _digest(token: bytes) -> bytes:
    return sha256(token).digest()
