"""What operators read: health, metrics, and errors in the form of partners' errors."""

import logging
from pathlib import Path

import pytest

from config.settings import Settings
from service.base.telemetry import Snapshot
from service.operators.actions import Actions
from service.operators.app import build_operators_app
from service.operators.origins import Hosts
from service.operators.state import InstanceState
from tests.service.operators.test_state import WELL, but, instance
from tests.support.operators import READ, WRITE, Answer, Watched, actions, ask, operators

PATHS = ("/", "/health/live", "/health/ready", "/metrics")


@pytest.fixture
def changes(tmp_path: Path) -> Actions:
    """Its key store is never called."""
    return actions(Settings(data_dir=str(tmp_path)), "redis://h")


async def read(path: str, state: InstanceState | None = None) -> Answer:
    return await ask(operators(lambda: state or instance(WELL)), path)


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
    answer = await read("/health/ready", state)
    assert (answer.status, answer.json()["status"]) == (status, said)
    assert list(answer.json()) == ["status", "reasons", "releases"]
    assert answer.headers["cache-control"] == "no-store"


async def test_liveness_depends_on_nothing_else_and_takes_no_token() -> None:
    """An instance whose stores are unreachable must not be killed for it."""
    state = instance(but(keys_up=False, cache_up=False, can_verify=False, release=None))
    app = operators(lambda: state, read=READ, write=WRITE)
    assert (await ask(app, "/health/live")).status == (await ask(app, "/")).status == 200


async def test_metrics_are_in_the_format_of_prometheus() -> None:
    answer = await read("/metrics")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b'forecast_requests_total{area="forecast",outcome="answered",status="200"} 1.0' in answer.body


async def test_the_index_lists_every_endpoint() -> None:
    endpoints = set((await read("/")).json()["endpoints"])
    others = {"/events", "/requests/{request_id}", "/openapi.json"}
    assert others < endpoints
    for path in endpoints - others:
        assert (await read(path)).status == (await read(f"{path}/")).status == 200


async def test_the_description_names_every_endpoint_and_its_errors_and_takes_the_read_token(changes: Actions) -> None:
    app = operators(lambda: instance(WELL), read=READ, write=WRITE, changes=changes)
    assert (await ask(app, "/openapi.json")).problem() == (401, "missing_token")
    described = (await ask(app, "/openapi.json", token=READ)).json()
    listed = {path.removeprefix("POST ") for path in (await ask(app, "/", token=WRITE)).json()["endpoints"]}
    assert set(described["paths"]) == listed - {"/openapi.json"}
    assert "#/components/schemas/Problem" in str(described["paths"]["/caches/purge"]["post"]["responses"]["403"])
    assert "RollbackOrder" in str(described["paths"]["/releases/rollback"])


async def test_options_lists_the_methods() -> None:
    answer = await ask(operators(lambda: instance(WELL)), "/metrics", "OPTIONS")
    assert (answer.status, set(answer.headers["allow"].split(", "))) == (204, {"GET", "HEAD", "OPTIONS"})


async def test_the_index_lists_actions_for_callers_with_the_right(changes: Actions) -> None:
    app = operators(lambda: instance(WELL), read=READ, write=WRITE, changes=changes)
    said = [(await ask(app, "/", token=token)).json()["endpoints"] for token in (None, READ, WRITE)]
    assert said[0] == said[1]
    assert set(said[2]) - set(said[0]) == {
        "POST /log/sampling",
        "POST /keys/{key_id}/revoke",
        "POST /releases/rollback",
        "POST /caches/purge",
    }


async def test_with_a_read_token_all_that_is_read_takes_one() -> None:
    app = operators(lambda: instance(WELL), read=READ, write=WRITE)
    for token in (READ, WRITE):
        assert (await ask(app, "/metrics", token=token)).status == 200
    for wrong, code in ((None, "missing_token"), ("another-token-altogether", "invalid_token")):
        refused = await ask(app, "/metrics", token=wrong)
        assert refused.problem() == (401, code)
        assert refused.headers["www-authenticate"] == "Bearer"
        assert b"forecast_" not in refused.body
    for path in ("/overview", "/history", "/events", "/requests/r1"):
        assert (await ask(app, path)).problem() == (401, "missing_token")


