"""The fork server: imports the modules of an instance's processes once and forks each process. A process then starts in
some 30 ms instead of 400, and all share the memory of the imported modules.

The server forks twice, and the process in between exits at once. The kernel then makes the supervisor the parent
(PR_SET_CHILD_SUBREAPER in prctl(2)). The supervisor thus gets the exit code even if the fork server has ended.
"""

import asyncio
import gc
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

from config.processes import adopt_orphans, belong_to, name_process
from service.base.signals import FOR_SUPERVISOR, leave_to_supervisor
from service.instance.children import Child, run_child, start_child

log = logging.getLogger("forecast.supervisor")

# Importing takes half a second, or some seconds on a busy machine. Forking takes milliseconds.
_PATIENCE_SECONDS = 10.0
# Maximum wait for the end of the killed fork server.
_DEATH_SECONDS = 0.5
# Signals that stop a process; then also those that only the supervisor handles.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ALL_SIGNALS = (*_SIGNALS, *FOR_SUPERVISOR)
_THREADS = Path("/proc/self/task")
_MESSAGE_BYTES = 200
_MOST_FILES = 4


class ForkedChild:
    """A forked process, with the interface of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code, or the negative number of the signal that ended it; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Forks:
    """Starts the processes of one instance; owned by its supervisor. Without `begin`, each runs a new interpreter."""

    def __init__(self) -> None:
        self._requests: socket.socket | None = None
        self._server: ForkedChild | None = None
        self._one_at_a_time = asyncio.Lock()

    def begin(self, import_all: Callable[[], None]) -> None:
        """Starts the fork server, which calls `import_all`. Does nothing if forking fails, or if this process has
        threads: the locks that they hold would never be released in the fork.
        """
        if not _is_without_threads():
            return
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # our parent may ignore it, and then waitpid() reports no exit
        try:
            ours, pid = self._fork_server(import_all)
        except OSError as error:
            log.warning("processes start slowly: cannot start the fork server: %s", error)
            return
        ours.setblocking(False)
        self._requests, self._server = ours, ForkedChild(pid)

    async def start(self, module: str, *files: int) -> tuple[Child, socket.socket]:
        """Runs `main` of the module in a process of its own, as `start_child` does. Raises OSError."""
        async with self._one_at_a_time:
            if self._requests is not None:
                ours, theirs = socket.socketpair()  # outside the try: a lack of descriptors must not end the server
                try:
                    return await self._fork(self._requests, ours, theirs, module, files)
                except BaseException as error:
                    self.close()  # it may still process a request that was abandoned
                    if not isinstance(error, OSError | ValueError):
                        raise
                    log.warning("processes start slowly from now on: the fork server failed: %r", error)
        return start_child(module, *files)

    def close(self) -> None:
        """Kills the fork server. If it hangs in the kernel, it ends later."""
        if self._requests is None or self._server is None:
            return
        self._requests.close()
        self._requests = None
        self._server.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + _DEATH_SECONDS
        while self._server.poll() is None and time.monotonic() < deadline:
            select.select((), (), (), 0.001)  # time.sleep fails under libfaketime

    @staticmethod
    def _fork_server(import_all: Callable[[], None]) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # each message arrives as a whole
        parent = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL_SIGNALS)  # our handlers must not run in the fork
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
        loop = asyncio.get_running_loop()
        try:
            with theirs, adopt_orphans():
                socket.send_fds(requests, [module.encode()], [theirs.fileno(), *files])
                reply = await asyncio.wait_for(loop.sock_recv(requests, _MESSAGE_BYTES), _PATIENCE_SECONDS)
            if not reply:
                raise OSError("it has exited")
            child = ForkedChild(int(reply))
            child.poll()  # raises if another process is its parent
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return child, ours


def _is_without_threads() -> bool:
    try:
        return len(list(_THREADS.iterdir())) == 1
    except OSError:  # unknown
        return False


# --- in the fork server ----------------------------------------------------------------------------------------------


def _serve(requests: socket.socket, supervisor: int, import_all: Callable[[], None]) -> NoReturn:
    """Forks a process for each request, which holds a module's name and descriptors. Ends with the supervisor."""
    try:
        belong_to(supervisor)
        name_process("forks")
        os.setsid()  # Ctrl-C is for the supervisor, which drains
        leave_to_supervisor()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        import_all()
        gc.freeze()
        while True:
            name, files, _, _ = socket.recv_fds(requests, _MESSAGE_BYTES, _MOST_FILES)
            if not name:
                os._exit(0)
            requests.send(b"%d" % _fork_off(name.decode(), files, requests, supervisor))
            for file in files:
                os.close(file)
    except BaseException:
        log.exception("forking processes failed")
    finally:
        os._exit(1)


def _fork_off(module: str, files: list[int], requests: socket.socket, supervisor: int) -> int:
    """Forks a process whose parent is the supervisor; returns its id."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        between = os.getpid()
        pid = os.fork()
        if pid == 0:
            requests.close()
            os.close(reading)
            os.close(writing)
            _become(module, files, between, supervisor)
        os.write(writing, b"%d" % pid)
        os._exit(0)
    os.close(writing)
    os.waitpid(between, 0)
    answer = os.read(reading, _MESSAGE_BYTES)
    os.close(reading)
    return int(answer)


def _become(module: str, files: list[int], parent: int, supervisor: int) -> NoReturn:
    """Runs `main` of the module like `start_child`, in a session of its own."""
    os.setsid()
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    # they were blocked, not ignored: one that was sent since the fork arrives now
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ALL_SIGNALS)
    devnull = os.open(os.devnull, os.O_RDONLY)
    os.dup2(devnull, 0)
    os.close(devnull)
    while os.getppid() == parent:  # until the supervisor is the parent
        os.sched_yield()
    sys.argv = [module, str(supervisor), *map(str, files)]
    run_child()
