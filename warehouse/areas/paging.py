"""Pages of a long answer, and the cursors that lead from one page to the next.

A cursor is a position in the order of ids (keyset pagination), not a number of rows to skip. So if the release changes
between two pages, no record that both releases have is repeated or skipped. A cursor is bound to its query, and
authenticated with a secret that all instances with the same keys share. A changed or invented cursor is an error, and
fills no cache.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from hashlib import blake2b
from hmac import compare_digest

import msgspec

MAX_PAGE_SIZE = 1000  # records
DEFAULT_PAGE_SIZE = 100  # records

_VERSION = b"\x02"
_DIGEST_BYTES = 8
# ids have at most 95 characters (rule odd-name), of at most four bytes each
MAX_CURSOR_CHARACTERS = 4 * (len(_VERSION) + _DIGEST_BYTES + 4 * 95) // 3 + 4


class CursorError(Exception):
    """The cursor was changed or invented, or belongs to another query."""


class Page(msgspec.Struct, frozen=True):
    """The request for one page: at most `limit` records with ids after `after`. Lives as long as its HTTP request."""

    limit: int = DEFAULT_PAGE_SIZE
    after: str = ""

    def of(self, query: str) -> str:
        """Returns the canonical query, including the page."""
        return f"{query}\n{self.limit}\n{self.after}"


class Cursors:
    """Encodes and decodes cursors with a `secret` of at most 64 bytes. One per worker or publisher, for its whole life.

    `mark` identifies the secret without revealing it.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.mark = blake2b(key=secret, digest_size=8, person=b"cursor mark").hexdigest()

    def name(self, query: str, page: Page) -> str:
        """Returns the cache name of a page: its canonical query and `mark`. No page has cursors of another secret."""
        return f"{page.of(query)}\n{self.mark}"

    def encode(self, query: str, last: str) -> str:
        """Returns the cursor for the records after the id `last` in the answer to the canonical `query`."""
        tail = last.encode()
        return urlsafe_b64encode(_VERSION + self._digest(query, tail) + tail).rstrip(b"=").decode()

    def decode(self, query: str, cursor: str) -> str:
        """Returns the id after which the answer continues. Raises CursorError."""
        try:
            data = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
            head, tail = data[: 1 + _DIGEST_BYTES], data[1 + _DIGEST_BYTES :]
            last = tail.decode()
        except (Error, ValueError):  # ValueError: not ASCII, not UTF-8
            raise CursorError from None
        # comparing it with a new encoding rejects foreign characters and spare bits, which base64 tolerates
        is_ours = compare_digest(head, _VERSION + self._digest(query, tail))
        if not is_ours or self.encode(query, last) != cursor:
            raise CursorError
        return last

    def _digest(self, query: str, tail: bytes) -> bytes:
        text = query.encode() + b"\0" + tail
        return blake2b(text, key=self._secret, digest_size=_DIGEST_BYTES, person=b"page cursor").digest()
