"""The program `forecast`. ``python -m service`` runs it too, if the script is not on the PATH."""

import logging
import os
import sys
import threading

import forecast_command
from config.processes import collect_seldom
from service.base import interruption

_FAILED = 1


def run() -> None:
    code = _run_command()
    _end_at_once(code)
    sys.exit(code)


def _run_command() -> int | str | None:
    """Runs the command; returns its exit code."""
    code: int | str | None = None
    try:
        try:
            _run()
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
    except OSError as error:
        from config import streams

        if error.filename != streams.STDOUT:
            raise
        streams.abandon_stdout()
        if code:
            return code  # the command has printed the reason
        if not isinstance(error, BrokenPipeError):  # else its reader, such as `head`, has exited
            sys.stderr.write(f"forecast: {error.filename}: {error.strerror}\n")
        return _FAILED
    return code


def _run() -> None:
    interruption.arm()
    # a silent name server delays a look-up by 2 s instead of 10 s (resolv.conf(5))
    os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:2")
    collect_seldom()
    try:
        from config import streams  # imported here, so that Ctrl-C during the import is handled

        streams.open_streams()
        from service.cli import main

        main(prog_name="forecast")
    except SystemExit:
        raise
    except BaseException:
        if interruption.received_signal():
            interruption.end_interrupted()
        raise
    finally:
        try:
            interruption.disarm()
        except KeyboardInterrupt:  # just now, after the command has ended
            interruption.disarm()


def _end_at_once(code: int | str | None) -> None:
    """Ends the process without the interpreter's shutdown, which takes 50 ms.

    Returns if a normal exit is needed: for a message, a running thread, or output that cannot be written.
    """
    threads = [thread for thread in threading.enumerate() if not thread.daemon]  # including this one
    if isinstance(code, str) or len(threads) > 1:
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
