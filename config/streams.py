"""The standard streams of our processes. Text from any writer (a command, a library, a traceback) is made harmless. An
error names its stream. All three streams are always open.
"""

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from config.text import escaped, printable_lines

STDIN, STDOUT, STDERR = "standard input", "standard output", "standard error"
# How /dev/null replaces a stream that is closed at the start. Reading and writing stay errors, as on a closed stream,
# except on standard error, whose errors are unwanted once it is closed.
_STAND_INS = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)
# Error handler that escapes characters that a terminal's encoding lacks.
_LACKING = "escaped"


class _Reader(io.BufferedReader):
    def read(self, size: int | None = -1, /) -> bytes:
        with _errors_of(STDIN):
            return super().read(size)
        return b""

    def readline(self, size: int | None = -1, /) -> bytes:
        with _errors_of(STDIN):
            return super().readline(size)
        return b""


class _Writer(io.BufferedWriter):
    """Names its stream in errors. It is a buffer, not a FileIO: if a signal handler raised in a FileIO's Python code,
    the same data would be written again.
    """

    def __init__(self, descriptor: int, called: str) -> None:
        super().__init__(io.FileIO(descriptor, "w", closefd=False))
        self._called = called

    def write(self, data: Any, /) -> int:
        with _errors_of(self._called):
            return super().write(data)
        return len(data)

    def flush(self) -> None:
        with _errors_of(self._called):
            super().flush()


@contextmanager
def _errors_of(called: str) -> Iterator[None]:
    """Names the stream in errors. Those of standard error are dropped: there is nowhere to report them."""
    try:
        yield
    except OSError as error:
        if called == STDERR:
            return
        why = "it is closed" if error.errno == errno.EBADF else error.strerror
        raise OSError(error.errno, why, called) from None


class HarmlessText(io.TextIOWrapper):
    """A text stream that escapes unprintable characters."""

    ascii_only = False

    def write(self, text: str) -> int:
        return self.write_as_is(printable_lines(text))

    def write_as_is(self, text: str) -> int:
        """Writes text that was made harmless before colours were added."""
        return super().write(text.encode("ascii", _LACKING).decode() if self.ascii_only else text)


class AsIs:
    """Wraps `stream` for a writer that makes text harmless itself, and then adds colours."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.write = getattr(stream, "write_as_is", stream.write)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def open_streams() -> None:
    """Opens missing standard streams, so that no file or socket takes their place, and makes all of them harmless.

    Call it before any file or socket is opened.
    """
    for descriptor, stand_in in enumerate(_STAND_INS):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, stand_in), True)  # gets the lowest free number: this one
    codecs.register_error(_LACKING, _escape_lacking)
    reader = _Reader(io.FileIO(0, closefd=False))
    sys.stdin = io.TextIOWrapper(reader, _encoding(sys.stdin), "surrogateescape")
    sys.stdout = _writer(1, STDOUT, sys.stdout)
    sys.stderr = _writer(2, STDERR, sys.stderr)


def abandon_stdout() -> None:
    """Discards output that could not be written, so that the exit of the process does not fail on it again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def _writer(descriptor: int, called: str, before: Any) -> HarmlessText:
    buffer = _Writer(descriptor, called)
    at_once = called == STDERR or os.isatty(descriptor)
    encoding = _encoding(before)
    stream = HarmlessText(buffer, encoding, _LACKING, newline="\n", line_buffering=at_once)
    stream.ascii_only = before is not None and codecs.lookup(before.encoding).name == "ascii"
    return stream


def _encoding(stream: Any) -> str:
    # not ASCII, for which click would open its own stream
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return "utf-8" if codecs.lookup(encoding).name == "ascii" else encoding


def _escape_lacking(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return escaped(error.object[error.start : error.end]), error.end
