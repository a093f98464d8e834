"""Why a Redis gave no answer. Apart from its client, which takes a tenth of a second to import."""

from typing import Literal

Refusal = Literal["full", "read_only", "other"]


class StoreUnavailable(Exception):  # noqa: N818 - a state of the store, and named so in logs
    """The store did not answer within its budget, or answered with an error. The data is unknown."""


class StoreRefused(StoreUnavailable):
    """The store answered with an error; the command did nothing.

    `why` is a label of metrics, `said` the error without the store's name.
    """

    def __init__(self, message: str, why: Refusal, said: str = "") -> None:
        super().__init__(message)
        self.why = why
        self.said = said
