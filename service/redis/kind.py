"""The kind of the server at a URL: one server, a Sentinel or a node of a cluster; a primary or a replica."""

from typing import Literal

import msgspec

from config.server_lists import CLUSTER_FORM, SENTINEL_FORM
from config.urls import NOT_ON_A_CLUSTER

# As HELLO names them (Redis 6 and later, Valkey): https://valkey.io/commands/hello/
Mode = Literal["standalone", "sentinel", "cluster"]

_IS = {"standalone": "is one server", "sentinel": "is a Sentinel", "cluster": "is a node of a cluster"}


class ServerKind(msgspec.Struct, frozen=True):
    """A server's reply about itself. A Sentinel has no role."""

    mode: Mode
    role: Literal["master", "replica"] | None = None


def server_kind_of(reply: object) -> ServerKind | None:
    """Returns the server's kind from the reply to HELLO, in RESP2; None if the reply lacks it."""
    if not isinstance(reply, list):
        return None
    said = {name: value for name, value in zip(reply[::2], reply[1::2], strict=False) if isinstance(name, bytes)}
    members = {name: value.decode() for name in ("mode", "role") if isinstance(value := said.get(name.encode()), bytes)}
    try:
        return msgspec.convert(members, ServerKind)
    except msgspec.ValidationError:
        return None


def wrong_kind(kind: ServerKind, expected: Mode, *, for_keys: bool) -> str | None:
    """Returns why the server does not fit a URL's scheme, and which scheme does; None if it fits."""
    if kind.mode != expected:
        return f"{_IS[kind.mode]}: {_right(kind.mode, for_keys=for_keys)}"
    if kind.mode == "standalone" and kind.role == "replica":
        return f"is a replica, which rejects writes: name its primary, or the Sentinels that know it: {SENTINEL_FORM}"
    return None


def _right(mode: Mode, *, for_keys: bool) -> str:
    if mode == "sentinel":
        return f"name all of them: {SENTINEL_FORM}"
    if mode == "standalone":
        return "name it alone: redis://user:password@host:6379/0"
    return f"keys cannot be there, because {NOT_ON_A_CLUSTER}" if for_keys else f"name some of them: {CLUSTER_FORM}"
