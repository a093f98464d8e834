"""What a run did not test, and why: one line, because hundreds of skipped tests look like passed ones."""

import os
from collections import Counter
from collections.abc import Iterable

import pytest

# Set where the machine has all that tests need: CI.
MAY_SKIP_NOTHING = "TESTS_SKIP_NOTHING"


def line_of_skipped(reports: Iterable[pytest.CollectReport | pytest.TestReport]) -> str | None:
    """Counts by reason, the largest first; None if no test was skipped."""
    reasons = Counter(_reason(report) for report in reports)
    if not reasons:
        return None
    return "skipped: " + ", ".join(f"{count} ({reason})" for reason, count in reasons.most_common())


def fails_for_skipping(skipped: int) -> bool:
    return skipped > 0 and bool(os.environ.get(MAY_SKIP_NOTHING))


def _reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    """pytest keeps it as file, line and words."""
    words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return words.removeprefix("Skipped: ")
