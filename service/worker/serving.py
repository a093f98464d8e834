"""A worker: it serves, reports to the supervisor and obeys it, until it has drained. main.py is its program."""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket

import msgspec

from config.settings import Settings
from service.base import ipc, logs
from service.base.tasks import hold_until_done, keep_running
from service.connection.door import PartnersDoor
from service.connection.server import ListenerServer
from service.http.app import build_litestar
from service.request.log_lines import json_line, text_line
from service.worker.assembly import WorkerApp

log = logging.getLogger("forecast.worker")

# Open files besides connections: releases, Redis, logs, refused connections, and a reserve.
_OTHER_FILES = 500
# Timeout for sending the last report, which has the final counts.
_LAST_WORDS_SECONDS = 1.0


class ServingWorker:
    """The one worker of this process: serves, reports to the supervisor and obeys it, until it has drained."""

    def __init__(self, orders: ipc.Orders, listening: socket.socket, writer: asyncio.StreamWriter) -> None:
        allowed = allow_files(orders.settings.connections)
        bounded = allowed < orders.settings.connections
        self._files_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if bounded else 0
        orders = msgspec.structs.replace(orders, settings=msgspec.structs.replace(orders.settings, connections=allowed))
        self._settings = orders.settings
        self._takes_over = orders.takes_over
        self._listening = listening
        self._writer = writer
        line_of = json_line if orders.log_json else text_line
        self._app = WorkerApp(orders.settings, orders.endpoints, self._switched, line_of, orders.shared)
        if orders.logged_share is not None:
            self._app.watch.sample(orders.logged_share)
        self._found: ipc.FoundRequests | None = None
        self._started = False
        self._purges = 0
        self._purging: set[asyncio.Task[None]] = set()
        self._server = make_server(self._app, orders.settings)
        self._last_line = logs.LastLine()
        logging.getLogger().addHandler(self._last_line)

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._drain)
        await self._app.start()
        if self._takes_over:
            await self._app.follower.opened.wait()
        self._started = True
        self._send_report()
        try:
            await self._server.serve(sockets=[self._listening])
        finally:
            self._send_report()
            await self._app.stop()

    async def obey(self, reader: asyncio.StreamReader) -> float:
        """Obeys one order of the supervisor; returns the seconds until the next.

        Ends the process when the supervisor is gone, whatever is under way.
        """
        line = await ipc.read_line(reader)
        if not line:
            os._exit(1)
        if line == ipc.REPORT:
            self._send_report()
        elif line.startswith(ipc.FIND):
            request_id = line.removeprefix(ipc.FIND).decode().strip()
            self._found = ipc.FoundRequests(request_id, self._app.watch.log.find(request_id))
            self._send_report()
        elif line.startswith(ipc.SAMPLE):
            self._app.watch.sample(float(line.removeprefix(ipc.SAMPLE)))
        elif line.startswith(ipc.SHARED):
            self._app.share(msgspec.json.decode(line.removeprefix(ipc.SHARED), type=ipc.Shared))
        elif line == ipc.PURGE:
            # in a task: a busy worker takes seconds for it, and must report meanwhile
            hold_until_done(asyncio.create_task(self._purge(), name="purge"), self._purging)
        return 0.0

    async def _purge(self) -> None:
        for _ in self._app.near.purge():
            await asyncio.sleep(0)
        self._purges += 1

    def _switched(self, _: str) -> None:
        settle()
        self._send_report()

    def _drain(self) -> None:
        """Closes connections after their answers from now on; accepts new ones until the supervisor stops that."""
        self._app.entry.pipeline.draining = True
        loop, lame_duck = asyncio.get_running_loop(), ipc.LameDuck.within(self._settings.drain)

        def accept_the_last() -> None:
            # A timer of its own, so that a process that was stalled still accepts before it closes.
            loop.call_later(lame_duck.accepting, setattr, self._server, "should_exit", True)

        loop.call_later(lame_duck.inviting, accept_the_last)

    def _send_report(self) -> None:
        if not self._started:
            self._writer.write(ipc.STARTING)  # the first report shows the supervisor that this worker serves
            return
        app = self._app
        release, hang = app.follower.current, app.follower.hang
        manifest = release.manifest if release else None
        report = ipc.WorkerReport(
            release=manifest.id if manifest else None,
            release_problem=app.follower.problem or app.look_ups.problem,
            published_at=manifest.published_at.timestamp() if manifest else None,
            illustrative=manifest.illustrative if manifest else False,
            keys_up=app.keys_store.healthy,
            cache_up=app.cache_store.healthy,
            cache_away=app.cache_store.unreachable_parts,
            cache_refusal=app.shared_cache.refusal,
            push_connected=app.listener.connected,
            push_refused=app.listener.refused,
            can_verify=app.verifier.can_verify_any,
            can_answer=app.lookups.can_answer,
            keys_problem=app.verifier.store_watch.problem,
            keys_went_back=app.verifier.lost_writes.problem,
            revoked_lost=tuple(app.verifier.lost_writes.revoked),
            usage_problem=app.metering.flusher.problem,
            usage_waits=app.metering.counters.waits,
            near_bytes=app.near.used_bytes,
            near_entries=app.near.entries,
            purges=self._purges,
            hung=str(hang) if hang else None,
            hung_seconds=hang.seconds if hang else 0.0,
            connections=len(self._server.server_state.connections),
            connections_limit=self._settings.connections,
            files_limit=self._files_limit,
            waiting=release.engine.under_way if release else 0,
            last_line=self._last_line.text,
            samples=app.watch.samples.take(),
            partners=app.metering.add_limits(app.watch.samples.take_partners()),
            found=self._found,
            telemetry=app.figures(),
        )
        self._found = None
        self._writer.write(ipc.encode_message(report))


def settle() -> None:
    """Exempts code and key sets from garbage collection. Call when a release has been opened.

    A collection takes some 80 ms, in which no request is answered. Here it runs once, for the objects of the previous
    release.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def make_server(app: WorkerApp, settings: Settings) -> ListenerServer:
    """Returns the server of partners' connections."""
    return ListenerServer(make_door(app, settings), drain=max(1, round(settings.drain)))


def make_door(app: WorkerApp, settings: Settings) -> PartnersDoor:
    return PartnersDoor(
        app.entry,
        app.entry.pipeline,
        app.resolver,
        settings.connections,
        keep_alive=settings.keep_alive,
        connection_age=settings.connection_age,
    )


def allow_files(connections: int) -> int:
    """Raises the limit of open files for `connections`; returns how many connections it allows.

    Each connection is a file, and the usual limit is 1,024. Some files are kept free, so that releases can be opened.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY and wanted > hard:
        connections = min(connections, max(hard - _OTHER_FILES, hard // 4))
        log.warning("at most %d connections can be served: the limit of open files is %d", connections, hard)
        wanted = hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return connections


async def work(control_socket: socket.socket, listening: socket.socket) -> None:
    """Serves on `listening`, and obeys the supervisor at the other end of `control_socket`. Returns when drained."""
    reader, writer = await asyncio.open_connection(sock=control_socket, limit=ipc.LINE_LIMIT_BYTES)
    orders = msgspec.json.decode(await reader.readline(), type=ipc.Orders)
    logs.configure("json" if orders.log_json else "text", orders.settings.log_level)
    worker = ServingWorker(orders, listening, writer)
    obeying = keep_running("obey the supervisor", lambda: worker.obey(reader))
    await worker.run()
    obeying.cancel()
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), _LAST_WORDS_SECONDS)


def preload() -> None:
    """Imports the rest of a worker's code, for the fork server."""
    build_litestar([])  # Litestar imports a third of itself when it is first used
