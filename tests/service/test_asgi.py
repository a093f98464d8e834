"""The application under an ASGI server that is not ours."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from config.settings import Settings
from service.asgi import Application
from tests.support.served import FORECAST, _issue, with_keys
from tests.support.waiting import until


@contextmanager
def under_uvicorn() -> Iterator[uvicorn.Server]:
    """The application under uvicorn with its defaults, in a thread."""
    server = uvicorn.Server(uvicorn.Config(Application(), port=0, log_config=None))
    thread = threading.Thread(target=server.run, name="uvicorn")
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        yield server
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def environment(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("data_dir", "keys_url", "cache_url"):
        monkeypatch.setenv(f"FORECAST_{name.upper()}", getattr(settings, name))
    monkeypatch.setenv("FORECAST_KEYS_PEPPER", "pepper of the tests")
    return settings


def test_uvicorn_serves_partners_with_the_documented_answers(environment: Settings) -> None:
    key, _ = asyncio.run(with_keys(environment.keys_url, Path(environment.data_dir), _issue))
    with under_uvicorn() as server:
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"x-api-key": key}) as client:
            answer = client.get(FORECAST, params={"zip_code": "36436"})
            assert answer.status_code == 200
            assert answer.json()["total_results"] == 1
            assert "x-request-id" in answer.headers
            assert client.get(FORECAST, params={"zip_code": "36436"}).headers["cache-status"].endswith("detail=near")
            assert client.get("/v1/").status_code == 200
            assert client.get("/nowhere").status_code == 404
            assert client.head(FORECAST, params={"zip_code": "36436"}).content == b""
            assert client.get("/v1/", headers={"x-api-key": ""}).status_code == 401


def test_a_server_does_not_start_without_running_redis_servers(
    environment: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECAST_KEYS_URL", "embedded")
    sent: list[dict[str, str]] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: dict[str, str]) -> None:
        sent.append(message)

    asyncio.run(Application()({"type": "lifespan"}, receive, send))
    (failure,) = sent
    assert failure["type"] == "lifespan.startup.failed"
    assert "FORECAST_KEYS_URL" in failure["message"]
