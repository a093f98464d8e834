"""Errors of a Redis. Separate from its client, which takes a tenth of a second to import."""

from typing import Literal

Refusal = Literal["full", "read_only", "other"]


class StoreUnavailable(Exception):  # noqa: N818 - a state of the store, with this name in logs
    """The store did not reply within its budget, or replied with an error. The data is unknown."""


class StoreRefused(StoreUnavailable):
    """The store replied with an error; the command had no effect.

    `why` is a label of metrics, `text` the error without the store's name.
    """

    def __init__(self, message: str, why: Refusal, text: str = "") -> None:
        super().__init__(message)
        self.why = why
        self.text = text
