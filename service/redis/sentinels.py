"""Finds the primary of a service by a majority vote of its Sentinels.

A minority may be cut off from the others, together with a former primary.
"""

from collections import Counter
from collections.abc import Iterable

from config.server_lists import Node, ServerList
from service.redis.errors import StoreUnavailable

# https://valkey.io/topics/sentinel/#sentinel-commands; the reply is a host and a port, or nil for an unknown service.
ASK_FOR_PRIMARY = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME")


class UnknownServiceError(StoreUnavailable):
    """Sentinels replied, and none knows the service."""


class Vote:
    """The reply of one Sentinel: a node, or None if it does not know the service."""

    __slots__ = ("node",)

    def __init__(self, reply: object) -> None:
        self.node = _node(reply)


def elected(listed: ServerList, votes: Iterable[Vote | None]) -> Node:
    """Returns the node that a majority of the listed Sentinels name; a vote is None where one did not reply.

    Raises:
        UnknownServiceError: if some replied, and none knows the service.
        StoreUnavailable: if there is no majority.
    """
    answers = [vote for vote in votes if vote is not None]
    named = Counter(vote.node for vote in answers if vote.node is not None)
    if answers and not named:
        raise UnknownServiceError(f"its Sentinels know no service `{listed.service}`")
    node, count = named.most_common(1)[0] if named else (None, 0)
    if node is None or 2 * count <= len(listed.nodes):
        most = f"{node} has {count}" if node else "none answers"
        raise StoreUnavailable(f"no majority of {len(listed.nodes)} Sentinels names a primary ({most})")
    return node


def _node(reply: object) -> Node | None:
    if not isinstance(reply, list) or len(reply) != len(Node._fields):
        return None
    try:
        return Node(reply[0].decode("ascii"), int(reply[1]))
    except (TypeError, ValueError, AttributeError):
        return None
