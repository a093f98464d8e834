"""Parquet files whose footer says something else."""

import struct
from collections.abc import Callable
from pathlib import Path


def change_footer(path: Path, change: Callable[[bytes], bytes]) -> None:
    whole = path.read_bytes()
    start = len(whole) - 8 - int(struct.unpack("<i", whole[-8:-4])[0])
    footer = change(whole[start:-8])
    path.write_bytes(whole[:start] + footer + struct.pack("<i", len(footer)) + b"PAR1")


def varint(number: int) -> bytes:
    """A 64-bit field as Thrift writes it: its zigzag number in groups of seven bits, behind its type."""
    groups, left = [], number << 1
    while left > 0x7F:
        groups.append(left & 0x7F | 0x80)
        left >>= 7
    return b"\x16" + bytes([*groups, left])
