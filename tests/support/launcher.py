"""Runs `forecast` in processes that are forked off one that has imported it: importing takes most of a short command.

They are processes as any other: with an environment, a session, signals and an end of their own. Where a test has more
of its own than settings (a path, a clock, a namespace), it starts an interpreter.
"""

import atexit
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

from config.processes import adopt_orphans
from service.base.signals import FOR_SUPERVISOR
from service.instance import forks

_SETTINGS = "FORECAST_"
# Only commands read these, none of them when an interpreter starts or a library is loaded.
_READ_LATER = ("SUDO_USER", "TERM", "COLUMNS", "LINES")


class Launched(forks.ForkedChild):
    """A process that runs `forecast`, as `subprocess.Popen` shows one."""

    def wait(self, timeout: float | None = None) -> int:
        deadline = time.monotonic() + (timeout if timeout is not None else float("inf"))
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("forecast", timeout or 0)
            time.sleep(0.002)
        return code

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Launcher:
    """The process that forks, and its requests; one per test process, which it ends with."""

    def __init__(self, path: str) -> None:
        self._requests, theirs = socket.socketpair()
        atexit.register(self._requests.close)
        self._one_at_a_time = threading.Lock()
        env = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
        with theirs:
            arguments = [sys.executable, "-m", __name__, str(os.getpid()), str(theirs.fileno())]
            subprocess.Popen(arguments, pass_fds=[theirs.fileno()], env={**env, "PYTHONPATH": path})

    def launch(self, env: Mapping[str, str], arguments: tuple[str, ...], *streams: int) -> Launched:
        """`streams`: descriptors of its standard output, its standard error and, unless it is ours, its input."""
        ours, theirs = socket.socketpair()
        with ours, self._one_at_a_time, adopt_orphans():
            with theirs:
                socket.send_fds(self._requests, [__name__.encode()], [theirs.fileno(), *streams])
            pid = int(self._requests.recv(100))
            ours.sendall(json.dumps([arguments, dict(env), str(Path.cwd())]).encode())
        return Launched(pid)


@cache
def _launcher(path: str) -> _Launcher:
    return _Launcher(path)


def can_launch(env: Mapping[str, str]) -> bool:
    """Whether nothing but settings and the path of `tests.support.instance` sets `env` apart from this process's."""
    return _rest(env) == _rest(os.environ)


def _rest(env: Mapping[str, str]) -> dict[str, str]:
    ours = (_SETTINGS, "PYTHONPATH", "PYTEST_CURRENT_TEST", *_READ_LATER)
    return {name: value for name, value in env.items() if not name.startswith(ours)}


def launch(env: Mapping[str, str], *arguments: str, errors: IO[bytes]) -> Launched:
    """Begins a command whose output is not read."""
    with Path(os.devnull).open("wb") as nowhere:
        return _launcher(env["PYTHONPATH"]).launch(env, arguments, nowhere.fileno(), errors.fileno())


def launch_in_terminal(env: Mapping[str, str], *arguments: str, terminal: int) -> Launched:
    """Begins a command whose three streams are `terminal`."""
    return _launcher(env["PYTHONPATH"]).launch(env, arguments, terminal, terminal, terminal)


def run(
    env: Mapping[str, str], *arguments: str, timeout: float, to: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Runs one command to its end. `to` takes its standard output; without it, the result has it."""
    with to.open("wb") if to is not None else tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = _launcher(env["PYTHONPATH"]).launch(env, arguments, out.fileno(), errors.fileno())
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        said = ""
        if to is None:
            out.seek(0)
            said = out.read().decode()
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, code, said, errors.read().decode())


def _import_all() -> None:
    from service.cli.main import _COMMANDS
    from service.worker.serving import preload

    for name, (module, _) in _COMMANDS.items():
        if name != "demo":  # it imports pyarrow, which starts a thread: a fork has none of its locks
            importlib.import_module(module)
    importlib.import_module("service.instance.kept_main")
    preload()


def main() -> NoReturn:
    """A command, from its beginning to its end; its orders come over the socket."""
    control, *streams = (int(argument) for argument in sys.argv[2:])
    with socket.socket(fileno=control) as orders:
        arguments, env, folder = json.loads(b"".join(iter(lambda: orders.recv(65536), b"")))
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    for descriptor, usual in zip(streams, (1, 2, 0), strict=False):
        os.dup2(descriptor, usual)
        os.close(descriptor)
    sys.argv = ["forecast", *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in FOR_SUPERVISOR:
        signal.signal(number, signal.SIG_DFL)
    from service.__main__ import run as run_command

    code: object = 1
    try:
        run_command()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(int(str(code)))


if __name__ == "__main__":
    forks._serve(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[1]), _import_all)
