"""The state of one embedded server: when to restart it, why it ended, and whether its disk is full."""

import logging
import re
import subprocess
from pathlib import Path

from service.base.backoff import CALM_SECONDS, Backoff, Restarts
from service.embedded.disk import disk_error, is_full
from service.embedded.repair import find_incomplete_end, find_missing_file
from service.embedded.runtime import EmbeddedError, replies
from service.redis.server import DISK_FULL_BYTES, disk_full

log = logging.getLogger("forecast.embedded")

_LONGEST_PAUSE_SECONDS = 30.0
# A server with this many restarts in CALM_SECONDS keeps ending.
_LOOPING = 2
_LOG_BYTES = 4096
# Matches warnings of a server that cannot read its own files.
_DAMAGED = re.compile(
    r"^(?!.*(?:write error|fsync)).*(?:append.only file|append log|\b(?:AOF|aof|RDB)\b|manifest|loading DB)"
)
# Start of the server's advice, which names a tool that is not installed.
_ADVICE = re.compile(r": make a backup|\. You can")
_REPAIR = "its files are damaged ({}): stop all instances on its data folder, then run `forecast keys repair`"


class Server:
    """`due`: when to restart it after its end, in monotonic seconds. `cause`: why it ended last."""

    def __init__(self, role: str, log_file: Path) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.began = 0.0
        self.due: float | None = None
        self.cause = ""
        self.restarts = Restarts()
        self._role = role
        self._log = log_file
        self._disk_error: OSError | None = None
        self._limited = False
        self._backoff = Backoff(longest=_LONGEST_PAUSE_SECONDS, settled=CALM_SECONDS)

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def notice_end(self, now: float) -> None:
        if self.process is not None and not self.runs and self.due is None:
            self.record_end(self._find_cause(), now)

    def record_end(self, cause: str, now: float) -> None:
        """Schedules the restart: at once after a calm time, then with back-off."""
        self.cause = cause
        self.due = now + self._backoff.after(now - self.began if self.restarts.recent_count(now) else CALM_SECONDS + 1)

    def _find_cause(self) -> str:
        """Returns the signal that ended it, else the last error in its log, else its exit code."""
        pid, status = (0, 0) if self.process is None else (self.process.pid, self.process.poll() or 0)
        if status < 0:
            return f"signal {-status} ended it"
        try:
            with self._log.open("rb") as stream:
                stream.seek(max(0, self._log.stat().st_size - _LOG_BYTES))
                lines = stream.read(_LOG_BYTES).decode(errors="replace").splitlines()
        except OSError:
            lines = []
        errors = [line.partition(" # ")[2] for line in lines if line.startswith(f"{pid}:") and " # " in line]
        error = next((error for error in errors[::-1] if not error.startswith("WARNING")), "")
        return _ADVICE.split(error)[0] or f"it ended with code {status}"

    def arguments(self) -> list[str]:
        """Returns its arguments, which configure it for a full disk from its start.

        Raises:
            EmbeddedError: if one of its files is missing, so that it would start empty.
        """
        if self._role == "keys":
            damage = find_missing_file(self._log.parent)
            if damage is not None:
                raise EmbeddedError(damage)
            warning = find_incomplete_end(self._log.parent)
            if warning is not None:
                log.warning("%s", warning)
        self._limited = is_full(self._disk_error)
        return ["--maxmemory", str(DISK_FULL_BYTES), "--auto-aof-rewrite-percentage", "0"] if self._limited else []

    def look_at_disk(self, socket: str) -> None:
        """Reserves space for its append-only file, and configures it for a full disk or a free one. May hang."""
        before, folder = self._disk_error, self._log.parent
        self._disk_error = error = disk_error(folder, was_full=is_full(before))
        if error is not None and before is None:
            log.error("the key store: %s", self._describe_disk_error(error))
        elif error is None and before is not None:
            log.info("the disk of %s accepts writes again", folder)
            self.due = None if self.due is None else 0.0  # no need to wait any longer
        full = is_full(error)
        if self.runs and full != self._limited and replies(socket, _limit_command(full=full), b"+OK"):
            self._limited = full

    def problems(self, now: float) -> list[str]:
        found = [] if self._disk_error is None else [f"the key store: {self._describe_disk_error(self._disk_error)}"]
        if self.restarts.recent_count(now) >= _LOOPING:
            found.append(f"the embedded server for {self._role} keeps ending: {self.explain_end()}")
        return found

    def explain_end(self) -> str:
        """Returns why it ended last, and the remedy."""
        if self._disk_error is not None:
            return self._describe_disk_error(self._disk_error)
        if self._role == "keys" and _DAMAGED.search(self.cause):
            return _REPAIR.format(self.cause)
        return f"{self.cause}; see {self._log}"

    def _describe_disk_error(self, error: OSError) -> str:
        if is_full(error):
            return disk_full(str(self._log.parent.absolute()))
        return f"{error.filename or self._log.parent} cannot be written ({error.strerror}): make it writable"


def _limit_command(*, full: bool) -> str:
    """Returns the command that limits memory, and rewrites of the file, which would need as much space again."""
    limit, growth = (DISK_FULL_BYTES, 0) if full else (0, 100)
    return f"CONFIG SET maxmemory {limit} auto-aof-rewrite-percentage {growth}"
