"""Answers partners and operators; knows HTTP and Redis, never SQL."""

import sys

# redis-py imports the metrics SDK of OpenTelemetry if it is installed, which takes 80 ms. None hides it.
sys.modules.setdefault("opentelemetry.sdk.metrics", None)  # type: ignore[arg-type]
