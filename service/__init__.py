"""Answers partners and operators; uses HTTP and Redis, never SQL."""

import sys

# redis-py imports OpenTelemetry's metrics SDK if it is installed, which takes 80 ms. None prevents that.
sys.modules.setdefault("opentelemetry.sdk.metrics", None)  # type: ignore[arg-type]
