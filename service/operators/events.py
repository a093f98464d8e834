"""Events of an instance, for its operators: reported by the code that caused them, or found by comparing two states."""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from service.operators.overview import Event, EventKind
from service.operators.state import InstanceState

_KEPT = 100  # events of each kind
# Most events of one kind that are shown, so that many key changes do not hide the crash of a worker.
_SHOWN_OF_A_KIND = 15


class EventBoard:
    """The events of one instance. Its supervisor owns it. `counted` counts all events by kind."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.counted: Counter[EventKind] = Counter()
        self._clock = clock
        self._events: defaultdict[EventKind, deque[Event]] = defaultdict(lambda: deque(maxlen=_KEPT))

    def add(self, kind: EventKind, text: str) -> None:
        self.counted[kind] += 1
        self._events[kind].appendleft(Event(self._clock(), kind, text))

    def restore(self, earlier: Iterable[Event]) -> None:
        """Adds events before a restart, newest first. They are not counted again."""
        for event in earlier:
            self._events[event.kind].append(event)

    def newest(self, most: int, of_a_kind: int = _SHOWN_OF_A_KIND) -> tuple[Event, ...]:
        """Returns at most `most` events, newest first, and a limited number of each kind."""
        shown = [event for events in self._events.values() for event in islice(events, of_a_kind)]
        return tuple(sorted(shown, key=lambda event: -event.at)[:most])

    def compare(self, before: InstanceState, after: InstanceState) -> None:
        """Adds the changes between two states."""
        for kind, text in _changes(before, after):
            self.add(kind, text)


def _changes(before: InstanceState, after: InstanceState) -> Iterator[tuple[EventKind, str]]:
    yield from _worker_changes(before, after)
    for name, text in (("keys_up", "the key store"), ("cache_up", "the shared cache")):
        was, now = _up(before, name), _up(after, name)
        if was is not None and now is not None and was != now:
            yield "store", f"{text} is {'reachable again' if now else 'unreachable'}"
    for count, what in (
        (after.inbox.published - before.inbox.published, "published"),
        (after.inbox.refused - before.inbox.refused, "refused"),
        (after.inbox.held - before.inbox.held, "held for approval"),
    ):
        if count > 0:
            yield "inbox", f"{'a drop was' if count == 1 else f'{count} drops were'} {what}"
    if after.draining and not before.draining:
        yield "instance", "the instance is stopping"


def _worker_changes(before: InstanceState, after: InstanceState) -> Iterator[tuple[EventKind, str]]:
    silent = {worker.pid for worker in before.workers if not worker.responds}
    for worker in after.workers:
        if not worker.responds and worker.pid not in silent:
            yield "worker", f"worker {worker.pid} does not respond"


def _up(state: InstanceState, name: str) -> bool | None:
    """Whether all workers reach the store; None while no worker serves."""
    return all(getattr(report, name) for report in state.reports) if state.reports else None
