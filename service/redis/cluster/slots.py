"""Which node has which name: hash slots, as a node maps them (CLUSTER SLOTS) and corrects them (MOVED, ASK).

By the cluster specification: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/
"""

from binascii import crc_hqx
from typing import Any, NamedTuple

import msgspec

from config.server_lists import Node

SLOTS = 16_384
_LAST_PORT = 65_535
# Stands for a host that a node does not know.
_UNKNOWN = "?"


class SlotMap(msgspec.Struct, frozen=True):
    """One node's view of its cluster."""

    owners: tuple[Node | None, ...]  # the primary of each slot; None if it has none, or none that is reachable
    replicas: frozenset[Node]

    @property
    def primaries(self) -> list[Node]:
        return sorted({owner for owner in self.owners if owner is not None})


class Redirect(NamedTuple):
    """Where a node redirects a call for a name that it does not have.

    `asking`: for this call only, preceded by ASKING, because the slot is moving there. Else permanently.
    """

    to: Node
    asking: bool


def slot_of(name: str) -> int:
    """Returns the slot of `name`: the CRC-16 of all of it, or of the tag between its first braces."""
    start = name.find("{")
    if start >= 0:
        end = name.find("}", start)
        if end > start + 1:
            name = name[start + 1 : end]
    return crc_hqx(name.encode("utf-8", "surrogateescape"), 0) % SLOTS


def slot_map(said: Any, asked: Node) -> SlotMap:
    """Returns the reply to CLUSTER SLOTS from the address `asked`.

    Raises:
        ValueError: if the reply is unexpected.
    """
    owners: list[Node | None] = [None] * SLOTS
    replicas: set[Node] = set()
    try:
        for first, last, primary, *others in said:
            if not 0 <= first <= last < SLOTS:
                raise ValueError(f"there are no slots from {first} to {last}")
            owners[first : last + 1] = [_address(primary, asked)] * (last + 1 - first)
            replicas.update(found for found in (_address(other, asked) for other in others) if found is not None)
    except (TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"not a slot map: {error}") from None
    return SlotMap(tuple(owners), frozenset(replicas))


def redirect(error: str, asked: Node) -> Redirect | None:
    """Returns where an error of the node `asked` redirects to; None for any other error, or without an address."""
    words = error.split(" ")
    if len(words) != 3 or words[0] not in {"MOVED", "ASK"}:
        return None
    host, _, port = words[2].rpartition(":")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) <= _LAST_PORT or host == _UNKNOWN:
        return None
    return Redirect(Node(host.strip("[]") or asked.host, int(port)), words[0] == "ASK")


def _address(said: Any, asked: Node) -> Node | None:
    """Returns the address; a node without a known host has the host of the node that replied."""
    host, port = said[0] or asked.host.encode(), said[1]
    name = host.decode()
    return None if name == _UNKNOWN or not 0 < port <= _LAST_PORT else Node(name, port)
