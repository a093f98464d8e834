"""The process that reads a drop, which reader.py starts. Arguments: MEMORY PARENT.

The request arrives on standard input, in MessagePack because limits may be infinite. The steps and then the outcome go
to standard output, one line of JSON each.
"""

import resource
import signal
import sys
from typing import BinaryIO

from config.processes import belong_to, collect_seldom, offer_to_kill

_MAX_FILE_BYTES = 16 << 30
_MAX_OPEN_FILES = 1024


def limit(memory: int) -> None:
    """Limits this process: `memory` in bytes, the size of files, the number of open files; no core dumps."""
    for kind, most in (
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    memory, parent = map(int, sys.argv[1:])
    belong_to(parent)  # a killed parent cannot end its reader
    for number in (signal.SIGTERM, signal.SIGINT):  # sent to all processes, but only the parent handles them
        signal.signal(number, signal.SIG_IGN)
    limit(memory)
    offer_to_kill(1000)
    collect_seldom()
    _serve(sys.stdin.buffer, sys.stdout.buffer)


def _serve(source: BinaryIO, output: BinaryIO) -> None:
    # imported last: it takes a third of a second, in which the parent may end
    import msgspec

    from config.text import printable
    from warehouse.drops.messages import ReaderLine, ReadRequest
    from warehouse.drops.pipeline import read_drop

    def send(line: ReaderLine) -> None:
        output.write(msgspec.json.encode(line) + b"\n")
        output.flush()

    request = msgspec.msgpack.decode(source.read(), type=ReadRequest)
    send(ReaderLine(outcome=read_drop(request, lambda step: send(ReaderLine(step=printable(step))))))
