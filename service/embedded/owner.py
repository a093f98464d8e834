"""The embedded Valkey: two private servers, one for keys and one for the cache (Decisions 3 and 9).

The process that holds the lock of the data folder owns the servers. Other processes connect to their sockets.
"""

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from fcntl import LOCK_EX, LOCK_SH, flock
from importlib import resources
from pathlib import Path
from typing import Literal

from config.processes import die_with_parent
from config.settings import Settings, SettingsError
from config.urls import EMBEDDED
from service.base.signals import leave_to_supervisor
from service.embedded.runtime import (
    EmbeddedError,
    is_private,
    make_private,
    replies,
    runtime_folder,
    server_program,
)
from service.embedded.server import Server
from warehouse.files.atomic import open_lock, take_lock
from warehouse.files.remedies import unwritable

log = logging.getLogger("forecast.embedded")

Role = Literal["keys", "cache"]
ROLES: tuple[Role, ...] = ("keys", "cache")

_LONGEST_SOCKET_PATH = 107  # bytes (sun_path of unix(7))
_LOCK = "embedded.lock"
_START_SECONDS = 10.0
_STOP_SECONDS = 10.0


def embedded_roles(settings: Settings) -> tuple[Role, ...]:
    """Returns the roles that `settings` leave to embedded servers.

    Raises:
        SettingsError: if this installation does not accept `embedded`.
    """
    urls: dict[Role, str] = {"keys": settings.keys_url, "cache": settings.cache_url}
    roles = tuple(role for role in ROLES if urls[role] == EMBEDDED)
    if roles and not settings.embedded_allowed:
        names = " and ".join(f"FORECAST_{role.upper()}_URL" for role in roles)
        raise SettingsError(f"{names} must be set: this installation does not run embedded servers")
    return roles


def _die_with_parent() -> None:
    die_with_parent(signal.SIGTERM)  # not SIGKILL, so that it saves its data
    leave_to_supervisor()


class EmbeddedServers:
    """The servers of one data folder. Starts them unless another process runs them.

    A supervisor holds one for its lifetime, a command for one `borrowed` block. Servers that it started end with it.
    """

    def __init__(self, data: Path, roles: tuple[Role, ...]) -> None:
        self._data = data
        self._roles = roles
        self._own_runtime = runtime_folder(data)
        self._lock: int | None = None
        self._servers = self._make_servers()

    def url(self, role: Role) -> str:
        return f"unix://{self._socket(role)}"

    @property
    def owned(self) -> bool:
        return self._lock is not None

    def ensure(self, waiting: Callable[[], None] = lambda: None) -> None:
        """Starts missing servers, unless another process owns them; returns when all answer. Calls `waiting`, which may
        raise, while the servers of another process do not answer.

        Raises:
            EmbeddedError: if there is no server program, or it does not start.
        """
        if not self._roles:
            return
        deadline = time.monotonic() + _START_SECONDS
        if self.claim():
            self.look_at_disk()  # before the start, because the arguments of a server depend on it
        self.tend()
        while not self.answers():
            if not self.owned:
                self.tend()  # their owner may have just stopped them
                waiting()
            for role, server in self._servers.items():
                server.notice_end(time.monotonic())
                if server.cause:
                    raise EmbeddedError(f"the embedded server for {role} did not start: {server.explain_end()}")
            if time.monotonic() > deadline:
                raise EmbeddedError(f"the embedded servers of {self._data} do not answer: run `forecast status`")
            time.sleep(0.01)

    def answers(self) -> bool:
        return all(replies(self._socket(role), "PING", b"+PONG") for role in self._roles)

    def tend(self) -> list[Role]:
        """Starts missing servers without waiting, with back-off if they keep ending; returns those that it started.
        Call from the main thread."""
        if not self.claim():
            return []
        started: list[Role] = []
        now = time.monotonic()
        for role, server in self._servers.items():
            if server.runs:
                continue
            server.notice_end(now)
            if server.due is None or now >= server.due:
                if server.due is not None:
                    server.restarts.add(now)
                    log.warning("starting the embedded server for %s again: %s", role, server.cause)
                server.began, server.due = now, None
                try:
                    server.process = self._start(role, server)
                except (OSError, EmbeddedError) as error:
                    server.record_end(str(error), now)
                started.append(role)
        return started

    def look_at_disk(self) -> None:
        """Reserves space for the key store, and configures its server for a full disk or a free one. Call it often,
        outside the event loop: it may hang."""
        server = self._servers.get("keys")
        if server is not None and self.owned:
            server.look_at_disk(self._socket("keys"))

    def problems(self) -> list[str]:
        """Returns the problems of the servers that this process owns, with the remedies."""
        return [problem for server in self._servers.values() for problem in server.problems(time.monotonic())]

    def restarted(self) -> list[Role]:
        """Returns the roles of servers that were restarted in the last CALM_SECONDS."""
        return [role for role, server in self._servers.items() if server.restarts.recent_count(time.monotonic())]

    def claim(self) -> bool:
        """Makes this process the owner if there is none; returns whether it is the owner."""
        return bool(self._roles) and (self.owned or self._take_lock())

    def stop(self) -> None:
        """Stops the servers that this process owns; returns when their data is saved."""
        processes = [server.process for server in self._servers.values() if server.process is not None]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._servers = self._make_servers()
        if self._lock is not None:
            for role in self._roles:
                Path(self._socket(role)).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._runtime.rmdir()
            os.close(self._lock)
            self._lock = None

    def kill(self) -> None:
        """Kills the servers, while `stop` runs in another thread. Every confirmed write is on disk."""
        for server in list(self._servers.values()):
            if server.process is not None:
                server.process.kill()

    def _take_lock(self) -> bool:
        try:
            self._data.mkdir(parents=True, exist_ok=True)
            descriptor = take_lock(self._data / _LOCK)
        except OSError as error:
            raise EmbeddedError(unwritable(self._data, error)) from None
        if descriptor is None:
            return False
        self._lock = descriptor
        # lets a process with another XDG_RUNTIME_DIR or TMPDIR find the sockets
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(self._own_runtime).encode(), 0)
        return True

    def _start(self, role: Role, server: Server) -> "subprocess.Popen[bytes]":
        """Starts one server. Raises OSError, EmbeddedError."""
        folder = self._log(role).parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        make_private(self._runtime)
        Path(self._socket(role)).unlink(missing_ok=True)
        configuration = str(resources.files("config").joinpath(f"redis-{role}.conf"))
        command = [server_program(), configuration, "--port", "0", "--unixsocket", self._socket(role)]
        command += ["--unixsocketperm", "700", "--dir", str(folder), "--logfile", str(self._log(role))]
        command += server.arguments()
        return subprocess.Popen(  # noqa: S603 - our own program and configuration
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_die_with_parent,  # safe: it runs in a single thread and only makes system calls
            start_new_session=True,  # Ctrl-C is for this process, which stops the servers
        )

    @property
    def _runtime(self) -> Path:
        """Folder of the sockets: our own if we own the servers, else the one in their owner's lock file."""
        if self.owned:
            return self._own_runtime
        noted = self._read_noted_folder()
        return self._own_runtime if noted is None else noted

    def _read_noted_folder(self) -> Path | None:
        """Returns the folder in the lock file, if it is private to this user (for root: or to the file's owner)."""
        lock = self._data / _LOCK
        try:
            noted, written_by = lock.read_text(), lock.stat().st_uid
        except (OSError, UnicodeDecodeError):
            return None
        if not noted.startswith("/"):
            return None
        owners = {os.getuid(), written_by} if os.getuid() == 0 else {os.getuid()}
        return Path(noted) if any(is_private(Path(noted), owner) for owner in owners) else None

    def _make_servers(self) -> dict[Role, Server]:
        return {role: Server(role, self._log(role)) for role in self._roles}

    def _log(self, role: Role) -> Path:
        return self._data / "embedded" / role / "server.log"

    def _socket(self, role: Role) -> str:
        path = str(self._runtime / f"{role}.sock")
        if len(path.encode()) > _LONGEST_SOCKET_PATH:
            raise EmbeddedError(f"{path} is too long for a socket: set XDG_RUNTIME_DIR to a shorter folder")
        return path


