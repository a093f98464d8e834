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
# Of answers in a sample and of those checked, the mean sizes differ by this share at most.
_SIZE = 0.25


class Checked:
    """The answers of one contender to one shape. Raises BenchError if there are wrong ones."""

    def __init__(self, shape: Shape, contender: Contender, heads: Sequence[bytes], reference: str) -> None:
        self._shape = shape
        self._name = contender.name
        self._reference = reference
        self._has_other_bytes = contender.entries is not None  # they are compared with the service's before
        chosen = random.Random(1).choices(heads, k=_SPENT if shape.strays else _ASKED)
        if shape.strays:
            list(asked_in_turn(contender.endpoint, chosen))
        began = time.monotonic()
        answers = list(zip(chosen, asked_in_turn(contender.endpoint, chosen), strict=True))
        allowed = shape.strays * (1 + time.monotonic() - began)
        faults = list(self._faults(answers))
        if len(faults) > allowed:
            raise BenchError(f"{shape.what}: {contender.name} {faults[0]}")
        self._size = sum(len(answer) for _, answer in answers) / len(answers)

    def holds(self, sample: Sample) -> None:
        """Raises BenchError if the answers of `sample` were not those that were checked."""
        allowed = self._shape.strays * (1 + sample.answers / sample.rate)
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
        status = int(head.split(b" ", 2)[1])
        if status != self._shape.status:
            return f"with {status}, not {self._shape.status}: {body[:200]!r}"
        if status == 304:
            return f"with a body: {body[:200]!r}" if body else ""
        if status != 200 or self._has_other_bytes:
            return ""
        encoded = b"content-encoding: gzip" in head.lower()
        if self._shape.encoding and not encoded:
            return f"without {self._shape.encoding}"
        body = gzip.decompress(body) if encoded else body
        _, target, _ = request.decode().split(" ", 2)
        key = request.partition(b"x-api-key: ")[2].partition(b"\r\n")[0].decode()
        expected = client.get(target, headers={"x-api-key": key}).content
        return "" if body == expected else f"with {body[:200]!r}, not {expected[:200]!r}"
