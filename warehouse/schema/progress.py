"""How long-running work reports its current step."""

from collections.abc import Callable

# Called with a description of each step ("reading housing.parquet"). If it raises, the work ends.
ProgressCallback = Callable[[str], None]
