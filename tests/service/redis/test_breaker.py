"""The circuit breaker of a store."""

from hypothesis import example, given
from hypothesis import strategies as st

from service.redis.client import FAILURES_TO_OPEN, RedisStore
from service.redis.connections import open_client


@example([False, False, True] * 10)  # a lost packet opens nothing, nor do two
@given(st.lists(st.booleans(), max_size=60))
def test_it_is_open_after_failures_in_a_row_until_the_next_success(outcomes: list[bool]) -> None:
    store = RedisStore("cache", "redis://nowhere", open_client("redis://nowhere", timeout=1))
    row, is_open = 0, False
    for good in outcomes:
        row = 0 if good else row + 1
        is_open = False if good else is_open or row >= FAILURES_TO_OPEN
        if good:
            store.succeeded()
        else:
            store.failed(ConnectionError(), answered=False)
        assert store.is_unreachable is is_open
        assert store.healthy is good
