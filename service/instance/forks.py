"""A process that has imported what an instance's processes run, and forks them off: each starts in some 30 ms instead
of 400, and what was imported is in memory once for all.

It forks twice, and its child ends at once: so the kernel gives the process to the supervisor (PR_SET_CHILD_SUBREAPER in
prctl(2)), which it ends with, and which hears how it ended, whatever becomes of the process that forked it.
"""

import asyncio
import gc
import importlib
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from config.processes import adopt_orphans, belong_to, name_process, report_failure
from service.base.signals import FOR_SUPERVISOR, leave_to_supervisor
from service.instance.children import Child, start_child

log = logging.getLogger("forecast.supervisor")

# Importing takes half a second, on a busy machine some seconds; forking, milliseconds.
_PATIENCE_SECONDS = 10.0
# For the end of the fork server, once it was killed.
_DEATH_SECONDS = 0.5
# They ask a process to stop; and those that it leaves to the supervisor.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ALL_SIGNALS = (*_SIGNALS, *FOR_SUPERVISOR)
_THREADS = Path("/proc/self/task")
_LINE_BYTES = 200
_MOST_FILES = 4


class ForkedChild:
    """A process that was forked off, as `subprocess.Popen` shows it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Forks:
    """Starts the processes of one instance; owned by its supervisor. Without `begin`, each is a new interpreter."""

    def __init__(self) -> None:
        self._requests: socket.socket | None = None
        self._server: ForkedChild | None = None
        self._one_at_a_time = asyncio.Lock()

    def begin(self, import_all: Callable[[], None]) -> None:
        """Forks the process that forks; there, `import_all` imports what is to run. Not while this process has threads:
        they may hold locks that nobody would ever release there. Then, and if it cannot be forked, nothing is done.
        """
        if not _is_without_threads():
            return
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever started us may ignore it: then nobody hears of an end
        try:
            ours, pid = self._fork_server(import_all)
        except OSError as error:
            log.warning("processes start slowly: none can be forked that forks them: %s", error)
            return
        ours.setblocking(False)
        self._requests, self._server = ours, ForkedChild(pid)

    async def start(self, module: str, *files: int) -> tuple[Child, socket.socket]:
        """Lets `main` of the module run in a process of its own, as `start_child`. Raises OSError."""
        async with self._one_at_a_time:
            if self._requests is not None:
                ours, theirs = socket.socketpair()  # not below: with no descriptor left, forking goes on later
                try:
                    return await self._fork(self._requests, ours, theirs, module, files)
                except BaseException as error:
                    self.close()  # it may be at work on what nobody waits for any more
                    if not isinstance(error, OSError | ValueError):
                        raise
                    log.warning("processes start slowly from now on: the one that forked them failed: %r", error)
        return start_child(module, *files)

    def close(self) -> None:
        """Ends the process that forks. One that hangs in the kernel ends when that lets it go."""
        if self._requests is None or self._server is None:
            return
        self._requests.close()
        self._requests = None
        self._server.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + _DEATH_SECONDS
        while self._server.poll() is None and time.monotonic() < deadline:
            select.select((), (), (), 0.001)  # not time.sleep, which fails where libfaketime turns the clock

    @staticmethod
    def _fork_server(import_all: Callable[[], None]) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL_SIGNALS)  # none may find there what handles them here
        try:
            pid = os.fork()
            if pid == 0:
                ours.close()
                _serve(theirs, parent, import_all)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return ours, pid

    @staticmethod
    async def _fork(
        requests: socket.socket, ours: socket.socket, theirs: socket.socket, module: str, files: tuple[int, ...]
    ) -> tuple[ForkedChild, socket.socket]:
        try:
            with theirs, adopt_orphans():
                socket.send_fds(requests, [module.encode()], [theirs.fileno(), *files])
                line = await asyncio.wait_for(_read_line(requests), _PATIENCE_SECONDS)
            child = ForkedChild(int(line))
            child.poll()  # raises if the kernel has given it to somebody else
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return child, ours


def _is_without_threads() -> bool:
    try:
        return len(list(_THREADS.iterdir())) == 1
    except OSError:  # it cannot be told
        return False


async def _read_line(requests: socket.socket) -> bytes:
    loop, line = asyncio.get_running_loop(), b""
    while not line.endswith(b"\n"):
        part = await loop.sock_recv(requests, _LINE_BYTES)
        if not part:
            raise OSError("it has gone")
        line += part
    return line


# --- in the process that forks ---------------------------------------------------------------------------------------


def _serve(requests: socket.socket, supervisor: int, import_all: Callable[[], None]) -> NoReturn:
    """Forks a process for each request: the name of a module, and the files it is given. Ends with the supervisor."""
    try:
        belong_to(supervisor)
        name_process("forks")
        os.setsid()  # Ctrl-C is for the supervisor, which drains
        leave_to_supervisor()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        import_all()
        gc.freeze()
        while True:
            name, files, _, _ = socket.recv_fds(requests, _LINE_BYTES, _MOST_FILES)
            if not name:
                os._exit(0)
            requests.sendall(b"%d\n" % _fork_off(name.decode(), files, requests, supervisor))
            for file in files:
                os.close(file)
    except BaseException:
        log.exception("forking processes failed")
    finally:
        os._exit(1)


def _fork_off(module: str, files: list[int], requests: socket.socket, supervisor: int) -> int:
    """Forks a process and gives it to the supervisor; returns its id."""
    told, tells = os.pipe()
    between = os.fork()
    if between == 0:
        between = os.getpid()
        pid = os.fork()
        if pid == 0:
            requests.close()
            os.close(told)
            os.close(tells)
            _become(module, files, between, supervisor)
        os.write(tells, b"%d" % pid)
        os._exit(0)
    os.close(tells)
    os.waitpid(between, 0)
    answer = os.read(told, _LINE_BYTES)
    os.close(told)
    return int(answer)


def _become(module: str, files: list[int], parent: int, supervisor: int) -> NoReturn:
    """Runs `main` of the module, as ``python -m module`` in a session of its own would."""
    try:
        os.setsid()
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        # blocked until now, not ignored: one that was sent to this process since it was forked arrives
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ALL_SIGNALS)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        while os.getppid() == parent:  # until the kernel has given this process away
            os.sched_yield()
        sys.argv = [module, str(supervisor), *map(str, files)]
        importlib.import_module(module).main()
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    except BaseException as error:
        log.exception("%s failed", module)
        report_failure(files[0], error)
    finally:
        os._exit(1)
