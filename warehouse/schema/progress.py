"""How long-running work reports what it is doing."""

from collections.abc import Callable

# Called with each step in words ("reading housing.parquet"). If it raises, the work ends.
ProgressCallback = Callable[[str], None]
