"""Processes whose clock is turned, as that of their machine would be: libfaketime is loaded before all else."""

import shutil
from pathlib import Path

import pytest


def turned_clock(seconds: int) -> dict[str, str]:
    """For the environment of a process: its time of day, and that of what it starts, is so many seconds ahead.

    The test is skipped where Debian's package `faketime` is not installed.
    """
    program = shutil.which("faketime")
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if program is None or library is None:
        pytest.skip("faketime is not installed")
    # clocks that nobody sets go on as they are
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
