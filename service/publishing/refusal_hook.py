"""Runs the operator's command when a drop of the inbox is refused or held."""

import contextlib
import os
import shlex
import signal
import subprocess
from pathlib import Path

from config.settings import ENVIRONMENT_PREFIX, is_secret, names

MAX_HOOK_SECONDS = 30.0


def run_command(command: str, name: str, folder: str) -> str | None:
    """Runs `command`, without a shell, for the drop `name` in `folder`; returns how it failed, None if it did not.

    `folder` lies in quarantine/ or held/.

    The message repeats neither the command, which may contain a token, nor its output.
    """
    drop = {
        "DROP_NAME": name,
        "DROP_RESULT": "held" if Path(folder).parent.name == "held" else "refused",
        "DROP_PATH": str(Path(folder) / name),
        "DROP_REPORT": str(Path(folder) / "report.json"),
    }
    try:
        with subprocess.Popen(  # noqa: S603 - the operator's own command, split as a shell would, run without one
            shlex.split(command),
            env=_environment() | drop,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that its own children can be killed with it
        ) as process:
            try:
                code = process.wait(MAX_HOOK_SECONDS)
            except BaseException:  # it takes too long, or the watcher stops
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    except subprocess.TimeoutExpired:
        return f"it did not end within {MAX_HOOK_SECONDS:g} s"
    except (OSError, ValueError, IndexError) as error:
        return f"it cannot be run: {getattr(error, 'strerror', None) or type(error).__name__}"
    return None if code == 0 else f"it ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"


def _environment() -> dict[str, str]:
    """This process's environment without our secrets, which the command must not see."""
    secrets = {
        f"{ENVIRONMENT_PREFIX}{name.upper()}{suffix}" for name in names() if is_secret(name) for suffix in ("", "_FILE")
    }
    return {name: value for name, value in os.environ.items() if name not in secrets}
