"""An instance of this version beside one of an earlier version, as in a rolling upgrade."""

import pytest

from tests.figures.two_versions import earlier, run


@pytest.mark.soak
@pytest.mark.parametrize("bucket", [False, True], ids=["one folder", "a bucket"])
def test_two_versions_side_by_side_fail_nothing_and_count_everything(bucket: bool) -> None:
    """While both publish, roll back, issue and revoke keys and empty caches; then the older one stops. The earlier
    commit is in the output."""
    assert run(earlier(), bucket=bucket)
