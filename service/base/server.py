"""uvicorn's server without its handling of signals: supervisor and workers stop in their own order."""

from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


class Server(uvicorn.Server):
    """uvicorn would take the signals of the process, and raise them again after stopping."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
