"""A rate and a quota over twelve workers of three instances, which share both Redis and no folder."""

import pytest

from tests.figures.many_workers import INSTANCES, QUOTA, WORKERS_EACH, run

OFFERED = 2000.0


@pytest.mark.soak
def test_twelve_workers_keep_to_the_rate_of_one_key() -> None:
    """95 to 105 % of it in any second by the clock; the quota is exceeded by no more than is documented."""
    figures = run(offered=OFFERED)
    assert figures.most <= 105
    assert figures.least >= 95
    workers = INSTANCES * WORKERS_EACH
    # a quarter of what is left when the last second of the quota begins, and a request under way in each worker
    assert figures.over <= min(OFFERED, QUOTA.requests) / 4 + workers
