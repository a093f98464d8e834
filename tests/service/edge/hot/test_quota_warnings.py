"""What an answer tells of a quota, and whether it warns, is the same directly and through the router."""

import re
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.settings import Settings
from service.base.terms import Quota, Terms
from service.request.pipeline import Gate
from tests.support.both_ways import TARGETS, Both, request
from tests.support.connection import Connection
from tests.support.served import FORECAST, served

BILLED = (TARGETS[0], f"{TARGETS[0]}&x=1")
UNBILLED = (f"{FORECAST}?zip_code=99999", f"{FORECAST}?zip_code=1")


class Told(msgspec.Struct, frozen=True):
    status: int
    left: int | None
    warning: str | None


@pytest.fixture(scope="module")
def both(settings: Settings) -> Iterator[Both]:
    with served(settings) as running:
        yield Both(running, {}, "near")


async def told(both: Both, gate: Gate, key: str, targets: list[str]) -> list[Told]:
    made = []
    for target in targets:
        connection = Connection(gate, both.config(gate))
        await connection.feed(request(target, key))
        await connection.settle()
        answer = connection.end().decode()
        left = re.search(r'"quota";r=(\d+);', answer)
        warning = re.search(r"\r\nx-quota-warning: ([^\r]*)", answer)
        made.append(Told(int(answer[9:12]), left and int(left[1]), warning and warning[1]))
    return made


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 10), st.integers(1, 100), st.lists(st.sampled_from([*BILLED, *BILLED, *UNBILLED]), max_size=14))
def test_both_ways_warn_from_the_same_answer_on(both: Both, size: int, share: int, targets: list[str]) -> None:
    """From the one on that tells that the share is used."""
    quota = Quota(size, "day", warn_at=share / 100)
    keys = [both.issue(Terms(quota=quota)) for _ in range(2)]
    directly = both.running.run(lambda: told(both, both.direct, keys[0], targets))
    ordinarily = both.running.run(lambda: told(both, both.ordinary, keys[1], targets))
    assert directly == ordinarily
    for answer in directly:
        assert answer.left is not None
        used = size - answer.left
        warned = answer.status != 429 and 100 * used >= share * size
        assert answer.warning == (f"{used} of {size} used this day" if warned else None)
