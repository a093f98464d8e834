"""Pages of a long answer: which one, what comes next, and the cursor in between.

A cursor is a position in the order of ids (a keyset), not a number of rows to skip, so a release in between neither
repeats nor leaves out what both releases have. It is bound to its query, and authenticated with a secret that all who
serve the same keys share: a cursor that was changed or made up is an error, and fills no cache.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from hashlib import blake2b
from hmac import compare_digest

import msgspec

MAX_PAGE_SIZE = 1000
DEFAULT_PAGE_SIZE = 100

_VERSION = b"\x02"
_DIGEST_BYTES = 8
# ids have at most 95 characters (a rule on drops), of at most four bytes
MAX_CURSOR_CHARACTERS = 4 * (len(_VERSION) + _DIGEST_BYTES + 4 * 95) // 3 + 4


class CursorError(Exception):
    """It was changed or made up, or belongs to another query."""


class Page(msgspec.Struct, frozen=True):
    """At most `limit` records whose ids come after `after`."""

    limit: int = DEFAULT_PAGE_SIZE
    after: str = ""

    def of(self, query: str) -> str:
        """The canonical query, page included."""
        return f"{query}\n{self.limit}\n{self.after}"


class Cursors:
    """Makes and reads cursors with a `secret` of at most 64 bytes. `mark` tells secrets apart and reveals none."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.mark = blake2b(key=secret, digest_size=8, person=b"cursor mark").hexdigest()

    def name(self, query: str, page: Page) -> str:
        """The canonical query of a page whose body was made with this secret: other cursors are never told again."""
        return f"{page.of(query)}\n{self.mark}"

    def encode(self, query: str, last: str) -> str:
        """The cursor for what comes after the id `last` in the answer to the canonical `query`."""
        tail = last.encode()
        return urlsafe_b64encode(_VERSION + self._digest(query, tail) + tail).rstrip(b"=").decode()

    def decode(self, query: str, cursor: str) -> str:
        """The id after which the answer goes on. Raises CursorError."""
        try:
            data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            head, tail = data[: 1 + _DIGEST_BYTES], data[1 + _DIGEST_BYTES :]
            last = tail.decode()
        except (Error, ValueError):  # ValueError: not ASCII, not UTF-8
            raise CursorError from None
        # encoding it again refuses what base64 forgives: other characters in between, spare bits
        is_ours = compare_digest(head, _VERSION + self._digest(query, tail))
        if not is_ours or self.encode(query, last) != cursor:
            raise CursorError
        return last

    def _digest(self, query: str, tail: bytes) -> bytes:
        text = query.encode() + b"\0" + tail
        return blake2b(text, key=self._secret, digest_size=_DIGEST_BYTES, person=b"page cursor").digest()
