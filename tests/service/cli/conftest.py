"""Instances in place of running ones: a record in the data folder, and a listener that answers as a test says."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from redis import Redis

from service.embedded.owner import EmbeddedServers
from tests.service.conftest import Cli
from tests.support.listener import Listener, listening
from tests.support.overviews import RELEASE
from warehouse.releases.instances import InstanceFile, InstanceRecord

HERE = socket.gethostname()
Start = Callable[..., Listener]


def redis_of(cli: Cli) -> "Redis":
    """A client of the embedded key store."""
    return Redis.from_url(EmbeddedServers(cli.data, ("keys",)).url("keys"))


@pytest.fixture
def start(cli: Cli) -> Iterator[Start]:
    """Starts an instance on the data folder, which answers `overview`."""
    with ExitStack() as stack:

        def begin(overview: Any = None, *, pid: int = 4711, host: str = "") -> Listener:
            listener = stack.enter_context(listening())
            if overview is not None:
                listener.answer("/overview", overview)
            file = InstanceFile(cli.data, str(pid))
            stack.callback(file.close)
            file.write(InstanceRecord(str(pid), pid, host or HERE, listener.url, (RELEASE,), "embedded"))
            return listener

        yield begin
