"""What look-ups ask: the statement of an area on the files of one release."""

from collections.abc import Sequence
from typing import Any

import msgspec


class LookupStatement(msgspec.Struct, frozen=True):
    """A statement, and parameters with which it finds nothing.

    `few`: of a look-up by key, the same for one key, for two, and so on. The plan that DuckDB makes of a short list is
    faster than that of a parameter of any length, which `text` has.
    """

    text: str
    probe: tuple[Any, ...]
    few: tuple[str, ...] = ()

    def by_keys(self, keys: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
        """Text and parameters that ask for these keys, of which there is at least one."""
        if len(keys) <= len(self.few):
            return self.few[len(keys) - 1], tuple(keys)
        return self.text, (list(keys),)
