"""What look-ups ask: the statement of an area on the files of one release."""

from collections.abc import Sequence
from typing import Any

import msgspec


class LookupStatement(msgspec.Struct, frozen=True):
    """The statement of one area, on the files of one release; it lives as long as the open release.

    `probe` are parameters with which it finds nothing. `few` is for a look-up by key: the same statement for one key,
    for two, and so on. DuckDB's plan for a short list is faster than that for the parameter of any length in `text`.
    """

    text: str
    probe: tuple[Any, ...]
    few: tuple[str, ...] = ()

    def by_keys(self, keys: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
        """Text and parameters that ask for `keys`, at least one."""
        if len(keys) <= len(self.few):
            return self.few[len(keys) - 1], tuple(keys)
        return self.text, (list(keys),)
