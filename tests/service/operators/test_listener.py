"""The operators' listener on a real socket."""

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from config.settings import Settings
from service.keys import audit
from service.operators.changes import Changes
from service.operators.listener import OperatorsListener, warn_if_open
from service.sockets import bind, url_of
from service.telemetry import Snapshot
from tests.service.operators.test_state import WELL, instance
from tests.support.key_store import PEPPER
from tests.support.operators import READ, WRITE, purge


@pytest.fixture
def audit_level() -> Iterator[None]:
    level = audit.log.level
    yield
    audit.log.setLevel(level)


async def sums() -> Snapshot:
    return Snapshot()


@pytest.mark.parametrize(
    ("host", "token", "warned"),
    [("0.0.0.0", None, True), ("0.0.0.0", READ, False), ("127.0.0.1", None, False), ("localhost", None, False)],
)
def test_a_listener_that_anybody_can_read_is_warned_of(
    host: str, token: str | None, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, and it says what to set; a loopback address is nobody else's to reach."""
    settings = Settings(data_dir="/nowhere", operator_read_token=token)
    with bind(host, 0, "operator_port") as bound:
        warn_if_open(settings, bound)
    told = [record.getMessage() for record in caplog.records]
    assert [("FORECAST_OPERATOR_READ_TOKEN_FILE" in message) for message in told] == [True] * warned


@pytest.mark.usefixtures("audit_level")
async def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    """HEAD has the length of the body and not the body; changes of keys are logged at every level from then on."""
    logging.getLogger("forecast.keys.audit").setLevel(logging.ERROR)
    settings = Settings(data_dir=str(tmp_path), operator_read_token=READ, operator_write_token=WRITE)
    with bind("127.0.0.1", 0, "operator_port") as bound:
        listener = OperatorsListener(settings, bound, Changes("unix:///nowhere", PEPPER, tmp_path, purge))
        listener.start(lambda: instance(WELL), sums)
        async with httpx.AsyncClient(base_url=url_of(bound), headers={"authorization": f"Bearer {READ}"}) as client:
            got, head = await client.get("/health/ready"), await client.head("/health/ready")
            assert (await client.post("/keys/0/revoke")).status_code == 403
            await listener.stop(30)
            with pytest.raises(httpx.TransportError):
                await client.get("/health/live")
    assert (got.status_code, head.status_code, head.content) == (200, 200, b"")
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.content))
    assert audit.log.isEnabledFor(logging.INFO)
