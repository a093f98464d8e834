"""Names what makes a Parquet file unreadable, and what helps. Another export would often give the same file again."""

import codecs
import contextlib
import os
import re
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.rules.rule import EXPORT_AGAIN

_MARKER = b"PAR1"
_FOOTER_START = b"\x15"  # the first field of every footer: the version
_SAMPLE_BYTES = 1 << 20  # enough to recognise a file that was transferred as text
# Line feeds in a damaged file: by chance, not all of a few follow a carriage return, and at least one of many does.
_FEW_LINES, _MANY_LINES = 4, 1024

_AS_TEXT = "was changed by a transfer in text mode: "
_BINARY = "transfer it in binary mode (FTP: binary; Git: *.parquet binary in .gitattributes)"
_CODECS = "export it with the compression SNAPPY, GZIP or ZSTD"
_ENCODINGS = "export it with plain or dictionary encoding (parquet-java: writer version PARQUET_1_0)"


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a file. Created for one finding."""

    what: str  # follows the file in a message
    remedy: str


# Regular expression for a message of DuckDB or pyarrow -> its meaning. The first that matches decides.
_MEANINGS: tuple[tuple[str, Fault], ...] = (
    ("(?i)encrypt|decrypt", Fault("is encrypted", "export it without encryption")),
    ("UTF8", Fault("has text that is not UTF-8", "export text as UTF-8")),
    (r"(?i)\bcodec\b|compression is supported", Fault("has a compression that cannot be read", _CODECS)),
    ("(?i)un[a-z]+ encoding|encoding.* not", Fault("has an encoding that cannot be read", _ENCODINGS)),
    (r"type \(20\)", Fault("has a BSON column, which cannot be read", "leave it out, or export the values inside")),
    ("Decimal precision", Fault("has a DECIMAL of more than 76 digits", "export it with at most 38 digits")),
)
_NEWER = Fault("has a compression, an encoding or a type that cannot be read", f"{_CODECS}, without newer encodings")


def find_fault(path: Path) -> Fault | None:
    """Returns a fault that may leave the file readable, with wrong or missing rows. Raises OSError."""
    files = len(_ends(path, 2 * _MARKER)) + 1
    if files == 1:
        return None
    return Fault(f"is {files:,} Parquet files joined into one", "deliver them as separate files in one folder")


def find_more(path: Path, label: str, size: int) -> Fault | None:
    """Returns the fault of a file of `size` bytes that has more bytes after its end; None if it has no end."""
    end = 0
    with contextlib.suppress(OSError):
        end = max(_ends(path, _MARKER), default=0)
    if not end:
        return None
    remedy = f"find out what adds them, or cut them off: truncate -s {end} {label}"
    return Fault(f"has {size - end:,} byte(s) after its end", remedy)


def _ends(path: Path, mark: bytes) -> list[int]:
    """Returns where Parquet files end inside a file: with a footer, its length and a marker, at the start of `mark`."""
    ends = []
    with path.open("rb") as stream:
        offset, window = 0, b""
        while block := stream.read(_SAMPLE_BYTES):
            window += block
            for found in re.finditer(mark, window):
                at = offset + found.start()
                length = int.from_bytes(os.pread(stream.fileno(), 4, max(0, at - 4)), "little")
                if 0 < length <= at - 8 and os.pread(stream.fileno(), 1, at - 4 - length) == _FOOTER_START:
                    ends.append(at + len(_MARKER))
            offset += len(window) - len(mark) + 1
            window = window[1 - len(mark) :]  # a mark may begin in one block and end in the next
    return ends


def explain(path: Path, prefix: str, reason: str) -> Fault:
    """Returns what is wrong with a file that a library failed to read. `prefix` precedes an unknown `reason`."""
    with contextlib.suppress(OSError), path.open("rb") as stream:
        if fault := _text_fault(stream.read(_SAMPLE_BYTES)):
            return fault
    for pattern, fault in _MEANINGS:
        if re.search(pattern, reason):
            return Fault(f"{fault.what} ({reason})", fault.remedy)
    if reason.startswith("TProtocolException"):
        # unlike DuckDB, pyarrow reads a footer with numbers of unknown codecs and the like
        with contextlib.suppress(OSError, pa.ArrowException, UnicodeDecodeError):
            pq.read_metadata(path)
            return _NEWER
    return Fault(f"{prefix}: {reason}", EXPORT_AGAIN)


def _text_fault(head: bytes) -> Fault | None:
    """Returns the fault of an unreadable file that was transferred as if it were text, by its beginning."""
    lines, returned = head.count(b"\n"), head.count(b"\r\n")
    if _FEW_LINES <= lines == returned:
        return Fault(f"{_AS_TEXT}each line feed has a carriage return before it", _BINARY)
    if lines >= _MANY_LINES and not returned:
        return Fault(f"{_AS_TEXT}no line feed has a carriage return before it", _BINARY)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # it may end inside a character
    except UnicodeDecodeError:
        return None
    return None if head.isascii() else Fault(f"{_AS_TEXT}its bytes were converted to UTF-8", _BINARY)
