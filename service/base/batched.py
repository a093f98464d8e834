"""Splits work into batches, so that the server serves other clients in between."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yields `items` in lists of `size`, the last one shorter; `itertools.batched` of Python 3.12."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