@contextlib.contextmanager
def borrowed(
    settings: Settings, needed: tuple[Role, ...] = ROLES, waiting: Callable[[], None] = lambda: None
) -> Iterator[dict[Role, str]]:
    """Yields the URLs of the stores to one command. Starts missing embedded servers and stops them at the end.
    `waiting` is called while servers of another process do not answer.
    """
    roles = tuple(role for role in embedded_roles(settings) if role in needed)
    servers = EmbeddedServers(settings.data_path, roles)
    if not roles:
        yield resolve_urls(settings, servers)
        return
    with _users(settings.data_path) as users:
        try:
            servers.ensure(waiting)
            yield resolve_urls(settings, servers)
        finally:
            if servers.owned:
                # wait until other commands no longer use the servers that this one started
                flock(users, LOCK_EX)
            servers.stop()


@contextlib.contextmanager
def _users(data: Path) -> Iterator[int]:
    """Marks this command as a user of borrowed servers; waits while their owner stops them."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        descriptor = open_lock(data / "embedded.users")
    except OSError as error:
        raise EmbeddedError(unwritable(data, error)) from None
    try:
        flock(descriptor, LOCK_SH)
        yield descriptor
    finally:
        os.close(descriptor)


def has_begun(data: Path, role: Role) -> bool:
    """Returns whether an embedded server for `role` was ever started on the data folder."""
    return (data / "embedded" / role).is_dir()


def running_url(settings: Settings, role: Role) -> str | None:
    """Returns the URL of the server for `role`; None if it is embedded and not running."""
    if role not in embedded_roles(settings):
        return resolve_urls(settings, EmbeddedServers(settings.data_path, ()))[role]
    servers = EmbeddedServers(settings.data_path, (role,))
    return servers.url(role) if servers.answers() else None


def resolve_urls(settings: Settings, servers: EmbeddedServers) -> dict[Role, str]:
    """Returns the URL of each role's store; `servers` stand in for `embedded`."""
    urls: dict[Role, str] = {"keys": settings.keys_url, "cache": settings.cache_url}
    return {role: servers.url(role) if url == EMBEDDED else url for role, url in urls.items()}
