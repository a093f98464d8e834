"""Decoders of JSON for code that runs in threads.

msgspec finds out about a type when it is first decoded. If two threads do so at the same moment, and garbage is
collected meanwhile, the process can crash (seen with msgspec 0.22.0 and CPython 3.11).
"""

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_one_at_a_time = threading.Lock()
_made: dict[object, Any] = {}


def decoder_of(kind: type[T]) -> "msgspec.json.Decoder[T]":
    """The decoder of `kind`. Any number of threads may use it."""
    with _one_at_a_time:
        if kind not in _made:
            _made[kind] = msgspec.json.Decoder(kind)
        made: msgspec.json.Decoder[T] = _made[kind]
        return made
