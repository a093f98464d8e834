"""The program `forecast`. ``python -m service`` is the same, for when the script is not on the PATH."""

import logging
import os
import sys
import threading

import forecast_command
from config.processes import collect_seldom
from service.base import interruption

_FAILED = 1


def run() -> None:
    code = _code()
    _end_at_once(code)
    sys.exit(code)


def _code() -> int | str | None:
    """Runs the command; returns its exit code."""
    code: int | str | None = None
    try:
        try:
            _run()
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
    except OSError as error:
        from config import streams

        if error.filename != streams.STDOUT:
            raise
        streams.abandon_stdout()
        if code:
            return code  # the command has told why
        if not isinstance(error, BrokenPipeError):  # else its reader has gone, as `head` does
            sys.stderr.write(f"forecast: {error.filename}: {error.strerror}\n")
        return _FAILED
    return code


def _run() -> None:
    interruption.arm()
    collect_seldom()
    try:
        from config import streams  # here, because Ctrl-C may come while these are imported

        streams.open_streams()
        from service.cli import main

        main(prog_name="forecast")
    except SystemExit:
        raise
    except BaseException:
        if interruption.asked():
            interruption.end_interrupted()
        raise
    finally:
        try:
            interruption.disarm()
        except KeyboardInterrupt:  # in this very moment: the command has ended
            interruption.disarm()


def _end_at_once(code: int | str | None) -> None:
    """Ends the process, which has nothing left to do: to take its interpreter apart takes 50 ms.

    Returns where something is left for an orderly end: a message, a thread, or output that cannot be written.
    """
    waited_for = [thread for thread in threading.enumerate() if not thread.daemon]  # this one among them
    if isinstance(code, str) or len(waited_for) > 1:
        return
    try:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(code or 0)


if __name__ == "__main__":
    forecast_command.run()
