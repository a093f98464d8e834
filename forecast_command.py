"""The program `forecast`, and the start of every other process of ours: ``python -P forecast_command.py MODULE ...``.

It has a name that nothing else has, and it finds our packages beside itself. A `config.py` in the current folder, or
anything on PYTHONPATH, is not imported in place of one of ours.
"""

import importlib
import os
import site
import sys
from pathlib import Path

_OURS = ("config", "service", "warehouse")


def _isolate() -> None:
    """Leaves PYTHONPATH and the current folder out of the path, and imports our packages from this file's folder."""
    beside, python = str(Path(__file__).parent), Path(os.__file__).parent
    theirs = {_absolute(entry) for entry in ("", *os.environ.get("PYTHONPATH", "").split(os.pathsep))}
    installed = {str(python), str(python / "lib-dynload"), *site.getsitepackages()}
    path = [entry for entry in sys.path if _absolute(entry) not in theirs - installed]
    sys.path[:] = [beside]  # alone: where we are installed, other packages could be taken for those of Python
    for name in _OURS:
        importlib.import_module(name)
    sys.path[:] = path if beside in path else [*path, beside]


def _absolute(entry: str) -> str:
    try:
        return os.path.abspath(entry)  # noqa: PTH100 - as Python made the path from it
    except OSError:  # the current folder was removed
        return entry


_isolate()  # already when this is imported, so that what imports it can import ours next


def run() -> None:
    """Runs the command."""
    importlib.import_module("service.__main__").run()


def main() -> None:
    """Runs `main` of the module that the first argument names, in a process that one of ours started."""
    importlib.import_module("config.streams").open_streams()
    del sys.argv[0]
    importlib.import_module(sys.argv[0]).main()


if __name__ == "__main__":
    main()
