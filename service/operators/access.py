"""Who may do what on the operators' listener: a token to read, a token to read and write."""

import hmac
from enum import IntEnum
from hashlib import sha256

from service.http.reply import Header

_SCHEME = b"bearer"


class Right(IntEnum):
    """Each includes those below it."""

    NONE = 0
    READ = 1
    WRITE = 2


class Tokens:
    """Knows the digests of the tokens alone. Without a read token everybody may read; without a write token nobody may
    write.
    """

    def __init__(self, read: str | None = None, write: str | None = None) -> None:
        self._read = None if read is None else _digest(read.encode())
        self._write = None if write is None else _digest(write.encode())
        self._open = Right.READ if read is None else Right.NONE

    @property
    def writable(self) -> bool:
        """Whether there is a token to write with."""
        return self._write is not None

    def refusal(self, needed: Right, headers: list[Header]) -> str | None:
        """The code of the error for a request with `headers`, or None if it holds what is `needed`."""
        if needed <= self._open:
            return None
        presented = _bearer(headers)
        if presented is None:
            return "missing_token"
        held = self._held(presented)
        if held is Right.NONE:
            return "invalid_token"
        return None if held >= needed else "not_permitted"

    def _held(self, presented: bytes) -> Right:
        # digests are of one length, and how many of their bytes agree tells nothing about the token
        digest = _digest(presented)
        writes = self._write is not None and hmac.compare_digest(digest, self._write)
        reads = self._read is not None and hmac.compare_digest(digest, self._read)
        return Right.WRITE if writes else Right.READ if reads else Right.NONE


def _bearer(headers: list[Header]) -> bytes | None:
    """The token of the one Authorization header (RFC 6750 2.1); None if there is none, or more than one."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:
        return None
    scheme, _, token = given[0].partition(b" ")
    return token.strip() or None if scheme.lower() == _SCHEME else None


def _digest(token: bytes) -> bytes:
    return sha256(token).digest()
