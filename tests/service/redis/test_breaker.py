"""The circuit breaker."""

from hypothesis import example, given
from hypothesis import strategies as st

from service.redis.breaker import FAILURES_TO_OPEN, CircuitBreaker


@example([False, False, True] * 10)  # a lost packet opens nothing, nor do two
@given(st.lists(st.booleans(), max_size=60))
def test_it_is_open_after_failures_in_a_row_until_the_next_success(outcomes: list[bool]) -> None:
    reported: list[bool] = []
    breaker = CircuitBreaker(reported.append)
    row, expected, changes = 0, False, []
    for good in outcomes:
        before = expected
        row = 0 if good else row + 1
        expected = False if good else expected or row >= FAILURES_TO_OPEN
        changes += [good] if expected != before else []
        (breaker.success if good else breaker.failure)()
        assert breaker.is_open is expected
    assert reported == changes
