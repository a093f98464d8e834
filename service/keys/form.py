"""The form of an API key: ``phf_live_<id>_<secret>_<checksum>``; a test key begins with ``phf_test``.

The parts are letters and digits. The id finds the record, and the secret (256 bits) proves ownership. The checksum
reveals a mistyped key, or other text, without a look-up; secret scanners use it too.
"""

import hmac
import re
import secrets
from hashlib import sha256
from zlib import crc32

import msgspec

from service.base.masking import LIVE_PREFIX, TEST_PREFIX

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_LENGTH = 12  # characters, as every length here
_SECRET_LENGTH = 43  # 62 ** 43 > 2 ** 256
_CHECKSUM_LENGTH = 6  # 62 ** 6 > 2 ** 32
# Length of a whole key, with separators.
LENGTH = len(LIVE_PREFIX) + _ID_LENGTH + _SECRET_LENGTH + _CHECKSUM_LENGTH + 3
_FORM = re.compile(
    f"({LIVE_PREFIX}|{TEST_PREFIX})_([0-9A-Za-z]{{{_ID_LENGTH}}})_([0-9A-Za-z]{{{_SECRET_LENGTH}}})"
    f"_([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})"
)


class PresentedKey(msgspec.Struct, frozen=True):
    """A well-formed key, while a request or command uses it. `secret` must not be logged or stored."""

    key_id: str
    secret: str
    test: bool = False


def new_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))


def assembled(key_id: str, bits: int, *, test: bool = False) -> tuple[str, PresentedKey]:
    """Returns the key with this id and 256 secret `bits`, as its owner gets it, and its parts."""
    secret = base62(bits)
    body = f"{TEST_PREFIX if test else LIVE_PREFIX}_{key_id}_{secret}"
    return f"{body}_{_checksum(body)}", PresentedKey(key_id, secret, test)


def parse(presented: str) -> PresentedKey | None:
    """Returns the parts of `presented`, or None if its form or its checksum is wrong."""
    match = _FORM.fullmatch(presented)
    if match is None:
        return None
    body, _, checksum = presented.rpartition("_")
    if not hmac.compare_digest(_checksum(body), checksum):
        return None
    return PresentedKey(match[2], match[3], match[1] == TEST_PREFIX)


def split(text: str) -> tuple[str, str, str]:
    """Returns `text` before the first key in it, the key, and the rest; the last two are empty if there is none."""
    for match in _FORM.finditer(text):
        if parse(match[0]) is not None:
            return text[: match.start()], match[0], text[match.end() :]
    return text, "", ""


def is_key_id(text: str) -> bool:
    return len(text) == _ID_LENGTH and all(character in _ALPHABET for character in text)


def digest(secret: str, pepper: bytes) -> str:
    """Returns the digest that the key store has instead of the secret: HMAC-SHA-256 with the pepper, as hex."""
    return hmac.new(pepper, secret.encode(), sha256).hexdigest()


def _checksum(body: str) -> str:
    return base62(crc32(body.encode()), _CHECKSUM_LENGTH)


def base62(number: int, length: int = _SECRET_LENGTH) -> str:
    """Returns `number` in letters and digits; the default `length` holds 256 bits."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
