"""What a server means by an error that it answers with."""

from typing import Any

from redis.exceptions import NoPermissionError, NoScriptError, OutOfMemoryError, ReadOnlyError, ResponseError

from config.text import first_line
from service.redis.errors import Refusal

# A primary that was cut off from its replicas, or has lost them.
_NO_REPLICAS = "NOREPLICAS"

# How Redis' error begins where a record is not of the command's type.
WRONG_TYPE = "WRONGTYPE"

# It was restarted, and reads what it has stored.
_LOADING = "LOADING"

_REFUSALS: dict[Refusal, str] = {
    "full": "it is full, and refuses to store anything",
    "read_only": "it is a read-only replica, and refuses to store anything",
}
_KINDS: dict[str, type[ResponseError]] = {
    "NOPERM": NoPermissionError,
    "NOSCRIPT": NoScriptError,
    "OOM": OutOfMemoryError,
    "READONLY": ReadOnlyError,
}
_WITHOUT_REPLICAS = "it has lost its replicas (NOREPLICAS), and refuses to store anything"


def error_in(reply: str) -> ResponseError:
    """The client library's error for what a server answered."""
    return _KINDS.get(reply.partition(" ")[0], ResponseError)(reply)


def says_not_primary(error: object) -> bool:
    """Whether a server answered so because it is not the primary, or no longer is for long."""
    return isinstance(error, ReadOnlyError) or (isinstance(error, ResponseError) and _has_no_replicas(error))


def _has_no_replicas(error: Exception) -> bool:
    return str(error).startswith(_NO_REPLICAS)


def says_loading(error: ResponseError) -> bool:
    """Whether a server will soon answer. The client library has an error of another kind for that."""
    return str(error).startswith(_LOADING)


def server_refusal(error: Exception) -> Refusal:
    """The kind of error that the server answered with."""
    if isinstance(error, OutOfMemoryError):
        return "full"
    return "read_only" if isinstance(error, ReadOnlyError) else "other"


def describe_refusal(error: Exception) -> str:
    """The words for operators of an error that the server answered with."""
    if isinstance(error, NoPermissionError):
        return f"{first_line(error)} (SECURITY.md lists the rights that its user needs)"
    if _has_no_replicas(error):
        return _WITHOUT_REPLICAS
    return _REFUSALS.get(server_refusal(error)) or first_line(error)


def raise_errors(replies: list[Any], but: tuple[str, ...] = (WRONG_TYPE,)) -> list[Any]:
    """The `replies` of a pipeline. Raises the first error among them whose message does not begin as one of `but`."""
    for reply in replies:
        if isinstance(reply, Exception) and not str(reply).startswith(but):
            raise reply
    return replies
