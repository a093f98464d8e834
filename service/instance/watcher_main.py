"""The process that watches an instance's inbox: ``python -m service.instance.watcher_main PARENT CONTROL_FD``.

The supervisor starts it. It handles raw drops, so it must not serve requests (Decision 8). It publishes like the
command line.
"""

from service.inbox.report import log_event
from service.inbox.watcher import make_watcher, stoppable
from service.instance.kept_main import Control, run


def _watch(control: Control) -> None:
    settings = control.take_orders().settings
    with stoppable(log_event):
        make_watcher(settings, settings.inbox or "", log_event, control.report).watch()


def main() -> None:
    run("inbox", _watch)


if __name__ == "__main__":
    main()
