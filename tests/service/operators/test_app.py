"""The operators' endpoints."""

import json

import pytest

from service.operators.app import build_operators_app
from service.operators.state import InstanceState
from service.telemetry import REQUESTS, Snapshot, Telemetry
from tests.service.operators.test_state import WELL, but, instance
from tests.support.asgi import exchange


async def ask(path: str, state: InstanceState | None = None) -> tuple[int, dict[bytes, bytes], bytes]:
    telemetry = Telemetry()
    telemetry.count(REQUESTS, "forecast", "200", "answered")

    async def sums() -> Snapshot:
        return telemetry.snapshot()

    start, body = await exchange(build_operators_app(lambda: state or instance(WELL), sums), path)
    return start["status"], dict(start["headers"]), body


@pytest.mark.parametrize(
    ("state", "status", "said"),
    [
        (instance(WELL), 200, "ready"),
        (instance(but(cache_up=False)), 200, "degraded"),
        (instance(None), 503, "unavailable"),
        (instance(WELL, draining=True), 503, "unavailable"),
    ],
)
async def test_readiness_is_what_a_balancer_needs(state: InstanceState, status: int, said: str) -> None:
    """503 only where nothing should be sent; the reasons are in the body, and nobody keeps it."""
    found, headers, body = await ask("/health/ready", state)
    assert (found, json.loads(body)["status"]) == (status, said)
    assert headers[b"cache-control"] == b"no-store"


async def test_liveness_looks_at_nothing_else() -> None:
    """An instance whose stores are away must not be killed for it."""
    state = instance(but(keys_up=False, cache_up=False, can_verify=False, release=None))
    assert (await ask("/health/live", state))[0] == 200


async def test_metrics_are_in_the_format_of_prometheus() -> None:
    """With the newest sums."""
    status, headers, body = await ask("/metrics")
    assert (status, headers[b"content-type"]) == (200, b"text/plain; version=0.0.4; charset=utf-8")
    assert b'forecast_requests_total{area="forecast",outcome="answered",status="200"} 1.0' in body


async def test_the_index_lists_every_endpoint() -> None:
    """And each answers."""
    for path in json.loads((await ask("/"))[2])["endpoints"]:
        assert (await ask(path))[0] == 200


async def test_partners_endpoints_are_not_here() -> None:
    """Nor the other way round."""
    assert (await ask("/v1/"))[0] == 404
