"""The program that reads a drop (reader.py starts it): ``python -m warehouse.drops.reader_process MEMORY PARENT``.

The request comes on standard input, as MessagePack, which knows infinite limits; steps and, last, the outcome go to
standard output, a line of JSON each.
"""

import resource
import signal
import sys

from config.processes import belong_to

_MAX_FILE_BYTES = 16 << 30
_MAX_OPEN_FILES = 1024


def limit(memory: int) -> None:
    for what, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, given = resource.getrlimit(what)
        resource.setrlimit(what, (most if given == resource.RLIM_INFINITY else min(most, given), given))


def main() -> None:
    memory, parent = map(int, sys.argv[1:])
    belong_to(parent)  # which, when it is killed, cannot end its reader
    for number in (signal.SIGTERM, signal.SIGINT):  # meant for the parent, when all processes are sent them
        signal.signal(number, signal.SIG_IGN)
    limit(memory)
    # only now, because it takes a third of a second in which the parent may end
    from warehouse.drops.reader import serve_request

    serve_request(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
