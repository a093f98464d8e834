"""The SQL of look-ups: an area's statement on the files of one release."""

from collections.abc import Sequence
from typing import Any

import msgspec


class LookupStatement(msgspec.Struct, frozen=True):
    """The SQL of one look-up. Created when a release is opened, and owned by its engine.

    DuckDB plans a short list of placeholders better than one list parameter of any length. So a look-up by key has
    both forms.
    """

    text: str  # takes any number of keys, as one list
    probe: tuple[Any, ...]  # parameters of `text` that find no rows
    few: tuple[str, ...] = ()  # the same for exactly 1, 2, 3, ... keys, each with its own placeholder
    load: str = ""  # loads the file into a table in memory
    loaded: "LookupStatement | None" = None  # the same look-up in that table, if there is one

    def by_keys(self, keys: Sequence[str]) -> tuple[str, tuple[Any, ...]]:
        """Returns text and parameters of the statement for `keys`. There must be at least one."""
        if len(keys) <= len(self.few):
            return self.few[len(keys) - 1], tuple(keys)
        return self.text, (list(keys),)
