"""Columns of Parquet files with the types that other writers declare."""

from pathlib import Path

from tests.warehouse.footers import change_footer


def old(number: int, *numbers: int) -> bytes:
    """The old notation; for decimals with scale and precision."""
    return b"\x25" + bytes([number * 2]) + b"".join(b"\x15" + zigzag(one) for one in numbers)


def new(field: int, body: bytes = b"") -> bytes:
    """The new notation without the old one."""
    head = bytes([field << 4 | 0xC]) if field < 16 else b"\x0c" + bytes([field * 2])
    return b"\x6c" + head + body + b"\x00\x00"


def zigzag(number: int) -> bytes:
    return bytes([number * 2]) if number < 64 else bytes([number * 2 & 0x7F | 0x80, number * 2 >> 7])


def annotate(path: Path, column: str, annotation: bytes) -> None:
    """Gives a column without a type of its own this one."""
    name = b"\x18" + bytes([len(column)]) + column.encode()
    change_footer(path, lambda footer: footer.replace(name + b"\x00", name + annotation + b"\x00"))
