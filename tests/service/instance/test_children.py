"""Processes of an instance: when one is started again."""

from service.instance.children import LONGEST_BACKOFF_SECONDS, Backoff


def test_a_process_that_dies_of_its_start_is_started_later_and_later() -> None:
    """Up to a few seconds; one that had settled is the first again."""
    backoff = Backoff()
    pauses = [backoff.after(0.1) for _ in range(8)]
    assert pauses[:3] == [0.2, 0.4, 0.8]
    assert pauses[-1] == LONGEST_BACKOFF_SECONDS
    assert backoff.after(60) == 0
    assert backoff.after(0.1) == 0.2


def test_a_process_that_had_settled_can_wait_as_well() -> None:
    """As long as whoever keeps it wants."""
    backoff = Backoff(0.2)
    assert [backoff.after(lived) for lived in (60, 0.1, 0.1, 60)] == [0.2, 0.4, 0.8, 0.2]
