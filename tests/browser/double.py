"""An operators' listener whose figures a test makes: all of it is real but the instance that it shows."""

import asyncio
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

from config.settings import Settings
from service.base.sockets import bind, url_of
from service.operators.history import Span
from service.operators.listener import OperatorsListener
from service.operators.overview import History, Overview
from tests.browser.made import history, well
from tests.service.operators.test_state import WELL, instance
from tests.support.operators import Watched, actions

_SPANS: dict[Span, tuple[float, float]] = {"10m": (600, 1), "2h": (7200, 10), "24h": (86_400, 60)}
_TICK = 0.2  # five overviews a second, so that tests wait less
_STOP_SECONDS = 0.1


class _Made(Watched):
    """An instance as a `Double` says."""

    def __init__(self, double: "Double") -> None:
        self.double = double
        super().__init__(lambda: instance(WELL))

    def overview(self) -> Overview | None:
        return self.double.overview()

    def history(self, span: Span) -> History:
        return self.double.history(time.time(), *_SPANS[span])


class Double:
    """Serves from `start` to `stop`, on the same port each time, what `overview` and `history` return.

    With the token `keys` it also serves the keys, usage and last errors in the Redis at `keys_url`; what it has seen of
    that is in `data`.
    """

    def __init__(
        self,
        read: str | None = None,
        keys: str | None = None,
        keys_url: str = "unix:///nowhere",
        data: str = tempfile.gettempdir(),
    ) -> None:
        self.overview: Callable[[], Overview] = well
        self.history: Callable[[float, float, float], History] = history
        self.silent = False  # connections stand, but no overview comes
        self._settings = Settings(data_dir=data, operator_read_token=read, operator_keys_token=keys)
        self._keys_url = keys_url
        with bind("127.0.0.1", 0, "operator_port") as bound:
            self._port = bound.getsockname()[1]
            self.url = f"{url_of(bound)}/"

    def start(self) -> "Double":
        self._stopping = False
        self._open = ExitStack()
        bound = self._open.enter_context(bind("127.0.0.1", self._port, "operator_port"))
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(bound),), daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stopping = True
        self._thread.join()
        self._open.close()

    async def _serve(self, bound: socket.socket) -> None:
        changes = actions(self._settings, self._keys_url, self._keys_url)
        listener, made = OperatorsListener(self._settings, bound, changes), _Made(self)
        listener.start(made)
        while not self._stopping:
            if not self.silent:
                made.broadcast.publish()
            await asyncio.sleep(_TICK)
        await listener.stop(_STOP_SECONDS)