@pytest.mark.parametrize(("state", "status"), [(instance(but(cache_up=False)), 200), (instance(None), 503)])
async def test_a_probe_without_the_token_learns_the_status_alone(state: InstanceState, status: int) -> None:
    app = operators(lambda: state, read=READ)
    whole = await ask(app, "/health/ready", token=READ)
    assert list(whole.json()) == ["status", "reasons", "releases"]
    for token in (None, "another-token-altogether"):
        bare = await ask(app, "/health/ready", token=token)
        assert (bare.status, bare.json()) == (status, {"status": whole.json()["status"]})


async def test_a_page_that_gave_this_machine_its_own_name_reads_nothing(changes: Actions) -> None:
    """Nor changes anything, whatever it sends. Probes may use any name: they learn the status alone."""
    app = operators(lambda: instance(but(cache_up=False)), write=WRITE, changes=changes, hosts=Hosts())
    for path, method in (("/metrics", "GET"), ("/overview", "GET"), ("/events", "GET"), ("/caches/purge", "POST")):
        refused = await ask(app, path, method, token=WRITE, host="rebound.example:8001")
        assert refused.problem() == (421, "misdirected_request")
        assert "FORECAST_OPERATOR_ALLOWED_HOSTS" in refused.json()["detail"]
    assert (await ask(app, "/metrics", host="localhost:9001")).status == 200
    assert (await ask(app, "/caches/purge", "POST", token=WRITE, host="127.0.0.1")).status == 200
    probed = await ask(app, "/health/ready", host="balancer.example")
    assert (probed.status, probed.json()) == (200, {"status": "degraded"})
    assert (await ask(app, "/health/live", host="balancer.example")).status == 200


async def test_a_page_of_another_site_changes_nothing(changes: Actions) -> None:
    """Not even with the token. It may link to what can be read; a page of the listener itself may do both."""
    app = operators(lambda: instance(WELL), write=WRITE, changes=changes)
    for refused in (
        await ask(app, "/caches/purge", "POST", token=WRITE, sec_fetch_site="cross-site"),
        await ask(app, "/caches/purge", "POST", token=WRITE, origin="https://elsewhere.example"),
    ):
        assert refused.problem() == (403, "cross_site")
    assert (await ask(app, "/metrics", sec_fetch_site="cross-site")).status == 200
    assert (await ask(app, "/caches/purge", "POST", token=WRITE, sec_fetch_site="same-origin")).status == 200


async def test_beyond_loopback_nothing_is_read_before_there_is_a_token() -> None:
    app = operators(lambda: instance(but(cache_up=False)), open_to_all=False)
    for path in ("/metrics", "/overview", "/events"):
        refused = await ask(app, path, token="another-token-altogether")
        assert refused.problem() == (401, "token_not_set")
        assert "FORECAST_OPERATOR_READ_TOKEN_FILE" in refused.json()["detail"]
    assert (await ask(app, "/health/ready")).json() == {"status": "degraded"}
    assert (await ask(app, "/health/live")).status == (await ask(app, "/")).status == 200


@pytest.mark.parametrize("path", PATHS)
async def test_head_is_answered_as_get_is_and_other_methods_are_refused(path: str) -> None:
    app = operators(lambda: instance(WELL))
    got, head = [await ask(app, path, method, x_request_id="r") for method in ("GET", "HEAD")]
    assert (head.status, head.headers) == (got.status, got.headers)
    for method in ("POST", "PUT", "DELETE", "TRACE"):
        answer = await ask(app, path, method)
        assert answer.problem() == (405, "method_not_allowed")
        assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


async def test_there_is_nothing_at_other_paths() -> None:
    for path in ("/v1/", "/health", "/metrics/x", "/keys/0B1zQmX4ktLw"):
        answer = await ask(operators(lambda: instance(WELL)), path, x_request_id="abc-1")
        assert answer.problem() == (404, "not_found")
        assert answer.json()["request_id"] == "abc-1"


async def test_a_defect_is_a_500_that_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Watched):
        async def sums(self) -> Snapshot:
            raise RuntimeError("hunter2")

    answer = await ask(build_operators_app(Broken(lambda: instance(WELL))), "/metrics")
    assert answer.problem() == (500, "internal")
    assert b"hunter2" not in answer.body
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert vars(record)["request_id"] == answer.headers["x-request-id"]
