"""Finds the primary of a service by a majority vote of its Sentinels.

A minority may be cut off from the others, together with a former primary.
"""

from collections import Counter
from collections.abc import Sequence

from config.server_lists import Node, ServerList
from service.redis.errors import StoreUnavailable

# https://valkey.io/topics/sentinel/#sentinel-commands; the reply is a host and a port, or nil for an unknown service.
ASK_FOR_PRIMARY = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME")


class UnknownServiceError(StoreUnavailable):
    """Sentinels replied, and none knows the service."""


def elected(listed: ServerList, votes: Sequence[Node | None]) -> Node:
    """Returns the node that a majority of the listed Sentinels name. `votes` are those of the ones that replied.

    Raises:
        UnknownServiceError: if some replied, and none knows the service.
        StoreUnavailable: if there is no majority.
    """
    named = Counter(node for node in votes if node is not None)
    if votes and not named:
        raise UnknownServiceError(f"its Sentinels know no service `{listed.service}`")
    node, count = named.most_common(1)[0] if named else (None, 0)
    if node is None or 2 * count <= len(listed.nodes):
        most = f"{node} has {count}" if node else "none answers"
        raise StoreUnavailable(f"no majority of {len(listed.nodes)} Sentinels names a primary ({most})")
    return node


def vote_in(reply: object) -> Node | None:
    """Returns the node that a Sentinel names; None if it does not know the service."""
    if not isinstance(reply, list) or len(reply) != len(Node._fields):
        return None
    try:
        return Node(reply[0].decode("ascii"), int(reply[1]))
    except (TypeError, ValueError, AttributeError):
        return None
