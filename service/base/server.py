"""uvicorn as both listeners use it: what it would do by itself is done by us, or not at all."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


class ListenerServer(uvicorn.Server):
    """Leaves signals alone: supervisor and workers stop in their own order. One for each listener of a process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would take the signals of the process, and raise them again after stopping."""
        yield


def plain_config(app: Any, protocol: type[asyncio.Protocol], **timeouts: int) -> uvicorn.Config:
    """`app` over `protocol`. `timeouts`, in seconds, are named as uvicorn names them."""
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who connects counts, not what a header says
        **timeouts,  # type: ignore[arg-type]  # mypy takes them for every other option
    )
