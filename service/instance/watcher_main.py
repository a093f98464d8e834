"""The process that watches an instance's inbox: ``python -m service.instance.watcher_main PARENT CONTROL_FD``.

The supervisor starts it. It handles raw drops, so it must not serve requests (Decision 8). It publishes like the
command line.
"""

import logging
import os

from config.processes import name_process
from service.base import logs
from service.base.ipc import WatchOrders
from service.inbox.report import log_event
from service.inbox.watcher import make_watcher, stoppable
from service.instance.kept_main import Control


def _watch(control: Control) -> None:
    orders = control.take_orders(WatchOrders)
    settings = orders.settings
    logs.configure("json" if orders.log_json else "text", settings.log_level)
    with stoppable(log_event):
        make_watcher(settings, log_event, control.report).watch()


def main() -> None:
    name_process("inbox")
    _watch(Control())
    logging.shutdown()
    os._exit(0)  # the listening thread cannot be stopped, and libraries warn about it at a normal exit


if __name__ == "__main__":
    main()
