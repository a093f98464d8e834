"""Commands on their way to the nodes that have their names, and on to others if these say so."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from redis.exceptions import AskError, MovedError

from config.server_lists import Node
from service.redis.cluster.slots import Redirect, redirect, slot_of
from service.redis.errors import StoreUnavailable
from service.redis.name_store import NameCommand

# A name is sent on so often: the map was old, the slot is on its way, and the same once more.
MOST_REDIRECTS = 4

N = TypeVar("N")


class Leg(NamedTuple):
    """One command to one node."""

    at: int  # of the command
    asking: bool  # the node is asked although the slot is only on its way to it


class Routing(Generic[N]):
    """The commands of one call. `owner_of` gives the node of a slot, `sent_to` the one that a redirection names.

    As long as there are `legs`, whoever made this sends them, and hands the replies to `take`.
    """

    def __init__(
        self,
        commands: Sequence[NameCommand],
        owner_of: Callable[[int], N | None],
        sent_to: Callable[[int, Redirect], N | None],
    ) -> None:
        self._commands = commands
        self._sent_to = sent_to
        self._rest = MOST_REDIRECTS
        self._legs: defaultdict[N, list[Leg]] = defaultdict(list)
        self._replies: list[Any] = [StoreUnavailable("no node has this slot")] * len(commands)
        for at, command in enumerate(commands):
            owner = owner_of(slot_of(command.name))
            if owner is not None:
                self._legs[owner].append(Leg(at, asking=False))

    def legs(self) -> list[tuple[N, list[Leg]]]:
        """What is to be sent now, by node."""
        legs, self._legs = self._legs, defaultdict(list)
        return list(legs.items())

    def words(self, legs: Iterable[Leg]) -> list[tuple[str | int | bytes, ...]]:
        """What to send to a node, in one pipeline."""
        words: list[tuple[str | int | bytes, ...]] = []
        for leg in legs:
            if leg.asking:
                words.append(("ASKING",))
            words.append(self._commands[leg.at].words)
        return words

    def take(self, legs: Iterable[Leg], replies: Iterable[Any], asked: Node) -> None:
        """The reply to each of the `words`."""
        coming = iter(replies)
        for leg in legs:
            if leg.asking:
                next(coming)  # if it was refused, the node sends the command back
            self._replies[leg.at] = reply = next(coming)
            there = _redirected(reply, asked)
            if there is not None and self._rest:
                node = self._sent_to(slot_of(self._commands[leg.at].name), there)
                if node is not None:
                    self._legs[node].append(Leg(leg.at, there.asking))

    def fail(self, legs: Iterable[Leg], error: StoreUnavailable) -> None:
        """The node gave no replies."""
        for leg in legs:
            self._replies[leg.at] = error

    def next_round(self) -> bool:
        """Whether something is to be sent on."""
        self._rest -= 1
        return bool(self._legs)

    def replies(self) -> list[Any]:
        """The reply to each command, or the error that it was answered with.

        Raises:
            StoreUnavailable: if no node was there to answer.
        """
        away = [reply for reply in self._replies if isinstance(reply, StoreUnavailable)]
        if away and len(away) == len(self._replies):
            raise away[0]
        return [
            StoreUnavailable(f"redirected too often: {reply}") if isinstance(reply, AskError) else reply
            for reply in self._replies
        ]


def _redirected(reply: Any, asked: Node) -> Redirect | None:
    if not isinstance(reply, AskError):  # of which a MovedError is one
        return None
    return redirect(f"{'MOVED' if isinstance(reply, MovedError) else 'ASK'} {reply.message}", asked)
