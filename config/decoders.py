"""JSON decoders for code that runs in threads.

msgspec analyses a type when it is first decoded. If two threads do so at the same time, and garbage is collected
meanwhile, the process can crash (seen with msgspec 0.22.0 and CPython 3.11).
"""

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_one_at_a_time = threading.Lock()
_decoders: dict[object, Any] = {}


def decoder_of(kind: type[T]) -> "msgspec.json.Decoder[T]":
    """Returns the decoder of `kind`. Any number of threads may use it."""
    with _one_at_a_time:
        if kind not in _decoders:
            _decoders[kind] = msgspec.json.Decoder(kind)
        decoder: msgspec.json.Decoder[T] = _decoders[kind]
        return decoder
