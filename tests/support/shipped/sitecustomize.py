"""Processes of instances find the packages that are shipped, and none that only tests need.

Litestar and the Redis client load them wherever they are installed, for an eighth of the time that a start takes.
"""

import os
import sys

_NOT_SHIPPED = ("annotated_types", "attr", "attrs", "pydantic")
_TRACES = ("opentelemetry",)

for name in (*_NOT_SHIPPED, *(() if "FORECAST_TRACES" in os.environ else _TRACES)):
    sys.modules[name] = None  # type: ignore[assignment]
