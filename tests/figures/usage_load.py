"""Clients that ask with several keys, and keep account of what they were answered."""

import asyncio
import random
import time
from collections import Counter, deque
from typing import NamedTuple

import msgspec

from tests.figures.common import Connection, connect, workers_of

CONNECTIONS = 24
PER_SECOND = 400
# Then a connection is opened anew, so that new workers get their part.
REQUESTS_EACH = 100
ANSWER_SECONDS = 10.0


class Cell(NamedTuple):
    key_id: str
    area: str
    outcome: str


class Question(msgspec.Struct, frozen=True):
    key_id: str
    area: str
    head: bytes


class Answered(NamedTuple):
    at: float
    connection: Connection
    cell: Cell


class Tally:
    """What clients saw. `at_risk` is what workers answered in the second before they were killed."""

    def __init__(self) -> None:
        self.answered: Counter[Cell] = Counter()
        self.failed: Counter[int] = Counter()
        self.unanswered: Counter[tuple[str, str]] = Counter()
        self.unanswered_when: Counter[str] = Counter()
        self.at_risk: Counter[Cell] = Counter()
        self.recent: deque[Answered] = deque(maxlen=PER_SECOND * 10)
        self.when = "without a reason"

    def saw(self, connection: Connection, question: Question, status: int) -> None:
        if status >= 500 or status == 401:
            self.failed[status] += 1
            return
        outcome = {200: "answered", 304: "not_modified", 404: "not_found"}.get(status, "rejected")
        cell = Cell(question.key_id, question.area, outcome)
        self.answered[cell] += 1
        self.recent.append(Answered(time.monotonic(), connection, cell))

    def lost(self, question: Question) -> None:
        self.unanswered[question.key_id, question.area] += 1
        self.unanswered_when[self.when] += 1


class Load:
    """Clients that ask, each on one connection after the other."""

    def __init__(self, base: str, questions: list[Question], tally: Tally) -> None:
        self._connections: dict[int, Connection] = {}
        self.stopping = False
        self._base = base
        self._questions = questions
        self._tally = tally

    async def run(self) -> None:
        await asyncio.gather(*(self._client(number) for number in range(CONNECTIONS)))

    def look(self, workers: list[int]) -> Counter[int]:
        """Notes whose the connections are now; how many each worker has."""
        owners = workers_of(self._base, workers)
        for connection in self._connections.values():
            connection.worker = owners.get(connection.local_port, connection.worker)
        return Counter(connection.worker for connection in self._connections.values())

    async def _client(self, number: int) -> None:
        pause = CONNECTIONS / PER_SECOND
        while True:
            try:
                connection = self._connections[number] = await connect(self._base)
            except OSError:
                if self.stopping:
                    return
                await asyncio.sleep(pause)
                continue
            for _ in range(REQUESTS_EACH):
                if connection.usable:
                    await self._ask(connection, random.choice(self._questions))
                    await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            connection.close()

    async def _ask(self, connection: Connection, question: Question) -> None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                self._tally.saw(connection, question, await connection.ask(question.head))
        except (OSError, TimeoutError):
            self._tally.lost(question)
            connection.close()
