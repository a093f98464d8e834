"""Which signals ask a command or an instance to stop tidily."""

import signal


def stop_signals() -> tuple[signal.Signals, ...]:
    """A hangup is one of them unless it is ignored, as under nohup."""
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGTERM, signal.SIGINT, *hangup)
