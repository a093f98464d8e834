"""A process that an instance keeps alive."""

import asyncio
import signal
import socket
from pathlib import Path

from config.settings import Settings
from service.base.ipc import KeptOrders
from service.instance.children import Child, start_child
from service.instance.forks import Forks
from service.instance.kept_process import KeptProcess


class SlowForks(Forks):
    """Starts processes when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let = asyncio.Event(), asyncio.Event()
        self.started: list[Child] = []

    async def start(self, module: str, *files: int) -> tuple[Child, socket.socket]:
        self.asked.set()
        await self.let.wait()
        child, control_socket = start_child(module, *files)
        self.started.append(child)
        return child, control_socket


async def test_a_process_that_is_started_while_the_instance_stops_is_stopped(tmp_path: Path) -> None:
    forks = SlowForks()
    kept = KeptProcess("inbox's watcher", forks)
    settings = Settings(data_dir=str(tmp_path / "data"), inbox=str(tmp_path / "inbox"))
    kept.start(KeptOrders(task="inbox", settings=settings, log_json=False, instance="one"))
    await forks.asked.wait()
    stopping = asyncio.create_task(kept.stop())
    await asyncio.sleep(0)
    forks.let.set()
    await stopping
    assert [child.poll() for child in forks.started] == [-signal.SIGTERM]
