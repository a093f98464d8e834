"""Before a shape counts: every answer has the right status, and the service's bytes."""

import gzip
import random
import time
from collections.abc import Iterator, Sequence

import httpx

from tests.bench.client import asked_in_turn
from tests.bench.contenders import Contender
from tests.bench.load import Sample
from tests.bench.shapes.catalog import Shape
from tests.bench.stage import BenchError

_ASKED = 25
# What a key over its rate has to use up first, and how often it is asked then.
_SPENT = 500
# Of answers in a sample and of those checked, the mean sizes differ by this share at most; of mixed ones, the shares of
# errors too.
_SIZE = 0.25
# So many mixed ones are checked, for means that say something.
_ASKED_MIXED = 2000


class Checked:
    """The answers of one contender to one shape. Raises BenchError if there are wrong ones."""

    def __init__(self, shape: Shape, contender: Contender, heads: Sequence[bytes], reference: str) -> None:
        self._shape = shape
        self._name = contender.name
        self._reference = reference
        self._has_other_bytes = contender.entries is not None  # they are compared with the service's before
        number = _ASKED_MIXED if shape.status is None else _SPENT if shape.strays else _ASKED
        chosen = random.Random(1).choices(heads, k=number)
        if shape.strays:
            list(asked_in_turn(contender.endpoint, chosen))
        began = time.monotonic()
        answers = list(zip(chosen, asked_in_turn(contender.endpoint, chosen), strict=True))
        allowed = shape.strays * (1 + time.monotonic() - began)
        faults = list(self._faults(answers))
        if len(faults) > allowed:
            raise BenchError(f"{shape.what}: {contender.name} {faults[0]}")
        self._size = sum(len(answer) for _, answer in answers) / len(answers)
        self._errors = sum(_status(answer) >= 400 for _, answer in answers) / len(answers)

    def holds(self, sample: Sample) -> None:
        """Raises BenchError if the answers of `sample` were not those that were checked."""
        allowed = self._shape.strays * (1 + sample.answers / sample.rate)
        if self._shape.status is None:
            allowed = (1 + _SIZE) * self._errors * sample.answers
        if sample.bad > allowed:
            raise BenchError(f"{self._shape.what}: {self._name} gave {sample.bad} wrong answers")
        if abs(sample.size - self._size) > self._size * _SIZE:
            raise BenchError(
                f"{self._shape.what}: {self._name} gave {sample.size:,.0f} bytes an answer, not {self._size:,.0f}"
            )

    def _faults(self, answers: Sequence[tuple[bytes, bytes]]) -> Iterator[str]:
        with httpx.Client(base_url=self._reference) as client:
            for request, answer in answers:
                fault = self._fault(client, request, answer)
                if fault:
                    yield f"answers {request.split(b' ')[1].decode()} {fault}"

    def _fault(self, client: httpx.Client, request: bytes, answer: bytes) -> str:
        head, _, body = answer.partition(b"\r\n\r\n")
        status = _status(answer)
        expected = self._expected(client, request) if self._shape.status is None else self._shape.status
        if status != expected:
            return f"with {status}, not {expected}: {body[:200]!r}"
        if status == 304:
            return f"with a body: {body[:200]!r}" if body else ""
        if status != 200 or self._has_other_bytes:
            return ""
        encoded = b"content-encoding: gzip" in head.lower()
        if self._shape.encoding and not encoded:
            return f"without {self._shape.encoding}"
        body = gzip.decompress(body) if encoded else body
        wanted = client.get(_target(request), headers={"x-api-key": _header(request, "x-api-key")}).content
        return "" if body == wanted else f"with {body[:200]!r}, not {wanted[:200]!r}"

    def _expected(self, client: httpx.Client, request: bytes) -> int:
        names = ("x-api-key", "if-none-match")
        return client.get(_target(request), headers={name: _header(request, name) for name in names}).status_code


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def _target(request: bytes) -> str:
    return request.split(b" ", 2)[1].decode()


def _header(request: bytes, name: str) -> str:
    """Its value; empty if it was not sent."""
    return request.partition(b"%b: " % name.encode())[2].partition(b"\r\n")[0].decode()
