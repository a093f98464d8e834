"""Interprets error replies."""

from typing import Any

from redis.exceptions import NoPermissionError, NoScriptError, OutOfMemoryError, ReadOnlyError, ResponseError

from config.text import first_line
from service.redis.errors import Refusal

# Replies of a primary that was cut off from its replicas, or has lost them.
_NO_REPLICAS = "NOREPLICAS"

# The start of the error for a record of another type.
WRONG_TYPE = "WRONGTYPE"

# It was restarted, and is loading its data.
_LOADING = "LOADING"

_REFUSALS: dict[Refusal, str] = {
    "full": "it is full and rejects writes",
    "read_only": "it is a read-only replica and rejects writes",
}
_KINDS: dict[str, type[ResponseError]] = {
    "NOPERM": NoPermissionError,
    "NOSCRIPT": NoScriptError,
    "OOM": OutOfMemoryError,
    "READONLY": ReadOnlyError,
}
_WITHOUT_REPLICAS = "it has lost its replicas (NOREPLICAS) and rejects writes"


def error_in(reply: str) -> ResponseError:
    """Returns the client library's error for an error reply."""
    return _KINDS.get(reply.partition(" ")[0], ResponseError)(reply)


def says_not_primary(error: object) -> bool:
    """Returns whether an error reply means that the server is not the primary, or soon will not be."""
    return isinstance(error, ReadOnlyError) or (isinstance(error, ResponseError) and _has_no_replicas(error))


def _has_no_replicas(error: Exception) -> bool:
    return str(error).startswith(_NO_REPLICAS)


def says_loading(error: ResponseError) -> bool:
    """Returns whether a server is still loading. The client library has an error of another kind for that."""
    return str(error).startswith(_LOADING)


def server_refusal(error: Exception) -> Refusal:
    """Returns the kind of an error reply."""
    if isinstance(error, OutOfMemoryError):
        return "full"
    return "read_only" if isinstance(error, ReadOnlyError) else "other"


def describe_refusal(error: Exception) -> str:
    """Returns an error reply in words for operators."""
    if isinstance(error, NoPermissionError):
        return f"{first_line(error)} (docs/operate/rights.md lists the rights that its user needs)"
    if _has_no_replicas(error):
        return _WITHOUT_REPLICAS
    return _REFUSALS.get(server_refusal(error)) or first_line(error)


def raise_errors(replies: list[Any], but: tuple[str, ...] = (WRONG_TYPE,)) -> list[Any]:
    """Returns the `replies` of a pipeline.

    Raises the first error among them whose message does not begin as one of `but`.
    """
    for reply in replies:
        if isinstance(reply, Exception) and not str(reply).startswith(but):
            raise reply
    return replies
