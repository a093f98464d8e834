"""One embedded server as its owner keeps it: when it is started again, why it ended, and whether its disk is full."""

import logging
import re
import subprocess
from pathlib import Path

from service.base.backoff import CALM_SECONDS, Backoff, Restarts
from service.embedded.disk import disk_error, is_full
from service.embedded.repair import plain_damage
from service.embedded.runtime import EmbeddedError, replies
from service.redis.server import DISK_FULL_BYTES, disk_full

log = logging.getLogger("forecast.embedded")

_LONGEST_PAUSE_SECONDS = 30.0
# A server that was restarted so often in CALM_SECONDS does not stay.
_LOOPING = 2
_LOG_BYTES = 4096
# Warnings of a server that cannot read its own files.
_DAMAGED = re.compile(
    r"^(?!.*(?:write error|fsync)).*(?:append.only file|append log|\b(?:AOF|aof|RDB)\b|manifest|loading DB)"
)
# Its advice names a tool that is not there.
_ADVICE = re.compile(r": make a backup|\. You can")
_REPAIR = "its files are damaged ({}): stop what uses them; `forecast keys repair` shows what is lost, and repairs them"


class Server:
    """`due`: when it is started again after it ended, in monotonic seconds. `cause`: why it ended last."""

    def __init__(self, role: str, log_file: Path) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.began = 0.0
        self.due: float | None = None
        self.cause = ""
        self.restarts = Restarts()
        self._role = role
        self._log = log_file
        self._disk_error: OSError | None = None
        self._told_full = False
        self._backoff = Backoff(longest=_LONGEST_PAUSE_SECONDS, settled=CALM_SECONDS)

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def notice_end(self, now: float) -> None:
        if self.process is not None and not self.runs and self.due is None:
            self.ended(self.last_words(), now)

    def ended(self, cause: str, now: float) -> None:
        """It is started again at once after a calm time, then later and later."""
        self.cause = cause
        self.due = now + self._backoff.after(now - self.began if self.restarts.lately(now) else CALM_SECONDS + 1)

    def last_words(self) -> str:
        """The signal that ended it, else the last error in its log, else its exit code."""
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
        """What it is started with, so that it knows from the beginning that its disk is full.

        Raises:
            EmbeddedError: if it would start as if it was new, because a part of its files is missing.
        """
        damage = plain_damage(self._log.parent) if self._role == "keys" else None
        if damage is not None:
            raise EmbeddedError(damage)
        self._told_full = is_full(self._disk_error)
        return ["--maxmemory", str(DISK_FULL_BYTES), "--auto-aof-rewrite-percentage", "0"] if self._told_full else []

    def look_at_disk(self, socket: str) -> None:
        """Reserves space for its append-only file, and lets it know whether its disk is full. May hang."""
        before, folder = self._disk_error, self._log.parent
        self._disk_error = error = disk_error(folder, was_full=is_full(before))
        if error is not None and before is None:
            log.error("the key store: %s", self._of_disk(error))
        elif error is None and before is not None:
            log.info("the disk of %s takes writes again", folder)
            self.due = None if self.due is None else 0.0  # no need to wait any longer
        full = is_full(error)
        if self.runs and full != self._told_full and replies(socket, _limited(full=full), b"+OK"):
            self._told_full = full

    def problems(self, now: float) -> list[str]:
        found = [] if self._disk_error is None else [f"the key store: {self._of_disk(self._disk_error)}"]
        if self.restarts.lately(now) >= _LOOPING:
            found.append(f"the embedded server for {self._role} does not stay: {self.why()}")
        return found

    def why(self) -> str:
        """Why it ended last, and what to do."""
        if self._disk_error is not None:
            return self._of_disk(self._disk_error)
        if self._role == "keys" and _DAMAGED.search(self.cause):
            return _REPAIR.format(self.cause)
        return f"{self.cause}; see {self._log}"

    def _of_disk(self, error: OSError) -> str:
        if is_full(error):
            return disk_full(str(self._log.parent.absolute()))
        return f"{error.filename or self._log.parent} cannot be written ({error.strerror}): make it writable"


def _limited(*, full: bool) -> str:
    """A full disk takes no rewritten file either: it would need as much space again."""
    limit, growth = (DISK_FULL_BYTES, 0) if full else (0, 100)
    return f"CONFIG SET maxmemory {limit} auto-aof-rewrite-percentage {growth}"
