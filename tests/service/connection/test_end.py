"""Of a connection that has ended nothing is left, however it was used and however it ended."""

import gc
from collections.abc import Iterator

import pytest

from service.connection.connection import Connection
from tests.support.looped import reset_when_closed
from tests.support.served import FORECAST, Served
from tests.support.waiting import until

GOOD = f"{FORECAST}?zip_code=36436"
OTHER = "/v1/openapi.json"  # which the application answers
# What is sent at once, each time; then its answers are awaited.
USES: dict[str, list[list[str]]] = {
    "says nothing": [],
    "asks": [[GOOD], [GOOD]],
    "asks twice at once": [[GOOD, GOOD]],
    "asks the application": [[OTHER]],
    "asks the application, and then the pipeline": [[OTHER], [GOOD]],
    "asks the application after a look-up": [[GOOD], [OTHER]],
    "is refused": [["no target"]],
}


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _connections(worker: Served) -> list[Connection]:
    pipeline = worker.app.entry.pipeline
    return [one for one in gc.get_objects() if type(one) is Connection and one._door.pipeline is pipeline]


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("use", USES)
def test_an_ended_connection_leaves_nothing_to_the_garbage_collector(worker: Served, use: str, reset: bool) -> None:
    """The collector runs so seldom in a worker that a hundred thousand connections could wait for it."""
    before = {id(one): one for one in _connections(worker)}
    with worker.wire() as wire:
        until(lambda: any(id(one) not in before for one in _connections(worker)))
        for targets in USES[use]:
            wire.send("".join(worker.head(target) for target in targets))
            for _ in targets:
                wire.answer()
        if reset:
            reset_when_closed(wire._socket)
    until(lambda: all(id(one) in before for one in _connections(worker)))
