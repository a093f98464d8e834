"""The program `forecast`. ``python -m service`` is the same, for when the script is not on the PATH."""

import logging
import os
import sys
import threading

from config.processes import collect_seldom
from service.base import interruption


def run() -> None:
    try:
        _run()
    except SystemExit as ended:
        _end_at_once(ended.code)
        raise


def _run() -> None:
    interruption.arm()
    collect_seldom()
    try:
        from service.cli import main  # here, because Ctrl-C may come while it is imported

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


def _end_at_once(code: object) -> None:
    """Ends the process, which has nothing left to do: to take its interpreter apart takes 50 ms.

    Returns where something is left for an orderly end: a message, a thread, or output that cannot be written.
    """
    waited_for = [thread for thread in threading.enumerate() if not thread.daemon]  # this one among them
    if not isinstance(code, int | None) or len(waited_for) > 1:
        return
    try:
        logging.shutdown()
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code or 0)


if __name__ == "__main__":
    run()
